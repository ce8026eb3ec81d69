"""All benchmarks: measures, prints the tables and writes docs/benchmarks.md.

    python benchmarks/run.py                  about two minutes on 2 cores
    python benchmarks/run.py --ten-million    also 10⁷ particles

Each row is a process of its own (`benchmarks/right_hand_side.py`), so that its largest memory
means something; what a row compares was measured in the same process. A process starts with
the largest memory of the one that started it, so this program stays small: no numpy here.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from report import report

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "right_hand_side.py"
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"

PARTICLES = (1_000, 16_000, 100_000, 1_000_000)
# Beyond this the N × N matrix and its temporaries need more than 6 GB and some seconds.
LARGEST_DENSE = 16_000


def main():
    """Measure everything and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--ten-million", action="store_true", help="also 10⁷ particles: some minutes more"
    )
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    particles = (*PARTICLES, 10_000_000) if arguments.ten_million else PARTICLES
    sums = [
        _measure(dimension, beta, count, threads=cores, dense=count <= LARGEST_DENSE)
        for dimension in (2, 3)
        for beta in (5.0, 50.0)
        for count in particles
    ]
    ranks = [
        _measure(dimension, 50.0, count, ranks=number)
        for dimension in (2, 3)
        for count in particles[3:]
        for number in (1, 2)
    ]
    text = report(sums, ranks, cores)
    DOCUMENT.write_text(text)
    print(text)


def _measure(dimension, beta, particles, threads=1, ranks=None, dense=False):
    """A row of `right_hand_side.measure`, from a process or from ranks of their own."""
    command = [sys.executable, str(PROGRAM), "--dimension", str(dimension), "--beta", str(beta)]
    command += ["--particles", str(particles)]
    if dense:
        command.append("--dense")
    if ranks is not None:
        # The mpiexec installed beside this Python, which is the one that fits its mpi4py.
        launcher = Path(sys.executable).with_name("mpiexec")
        command = [str(launcher), "-n", str(ranks), *command, "--mpi"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    finished = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600
    )
    if finished.returncode != 0:
        raise SystemExit(f"{' '.join(command[1:])} failed:\n{finished.stderr}")
    row = json.loads(finished.stdout.splitlines()[-1])
    print(
        f"S{'¹²'[dimension - 2]}  beta {beta:g}  {particles:>9,} particles  "
        f"{ranks or 1} x {threads} cores: {row['fast'] * 1e3:.3g} ms",
        flush=True,
    )
    return row


if __name__ == "__main__":
    main()
