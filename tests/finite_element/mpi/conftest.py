"""The ranks that these tests run on: all that mpiexec has started."""

import pytest


@pytest.fixture
def comm():
    from mpi4py import MPI

    return MPI.COMM_WORLD


@pytest.fixture
def shared_folder(comm, tmp_path_factory):
    """One temporary folder for all ranks."""
    folder = tmp_path_factory.mktemp("ranks") if comm.Get_rank() == 0 else None
    return comm.bcast(folder, root=0)
