import json

import numpy as np
import pytest

from meanfield.runtime.output import prepare_directory, write_summary


def test_a_new_directory_is_made_with_its_parents(tmp_path):
    assert prepare_directory(tmp_path / "a" / "b").is_dir()


def test_what_is_there_is_kept_unless_asked(tmp_path):
    for name in ("record.h5", "figure.png", "notes.txt"):
        (tmp_path / name).touch()
    with pytest.raises(OSError, match="--overwrite"):
        prepare_directory(tmp_path)
    prepare_directory(tmp_path, restart=True)
    assert (tmp_path / "record.h5").exists()
    prepare_directory(tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_contradictions_and_impossible_places(tmp_path):
    with pytest.raises(ValueError, match="contradict"):
        prepare_directory(tmp_path, overwrite=True, restart=True)
    with pytest.raises(OSError, match="no run to restart"):
        prepare_directory(tmp_path / "new", restart=True)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot be written"):
        prepare_directory(tmp_path / "file" / "below")


def test_summary_is_plain_json(tmp_path):
    path = tmp_path / "summary.json"
    summary = {"a": np.float64(1.5), "b": [np.int64(2), np.nan], "c": np.arange(2)}
    write_summary(path, summary | {"d": {"é": None}})
    assert json.loads(path.read_text()) == {"a": 1.5, "b": [2, None], "c": [0, 1], "d": {"é": None}}
