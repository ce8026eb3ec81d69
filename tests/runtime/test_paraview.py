"""Time series read back with VTK, the library under ParaView."""

import numpy as np
import pytest

from meanfield.runtime.evolve import Moment, evolve
from meanfield.runtime.paraview import Cells, Cloud, ParaviewSeries
from tests.paraview_reader import read_series
from tests.runtime.toy import Decay

VTK_VERTEX, VTK_LINE, VTK_TRIANGLE, VTK_QUADRILATERAL = 1, 3, 5, 9
SQUARE = np.array([[0.0, 0, 0], [1, 0, 0], [1, 2, 0], [0, 2, 0]])
TRIANGLES = np.array([[0, 1, 2], [0, 2, 3]])


def cloud_of(flow):
    """Particles on rays in the plane, and numbers of them."""

    def show():
        rays = np.stack([np.cos(np.arange(len(flow.rows))), np.sin(np.arange(len(flow.rows)))], 1)
        return Cloud(rays * flow.rows[:, None], {"row": flow.rows, "ray": rays})

    return show


def mesh_of(flow, vertices=SQUARE, cells=TRIANGLES):
    density = 1.0 + np.arange(len(cells))
    return lambda: Cells(vertices, cells, {"density": density * np.exp(-flow.time)})


def run(folder, shows, flow, until, first_step=0, **options):
    series = ParaviewSeries(folder, shows, **options)
    evolve(flow, until, [series], first_step)


def test_particles_keep_their_numbers(tmp_path):
    flow = Decay(4)
    run(tmp_path, {"dust": cloud_of(flow)}, flow, 1.9, interval=0.5)
    steps = read_series(tmp_path / "dust.vtkhdf")
    np.testing.assert_allclose([step.time for step in steps], [0, 0.5, 1, 1.5, 1.9], atol=1e-15)
    for step in steps:
        assert step.kinds == {VTK_VERTEX}
        assert step.cells == [[0], [1], [2], [3]]
        np.testing.assert_array_equal(step.point_arrays["id"], np.arange(4))
        expected = np.exp(-step.time) * np.arange(1, 5)
        np.testing.assert_allclose(step.point_arrays["row"], expected, rtol=1e-14)
        np.testing.assert_allclose(np.linalg.norm(step.points, axis=1), expected, rtol=1e-14)
        np.testing.assert_allclose(
            step.points[:, :2], step.point_arrays["ray"] * expected[:, None], rtol=1e-13
        )
        assert not np.any(step.points[:, 2])


def test_the_number_of_particles_may_change(tmp_path):
    flow = Decay(1)

    def show():
        return Cloud(np.full((3 if flow.taken < 3 else 5, 3), flow.time))

    run(tmp_path, {"dust": show}, flow, 0.5, every=1)
    steps = read_series(tmp_path / "dust.vtkhdf")
    assert [len(step.points) for step in steps] == [3, 3, 3, 5, 5, 5]
    for step in steps:
        np.testing.assert_array_equal(step.points, step.time)
        np.testing.assert_array_equal(step.point_arrays["id"], np.arange(len(step.points)))


@pytest.mark.parametrize(
    ("cells", "kind", "sizes"),
    [
        (TRIANGLES, VTK_TRIANGLE, [1, 1]),
        (np.array([[0, 1, 2, 3]]), VTK_QUADRILATERAL, [2]),
        (np.array([[0, 1], [1, 2], [2, 3], [3, 0]]), VTK_LINE, [1, 2, 1, 2]),
    ],
)
def test_a_mesh_has_its_cells(tmp_path, cells, kind, sizes):
    flow = Decay(1)
    run(tmp_path, {"mesh": mesh_of(flow, cells=cells)}, flow, 1.0, every=5)
    steps = read_series(tmp_path / "mesh.vtkhdf")
    assert len(steps) == 3
    for step in steps:
        assert step.kinds == {kind}
        np.testing.assert_array_equal(step.points, SQUARE)
        np.testing.assert_array_equal(step.cells, cells)
        np.testing.assert_allclose(step.sizes, sizes)
        np.testing.assert_allclose(
            step.cell_arrays["density"], np.exp(-step.time) * (1 + np.arange(len(cells)))
        )


def test_a_mesh_is_stored_once(tmp_path):
    sizes = []
    angles = np.linspace(0, 6, 3000)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    cells = np.stack([np.arange(2999), np.arange(1, 3000)], axis=1)
    for until in (0.1, 1.0):
        flow = Decay(1)
        run(tmp_path, {"mesh": mesh_of(flow, points, cells)}, flow, until, every=1)
        sizes.append((tmp_path / "mesh.vtkhdf").stat().st_size)
    # Nine more steps, of one number a cell.
    assert sizes[1] - sizes[0] < 9 * 8 * 2999 * 1.5


def test_what_has_left_is_no_longer_shown(tmp_path):
    flow = Decay(2)
    show = cloud_of(flow)
    shows = {"early": lambda: show() if flow.taken < 3 else None, "whole": show}
    shows["late"] = lambda: show() if flow.taken >= 3 else None
    run(tmp_path, shows, flow, 0.5, every=1)
    times = {
        name: [round(step.time, 12) for step in read_series(tmp_path / f"{name}.vtkhdf")]
        for name in shows
    }
    assert times["early"] == [0, 0.1, 0.2]
    assert times["late"] == [0.3, 0.4, 0.5]
    assert times["whole"] == times["early"] + times["late"]


def test_a_continued_run_has_the_same_series(tmp_path):
    def shows(flow, order):
        dust = cloud_of(flow)
        # Other ranks have cells in another order.
        density = np.arange(2.0)[order]
        return {
            "dust": dust,
            "mesh": lambda: Cells(SQUARE, TRIANGLES[order], {"density": density + flow.time}),
            "late": lambda: dust() if flow.time > 0.55 else None,
        }

    order, reverse = slice(None), slice(None, None, -1)
    whole = Decay(3)
    run(tmp_path / "whole", shows(whole, order), whole, 1.0, every=1)
    # Killed after step 8, continued from the checkpoint of step 4.
    killed = Decay(3)
    run(tmp_path / "cut", shows(killed, order), killed, 0.8, every=1)
    again = Decay(3)
    evolve(again, 0.4)
    options = {"every": 1, "append": True, "from_step": 4}
    run(tmp_path / "cut", shows(again, reverse), again, 1.0, 4, **options)
    for name in ("dust", "mesh", "late"):
        expected = read_series(tmp_path / "whole" / f"{name}.vtkhdf")
        found = read_series(tmp_path / "cut" / f"{name}.vtkhdf")
        assert len(expected) == (5 if name == "late" else 11)
        np.testing.assert_allclose(
            [step.time for step in found], [step.time for step in expected], rtol=1e-13
        )
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            ordered = reverse if name == "mesh" and number > 4 else order
            assert one.cells == other.cells[ordered]
            np.testing.assert_allclose(one.points, other.points, rtol=1e-13)
            for title, rows in other.cell_arrays.items():
                np.testing.assert_allclose(one.cell_arrays[title], rows[ordered])
            for title, rows in other.point_arrays.items():
                np.testing.assert_allclose(one.point_arrays[title], rows, rtol=1e-13)


def test_a_new_run_replaces_the_series(tmp_path):
    for count in (2, 3):
        flow = Decay(count)
        run(tmp_path, {"dust": cloud_of(flow)}, flow, 0.2, every=1)
    steps = read_series(tmp_path / "dust.vtkhdf")
    assert [len(step.points) for step in steps] == [3, 3, 3]


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        (Cloud(np.zeros((2, 4)), {}), r"points of shape \(2, 4\)"),
        (Cloud(np.zeros((2, 3)), {"mass": np.zeros(3)}), "'mass': 3"),
        (Cloud(np.zeros((2, 3)), {"mass": np.zeros(2, complex)}), "complex128"),
        (Cloud(np.zeros((2, 3)), {"id": np.zeros(2)}), "array id"),
    ],
)
def test_what_cannot_be_shown_is_refused_at_once(tmp_path, shown, message):
    with pytest.raises(ValueError, match=message):
        ParaviewSeries(tmp_path / "new", {"it": lambda: shown}, every=1)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Cloud(np.zeros((2, 3)), {"speed": np.zeros(2)}), r"had arrays \['mass'\]"),
        (Cells(SQUARE, TRIANGLES, {"mass": np.zeros(2)}), "a cloud or a mesh"),
    ],
)
def test_a_series_stays_of_one_kind(tmp_path, second, message):
    flow = Decay(1)
    first = Cloud(np.zeros((2, 3)), {"mass": np.zeros(2)})
    # It is looked at when the series begins, too.
    shown = iter([first, first, second])
    series = ParaviewSeries(tmp_path, {"it": lambda: next(shown)}, every=1)
    series.observe(Moment(flow, 0, None))
    with pytest.raises(ValueError, match=message):
        series.observe(Moment(flow, 1, None))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file cannot be written"):
        ParaviewSeries(tmp_path / "file", {}, every=1)
