"""How every driver starts and ends, on one rank or many.

Exit status 2: the input could not be used and nothing was done. Status 1: the run failed. In
both cases one message says what happened, and every rank ends. With MPICH, mpiexec ends with the
same status; it hands SIGTERM and Ctrl-C on to all ranks.
"""

import contextlib
import os
import sys
import time
import traceback

from meanfield.runtime.parallel import rank, size

# Longer than ranks take to meet the same error: the lowest that meets it speaks for all.
_SECONDS_TO_SPEAK = 1.0
_SECONDS_BETWEEN_RANKS = 0.3
_MOST_SECONDS = 5.0
# The launcher drops what it has not passed on when it is asked to end the ranks.
_SECONDS_TO_BE_HEARD = 0.3


def world():
    """The communicator of all ranks, or None when there is one rank only."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return None
    return MPI.COMM_WORLD if MPI.COMM_WORLD.Get_size() > 1 else None


def launch(prepare, run, argv=None):
    """Run a program: prepare it from its arguments, then run it.

    Parameters
    ----------
    prepare : callable
        (argv, comm) -> what `run` takes. Its ValueError, TypeError, OSError end the
        program with status 2.
    run : callable
        (prepared, comm) -> exit status or None.
    argv : sequence of str, optional
        By default the program's own arguments.
    """
    comm = world()
    try:
        with _silent_unless_first(comm):
            prepared = prepare(sys.argv[1:] if argv is None else argv, comm)
    except SystemExit:
        # --help has been printed.
        raise
    except (ValueError, TypeError, OSError) as problem:
        _end(comm, 2, f"error: {_one_line(problem)}")
    except KeyboardInterrupt:
        _end(comm, 130, "interrupted")
    except BaseException as problem:
        _end(comm, 1, _report(problem, comm))
    try:
        status = run(prepared, comm)
    except KeyboardInterrupt:
        _end(comm, 130, "interrupted")
    except BaseException as problem:
        _end(comm, 1, _report(problem, comm))
    sys.exit(status or 0)


def _end(comm, status, message):
    """Say why, and end all ranks; does not return."""
    if rank(comm) != 0:
        wait = _SECONDS_TO_SPEAK + _SECONDS_BETWEEN_RANKS * rank(comm)
        time.sleep(min(wait, _MOST_SECONDS))
    print(message, file=sys.stderr, flush=True)
    if size(comm) == 1:
        sys.exit(status)
    time.sleep(_SECONDS_TO_BE_HEARD)
    comm.Abort(status)
    # MPICH asks the launcher to end all ranks and may return here before it has.
    os._exit(status)


def _one_line(problem):
    return " ".join(str(problem).split())


def _report(problem, comm):
    """What failed, where in the run (notes of the time loop), on which rank, in which line."""
    place = traceback.extract_tb(problem.__traceback__)[-1]
    notes = " ".join(getattr(problem, "__notes__", []))
    return (
        f"error on rank {rank(comm)}{' ' + notes if notes else ''}: "
        f"{type(problem).__name__}: {_one_line(problem)} "
        f"({os.path.basename(place.filename)}, line {place.lineno})"
    )


@contextlib.contextmanager
def _silent_unless_first(comm):
    if rank(comm) == 0:
        yield
        return
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
