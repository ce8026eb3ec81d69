"""Transport by a given velocity: all the way round, to the order of the polynomials."""

import numpy as np
import pytest

fd = pytest.importorskip("firedrake", reason="needs Firedrake (make fem)")

from meanfield.density.finite_element.limiter import limit  # noqa: E402
from meanfield.density.finite_element.spaces import DiscontinuousSpace  # noqa: E402
from meanfield.density.finite_element.transport import UpwindTransport  # noqa: E402

AXIS = np.array([0.6, 0.0, 0.8])
MESHES = {
    "circle": lambda level: fd.CircleManifoldMesh(2 ** (level + 3)),
    "icosahedral": lambda level: fd.IcosahedralSphereMesh(1.0, level),
    "curved icosahedral": lambda level: fd.IcosahedralSphereMesh(1.0, level, degree=2),
    "cubed": lambda level: fd.CubedSphereMesh(1.0, level),
}


def turned_back(x, angle):
    """Points that a rotation by `angle` about the axis brings to x."""
    if x.shape[-1] == 2:
        c, s = np.cos(angle), np.sin(angle)
        return x @ np.array([[c, -s], [s, c]])
    cross = np.cross(np.eye(3), AXIS)
    return x @ (np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)


def rotation(x):
    if x.shape[-1] == 2:
        return np.stack([-x[..., 1], x[..., 0]], axis=-1)
    return np.cross(AXIS, x)


def bump(x):
    return np.exp(2 * (x[..., 0] - 1))


def projection(space, density):
    loads = (space.weights * density(space.nodes)) @ space.basis
    return np.einsum("kij,kj->ki", space.inverse_mass, loads)


def carried(space, values, velocity, time, share):
    """Values after a time, the lowest value and the largest change of mass on the way."""
    transport = UpwindTransport(space)
    outflow = transport.outflow(velocity(space.facet_nodes))
    inside = velocity(space.nodes)
    mass = space.total(values)
    steps = int(np.ceil(time / (share * transport.longest_step(outflow))))
    length = time / steps
    lowest, change = values.min(), 0.0
    for _ in range(steps):
        ahead = values + length * transport.rate(values, outflow, inside)
        if space.degree:
            stage = limit(ahead, space.means(ahead))
            ahead = stage + length * transport.rate(stage, outflow, inside)
            ahead = 0.5 * (values + ahead)
            ahead = limit(ahead, space.means(ahead))
        values = ahead
        lowest = min(lowest, values.min())
        change = max(change, abs(space.total(values) / mass - 1))
    return values, lowest, change


def rotation_error(mesh, degree, angle):
    space = DiscontinuousSpace(mesh, degree)
    share = 0.45 if degree else 0.9
    values, _, change = carried(space, projection(space, bump), rotation, angle, share)
    assert change < 1e-13
    exact = bump(turned_back(space.nodes, angle))
    return np.sum(space.weights * np.abs(values @ space.basis.T - exact))


@pytest.mark.parametrize("family", MESHES)
@pytest.mark.parametrize(("degree", "order"), [(0, 0.9), (1, 1.9)])
def test_rotation_converges_to_the_order_of_the_polynomials(family, degree, order):
    errors = [rotation_error(MESHES[family](level), degree, 1.0) for level in (4, 5)]
    assert np.log2(errors[0] / errors[1]) > order


def test_solid_body_goes_all_the_way_round():
    error = rotation_error(MESHES["icosahedral"](4), 1, 2 * np.pi)
    assert error < 0.01


def strange_flow(x):
    """Compressible, with sinks and a swirl; tangent."""
    pull = np.stack([np.sign(x[..., 1]), x[..., 0] ** 2, 3 * x[..., -1]], axis=-1)
    pull = pull[..., -x.shape[-1] :]
    return pull - np.sum(pull * x, axis=-1, keepdims=True) * x + 2 * rotation(x)


@pytest.mark.parametrize("family", MESHES)
@pytest.mark.parametrize("degree", [0, 1])
def test_rough_densities_stay_nonnegative_and_keep_their_mass(family, degree):
    space = DiscontinuousSpace(MESHES[family](2), degree)
    random = np.random.default_rng(3)
    values = random.random(space.integrals.shape)
    values[random.random(space.cells) < 0.7] = 0.0
    # Steps as long as the proof allows.
    _, lowest, change = carried(space, values, strange_flow, 2.0, 1.0)
    assert lowest >= 0
    assert change < 1e-13


def test_a_longer_step_than_the_bound_can_empty_a_cell():
    space = DiscontinuousSpace(MESHES["icosahedral"](2), 0)
    transport = UpwindTransport(space)
    outflow = transport.outflow(rotation(space.facet_nodes))
    worst = np.argmax(np.maximum(outflow, 0).sum(axis=1) / space.areas)
    values = np.zeros((space.cells, 1))
    values[worst] = 1.0
    length = transport.longest_step(outflow)
    assert np.isclose((values + length * transport.rate(values, outflow))[worst, 0], 0, atol=1e-11)
    assert (values + 1.01 * length * transport.rate(values, outflow))[worst, 0] < 0


@pytest.mark.parametrize("family", MESHES)
def test_both_cells_see_one_flux(family):
    space = DiscontinuousSpace(MESHES[family](2), 1)
    outflow = UpwindTransport(space).outflow(strange_flow(space.facet_nodes))
    assert np.array_equal(outflow.ravel()[space.partners], -outflow)
    assert np.any(outflow != 0)


def test_the_limiter_keeps_means_and_what_is_nonnegative():
    random = np.random.default_rng(5)
    values = random.normal(0.5, 1.0, (200, 3))
    values = values[values.mean(axis=1) >= 0]
    limited = limit(values, values.mean(axis=1))
    assert limited.min() >= 0
    assert np.allclose(limited.mean(axis=1), values.mean(axis=1), atol=1e-15)
    fine = values.min(axis=1) >= 0
    assert np.array_equal(limited[fine], values[fine])
    with pytest.raises(ValueError, match="mean of cell"):
        limit(-values, -values.mean(axis=1))


def test_meshes_of_anything_else_are_refused():
    with pytest.raises(ValueError, match="mesh of S¹ or S²"):
        DiscontinuousSpace(fd.UnitSquareMesh(2, 2), 0)
    with pytest.raises(ValueError, match="degree=2"):
        DiscontinuousSpace(MESHES["circle"](1), 2)
