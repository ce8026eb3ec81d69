"""One look for all figures: readable in print and by colour-blind readers."""

from contextlib import contextmanager

# Okabe and Ito's palette, whose colours differ for all common kinds of colour vision.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000",
)
CYCLE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
DENSITY_COLOURS = "cividis"
POTENTIAL_COLOURS = "PuOr"


@contextmanager
def figure_style():
    """Matplotlib without a screen, with this package's sizes and colours."""
    import matplotlib

    with matplotlib.rc_context(
        {
            "backend": "agg",
            "axes.prop_cycle": matplotlib.cycler(color=CYCLE),
            "axes.grid": True,
            "axes.titlesize": 10,
            "axes.labelsize": 9,
            "grid.alpha": 0.3,
            "grid.linewidth": 0.5,
            "font.size": 9,
            "legend.fontsize": 7.5,
            "legend.framealpha": 0.85,
            "xtick.labelsize": 8,
            "ytick.labelsize": 8,
            "figure.dpi": 100,
            "savefig.dpi": 160,
        }
    ):
        yield
