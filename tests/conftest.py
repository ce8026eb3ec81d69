"""What all tests share: patience on slow machines, and a way to start ranks."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# Open MPI wants to be told that it may run as root, as in containers, and more ranks than cores.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}

# A busy machine is no failure, and a run that passed once passes again.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def comm():
    """The communicator of all ranks that mpiexec has started."""
    from mpi4py import MPI

    return MPI.COMM_WORLD


@pytest.fixture
def shared_folder(tmp_path, comm):
    """A temporary folder, the same on all ranks."""
    return comm.bcast(tmp_path, root=0)


@pytest.fixture
def run_on_ranks():
    """Start this Python on several ranks: ``run_on_ranks(2, "drivers/x.py", "--help")``.

    Returns a `subprocess.CompletedProcess` whose ``stdout`` holds the text of both streams.
    Whatever has not ended after ``timeout`` seconds is ended and the test fails.
    """
    return _run_on_ranks


@pytest.fixture(scope="session")
def run_on_ranks_everywhere():
    """The same for fixtures of any scope."""
    return _run_on_ranks


def _run_on_ranks(ranks, *arguments, timeout=60, environment=None):
    command = [_mpiexec(), "-n", str(ranks), sys.executable, *map(str, arguments)]
    # A file, not a pipe: a rank that outlives its launcher must not keep the reader waiting.
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **OPEN_MPI, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
            hung = False
        except subprocess.TimeoutExpired:
            hung = True
            _end(process)
        output.seek(0)
        text = output.read()
    if hung:
        pytest.fail(f"{' '.join(command)} still ran after {timeout} s; it had said:\n{text}")
    return subprocess.CompletedProcess(command, process.returncode, text)


def _mpiexec():
    beside_python = Path(sys.executable).with_name("mpiexec")
    found = str(beside_python) if beside_python.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.fail("no mpiexec: install the extra 'mpi' or an MPI of your own")
    return found


def _end(process):
    # Asked politely, the launcher ends its ranks, which may sit in sessions of their own.
    for request in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, request)
        try:
            process.wait(10)
            return
        except subprocess.TimeoutExpired:
            continue
