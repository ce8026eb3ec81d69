"""Meshes of S¹ and S² for Firedrake, each defined by a small TOML file of the folder ``meshes``."""

import tomllib
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from math import hypot, isfinite, pi
from pathlib import Path

from meanfield.density.finite_element.cell_lists import (
    Region,
    circle,
    cubed_sphere,
    icosahedral_sphere,
)
from meanfield.runtime.parallel import raise_together, rank
from meanfield.sphere.geometry import normalise

DEFINITIONS = Path(__file__).resolve().parents[3] / "meshes"

_HIGHEST_DEGREE = 8
_SMALLEST_SIZE = 1e-5
# A given point that is this close to unit length means the one on the sphere.
_UNIT_LENGTH = 1e-6


@dataclass(frozen=True)
class Family:
    """A way to mesh a sphere: its dimension, and the key, range and use of its resolution."""

    ambient_dim: int
    resolution: str
    least: int
    most: int
    gradable: bool
    arrays: object


FAMILIES = {
    "circle": Family(2, "cells", 3, 10**7, True, circle),
    "icosahedral sphere": Family(3, "refinements", 0, 10, True, icosahedral_sphere),
    "cubed sphere": Family(3, "cells_per_edge", 1, 1500, False, cubed_sphere),
}


@dataclass(frozen=True)
class MeshDefinition:
    """What a mesh is to be like.

    Attributes
    ----------
    family : str
        A key of `FAMILIES`.
    resolution : int
        Cells of the circle, refinements of the icosahedron, cells along each edge of the cube.
    degree : int
        Of the polynomials that map reference cells to cells: with 1 they are straight or flat;
        with 2 and more they are curved and all their nodes lie on the sphere.
    regions : tuple of Region
        Where cells are smaller.
    """

    family: str
    resolution: int
    degree: int = 1
    regions: tuple = ()

    @property
    def ambient_dim(self):
        """2 for S¹, 3 for S²."""
        return FAMILIES[self.family].ambient_dim

    def table(self):
        """The definition as in its file: texts, numbers and lists."""
        table = {
            "family": self.family,
            FAMILIES[self.family].resolution: self.resolution,
            "degree": self.degree,
        }
        if self.regions:
            table["refine"] = [asdict(region) | {"point": list(region.point)}
                               for region in self.regions]
        return table


def load_definition(name_or_path):
    """Read the definition of a mesh.

    Parameters
    ----------
    name_or_path : str or path-like
        A file that ends in .toml, or the name without ending of one in the folder ``meshes``.

    Returns
    -------
    MeshDefinition

    Raises
    ------
    ValueError
        For an unknown name, family or key (naming the nearest known one), a key that is missing,
        or a value out of range, naming file, key, value and what was expected.
    OSError
        When the file cannot be read.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        known = sorted(file.stem for file in DEFINITIONS.glob("*.toml"))
        if str(name_or_path) not in known:
            raise ValueError(
                f"{_unknown('mesh', str(name_or_path), known)}; or give the path of a .toml file"
            )
        path = DEFINITIONS / f"{name_or_path}.toml"
    with open(path, "rb") as file:
        try:
            table = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise ValueError(f"{path} is not valid TOML: {problem}") from problem
    try:
        return define(table)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from problem


def define(table):
    """The definition of a mesh from what its file says.

    Parameters
    ----------
    table : dict
        Keys family, that family's resolution, degree (optional) and refine (optional, a list of
        tables with point, radius, size).

    Returns
    -------
    MeshDefinition

    Raises
    ------
    ValueError
        As `load_definition`.

    Examples
    --------
    >>> define({"family": "circle", "cells": 64})
    MeshDefinition(family='circle', resolution=64, degree=1, regions=())
    >>> define({"family": "circle", "cell": 64})
    Traceback (most recent call last):
        ...
    ValueError: unknown key 'cell'; did you mean 'cells'?
    """
    if "family" not in table:
        raise ValueError(f"family is missing; expected one of {', '.join(FAMILIES)}")
    name = table["family"]
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(_unknown("family", str(name), list(FAMILIES)))
    family = FAMILIES[name]
    _check_keys(
        table,
        required=["family", family.resolution],
        optional=["degree"] + ["refine"] * family.gradable,
    )
    return MeshDefinition(
        name,
        _integer(family.resolution, table[family.resolution], family.least, family.most),
        _integer("degree", table.get("degree", 1), 1, _HIGHEST_DEGREE),
        _regions(table.get("refine", []), family.ambient_dim),
    )


def build_mesh(definition, comm=None):
    """Build a mesh; collective.

    The arrays of `cell_lists` are made on rank 0 and distributed, so that it is the same mesh on
    any number of ranks. Cells are oriented outwards.

    Parameters
    ----------
    definition : MeshDefinition
    comm : communicator, optional
        Without one, the mesh is this rank's own.

    Returns
    -------
    firedrake.MeshGeometry
        Of radius 1 in R² or R³, with cell orientations.

    Raises
    ------
    ValueError
        When the wanted sizes need too many cells; on every rank.
    """
    import firedrake
    from firedrake.mesh import plex_from_cell_list
    from mpi4py import MPI

    comm = MPI.COMM_SELF if comm is None else comm
    family = FAMILIES[definition.family]
    vertices, cells = _arrays_on_root(definition, comm)
    plex = plex_from_cell_list(family.ambient_dim - 1, cells, vertices, comm)
    mesh = firedrake.Mesh(plex, dim=family.ambient_dim, comm=comm)
    if definition.degree > 1:
        mesh = _curved(mesh, definition.degree)
    mesh.init_cell_orientations(firedrake.SpatialCoordinate(mesh))
    return mesh


def _arrays_on_root(definition, comm):
    arrays, problem = (None, None), None
    if rank(comm) == 0:
        family = FAMILIES[definition.family]
        arguments = [definition.resolution] + [definition.regions] * family.gradable
        try:
            arrays = family.arrays(*arguments)
        except ValueError as error:
            problem = str(error)
    raise_together(problem, comm)
    return arrays


def _curved(mesh, degree):
    """The same cells as polynomials of this degree, all their nodes on the sphere."""
    import firedrake

    space = firedrake.VectorFunctionSpace(mesh, mesh.coordinates.ufl_element().family(), degree)
    nodes = firedrake.Function(space).interpolate(firedrake.SpatialCoordinate(mesh))
    # Halos hold copies, and each is normalised to the same numbers.
    nodes.dat.data_with_halos[:] = normalise(nodes.dat.data_ro_with_halos)
    return firedrake.Mesh(nodes, comm=mesh.comm)


def _regions(entries, ambient_dim):
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"refine={entries!r}: expected tables, each under a line [[refine]]")
    regions = []
    for number, entry in enumerate(entries, start=1):
        try:
            _check_keys(entry, required=["point", "radius", "size"])
            regions.append(
                Region(
                    _unit_vector(entry["point"], ambient_dim),
                    _number("radius", entry["radius"], 0.0, pi),
                    _number("size", entry["size"], _SMALLEST_SIZE, 2.0),
                )
            )
        except ValueError as problem:
            raise ValueError(f"refine, table {number}: {problem}") from problem
    return tuple(regions)


def _check_keys(table, required, optional=()):
    known = [*required, *optional]
    for key in table:
        if key not in known:
            raise ValueError(_unknown("key", key, known))
    for key in required:
        if key not in table:
            raise ValueError(f"{key} is missing; expected keys: {', '.join(known)}")


def _unknown(what, name, known):
    nearest = get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"expected one of {', '.join(known)}"
    return f"unknown {what} {name!r}; {hint}"


def _integer(key, value, least, most):
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{key}={value!r}: expected an integer from {least} to {most}")
    return value


def _number(key, value, least, most):
    if not _is_number(value) or not least <= value <= most:
        raise ValueError(f"{key}={value!r}: expected a number from {least:g} to {most:g}")
    return float(value)


def _unit_vector(value, ambient_dim):
    fits = isinstance(value, list | tuple) and len(value) == ambient_dim
    fits = fits and all(map(_is_number, value))
    length = hypot(*value) if fits else 0.0
    if abs(length - 1) > _UNIT_LENGTH:
        raise ValueError(
            f"point={value!r}: expected {ambient_dim} numbers whose squares add up to 1"
        )
    return tuple(entry / length for entry in value)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
