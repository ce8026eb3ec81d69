"""What tests share that are run on several ranks."""

import pytest

from meanfield.runtime.parallel import broadcast


@pytest.fixture(scope="session")
def comm():
    """The communicator of all ranks."""
    from mpi4py import MPI

    return MPI.COMM_WORLD


@pytest.fixture
def shared_folder(tmp_path, comm):
    """A temporary folder, the same on all ranks."""
    return broadcast(tmp_path, comm)
