"""The particle driver: starts from files, stopping rules, and input that cannot be used."""

import json

import numpy as np
import pytest

from meanfield.runtime.record import read_record
from meanfield.sphere.geometry import circle_points

DRIVER = "drivers/particles.py"


def test_two_particles_meet(run_on_ranks, tmp_path):
    # On more ranks than particles: they attract each other until they are one cluster.
    start = tmp_path / "start.csv"
    np.savetxt(start, circle_points([0.2, 1.4]), delimiter=",", header="x,y", comments="")
    finished = run_on_ranks(
        3, DRIVER, "--start", "file", "--start-file", start, "--activation", "none", "--beta", "2",
        "--until", "15", "--tolerance", "1e-6", "--output", tmp_path / "run",
    )
    assert finished.returncode == 0, finished.stdout
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["cluster_masses"] == [1.0]
    np.testing.assert_allclose(summary["cluster_centres"], circle_points([0.8]), atol=1e-6)
    assert summary["stationary"] == "not certified"
    assert (tmp_path / "run" / "particles.png").stat().st_size > 30_000


@pytest.mark.parametrize("ambient_dim", [3, 10])
def test_ranks_change_nothing(run_on_ranks, tmp_path, ambient_dim):
    nodes = []
    for ranks in (1, 3):
        folder = tmp_path / str(ranks)
        finished = run_on_ranks(
            ranks, DRIVER, "--ambient-dim", ambient_dim, "--count", "40", "--until", "3",
            "--integrator", "rk4", "--length", "0.1", "--diffusion", "0.01", "--output", folder,
        )
        assert finished.returncode == 0, finished.stdout
        nodes.append(read_record(folder / "record.h5").snapshots["nodes"])
    np.testing.assert_allclose(nodes[0], nodes[1], atol=1e-12)


def test_the_rule_of_the_papers_stops_it(run_on_ranks, tmp_path):
    finished = run_on_ranks(
        2, DRIVER, "--integrator", "euler", "--length", "0.1", "--settle", "--until", "1000",
        "--beta", "1", "--count", "100", "--output", tmp_path,
    )
    assert finished.returncode == 0, finished.stdout
    assert "clusters over 5 snapshots" in finished.stdout
    assert "it may be metastable" in finished.stdout


def bad_file(folder, nodes, masses=None):
    path = folder / "start.npz"
    arrays = {"nodes": nodes} if masses is None else {"nodes": nodes, "masses": masses}
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("nodes", "masses", "message"),
    [
        ([[1.0, 0.1]], None, "length 1.00498"),
        ([[1.0, 0.0], [np.nan, 0.0]], None, "nan"),
        ([[1.0, 0.0]], [0.5], "masses sum to 0.5"),
        ([[1.0, 0.0, 0.0]], None, "points of R^3: expected R^2"),
    ],
)
def test_unusable_points_end_with_status_2(run_on_ranks, tmp_path, nodes, masses, message):
    path = bad_file(tmp_path, nodes, masses)
    finished = run_on_ranks(
        2, DRIVER, "--start", "file", "--start-file", path, "--output", tmp_path / "run"
    )
    assert finished.returncode == 2, finished.stdout
    assert finished.stdout.count("error: ") == 1
    assert message in finished.stdout


def test_a_truncated_checkpoint_ends_with_status_2(run_on_ranks, tmp_path):
    arguments = (DRIVER, "--until", "1", "--count", "10", "--output", tmp_path / "run")
    assert run_on_ranks(1, *arguments).returncode == 0
    checkpoint = tmp_path / "run" / "checkpoint.h5"
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    finished = run_on_ranks(2, *arguments, "--restart")
    assert finished.returncode == 2, finished.stdout
    assert "damaged or no checkpoint" in finished.stdout


def test_a_matrix_of_the_wrong_shape_ends_with_status_2(run_on_ranks, tmp_path):
    finished = run_on_ranks(
        2, DRIVER, "--B", "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]", "--output", tmp_path / "run"
    )
    assert finished.returncode == 2, finished.stdout
    assert "B has shape (3, 3): expected (2, 2)" in finished.stdout
