"""The option paraview of the drivers: what they write, continue and refuse."""

import numpy as np

from meanfield.runtime.record import read_record
from tests.paraview_reader import read_series

PARTICLES = ("drivers/particles.py", "--paraview", "--count", "20", "--integrator", "rk4",
             "--length", "0.1", "--ambient-dim", "3", "--beta", "2")
COMPARE = ("drivers/compare.py", "--paraview", "--particles", "[30]", "--interval", "0.25",
           "--degree", "16", "--ambient-dims", "[2]", "--finite-elements", "off")


def start(run_on_ranks, ranks, *arguments):
    finished = run_on_ranks(ranks, *arguments)
    assert finished.returncode == 0, finished.stdout


def test_the_series_shows_the_snapshots_of_the_record(run_on_ranks, tmp_path):
    # Begun on two ranks, continued on one.
    start(run_on_ranks, 2, *PARTICLES, "--until", "2", "--output", tmp_path)
    start(run_on_ranks, 1, *PARTICLES, "--until", "4", "--output", tmp_path, "--restart")
    steps = read_series(tmp_path / "paraview" / "particles.vtkhdf")
    snapshots = read_record(tmp_path / "record.h5").snapshots
    assert [step.time for step in steps] == snapshots["time"].tolist() == [0, 1, 2, 3, 4]
    for step, nodes, masses in zip(steps, snapshots["nodes"], snapshots["masses"], strict=True):
        np.testing.assert_array_equal(step.point_arrays["id"], np.arange(20))
        np.testing.assert_array_equal(step.points, nodes)
        np.testing.assert_array_equal(step.point_arrays["mass"], masses)
    # A run that replaces this one leaves none of its series.
    start(run_on_ranks, 1, *(a for a in PARTICLES if a != "--paraview"), "--until", "0.1",
          "--output", tmp_path, "--overwrite")
    assert not list(tmp_path.glob("paraview/*"))


def test_higher_dimensions_are_refused_before_any_work(run_on_ranks, tmp_path):
    finished = run_on_ranks(2, *PARTICLES, "--ambient-dim", "5", "--output", tmp_path / "run")
    assert finished.returncode == 2, finished.stdout
    assert "ParaView shows those of R² and R³" in finished.stdout
    assert not list((tmp_path / "run").iterdir())


def test_the_comparison_shows_clouds_and_tracers(run_on_ranks, tmp_path):
    start(run_on_ranks, 2, *COMPARE, "--until", "0.5", "--output", tmp_path)
    start(run_on_ranks, 2, *COMPARE, "--until", "1", "--output", tmp_path, "--restart")
    series = {path.stem: read_series(path) for path in tmp_path.glob("circle/paraview/*")}
    assert set(series) == {"even_30", "random_30", "tracers"}
    for steps in series.values():
        assert [step.time for step in steps] == [0, 0.25, 0.5, 0.75, 1]
        for step in steps:
            assert abs(step.point_arrays["mass"].sum() - 1) < 1e-14
            np.testing.assert_allclose(np.linalg.norm(step.points, axis=1), 1, atol=1e-14)
    # Tracers begin as the evenly spread particles and stay with them.
    together = zip(series["even_30"], series["tracers"], strict=True)
    separations = [np.abs(one.points - other.points).max() for one, other in together]
    assert separations[0] == 0
    assert 0 < separations[-1] < 0.02
