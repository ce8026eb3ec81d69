"""The comparison with a mesh density: its distances, and the driver on several ranks."""

import json

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

import meanfield as mf
from meanfield.coupling.comparison import MeshComparison
from meanfield.density.finite_element.flow import FiniteElementDensity
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.runtime.record import read_record


def uniform_on(table):
    model = mf.Model(
        mf.Attention(beta=2.0),
        mf.Perceptron(np.eye(2 if table["family"] == "circle" else 3)[:1], [1.0]),
    )
    return FiniteElementDensity(model, build_mesh(define(table)), lambda x: np.ones(len(x)))


@pytest.mark.parametrize(
    "table",
    [{"family": "circle", "cells": 200}, {"family": "icosahedral sphere", "refinements": 4}],
)
def test_an_atom_against_the_uniform_density(table):
    # On the circle, and in longitude about any axis of the sphere, W2² = ∫ θ² dθ/2π = π²/3.
    mesh = uniform_on(table)
    atom = mf.Measure(np.eye(mesh.ambient_dim)[:1], [1.0])
    distance = MeshComparison(mesh, beta=2.0).wasserstein(atom)
    assert distance.value == pytest.approx(np.pi / np.sqrt(3), rel=5e-3)


def test_the_kernel_distance_is_that_of_the_present_density():
    mesh = uniform_on({"family": "circle", "cells": 60})
    comparison = MeshComparison(mesh, beta=2.0)
    atom = mf.Measure([[0.6, 0.8]], [1.0])
    for _ in range(2):
        nodes, masses = mesh.measure()
        both, signed = np.vstack([nodes, atom.nodes]), np.append(masses, -1.0)
        squared = signed @ np.exp(2.0 * (both @ both.T - 1)) @ signed
        found = comparison.kernel_distance(atom).value
        assert found == pytest.approx(np.sqrt(squared), rel=1e-9)
        before = found
        mesh.step(0.2)
    assert comparison.kernel_distance(atom).value != before


def test_the_driver_goes_on_with_the_mesh_alike_on_any_number_of_ranks(run_on_ranks, tmp_path):
    mesh = tmp_path / "small.toml"
    mesh.write_text('family = "circle"\ncells = 64\n')
    tables = []
    for ranks in (1, 2, 3):
        folder = tmp_path / str(ranks)
        finished = run_on_ranks(
            ranks, "drivers/compare.py", "--output", folder, "--ambient-dims", "[2]",
            "--particles", "[100, 400]", "--until", "3", "--interval", "0.5",
            "--max-degree", "64", "--mesh-circle", mesh, timeout=200,
        )
        assert finished.returncode == 0, finished.stdout
        tables.append(read_record(folder / "circle" / "record.h5").table)
        summary = json.loads((folder / "circle" / "summary.json").read_text())
        assert "resolution exhausted" in summary["outcome"]
        assert summary["outcome"].endswith("reached time 3")
        assert summary["reference"] == "mesh"
    first = tables[0]
    # The spectral density has left; mesh and particles have not.
    assert np.isnan(first["density.energy"][-1]) and np.isfinite(first["mesh.energy"][-1])
    # Evenly spread particles and the mesh are both within their spacing of one density.
    assert first["even_100.w2_to_mesh"][0] < 2 * np.pi / 64
    assert first["random_100.w2_to_mesh"][0] > first["even_100.w2_to_mesh"][0]
    for other in tables[1:]:
        for column in first:
            np.testing.assert_allclose(
                other[column], first[column], rtol=1e-8, atol=1e-10, err_msg=column
            )
