"""Panels of numbers over time and of errors over the number of particles."""

from meanfield.plotting.style import CYCLE, MARKERS


def draw_series(axes, times, curves, label, logarithmic=False):
    """Named curves over time.

    Parameters
    ----------
    axes : matplotlib Axes
    times : ndarray, shape (t,)
    curves : dict of str to ndarray, shape (t,)
    label : str
        Of the vertical axis.
    logarithmic : bool
        Scale of the vertical axis.
    """
    styles = ("-", "--", ":", "-.")
    for i, (name, values) in enumerate(curves.items()):
        axes.plot(times, values, styles[i % len(styles)], color=CYCLE[i % len(CYCLE)], label=name)
    if logarithmic:
        axes.set_yscale("log")
    axes.set(xlabel="time t", ylabel=label)
    axes.legend()


def draw_convergence(axes, counts, errors, slopes, label):
    """Errors against the number of particles with their observed slopes.

    Parameters
    ----------
    axes : matplotlib Axes
    counts : ndarray, shape (k,)
    errors : dict of str to ndarray, shape (k,)
    slopes : dict of str to float or None
        Observed exponents, for the legend.
    label : str
        Of the vertical axis.
    """
    for i, (name, values) in enumerate(errors.items()):
        slope = "" if slopes[name] is None else f": n^{slopes[name]:.2f}"
        axes.loglog(counts, values, marker=MARKERS[i % len(MARKERS)], markersize=5,
                    color=CYCLE[i % len(CYCLE)], label=f"{name}{slope}")
    axes.set(xlabel="number of particles n", ylabel=label)
    axes.legend()
