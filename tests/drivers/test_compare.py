"""The comparison at low resolution: what it writes, and that ranks and restarts change nothing."""

import json

import numpy as np
import pytest

from meanfield.runtime.record import read_record

SMALL = (
    "drivers/compare.py", "--particles", "[100, 400]", "--until", "1", "--interval", "0.25",
    "--ambient-dims", "[2, 3]", "--degree", "16",
)


def compare(run_on_ranks, ranks, folder, *more):
    finished = run_on_ranks(ranks, *SMALL, "--output", folder, *more, timeout=120)
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


@pytest.fixture(scope="module")
def serial_run(tmp_path_factory, run_on_ranks_everywhere):
    folder = tmp_path_factory.mktemp("serial")
    text = compare(run_on_ranks_everywhere, 1, folder)
    return folder, text


def test_it_ends_with_a_summary_and_figures(serial_run):
    folder, text = serial_run
    assert "circle S¹" in text
    assert "sphere S²" in text
    assert "slope" in text
    summary = json.loads((folder / "summary.json").read_text())
    for name in ("circle", "sphere"):
        assert summary[name]["outcome"] == "reached time 1"
        assert abs(summary[name]["density"]["mass"] - 1) < 1e-13
        assert (folder / name / "comparison.png").stat().st_size > 50_000
        # Evenly spread particles are far closer to the density than random ones.
        assert summary[name]["w2"]["even"][1] < 0.3 * summary[name]["w2"]["random"][1]
    # On the circle their distance is that of the quantiles, which falls like 1/n.
    assert summary["circle"]["w2_slope"]["even"] == pytest.approx(-1, abs=0.02)
    assert summary["circle"]["tracers"]["largest_separation"] < 1e-3


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_change_nothing(run_on_ranks, serial_run, tmp_path, ranks):
    compare(run_on_ranks, ranks, tmp_path)
    for name in ("circle", "sphere"):
        expected = read_record(serial_run[0] / name / "record.h5").table
        found = read_record(tmp_path / name / "record.h5").table
        for column in expected:
            np.testing.assert_allclose(
                found[column], expected[column], rtol=1e-9, atol=1e-11, err_msg=column
            )


def test_fewer_particles_than_ranks(run_on_ranks, tmp_path):
    compare(run_on_ranks, 3, tmp_path, "--particles", "[2]", "--ambient-dims", "[3]")


def test_a_restarted_run_has_the_same_table(run_on_ranks, serial_run, tmp_path):
    # The first run is cut short by its end; the second goes on to the same final time.
    compare(run_on_ranks, 2, tmp_path, "--until", "0.5", "--ambient-dims", "[3]")
    compare(run_on_ranks, 1, tmp_path, "--restart", "--ambient-dims", "[3]")
    expected = read_record(serial_run[0] / "sphere" / "record.h5").table
    found = read_record(tmp_path / "sphere" / "record.h5").table
    np.testing.assert_array_equal(found["time"], expected["time"])
    np.testing.assert_allclose(found["density.energy"], expected["density.energy"], rtol=1e-11)


def test_the_run_stops_where_the_density_is_no_longer_resolved(run_on_ranks, tmp_path):
    text = compare(
        run_on_ranks, 2, tmp_path, "--ambient-dims", "[2]", "--until", "50", "--max-degree", "64"
    )
    assert "density: resolution exhausted at time" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--beta", "-1"], "beta=-1: expected a finite number > 0"),
        (["--btea", "1"], "--btea: unknown option; did you mean --beta?"),
        (["--ambient-dims", "[4]"], "ambient_dims=[4]: expected one of 2, 3"),
        (["--B", "[[1, 0], [0, 1], [1, 1]]"], "B has shape (3, 2)"),
        (["--B", "[[1, 0], [0, 1]]", "--ambient-dims", "[2]"], "needs attention without B"),
        (["--diffusion", "0.1"], "needs a fixed step"),
        (["--output", "/proc/nowhere"], "output directory /proc/nowhere cannot be written"),
        (["--config", "missing.toml"], "missing.toml"),
        (["--amplitude", "huge"], "amplitude='huge'"),
        (["--a", "[[1, 0]]", "--w", "[1, 2]", "--ambient-dims", "[2]"], "w has shape (2,)"),
        (["--restart", "--output", "/tmp/no/such/run"], "there is no run to restart"),
    ],
)
def test_bad_input_ends_with_status_2(run_on_ranks, tmp_path, arguments, message):
    output = [] if "--output" in arguments else ["--output", tmp_path / "new"]
    finished = run_on_ranks(2, *SMALL, *output, *arguments)
    assert finished.returncode == 2, finished.stdout
    assert finished.stdout.count("error: ") == 1
    assert message in finished.stdout


def test_what_is_there_is_not_overwritten(run_on_ranks, tmp_path):
    (tmp_path / "precious.txt").touch()
    finished = run_on_ranks(2, *SMALL, "--output", tmp_path)
    assert finished.returncode == 2
    assert "--overwrite" in finished.stdout


def test_help_is_printed_once(run_on_ranks):
    finished = run_on_ranks(2, "drivers/compare.py", "--help")
    assert finished.returncode == 0
    assert finished.stdout.count("usage:") == 1
    assert "--tail-tolerance" in finished.stdout
