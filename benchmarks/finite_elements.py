"""A step of the density on a mesh: cells, degrees, ranks, and the field's share of it.

    "$(install/finite_elements.sh --where)"/bin/python benchmarks/finite_elements.py

About a minute on 2 cores. Prints a table and writes docs/benchmarks_finite_elements.md.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "docs" / "benchmarks_finite_elements.md"
REFINEMENTS = (6, 7)
REPEATS = 5


def main():
    """Measure on 1 and 2 ranks and write it down."""
    launcher = str(Path(sys.executable).with_name("mpiexec"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent)}
    rows = {}
    for ranks in (1, 2):
        command = [launcher, "-n", str(ranks), sys.executable, __file__, "--measure"]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=900
        )
        if done.returncode != 0:
            raise SystemExit(f"the measurement on {ranks} rank(s) failed:\n{done.stderr}")
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                rows[row["cells"], row["degree"], ranks] = row
    lines = [
        "# Benchmarks: a density on a mesh",
        "",
        "One explicit step on an icosahedral sphere, β = 4, peak amplitude, GeLU neurons, one core",
        "a rank; the least of some repeats. *field*: the share of the step that summing and",
        "evaluating the attention field takes. Written by `benchmarks/finite_elements.py`.",
        "",
        "| cells | degree | 1 rank | 2 ranks | 1 rank / 2 ranks | field, 1 rank |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for cells, degree in sorted({key[:2] for key in rows}):
        one, two = rows[cells, degree, 1], rows[cells, degree, 2]
        lines.append(
            f"| {cells:,} | {degree} | {one['step'] * 1e3:.0f} ms | {two['step'] * 1e3:.0f} ms | "
            f"{one['step'] / two['step']:.2f} | {one['field'] / one['step']:.0%} |"
        )
    text = "\n".join(lines) + "\n"
    DOCUMENT.write_text(text)
    print(text)


def measure():
    """Print a JSON line for each mesh and degree, on rank 0."""
    import numpy as np
    from mpi4py import MPI

    import meanfield as mf
    from meanfield.density.finite_element.meshes import build_mesh, define

    comm = MPI.COMM_WORLD
    model = mf.Model(
        mf.Attention(4.0, amplitude="peak"),
        mf.Perceptron(np.eye(3), [0.4, -0.3, 0.2], activation="gelu"),
    )
    for refinements in REFINEMENTS:
        table = {"family": "icosahedral sphere", "refinements": refinements}
        mesh = build_mesh(define(table), comm)
        for degree in (0, 1):
            density = mf.FiniteElementDensity(model, mesh, lambda x: 1 + 0.5 * x[:, 2], degree)

            def fields(density=density, stages=degree + 1):
                for _ in range(stages):
                    measure = mf.Measure(*density.measure(), comm)
                    field = mf.field(model, measure, "funk_hecke", density.tolerance, False)
                    field.velocity(density.space.facet_nodes)
                    if density.degree:
                        field.velocity(measure.nodes)

            row = {
                "cells": 20 * 4**refinements,
                "degree": degree,
                "step": _best(lambda density=density: density.step(1.0), comm),
                "field": _best(fields, comm),
            }
            if comm.rank == 0:
                print(json.dumps(row), flush=True)


def _best(action, comm):
    action()
    times = []
    for _ in range(REPEATS):
        comm.Barrier()
        began = time.perf_counter()
        action()
        comm.Barrier()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    measure() if "--measure" in sys.argv else main()
