"""Any number of ranks moves one density: values, pictures, restarts."""

import numpy as np
import pytest

fd = pytest.importorskip("firedrake", reason="needs Firedrake (make fem)")

import meanfield as mf  # noqa: E402
from meanfield.density.finite_element.flow import FiniteElementDensity  # noqa: E402
from meanfield.runtime.checkpoint import Checkpoint, restore  # noqa: E402
from meanfield.runtime.evolve import evolve  # noqa: E402
from meanfield.runtime.flow import State  # noqa: E402
from meanfield.runtime.parallel import max_over_ranks, sum_over_ranks  # noqa: E402

CASES = {
    "degree 0": (fd.IcosahedralSphereMesh, {}),
    "degree 1": (fd.IcosahedralSphereMesh, {"degree": 1}),
    "energy": (fd.IcosahedralSphereMesh, {"scheme": "energy"}),
    "implicit": (fd.IcosahedralSphereMesh, {"scheme": "implicit"}),
    "noise": (fd.IcosahedralSphereMesh, {"diffusion": 0.1}),
    "quadrilaterals, noise": (fd.CubedSphereMesh, {"degree": 1, "diffusion": 0.1}),
    "circle": (fd.CircleManifoldMesh, {}),
    "circle, degree 1": (fd.CircleManifoldMesh, {"degree": 1}),
}


def make(case, comm, mesh=None):
    family, settings = CASES[case]
    if mesh is None:
        size = (48,) if family is fd.CircleManifoldMesh else (1.0, 2)
        mesh = family(*size, comm=comm)
    d = mesh.geometric_dimension
    weights = np.linspace(1.0, -0.7, d)
    model = mf.Model(
        mf.Attention(beta=2.0, amplitude="unit"), mf.Perceptron(np.eye(d), weights)
    )
    return FiniteElementDensity(
        model, mesh, lambda x: 1 + 0.5 * x[:, 0] + 0.3 * x[:, 0] * x[:, 1], **settings
    )


def distance(flow, serial):
    """Largest difference to the values that a serial flow on every rank has."""
    state = serial.state().distributed
    here = slice(None) if flow.comm.rank == 0 else slice(0, 0)
    values = flow._layout.sort(state["places"][here], state["values"][here])
    return max_over_ranks(float(np.max(np.abs(values - flow.values.ravel()), initial=0)), flow.comm)


@pytest.mark.parametrize("case", CASES)
def test_ranks_agree_with_a_serial_run_and_continue_it(comm, case):
    from mpi4py import MPI

    flow, serial = make(case, comm), make(case, MPI.COMM_SELF)
    for _ in range(2):
        assert np.isclose(flow.step(0.05), serial.step(0.05), rtol=1e-12)
    saved = serial.state()
    middle = State({name: rows.copy() for name, rows in saved.distributed.items()},
                   dict(saved.replicated))
    for _ in range(3):
        flow.step(0.05)
        serial.step(0.05)
    assert distance(flow, serial) < 1e-11
    here, there = flow.describe(), serial.describe()
    assert all(np.isclose(here[name], there[name], rtol=1e-9) for name in here)
    assert abs(here["mass"] - 1) < 1e-13
    pictures = flow.snapshot().replicated["density"]
    assert np.allclose(pictures, serial.snapshot().replicated["density"], atol=1e-11, rtol=0)

    rows = len(middle.distributed["values"])
    blocks = [rows * rank // comm.size for rank in range(comm.size + 1)]
    mine = slice(blocks[comm.rank], blocks[comm.rank + 1])
    middle.distributed = {name: part[mine] for name, part in middle.distributed.items()}
    flow.restore(middle)
    for _ in range(3):
        flow.step(0.05)
    assert distance(flow, serial) < 1e-11


def test_a_checkpoint_continues_bitwise_where_the_mesh_is_shared_alike(comm, shared_folder):
    path = shared_folder / "checkpoint.h5"
    flow = make("degree 1", comm)
    evolve(flow, until=0.1, observers=[Checkpoint(path)])
    other = make("degree 1", comm, flow.space.mesh)
    restore(path, other)
    flow.step(0.05)
    other.step(0.05)
    assert sum_over_ranks(int(not np.array_equal(flow.values, other.values)), comm) == 0
    assert other.time == flow.time
