"""What VTK, the library under ParaView, reads from a time series."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Step:
    """A series at one time; `cells` hold numbers of points, `kinds` VTK's numbers of kinds."""

    time: float
    points: np.ndarray
    cells: list[list[int]]
    kinds: set[int]
    sizes: np.ndarray
    point_arrays: dict[str, np.ndarray]
    cell_arrays: dict[str, np.ndarray]


def read_series(path):
    """All steps of a file, in the order of the times that the file advertises."""
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
    from vtkmodules.vtkIOHDF import vtkHDFReader

    reader = vtkHDFReader()
    assert reader.CanReadFile(str(path))
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    return [_read_step(reader, time) for time in times]


def _read_step(reader, time):
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkFiltersVerdict import vtkCellSizeFilter

    reader.UpdateTimeStep(time)
    sizes = vtkCellSizeFilter()
    sizes.SetInputConnection(reader.GetOutputPort())
    sizes.UpdateTimeStep(time)
    data = sizes.GetOutput()
    cells = [_corners(data, i) for i in range(data.GetNumberOfCells())]
    arrays = [
        {
            # The reader uses its memory again for the next step.
            group.GetArrayName(i): vtk_to_numpy(group.GetArray(i)).copy()
            for i in range(group.GetNumberOfArrays())
        }
        for group in (data.GetPointData(), data.GetCellData())
    ]
    measured = [arrays[1].pop(name) for name in ("VertexCount", "Length", "Area", "Volume")]
    return Step(
        time,
        vtk_to_numpy(data.GetPoints().GetData()).copy(),
        cells,
        {data.GetCellType(i) for i in range(len(cells))},
        # A cell has one of these, according to its dimension.
        np.sum(measured, axis=0),
        *arrays,
    )


def _corners(data, number):
    cell = data.GetCell(number)
    return [cell.GetPointId(i) for i in range(cell.GetNumberOfPoints())]
