"""The benchmark's baseline computes what it is compared with, and its report says what it is."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module", params=(2, 3))
def row(request):
    command = [sys.executable, str(BENCHMARKS / "right_hand_side.py"), "--dense"]
    command += ["--dimension", str(request.param), "--particles", "300", "--beta", "5"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(finished.stdout)


def test_dense_numpy_and_the_fast_sum_agree(row):
    assert 0 < row["error"] < 1e-11


def test_times_and_memory_are_measured(row):
    assert all(row[name] > 0 for name in ("fast", "direct", "dense", "dense_in_place"))
    # A process starts with its parent's largest memory.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    assert 20 < row["memory"] < 500 + inherited


def test_what_is_extrapolated_grows_like_the_square_and_is_marked(monkeypatch, row):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import report

    small = {**row, "dense": 2.0}
    large = {name: row[name] for name in ("dimension", "beta", "degree", "fast", "memory")}
    large["particles"] = 10 * row["particles"]
    completed = report._extrapolated([small, large])
    assert [r["dense"] for r in completed] == [2.0, 200.0]
    lines = report._table_of_sums(completed).splitlines()
    assert "≈" not in lines[2]
    assert "≈ 200 s" in lines[3]
