"""How programs end: messages, exit statuses, signals, on several ranks."""

import textwrap
import time

import pytest

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from meanfield.runtime.evolve import evolve
from meanfield.runtime.launch import launch
from tests.runtime.toy import Decay

def prepare(argv, comm):
    if argv[0] == "bad input":
        raise ValueError("beta=-1: expected a number > 0")
    return argv

def run(argv, comm):
    fail_at = (1, 2) if argv[0] == "rank 1 fails" else None
    flow = Decay(2, comm, fail_at=fail_at)
    evolve(flow, 1.0)
    return 0

launch(prepare, run)
"""


@pytest.fixture
def program(tmp_path, request):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM.format(root=str(request.config.rootpath))))
    return path


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_bad_input_ends_with_status_2_and_one_message(run_on_ranks, program, ranks):
    finished = run_on_ranks(ranks, program, "bad input")
    assert finished.returncode == 2
    assert finished.stdout.count("error: beta=-1: expected a number > 0") == 1


def test_an_error_on_one_rank_ends_all_with_status_1(run_on_ranks, program):
    began = time.monotonic()
    finished = run_on_ranks(3, program, "rank 1 fails")
    assert time.monotonic() - began < 20
    assert finished.returncode == 1
    assert finished.stdout.count("error on rank 1 in step 3, from time 0.2") == 1
    assert finished.stdout.count("error on rank") == 1
    assert "particle 3" in finished.stdout


def test_a_good_run_ends_with_status_0(run_on_ranks, program):
    assert run_on_ranks(2, program, "good").returncode == 0
