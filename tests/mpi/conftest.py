"""What tests share that are run on several ranks."""

import sys
from pathlib import Path

import pytest

from meanfield.runtime.parallel import broadcast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))


@pytest.fixture(scope="session")
def comm():
    """The communicator of all ranks."""
    from mpi4py import MPI

    return MPI.COMM_WORLD


@pytest.fixture
def shared_path(tmp_path, comm):
    """One temporary directory for all ranks."""
    return broadcast(tmp_path, comm)
