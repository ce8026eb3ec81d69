"""Does the finite-element environment work? Run on any number of ranks; ends with status 0 if so.

One use of each part that meanfield stands on: a mesh cut over ranks (PETSc, PT-Scotch), kernels
compiled on the spot, a direct solver (MUMPS), points found in cells, files written by all ranks.
"""

import math
import tempfile
from pathlib import Path

import numpy as np
from firedrake import (
    COMM_WORLD,
    CheckpointFile,
    Function,
    FunctionSpace,
    IcosahedralSphereMesh,
    SpatialCoordinate,
    TestFunction,
    TrialFunction,
    VertexOnlyMesh,
    assemble,
    dx,
    grad,
    inner,
    solve,
)

SUBDIVISIONS = 3
MUMPS = {"ksp_type": "preonly", "pc_type": "lu", "pc_factor_mat_solver_type": "mumps"}


def main():
    mesh = IcosahedralSphereMesh(1.0, SUBDIVISIONS, name="sphere")
    mesh.init_cell_orientations(SpatialCoordinate(mesh))
    z = SpatialCoordinate(mesh)[2]

    area = assemble(1.0 * dx(domain=mesh))
    check("area of the sphere", area, 4 * math.pi, 0.02)

    # -div grad z = 2 z on the sphere, so that (1 - div grad) u = 3 z has the solution z.
    space = FunctionSpace(mesh, "CG", 1)
    u, v, solution = TrialFunction(space), TestFunction(space), Function(space)
    form = (u * v + inner(grad(u), grad(v))) * dx
    solve(form == 3 * z * v * dx, solution, solver_parameters=MUMPS)
    check("distance from the exact solution", assemble((solution - z) ** 2 * dx), 0.0, 1e-3)

    density = Function(FunctionSpace(mesh, "DG", 0), name="density").interpolate(1 + z)
    points = np.random.default_rng(0).normal(size=(300, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = VertexOnlyMesh(mesh, points, tolerance=0.5)
    count = COMM_WORLD.allreduce(found.cell_set.size)
    check("points that were found", count, len(points), 0.0)

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(COMM_WORLD.bcast(folder)) / "density.h5")
        with CheckpointFile(path, "w") as file:
            file.save_mesh(mesh)
            file.save_function(density)
        with CheckpointFile(path, "r") as file:
            again = file.load_function(file.load_mesh("sphere"), "density")
        check("mass read back", assemble(again * dx), assemble(density * dx), 1e-12)
        COMM_WORLD.Barrier()

    if COMM_WORLD.rank == 0:
        print(f"finite elements work on {COMM_WORLD.size} ranks")


def check(what, value, expected, tolerance):
    if abs(value - expected) > tolerance * max(1.0, abs(expected)):
        raise SystemExit(f"{what}: {value}, expected {expected} up to {tolerance}")


if __name__ == "__main__":
    main()
