"""What ranks do together. A communicator of ``None`` means one rank and no MPI at all.

Global arrays are cut in contiguous blocks in rank order, so a row's global number is its
rank's offset plus its local number, whatever the rank count.
"""

import os

import numpy as np

# Rows that travel in one message.
_ROWS_A_BLOCK = 2**18


def rank(comm):
    """This rank's number, 0 without MPI."""
    return 0 if comm is None else comm.Get_rank()


def size(comm):
    """Number of ranks, 1 without MPI."""
    return 1 if comm is None else comm.Get_size()


def sum_over_ranks(value, comm):
    """Sum of a number or array over the ranks, the same on every rank.

    Parameters
    ----------
    value : float, int or ndarray
        This rank's part; arrays have one shape on all ranks.
    comm : communicator or None
    """
    return _reduce(value, comm, "SUM")


def max_over_ranks(value, comm):
    """Largest value over the ranks, entry by entry; a NaN anywhere gives NaN everywhere."""
    if size(comm) == 1:
        return value
    array = np.asarray(value, dtype=float)
    # MPI_MAX leaves the fate of a NaN open, so it travels apart.
    invalid = _reduce(np.isnan(array).astype(np.int64), comm, "SUM")
    largest = _reduce(np.where(np.isnan(array), -np.inf, array), comm, "MAX")
    result = np.where(invalid > 0, np.nan, largest)
    return float(result) if np.ndim(value) == 0 else result


def _reduce(value, comm, operation):
    if size(comm) == 1:
        return value
    from mpi4py import MPI

    local = np.ascontiguousarray(value)
    result = np.empty_like(local)
    comm.Allreduce(local, result, getattr(MPI, operation))
    return result.item() if np.ndim(value) == 0 else result


def broadcast(value, comm):
    """Rank 0's value, on every rank."""
    return value if size(comm) == 1 else comm.bcast(value, root=0)


def gather_rows(rows, comm):
    """All ranks' rows in global order on rank 0, ``None`` on the others.

    Parameters
    ----------
    rows : ndarray, shape (n_local, ...)
        A rank may hold none, but the trailing shape and the type agree.
    """
    rows = np.ascontiguousarray(rows)
    if size(comm) == 1:
        return rows
    count = sum_over_ranks(len(rows), comm)
    total = None
    if comm.Get_rank() == 0:
        total = np.empty((count, *rows.shape[1:]), dtype=rows.dtype)
    for start, block in blocks_on_root(rows, comm):
        total[start : start + len(block)] = block
    return total


def blocks_on_root(rows, comm):
    """All ranks' rows in global order, a block at a time: ``(first row, block)`` on rank 0.

    The other ranks get nothing but have to take part, that is exhaust the iterator. Rank 0
    never holds more than one block of the others' rows.
    """
    rows = np.ascontiguousarray(rows)
    if size(comm) == 1:
        yield 0, rows
        return
    counts = comm.gather(len(rows), root=0)
    if comm.Get_rank() != 0:
        for first in range(0, len(rows), _ROWS_A_BLOCK):
            comm.Send(rows[first : first + _ROWS_A_BLOCK], dest=0)
        return
    yield 0, rows
    start = counts[0]
    for source, count in enumerate(counts[1:], start=1):
        for first in range(0, count, _ROWS_A_BLOCK):
            block = np.empty((min(_ROWS_A_BLOCK, count - first), *rows.shape[1:]), rows.dtype)
            comm.Recv(block, source=source)
            yield start + first, block
        start += count


def local_slice(total, comm):
    """The block of ``range(total)`` that this rank holds: contiguous, balanced, in rank order.

    Examples
    --------
    >>> local_slice(10, None)
    slice(0, 10, None)
    """
    ranks, here = size(comm), rank(comm)
    return slice(total * here // ranks, total * (here + 1) // ranks)


def row_offset(local_count, comm):
    """Global number of this rank's first row."""
    if size(comm) == 1:
        return 0
    return sum(comm.allgather(local_count)[: comm.Get_rank()])


def raise_together(problem, comm, exception=ValueError):
    """Raise the same error on every rank when any rank has a problem; collective.

    Parameters
    ----------
    problem : str or None
        What is wrong on this rank. The lowest rank's problem is the one raised.
    exception : type
        Class of the error.
    """
    problems = [problem] if size(comm) == 1 else comm.allgather(problem)
    for found in problems:
        if found is not None:
            raise exception(found)


def threads_per_rank(comm):
    """Cores that each rank may keep busy: this machine's share, or OMP_NUM_THREADS when set."""
    if "OMP_NUM_THREADS" in os.environ:
        return max(1, int(os.environ["OMP_NUM_THREADS"]))
    return max(1, len(os.sched_getaffinity(0)) // _ranks_on_this_machine(comm))


def _ranks_on_this_machine(comm):
    if size(comm) == 1:
        return 1
    from mpi4py import MPI

    if "key" not in _machine_attribute:
        _machine_attribute["key"] = MPI.Comm.Create_keyval()
    count = comm.Get_attr(_machine_attribute["key"])
    if count is None:
        sharing = comm.Split_type(MPI.COMM_TYPE_SHARED)
        count = sharing.Get_size()
        sharing.Free()
        comm.Set_attr(_machine_attribute["key"], count)
    return count


# Splitting a communicator is costly, so what it told is kept with the communicator.
_machine_attribute = {}
