"""A comparison of particles with a density, as numbers to keep and as text to read."""

import numpy as np

_ROWS_SHOWN = 6


def observed_slope(counts, errors):
    """Exponent p of the best fit errors ≈ c·counts^p; None for fewer than two sizes.

    Parameters
    ----------
    counts, errors : sequence of float
        Positive.

    Examples
    --------
    >>> round(observed_slope([10, 100], [1.0, 0.1]), 12)
    -1.0
    """
    if len(counts) < 2 or np.min(errors) <= 0:
        return None
    return float(np.polyfit(np.log(counts), np.log(errors), 1)[0])


def summarise(table, distances, sizes, kinds, reference="spectral"):
    """Final errors against the number of particles, and their slopes.

    Parameters
    ----------
    table : dict of str to ndarray
        The record's table, with columns "density.…" and "kind_size.…".
    distances : dict of str to (Distance, Distance)
        W2 and kernel distance of every cloud, by "kind_size".
    sizes : sequence of int
    kinds : sequence of str
    reference : "spectral" or "mesh"
        The density that distances are from.

    Returns
    -------
    dict
        JSON-able.
    """
    final = {name: float(column[-1]) for name, column in table.items()}
    summary = {"time": final["time"], "sizes": list(sizes), "reference": reference}
    density = {"spectral": "density", "mesh": "mesh"}[reference]
    columns = {
        "w2": lambda name: distances[name][0].value,
        "w2_error": lambda name: distances[name][0].error,
        "kernel_distance": lambda name: distances[name][1].value,
    }
    if f"{density}.energy" in final:
        columns["energy_error"] = lambda name: abs(
            final[f"{name}.energy"] - final[f"{density}.energy"]
        )
    for quantity, value in columns.items():
        summary[quantity] = {
            kind: [value(f"{kind}_{count}") for count in sizes] for kind in kinds
        }
    for quantity in columns.keys() - {"w2_error"}:
        summary[f"{quantity}_slope"] = {
            kind: observed_slope(sizes, summary[quantity][kind]) for kind in kinds
        }
    summary["w2_method"] = next(iter(distances.values()))[0].method
    for member in ("density", "mesh", "tracers"):
        prefix = f"{member}."
        summary[member] = {
            name.removeprefix(prefix): _last_known(column)
            for name, column in table.items()
            if name.startswith(prefix)
        }
    return summary


def _last_known(column):
    known = column[~np.isnan(column)]
    return float(known[-1]) if len(known) else np.nan


def as_text(summary, table, kinds, followed):
    """The summary as a page of text.

    Parameters
    ----------
    summary : dict
        From `summarise`, with "title", "outcome", "seconds", "ranks", "start_error",
        "tail_tolerance" added.
    table : dict of str to ndarray
    kinds : dict of str to str
        Names of the kinds of start.
    followed : str
        The cloud whose numbers are shown in time.

    Returns
    -------
    str
    """
    density, sizes = summary["density"], summary["sizes"]
    lines = [
        "",
        f"== {summary['title']}",
        f"   {summary['outcome']}; {summary['seconds']:.1f} s on {summary['ranks']} rank(s)",
        f"   spectral density: degree {density['degree']:.0f}, tail {density['tail']:.1e} "
        f"(trusted up to {summary['tail_tolerance']:.0e}), mass error "
        f"{abs(density['mass'] - 1):.0e}, smallest value {density['minimum_density']:.2g}, "
        f"start projected to {summary['start_error']:.0e}",
        *_mesh_lines(summary["mesh"]),
        "",
        *_time_table(table, followed),
        "",
        f"   at t = {summary['time']:g}, against the {summary['reference']} density; W2 in radians "
        f"({summary['w2_method']})",
        "   " + f"{'n':>8}" + "".join(f"{head:>16}" for head in _heads(summary, kinds)),
    ]
    for i, count in enumerate(sizes):
        cells = [f"{summary[quantity][kind][i]:.2e}" for quantity, kind in _columns(summary, kinds)]
        lines.append("   " + f"{count:>8}" + "".join(f"{cell:>16}" for cell in cells))
    slopes = [summary[f"{quantity}_slope"][kind] for quantity, kind in _columns(summary, kinds)]
    cells = ["" if slope is None else f"n^{slope:.2f}" for slope in slopes]
    lines.append("   " + f"{'slope':>8}" + "".join(f"{cell:>16}" for cell in cells))
    largest_error = max(max(errors) for errors in summary["w2_error"].values())
    lines.append(f"   W2 is off by at most (sliced: by about) {largest_error:.1e}.")
    for kind, found in summary.get("exact_w2", {}).items():
        if np.isnan(found["value"]):
            lines.append(f"   W2 of {kind}_{sizes[0]} by exact transport was {found['method']}")
        else:
            lines.append(
                f"   W2 of {kind}_{sizes[0]} by {found['method']} of the density: "
                f"{found['value']:.2e} ± {found['error']:.1e}."
            )
    if summary["tracers"]:
        lines.append(
            f"   Tracers in the density's flow and the particles of {followed}, which began "
            f"together, are {summary['tracers']['mean_separation']:.1e} apart in the mean, "
            f"{summary['tracers']['largest_separation']:.1e} at most (radians)."
        )
    return "\n".join(lines)


def _time_table(table, followed):
    columns = {
        "E density": "density.energy",
        "E mesh": "mesh.energy",
        "E particles": f"{followed}.energy",
        "W2": f"{followed}.w2",
        "W2 mesh": "mesh.w2",
        "W2 to mesh": f"{followed}.w2_to_mesh",
        "kernel dist.": f"{followed}.kernel_distance",
        "max speed": "density.max_speed",
        "degree": "density.degree",
    }
    columns = {head: name for head, name in columns.items() if name in table}
    count = len(table["time"])
    rows = np.unique(np.linspace(0, count - 1, min(count, _ROWS_SHOWN)).round().astype(int))
    yield f"   densities and {followed}: distances from the spectral density, and to the mesh"
    yield "   " + f"{'t':>8}" + "".join(f"{head:>16}" for head in columns)
    for i in rows:
        cells = "".join(f"{table[name][i]:>16.6g}" for name in columns.values())
        yield "   " + f"{table['time'][i]:>8.4g}" + cells


def _mesh_lines(mesh):
    if mesh:
        yield (
            f"   mesh density: mass error {abs(mesh['mass'] - 1):.0e}, smallest value "
            f"{mesh['minimum_density']:.2g}, effective number of cells "
            f"{mesh['effective_cells']:.4g}, largest cell mass {mesh['largest_cell_mass']:.2g}"
        )


def _columns(summary, kinds):
    for quantity in ("w2", "kernel_distance", "energy_error"):
        if quantity in summary:
            yield from ((quantity, kind) for kind in kinds)


def _heads(summary, kinds):
    short = {"w2": "W2", "kernel_distance": "kernel", "energy_error": "|ΔE|"}
    return [f"{short[quantity]} {kind}" for quantity, kind in _columns(summary, kinds)]
