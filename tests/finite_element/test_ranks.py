"""The tests in tests/finite_element/mpi, on several ranks."""

import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_everything_in_tests_finite_element_mpi_passes(run_on_ranks, ranks):
    finished = run_on_ranks(
        ranks,
        "-m",
        "pytest",
        "tests/finite_element/mpi",
        "-q",
        "-p",
        "no:cacheprovider",
        timeout=500,
    )
    assert finished.returncode == 0, finished.stdout
