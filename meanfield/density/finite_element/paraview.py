"""What ParaView shows of a density on a mesh."""

from meanfield.density.finite_element.quality import gathered_cells
from meanfield.runtime.paraview import Cells


def density_on_cells(density):
    """A show for `ParaviewSeries`: the cells with their "density" and "mass"; collective.

    "density" is the mean over the cell, with respect to the uniform probability. Curved cells
    are shown flat, between their corners.

    Parameters
    ----------
    density : FiniteElementDensity

    Returns
    -------
    callable
    """
    space = density.space
    vertices, cells = gathered_cells(space.mesh)

    def show():
        values = density.values
        return Cells(
            vertices, cells, {"density": space.means(values), "mass": space.masses(values)}
        )

    return show
