"""The tests in tests/mpi, on several ranks."""

import pytest


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_everything_in_tests_mpi_passes(run_on_ranks, ranks):
    # Ranks must not race for one cache folder.
    finished = run_on_ranks(
        ranks, "-m", "pytest", "tests/mpi", "-q", "-p", "no:cacheprovider", timeout=150
    )
    assert finished.returncode == 0, finished.stdout
