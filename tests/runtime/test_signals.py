"""Programs that are told to stop, by way of the launcher of their ranks."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from meanfield.runtime.record import read_record

PROGRAM = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from meanfield.runtime.checkpoint import Checkpoint, restore
from meanfield.runtime.evolve import evolve
from meanfield.runtime.launch import launch
from meanfield.runtime.record import Record
from tests.runtime.toy import Decay

class Slow(Decay):
    def step(self, limit):
        time.sleep({pause})
        if self.taken == 3:
            Path("under_way").touch()
        return super().step(limit)

def prepare(argv, comm):
    flow = Slow(2, comm)
    step = restore("checkpoint.h5", flow) if "restart" in argv else 0
    record = Record("record.h5", flow, interval=0.3, append="restart" in argv, from_step=step)
    return flow, step, record

def run(prepared, comm):
    flow, step, record = prepared
    outcome = evolve(flow, 3.0, [record, Checkpoint("checkpoint.h5")], step)
    return 143 if outcome.interrupted else 0

launch(prepare, run)
"""


def start(folder, ranks, pause, *arguments, root):
    folder.mkdir(exist_ok=True)
    program = folder / "program.py"
    program.write_text(PROGRAM.format(root=str(root), pause=pause))
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside if beside.exists() else shutil.which("mpiexec"))
    with open(folder / "output", "w") as output:
        return subprocess.Popen(
            [mpiexec, "-n", str(ranks), sys.executable, program, *arguments],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )


def signalled(folder, ranks, number, root):
    """Exit status of a run that got a signal after a few steps."""
    process = start(folder, ranks, 0.1, root=root)
    try:
        until = time.monotonic() + 30
        while not (folder / "under_way").exists():
            assert time.monotonic() < until, (folder / "output").read_text()
            time.sleep(0.05)
        process.send_signal(number)
        return process.wait(20)
    finally:
        process.kill()


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_terminated_run_continues_as_if_it_had_not_been(tmp_path, request, ranks):
    root = request.config.rootpath
    assert start(tmp_path / "whole", ranks, 0.0, root=root).wait(60) == 0
    parts = tmp_path / "parts"
    assert signalled(parts, ranks, signal.SIGTERM, root) == 143
    whole, part = (read_record(tmp_path / name / "record.h5") for name in ("whole", "parts"))
    assert part.table["time"][-1] < 3.0
    assert start(parts, ranks, 0.0, "restart", root=root).wait(60) == 0
    part = read_record(parts / "record.h5")
    for name in whole.table:
        np.testing.assert_array_equal(part.table[name], whole.table[name])
    np.testing.assert_array_equal(part.snapshots["rows"], whole.snapshots["rows"])


def test_control_c_ends_all_ranks_with_one_word(tmp_path, request):
    folder = tmp_path / "run"
    assert signalled(folder, 2, signal.SIGINT, request.config.rootpath) == 130
    text = (folder / "output").read_text()
    assert text.count("interrupted\n") == 1
    assert "Traceback" not in text
