"""The shape of the code: which way imports go, how light they are, and what files contain."""

import ast
import configparser
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "meanfield"
SOURCES = sorted(PACKAGE.rglob("*.py"))
DRIVERS = sorted((ROOT / "drivers").rglob("*.py"))
ALL_PYTHON = sorted(
    chain(SOURCES, *((ROOT / top).rglob("*.py") for top in ("drivers", "tests", "benchmarks")))
)

# Each package may import itself and packages of the rows above its own.
LAYERS = [
    {"sphere"},
    {"model"},
    {"fields"},
    {"particles", "density", "stationary", "inversion", "hardmax"},
    {"coupling"},
]
# All may import runtime, which knows none of them; figures are made from records.
APART = {"runtime": set(), "plotting": {"runtime", "sphere"}}
RECORD_READER = "record"
# Beside the packages: what `python -m meanfield doctor` runs, which imports none of them.
TOP_LEVEL = {"__main__.py", "doctor.py"}

LONGEST_FILE = 450
HEAVY = {"mpi4py", "matplotlib", "numba", "finufft", "ducc0", "ot", "firedrake"}
LIGHT_SECONDS = 0.3
# Formats and functions through which a file could run code, or be taken for code.
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec"}
IMPORT_NAMES = {"POT": "ot"}
# What the finite-element environment brings; only modules that need a mesh import it.
FINITE_ELEMENTS = {"firedrake", "finat", "ufl", "petsc4py", "pyop2"}


def allowed_imports():
    allowed = {name: {name} | others for name, others in APART.items()}
    below = {"runtime"}
    for layer in LAYERS:
        for name in layer:
            allowed[name] = below | {name}
        below = below | layer
    return allowed


def imported_modules(tree):
    """Dotted names of all modules that a syntax tree imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            if node.module == "meanfield":
                yield from (f"meanfield.{alias.name}" for alias in node.names)
            else:
                yield node.module


def forbidden_imports(tree, home):
    """Names imported by a module of the package `home` that it has to do without."""
    return [name for name in imported_modules(tree) if not may_import(home, name)]


def may_import(home, name):
    top, *below = name.split(".")
    # The version is data; everything else of the top level would import any layer.
    if top != "meanfield" or below == ["__version__"]:
        return True
    if not below or below[0] not in allowed_imports()[home]:
        return False
    # Of the runtime, figures need what reads records.
    return home != "plotting" or below[0] != "runtime" or below[1:2] == [RECORD_READER]


def unsafe_uses(tree):
    """Places where data could run code, as texts."""
    uses = [
        f"imports {name}" for name in imported_modules(tree) if name.split(".")[0] in UNSAFE_MODULES
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in UNSAFE_CALLS:
            uses.append(f"line {node.lineno} calls {node.func.id}")
        uses += [
            f"line {node.lineno} allows pickles"
            for keyword in node.keywords
            if keyword.arg == "allow_pickle"
            and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
        ]
    return uses


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path):
    return str(path.relative_to(ROOT))


def test_there_is_something_to_look_at():
    assert len(SOURCES) > 10


def test_every_package_has_a_layer():
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= set(allowed_imports())
    assert {path.name for path in PACKAGE.glob("*.py")} <= {"__init__.py", *TOP_LEVEL}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_go_downwards(path):
    home = path.relative_to(PACKAGE).parts[0]
    if home == "__init__.py" or home in TOP_LEVEL:
        own = {name for name in imported_modules(parse(path)) if "meanfield" in name}
        assert own <= {"meanfield.__version__", "meanfield.doctor"}
    else:
        assert not forbidden_imports(parse(path), home)


@pytest.mark.parametrize(
    ("line", "home"),
    [
        ("from meanfield.coupling import tracers", "particles"),
        ("import meanfield.density.spectral", "particles"),
        ("from meanfield import Model", "sphere"),
        ("import meanfield as mf", "fields"),
        ("from meanfield.model.model import Model", "runtime"),
        ("def late():\n    from meanfield.fields.field import field", "model"),
        ("from meanfield.particles.flow import ParticleFlow", "plotting"),
        ("from meanfield.runtime.parallel import rank", "plotting"),
    ],
)
def test_an_upward_import_is_seen(line, home):
    assert forbidden_imports(ast.parse(line), home)


@pytest.mark.parametrize("path", ALL_PYTHON, ids=name_of)
def test_no_data_can_run_code(path):
    assert not unsafe_uses(parse(path))


@pytest.mark.parametrize(
    "line",
    ["import pickle", "np.load(f, allow_pickle=True)", "eval('1')", "from joblib import load"],
)
def test_an_unsafe_use_is_seen(line):
    assert unsafe_uses(ast.parse(line))


@pytest.mark.parametrize("path", ALL_PYTHON, ids=name_of)
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


def test_dependencies_are_those_that_are_imported():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["options"]["install_requires"].split()
    names = [line.split(">=")[0] for line in lines]
    declared = {IMPORT_NAMES.get(name, name) for name in names}
    imported = {
        name.split(".")[0] for path in SOURCES + DRIVERS for name in imported_modules(parse(path))
    }
    imported -= sys.stdlib_module_names | {"meanfield"} | FINITE_ELEMENTS
    assert imported == declared


def run_python(code):
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, done.stdout


def test_importing_the_package_is_light():
    # The best of a few, because others may be using the machine.
    bare = min(run_python("pass")[0] for _ in range(5))
    with_package = min(run_python("import meanfield")[0] for _ in range(5))
    assert with_package - bare < LIGHT_SECONDS


def test_importing_the_package_loads_nothing_heavy():
    loaded = run_python("import sys, meanfield; print(*sys.modules)")[1].split()
    assert "meanfield" in loaded
    assert not HEAVY & set(loaded)


def test_building_a_model_and_a_measure_loads_nothing_heavy():
    code = (
        "import sys, meanfield as mf\n"
        "mf.Model(mf.Attention(beta=2.0), mf.Perceptron([[1.0, 0.0]], [1.0]))\n"
        "mf.Measure([[1.0, 0.0]], [1.0])\n"
        "print(*sys.modules)"
    )
    assert not HEAVY & set(run_python(code)[1].split())
