"""A mesh of the circle or the sphere: how good it is, and how it looks.

Builds the mesh that a file of the folder meshes/ defines and writes a report of its quality
(summary.json) and a picture of its cells (mesh.png). It needs Firedrake and takes seconds, of which
most compile a few kernels the first time. Start it with

    python drivers/mesh.py --mesh icosahedral_graded --output output/mesh

on any number of ranks. meshes/README.md says how to add a mesh.
"""

from types import SimpleNamespace

from meanfield.density.finite_element.meshes import build_mesh, load_definition
from meanfield.density.finite_element.quality import (
    as_text,
    cell_diameters,
    gathered_cells,
    quality,
)
from meanfield.plotting.mesh import MeshPicture, save_mesh
from meanfield.runtime.launch import launch
from meanfield.runtime.options import Option, parse
from meanfield.runtime.output import prepare_directory, write_summary
from meanfield.runtime.parallel import rank, size

OPTIONS = (
    Option("mesh", str, "icosahedral_graded", "name of a mesh in meshes/, or a .toml file"),
    Option("output", str, "output/mesh", "directory to write into"),
    Option("overwrite", bool, False, "replace what an earlier run has written there"),
)


def prepare(argv, comm):
    """Everything that can go wrong because of the input does so here."""
    options = parse(OPTIONS, __doc__, argv)
    definition = load_definition(options.mesh)
    mesh = build_mesh(definition, comm)
    directory = prepare_directory(options.output, options.overwrite, comm=comm)
    return SimpleNamespace(
        options=options, definition=definition, mesh=mesh, directory=directory
    )


def run(prepared, comm):
    """Measure the mesh, write report and picture."""
    definition, directory = prepared.definition, prepared.directory
    report = quality(prepared.mesh)
    vertices, cells = gathered_cells(prepared.mesh)
    if rank(comm) != 0:
        return
    title = f"mesh {prepared.options.mesh}: {report['cells']} cells, {definition.family}"
    write_summary(
        directory / "summary.json",
        {
            "title": title,
            "definition": definition.table(),
            "quality": report,
            "ranks": size(comm),
        },
    )
    diameters = cell_diameters(vertices[cells])
    save_mesh(
        directory / "mesh.png", MeshPicture(title, vertices, cells, diameters, "cell diameter")
    )
    print(as_text(report))
    print(f"Report and picture are in {directory}/")


if __name__ == "__main__":
    launch(prepare, run)
