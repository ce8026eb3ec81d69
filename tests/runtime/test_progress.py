import io
import os
import pty
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from meanfield.runtime.evolve import evolve
from meanfield.runtime.progress import Progress
from tests.runtime.toy import Decay

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from meanfield.runtime.evolve import evolve
from meanfield.runtime.launch import launch
from meanfield.runtime.progress import Progress
from tests.runtime.toy import Decay

launch(lambda argv, comm: comm, lambda comm, _: evolve(Decay(2, comm), 1.0, [Progress(1.0)]) and 0)
"""


class Counted(Decay):
    described = 0

    def describe(self):
        self.described += 1
        return super().describe()


def test_where_nobody_watches_nothing_is_shown_or_computed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(os, "getppid", lambda: 1)
    flow = Counted(1)
    evolve(flow, 1.0, [Progress(1.0, every=1)])
    assert sys.stderr.getvalue() == ""
    assert flow.described == 0


@pytest.mark.parametrize("ranks", [0, 1, 2])
def test_a_terminal_shows_one_bar_also_behind_mpiexec(tmp_path, request, ranks):
    if ranks and not sys.platform.startswith("linux"):
        pytest.skip("the terminal behind a launcher is found through /proc")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(root=str(request.config.rootpath)))
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = beside if beside.exists() else shutil.which("mpiexec")
    launcher = [mpiexec, "-n", str(ranks)] if ranks else []
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 200))
    finished = subprocess.run(
        [*launcher, sys.executable, program],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=end, timeout=60, check=False,
    )
    os.close(end)
    text = os.read(terminal, 2**16).decode()
    os.close(terminal)
    assert finished.returncode == 0, text
    # The last state of the one bar: all time passed, with the numbers of the last step.
    assert text.count("1/1 [") == 1
    assert "step=10" in text
    assert "max_speed=0.3679" in text
