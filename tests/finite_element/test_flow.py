"""The finite-element density against the spectral one, closed forms and what never may change."""

import numpy as np
import pytest

fd = pytest.importorskip("firedrake", reason="needs Firedrake (make fem)")

import meanfield as mf  # noqa: E402
from meanfield.density.finite_element.flow import FiniteElementDensity  # noqa: E402
from meanfield.density.spectral import SpectralDensity  # noqa: E402
from meanfield.runtime.flow import State  # noqa: E402
from meanfield.sphere.funk_hecke import eigenvalues, growth_rates  # noqa: E402
from meanfield.sphere.pictures import picture_points  # noqa: E402

WEIGHTS = {2: np.array([[1.0, 0.0], [0.6, 0.8]]), 3: np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])}
SCHEMES = [("upwind", 0), ("energy", 0), ("implicit", 0), ("upwind", 1)]


def sphere(level):
    return fd.IcosahedralSphereMesh(1.0, level)


def circle(level):
    return fd.CircleManifoldMesh(2 ** (level + 3))


def gradient_model(d, direction="ascent", beta=2.0, activation="tanh", **attention):
    attention = {"amplitude": "unit"} | attention
    perceptron = mf.Perceptron(WEIGHTS[d], np.array([1.0, -0.7]), [0.1, 0.0], activation)
    return mf.Model(mf.Attention(beta=beta, **attention), perceptron, direction)


def smooth(x):
    return 1 + 0.5 * x[:, 0] + 0.3 * x[:, 0] * x[:, 1]


def half(x):
    """All mass on one half, with a jump; halves of symmetric meshes have half the area."""
    return np.where(x[:, 0] > 1e-6, 2.0, 0.0)


def run(flow, time):
    rows = [flow.describe()]
    while flow.time < time - 1e-12:
        flow.step(time - flow.time)
        rows.append(flow.describe())
    return rows


def advance(flow, time):
    while flow.time < time - 1e-12:
        flow.step(time - flow.time)


def distance(flow, reference):
    """L¹ distance of two densities."""
    space = flow.space
    exact = reference(space.nodes.reshape(-1, flow.ambient_dim)).reshape(space.weights.shape)
    return np.sum(space.weights * np.abs(flow.values @ space.basis.T - exact))


def turning_model(d):
    """Attention in a swirl, which is no gradient: orders show on coarser meshes than without,
    since cells are crossed sooner."""
    swirl = 2.0 * np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.3, 0.0, 0.0]])[:d, :d]
    perceptron = mf.Perceptron(np.eye(d), swirl, activation="identity")
    return mf.Model(mf.Attention(beta=1.0, amplitude="unit"), perceptron)


@pytest.fixture(scope="module")
def references():
    flows = {d: SpectralDensity(gradient_model(d), smooth, ambient_dim=d) for d in (2, 3)}
    flows["turning"] = SpectralDensity(turning_model(3), smooth, ambient_dim=3)
    for flow in flows.values():
        advance(flow, 0.2)
    return flows


@pytest.mark.parametrize(
    ("mesh", "reference", "scheme", "degree", "order"),
    [
        (circle, 2, "upwind", 0, 0.9),
        (circle, 2, "energy", 0, 0.9),
        (circle, 2, "upwind", 1, 1.9),
        (sphere, 3, "upwind", 0, 0.9),
        (sphere, 3, "energy", 0, 0.9),
        (sphere, "turning", "upwind", 1, 1.9),
    ],
)
def test_converges_to_the_spectral_density(references, mesh, reference, scheme, degree, order):
    reference = references[reference]
    errors = []
    for level in (4, 5):
        flow = FiniteElementDensity(
            reference.model, mesh(level), smooth, degree, scheme, longest_step=0.3 / 2**level
        )
        advance(flow, reference.time)
        errors.append(distance(flow, reference.density))
    assert np.log2(errors[0] / errors[1]) > order


@pytest.mark.parametrize("mesh", [circle, sphere])
@pytest.mark.parametrize(("scheme", "degree"), SCHEMES)
@pytest.mark.parametrize("direction", ["ascent", "descent"])
def test_mass_and_sign_survive_rough_data_and_atomization(mesh, scheme, degree, direction):
    cells = mesh(2)
    model = gradient_model(cells.geometric_dimension, direction, activation="relu")
    flow = FiniteElementDensity(model, cells, half, degree, scheme)
    rows = run(flow, 1.5)
    assert min(row["minimum_density"] for row in rows) >= 0
    assert max(abs(row["mass"] - 1) for row in rows) < 1e-13
    if direction == "ascent":
        assert rows[-1]["effective_cells"] < 0.2 * rows[0]["effective_cells"]
        assert rows[-1]["largest_cell_mass"] > 5 * rows[0]["largest_cell_mass"]


@pytest.mark.parametrize("mesh", [circle, sphere])
@pytest.mark.parametrize("direction", ["ascent", "descent"])
def test_energy_is_monotone_under_the_energy_scheme(mesh, direction):
    cells = mesh(3)
    model = gradient_model(cells.geometric_dimension, direction, beta=10.0, amplitude="peak")
    flow = FiniteElementDensity(model, cells, half, scheme="energy")
    energies = np.array([row["energy"] for row in run(flow, 10.0)])
    gains = flow.model.sign * np.diff(energies)
    assert len(gains) > 20
    assert np.all(gains >= -1e-14 * np.abs(energies[1:]))


@pytest.mark.parametrize("mesh", [circle, sphere])
def test_energy_changes_at_the_rate_of_the_mean_square_speed(mesh):
    cells = mesh(5)
    model = gradient_model(cells.geometric_dimension)
    flow = FiniteElementDensity(model, cells, smooth, degree=1)
    before = flow.describe()
    length = flow.step(1e-3)
    after = flow.describe()
    speed = 0.5 * (before["mean_square_speed"] + after["mean_square_speed"])
    assert np.isclose((after["energy"] - before["energy"]) / length, speed, rtol=0.01)


@pytest.mark.parametrize("direction", ["ascent", "descent"])
@pytest.mark.parametrize(("mesh", "harmonic"), [
    (circle, lambda x: np.sqrt(2) * (2 * x[:, 0] ** 2 - 1)),
    (sphere, lambda x: np.sqrt(5) * 0.5 * (3 * x[:, 2] ** 2 - 1)),
])
def test_harmonics_grow_and_decay_at_their_rates(mesh, harmonic, direction):
    cells = mesh(5)
    d = cells.geometric_dimension
    model = mf.Model(mf.Attention(beta=3.0, amplitude="peak"), direction=direction)
    size = 1e-3
    flow = FiniteElementDensity(
        model, cells, lambda x: 1 + size * harmonic(x), degree=1, longest_step=0.1
    )

    def amplitude():
        nodes, masses = flow.measure()
        # What the mesh makes of a uniform density is no part of the harmonic.
        return masses @ harmonic(nodes) - flow.space.weights.ravel() @ harmonic(nodes)

    before = amplitude()
    advance(flow, 1.0)
    rate = model.sign * growth_rates(3.0, d, 2)[2]
    assert np.isclose(before, size, rtol=0.01)
    assert np.isclose(np.log(amplitude() / before), rate, rtol=0.01)


@pytest.mark.parametrize("degree", [0, 1])
def test_softmax_and_a_drift_that_is_no_gradient_follow_the_spectral_density(degree):
    swirl = mf.Perceptron(WEIGHTS[3], np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]]), [0.0, 0.3],
                          "tanh")
    model = mf.Model(mf.Attention(beta=2.0, normalisation="softmax"), swirl)
    reference = SpectralDensity(model, smooth, ambient_dim=3)
    advance(reference, 0.3)
    flow = FiniteElementDensity(model, sphere(4), smooth, degree, longest_step=0.02)
    assert "energy" not in flow.describe()
    advance(flow, 0.3)
    assert distance(flow, reference.density) < (0.005 if degree else 0.05)
    assert distance(flow, smooth) > 0.2


@pytest.mark.parametrize(("degree", "order"), [(0, 1.0), (1, 1.9)])
def test_noise_follows_the_decay_of_harmonics(degree, order):
    kappa, time = 0.3, 0.5
    nothing = mf.Model(None, mf.Perceptron(np.eye(3), np.zeros(3)))

    def exact(t):
        return lambda x: (
            1 + 0.5 * np.exp(-2 * kappa * t) * x[:, 0]
            + 0.6 * np.exp(-6 * kappa * t) * x[:, 0] * x[:, 1]
        )

    errors = []
    for level in (3, 4):
        step = time / 2 ** (level if degree else 2 * level - 2)
        flow = FiniteElementDensity(
            nothing, sphere(level), exact(0), degree, diffusion=kappa, longest_step=step
        )
        advance(flow, time)
        errors.append(distance(flow, exact(time)))
    assert np.log2(errors[0] / errors[1]) > order


@pytest.mark.parametrize("degree", [0, 1])
def test_noise_keeps_rough_densities_nonnegative_and_raises_entropy(degree):
    nothing = mf.Model(None, mf.Perceptron(np.eye(3), np.zeros(3)))
    cells = sphere(3)
    flow = FiniteElementDensity(
        nothing, cells, half, degree, diffusion=0.1, longest_step=0.002
    )
    rows = run(flow, 0.01)
    assert min(row["minimum_density"] for row in rows) >= 0
    assert max(abs(row["mass"] - 1) for row in rows) < 1e-13
    assert np.all(np.diff([row["entropy"] for row in rows]) < 0)


@pytest.mark.parametrize(("scheme", "degree", "order"), [("implicit", 0, 0.9), ("upwind", 1, 1.7)])
def test_descent_rests_at_the_closed_form(scheme, degree, order):
    """For σ(s) = s it is ρ = 1 − β/(2 s λ_2) (v − ∫v), here with β = s = 1.

    It is started from, because modes of higher degree approach it only slowly.
    """
    weight, until = 0.1, 8.0
    perceptron = mf.Perceptron([[1.0, 0.0, 0.0]], [weight], activation="identity")
    model = mf.Model(mf.Attention(beta=1.0, amplitude="unit"), perceptron, "descent")
    second = eigenvalues(1.0, 3, 2, scaled=False)[2]

    def settled(x):
        return 1 - weight / (2 * second) * (x[:, 0] ** 2 - 1 / 3)

    errors = []
    for level in (3, 4):
        flow = FiniteElementDensity(
            model, sphere(level), settled, degree, scheme,
            courant=10.0 if scheme == "implicit" else None,
        )
        advance(flow, until)
        errors.append(distance(flow, settled))
    assert np.log2(errors[0] / errors[1]) > order
    assert errors[1] < 0.2 * distance(flow, lambda x: 1 + 0 * x[:, 0])


def test_implicit_steps_may_be_longer_than_explicit_ones():
    model = gradient_model(3)
    ends, steps = {}, {}
    for scheme in ("upwind", "implicit"):
        flow = FiniteElementDensity(model, sphere(3), smooth, scheme=scheme)
        steps[scheme] = 0
        while flow.time < 0.5:
            flow.step(0.5 - flow.time)
            steps[scheme] += 1
        ends[scheme] = flow
    assert 4 * steps["implicit"] < steps["upwind"]
    difference = np.abs(ends["implicit"].values - ends["upwind"].values)
    assert np.sum(ends["upwind"].space.areas[:, None] * difference) < 0.3


@pytest.mark.parametrize(("scheme", "degree"), SCHEMES)
def test_restart_continues_bitwise(scheme, degree):
    model = gradient_model(3)
    flow = FiniteElementDensity(model, sphere(2), smooth, degree, scheme)
    flow.step(0.05)
    state = flow.state()
    state = State({name: rows.copy() for name, rows in state.distributed.items()},
                  dict(state.replicated))
    flow.step(0.05)
    other = FiniteElementDensity(model, sphere(2), lambda x: 1 + 0 * x[:, 0], degree, scheme)
    other.restore(state)
    other.step(0.05)
    assert other.time == flow.time
    assert np.array_equal(other.values, flow.values)


def test_a_state_of_another_mesh_is_refused():
    model = gradient_model(3)
    flow = FiniteElementDensity(model, sphere(2), smooth)
    for other in (sphere(1), fd.CubedSphereMesh(1.0, 2)):
        with pytest.raises(ValueError, match="same mesh and degree"):
            FiniteElementDensity(model, other, smooth).restore(flow.state())


def test_pictures_show_the_density():
    flow = FiniteElementDensity(gradient_model(3), sphere(4), smooth)
    snapshot = flow.snapshot()
    assert np.allclose(
        snapshot.replicated["density"], smooth(picture_points(3)), atol=0.08, rtol=0
    )
    assert np.isclose(snapshot.distributed["masses"].sum(), 1, atol=1e-13)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"scheme": "best"}, "scheme='best'"),
    ({"degree": 1, "scheme": "energy"}, "degree=1 with scheme='energy'"),
    ({"courant": 1.5}, "courant=1.5"),
    ({"diffusion": -1.0}, "diffusion=-1.0"),
    ({"longest_step": 0.0}, "longest_step=0.0"),
    ({"diffusion": 1.0, "scheme": "energy"}, "noise changes the energy"),
    ({"start": lambda x: 2 + 0 * x[:, 0]}, "start has mass 2"),
    ({"start": lambda x: 1 - 3 * x[:, 0]}, "start is negative"),
    ({"start": lambda x: x}, "start returned shape"),
    ({"model": gradient_model(2)}, "weights live in R\\^2"),
    ({"mesh": fd.CubedSphereMesh(1.0, 1), "scheme": "energy"}, "two-point fluxes"),
])
def test_what_does_not_fit_is_refused(arguments, message):
    given = {"model": gradient_model(3), "mesh": sphere(1), "start": smooth} | arguments
    with pytest.raises(ValueError, match=message):
        FiniteElementDensity(**given)
