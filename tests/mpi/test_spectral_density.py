"""Every rank evolves the same density, bit by bit, and hands over its share of the grid."""

import numpy as np

import meanfield as mf
from meanfield.density.spectral import SpectralDensity
from meanfield.runtime.parallel import gather_rows


def density(x):
    return 1 + 0.5 * x[:, 0] + 0.2 * x[:, 0] * x[:, 1]


def test_all_ranks_hold_the_serial_density_bitwise(comm):
    model = mf.Model(mf.Attention(beta=5.0, amplitude="peak"), direction="descent")
    flow = SpectralDensity(model, density, ambient_dim=3, degree=16, comm=comm)
    serial = SpectralDensity(model, density, ambient_dim=3, degree=16)
    for _ in range(4):
        assert flow.step(1.0) == serial.step(1.0)
    for coefficients in comm.allgather(flow.coefficients):
        assert np.array_equal(coefficients, serial.coefficients)


def test_shares_of_the_grid_make_the_whole_measure(comm):
    model = mf.Model(mf.Attention(beta=5.0, amplitude="peak"), direction="descent")
    flow = SpectralDensity(model, density, ambient_dim=2, comm=comm)
    nodes, masses = flow.measure()
    whole = mf.Measure(nodes, masses, comm)
    serial = mf.Measure(*SpectralDensity(model, density, ambient_dim=2).measure())
    assert np.isclose(mf.energy(model, whole), flow.energy(), rtol=1e-12)
    gathered = gather_rows(nodes, comm)
    assert gathered is None or np.array_equal(gathered, serial.nodes)
