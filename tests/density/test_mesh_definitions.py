"""Definitions of meshes are read and checked without Firedrake."""

import numpy as np
import pytest

from meanfield.density.finite_element.cell_lists import Region
from meanfield.density.finite_element.meshes import DEFINITIONS, define, load_definition

GRADED = {
    "family": "icosahedral sphere",
    "refinements": 3,
    "degree": 2,
    "refine": [{"point": [0, 0, 1], "radius": 0.1, "size": 0.05}],
}


def test_a_definition_says_what_its_file_says():
    definition = define(GRADED)
    assert definition.family == "icosahedral sphere"
    assert (definition.ambient_dim, definition.resolution, definition.degree) == (3, 3, 2)
    assert definition.regions == (Region((0.0, 0.0, 1.0), 0.1, 0.05),)
    assert definition.table() == GRADED
    assert define(definition.table()) == definition


def test_points_are_brought_to_the_sphere():
    point = [0.6 * (1 + 1e-8), 0.0, -0.8]
    region = define(GRADED | {"refine": [GRADED["refine"][0] | {"point": point}]}).regions[0]
    assert np.linalg.norm(region.point) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("path", sorted(DEFINITIONS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_standard_meshes_can_be_read_and_are_listed(path):
    definition = load_definition(path)
    assert load_definition(path.stem) == definition
    assert define(definition.table()) == definition
    assert f"`{path.stem}`" in (DEFINITIONS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "icosaedral sphere"}, "unknown family.*did you mean 'icosahedral sphere'"),
        ({"family": "plane xyz"}, "unknown family 'plane xyz'; .*"),
        ({"family": 3}, "unknown family '3'; expected one of circle, icosahedral sphere"),
        ({"refinement": 3}, "unknown key 'refinement'; did you mean 'refinements'"),
        ({"refinements": -1}, "refinements=-1: expected an integer from 0 to 10"),
        ({"refinements": 2.5}, "refinements=2.5: expected an integer"),
        ({"refinements": True}, "refinements=True: expected an integer"),
        ({"degree": 0}, "degree=0: expected an integer from 1 to 8"),
        ({"degree": "2"}, "degree='2': expected an integer"),
        ({"refine": {"point": [0, 0, 1]}}, r"refine=.*expected tables.*\[\[refine\]\]"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        define(GRADED | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"point": [0, 0, 2]}, r"table 1: point=\[0, 0, 2\]: expected 3 numbers"),
        ({"point": [0, 1]}, r"table 1: point=\[0, 1\]: expected 3 numbers"),
        ({"point": "north"}, "point='north': expected 3 numbers"),
        ({"point": [0, float("nan"), 1]}, "point=.*expected 3 numbers"),
        ({"radius": -0.1}, "radius=-0.1: expected a number from 0 to 3.14159"),
        ({"size": 0.0}, "size=0.0: expected a number from 1e-05 to 2"),
        ({"size": float("nan")}, "size=nan: expected a number"),
        ({"sizes": 0.1}, "unknown key 'sizes'; did you mean 'size'"),
    ],
)
def test_what_is_wrong_with_a_region_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        define(GRADED | {"refine": [GRADED["refine"][0] | change]})


@pytest.mark.parametrize("key", ["family", "refinements"])
def test_a_missing_key_is_named(key):
    with pytest.raises(ValueError, match=f"{key} is missing; expected"):
        define({name: value for name, value in GRADED.items() if name != key})


def test_quadrilaterals_cannot_be_graded():
    with pytest.raises(ValueError, match="unknown key 'refine'"):
        define({"family": "cubed sphere", "cells_per_edge": 4, "refine": GRADED["refine"]})


def test_an_unknown_mesh_names_the_nearest():
    with pytest.raises(ValueError, match="unknown mesh 'icosahedrl'; did you mean 'icosahedral'"):
        load_definition("icosahedrl")


def test_errors_in_a_file_name_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('family = "circle"\ncells = 2\n')
    with pytest.raises(ValueError, match=r"mine\.toml: cells=2: expected an integer from 3"):
        load_definition(path)
    path.write_text("family = circle\n")
    with pytest.raises(ValueError, match=r"mine\.toml is not valid TOML"):
        load_definition(path)
    with pytest.raises(OSError, match="absent"):
        load_definition(tmp_path / "absent.toml")
