"""What figures show is where it should be, and no panel fails."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.plotting.circle import draw_circle, draw_trajectories
from meanfield.plotting.cloud import CloudPicture, save_cloud
from meanfield.plotting.comparison import ComparisonPicture, save_comparison
from meanfield.plotting.series import draw_convergence
from meanfield.plotting.sphere import density_colours, draw_hemisphere, draw_map
from meanfield.plotting.style import figure_style
from meanfield.sphere.geometry import circle_points, normalise
from meanfield.sphere.pictures import SPHERE_SHAPE, picture_angles, picture_points


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    with figure_style():
        yield Figure().add_subplot()


def bump_at(direction):
    return np.exp(20 * (picture_points(3) @ direction - 1)).reshape(SPHERE_SHAPE)


def test_hemisphere_shows_density_and_particles_in_one_place(axes):
    centre = normalise(np.array([[0.3, -0.5, 0.4]]))[0]
    bump = normalise((centre + np.array([0.2, 0.3, 0.1]))[None])[0]
    values = bump_at(bump)
    draw_hemisphere(axes, values, bump[None], centre, density_colours(values))
    picture = axes.images[0].get_array()
    row, column = np.unravel_index(np.nanargmax(picture), picture.shape)
    across = np.linspace(-1, 1, len(picture))
    particle = axes.lines[0].get_xydata()[0]
    np.testing.assert_allclose([across[column], across[row]], particle, atol=0.03)
    # Seen from outside, up is towards the north pole.
    assert np.sign(particle[1]) == np.sign(bump[2] - centre[2] * (bump @ centre))


def test_the_other_hemisphere_hides_the_particle(axes):
    centre = np.array([0.0, 0.0, 1.0])
    values = bump_at(centre)
    draw_hemisphere(axes, values, centre[None], -centre, density_colours(values))
    assert len(axes.lines[0].get_xydata()) == 0


def test_map_puts_particles_on_the_density():
    from matplotlib.figure import Figure

    direction = normalise(np.array([[-0.8, -0.4, 0.3]]))[0]
    values = bump_at(direction)
    with figure_style():
        axes = Figure().add_subplot(projection="mollweide")
        image = draw_map(axes, values, direction[None], density_colours(values))
        longitude, latitude = axes.lines[0].get_xydata()[0]
    coordinates = image.get_coordinates().reshape(-1, 2)
    densest = coordinates[np.argmax(image.get_array())]
    np.testing.assert_allclose(densest, [longitude, latitude], atol=0.05)


def test_circle_draws_the_density_outside(axes):
    angles = picture_angles()
    draw_circle(axes, angles, 1 + np.cos(angles), circle_points([0.0, 1.0]))
    outline = axes.lines[1].get_xydata()
    radius = np.linalg.norm(outline, axis=1)
    assert radius.min() >= 1
    assert np.argmax(radius) == 0


def test_trajectories_break_where_the_angle_jumps(axes):
    draw_trajectories(axes, np.arange(3.0), np.array([[0.1], [6.2], [6.1]]))
    drawn = axes.lines[0].get_ydata()
    assert np.isnan(drawn[1])
    assert drawn[2] == 6.1


def test_slopes_are_in_the_legend(axes):
    errors = {"random": np.array([1.0, 0.1]), "even": np.array([1.0, 0.5])}
    draw_convergence(axes, np.array([10, 100]), errors, {"random": -1.0, "even": None}, "W2")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["random: n^-1.00", "even"]


@pytest.mark.parametrize("ambient_dim", [2, 3])
@pytest.mark.parametrize("has_energy", [True, False])
def test_comparison_figure(tmp_path, ambient_dim, has_energy):
    points = picture_points(ambient_dim)
    times = np.array([0.0, 1.0, 2.0])
    curve = {"density": times}
    picture = ComparisonPicture(
        title="title",
        times=times,
        densities=1 + 0.5 * points[:, 0] * times[:, None] / 2,
        nodes=np.stack([points[::40]] * 3),
        masses=np.full(len(points[::40]), 1 / len(points[::40])),
        cloud="particles",
        table_times=times,
        energies=curve if has_energy else {},
        distances={"random": 1 + times},
        counts=np.array([10.0, 100.0]),
        errors={"random": np.array([1.0, 0.3])},
        slopes={"random": -0.5},
        distance_label="W2",
        potential=points[:, 0],
        active=[points[:, 0] > 0],
    )
    save_comparison(tmp_path / "figure.png", picture)
    assert (tmp_path / "figure.png").stat().st_size > 20_000


@pytest.mark.parametrize("ambient_dim", [2, 3, 7])
def test_cloud_figure(tmp_path, ambient_dim):
    rng = np.random.default_rng(0)
    nodes = normalise(rng.normal(size=(50, ambient_dim)))
    perceptron = mf.Perceptron(np.eye(ambient_dim), np.ones(ambient_dim))
    table = {"time": np.arange(3.0), "max_speed": np.ones(3), "clusters": np.array([9, 5, 2])}
    picture = CloudPicture(
        title="title",
        times=np.array([0.0, 2.0]),
        nodes=np.stack([nodes, normalise(nodes + 1)]),
        masses=np.full(50, 0.02),
        table=table,
        cluster_masses=np.array([0.6, 0.4]),
        cluster_centres=nodes[:2],
        potential=perceptron.potential(picture_points(ambient_dim)) if ambient_dim < 4 else None,
    )
    save_cloud(tmp_path / "figure.png", picture)
    assert (tmp_path / "figure.png").stat().st_size > 20_000
