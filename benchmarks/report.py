"""Tables of measured rows, and what they say about the targets, as Markdown."""

import datetime
import os
import platform
from importlib.metadata import version

LIBRARIES = ("numpy", "scipy", "finufft", "ducc0", "mpi4py")

INTRODUCTION = """\
# Benchmarks

One right-hand side: the velocities of N uniform particles under attention (peak amplitude) and
a GeLU perceptron of d neurons, at the tolerance that particle flows use. Written by
`python benchmarks/run.py` (`make benchmark`); the least of some repeats.

- *fast*: the sum through harmonics of the stated degree, on all cores.
- *direct*: meanfield's sum over all pairs, on all cores.
- *dense*: `np.exp(beta * (x @ x.T - 1)) @ (masses[:, None] * x)` and the perceptron, in numpy.
- *dense, in place*: the same with the N × N matrix overwritten instead of copied.
- *error*: the largest difference between fast and dense velocities, relative to the largest
  speed that attention alone gives.
- *memory*: the largest resident memory of the whole process, particles and libraries included,
  when the fast sum had been taken. A process that has only imported its libraries has about 60.

Times marked ≈ were not measured but extrapolated like N² from the largest N that was. Each row
is a process of its own, and what it compares was measured in it.
"""


def report(sums, ranks, cores):
    """The document.

    Parameters
    ----------
    sums, ranks : list of dict
        Rows of `right_hand_side.measure`: on one rank and all cores; on 1 and 2 ranks of one
        core each.
    cores : int
        How many cores `sums` had.
    """
    sums = _extrapolated(sums)
    parts = [INTRODUCTION, _machine(cores)]
    for dimension in (2, 3):
        for beta in sorted({row["beta"] for row in sums}):
            rows = [r for r in sums if r["dimension"] == dimension and r["beta"] == beta]
            title = f"## {_sphere(dimension)}, β = {beta:g}, {cores} cores\n"
            parts.append(title + "\n" + _table_of_sums(rows))
    parts.append("## Ranks\n\nOne core for each rank, β = 50.\n\n" + _table_of_ranks(ranks))
    parts.append("## Targets\n\n" + _table_of_targets(sums, ranks))
    return "\n".join(parts)


def _extrapolated(rows):
    """Rows with the quadratic sums' times, from the largest N that has them where need be."""
    complete = []
    for row in rows:
        measured = [
            r
            for r in rows
            if "dense" in r and r["dimension"] == row["dimension"] and r["beta"] == row["beta"]
        ]
        largest = max(measured, key=lambda r: r["particles"])
        times = {
            name: row.get(name, largest[name] * (row["particles"] / largest["particles"]) ** 2)
            for name in ("direct", "dense", "dense_in_place")
        }
        complete.append({**row, **times, "extrapolated": "dense" not in row})
    return complete


def _machine(cores):
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"Measured on {datetime.date.today()}: {_processor()}, {cores} cores, "
        f"{gibibytes:.0f} GiB, {platform.system()}; Python {platform.python_version()}, "
        f"{libraries}.\n"
    )


def _processor():
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def _table_of_sums(rows):
    head = (
        "N", "degree", "fast", "direct", "dense", "dense, in place",
        "dense / fast", "in place / fast", "ns a particle", "memory, MiB", "error",
    )  # fmt: skip
    body = []
    for row in rows:
        mark = "≈ " if row["extrapolated"] else ""
        body.append(
            (
                f"{row['particles']:,}",
                str(row["degree"]),
                _time(row["fast"]),
                mark + _time(row["direct"]),
                mark + _time(row["dense"]),
                mark + _time(row["dense_in_place"]),
                mark + _ratio(row["dense"] / row["fast"]),
                mark + _ratio(row["dense_in_place"] / row["fast"]),
                f"{row['fast'] / row['particles'] * 1e9:.0f}",
                f"{row['memory']:.0f}",
                f"{row['error']:.0e}" if "error" in row else "",
            )
        )
    return _table(head, body)


def _table_of_ranks(rows):
    head = ("", "N", "1 rank", "2 ranks", "1 rank / 2 ranks", "memory of 2 ranks, MiB")
    body = []
    for one, two in zip(rows[::2], rows[1::2], strict=True):
        body.append(
            (
                _sphere(one["dimension"]),
                f"{one['particles']:,}",
                _time(one["fast"]),
                _time(two["fast"]),
                f"{one['fast'] / two['fast']:.2f}",
                f"{two['memory']:.0f}",
            )
        )
    return _table(head, body)


def _table_of_targets(sums, ranks):
    found = {(r["dimension"], r["beta"], r["particles"]): r for r in sums}
    lines = []

    def compare(what, reached, target, at_most=False, show=_ratio):
        met = reached <= target if at_most else reached >= target
        sign = "≤" if at_most else "≥"
        lines.append((what, f"{sign} {show(target)}", show(reached), "yes" if met else "no"))

    ratios = ((2, 1_000, 20), (2, 16_000, 1_000), (3, 1_000, 10), (3, 16_000, 400))
    for dimension, count, target in ratios:
        for beta in (5.0, 50.0):
            row = found[dimension, beta, count]
            compare(
                f"dense / fast, {_sphere(dimension)}, β = {beta:g}, N = {count:,}",
                row["dense"] / row["fast"],
                target,
            )
    compare("S², β = 50, N = 10⁶", found[3, 50.0, 10**6]["fast"], 0.5, True, _time)
    if (3, 50.0, 10**7) in found:
        row = found[3, 50.0, 10**7]
        compare("S², β = 50, N = 10⁷", row["fast"], 5.0, True, _time)
        compare("its memory in GiB", row["memory"] / 1024, 3.0, True, "{:.2g}".format)
    for one, two in zip(ranks[::2], ranks[1::2], strict=True):
        what = f"1 rank / 2 ranks, {_sphere(one['dimension'])}, N = {one['particles']:,}"
        compare(what, one["fast"] / two["fast"], 1.7, show="{:.2f}".format)
    worst = max(row["error"] for row in sums if "error" in row)
    compare("fast against dense, largest error", worst, 1e-11, True, "{:.0e}".format)
    return _table(("what", "target", "reached", "met"), lines)


def _table(head, body):
    lines = [head, tuple("---" for _ in head), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _time(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1e3 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} µs"


def _ratio(number):
    return f"{number:,.0f}×" if number >= 10 else f"{number:.1f}×"


def _sphere(dimension):
    return {2: "S¹", 3: "S²"}[dimension]
