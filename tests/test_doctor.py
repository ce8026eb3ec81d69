"""The doctor's judgement on made-up installations, whatever is installed here."""

import io
import json
import sys

import pytest

from meanfield import doctor
from meanfield.__main__ import main
from meanfield.doctor import Answer, ask_python

LIBMPI = "/usr/lib/libmpi.so.40"


def answers(*given):
    """In place of `ask_python`: gives these answers one after the other, and no more."""
    left = list(given)

    def ask(code, *arguments, launcher=()):
        return left.pop(0)

    return ask


def mpi(files=(LIBMPI,)):
    return Answer(True, json.dumps(["Open MPI", "4.1.4", list(files)]))


def ranks(count):
    return Answer(True, f"ranks: {count}\n" * (1 if count == 2 else 2))


def launcher_script(folder, text):
    path = folder / "mpiexec"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("minimum", "version", "state"),
    [
        ("2.0", "2.0", "ok"),
        ("2.0", "2.4.6", "ok"),
        ("1.15", "1.9.3", "PROBLEM"),
        ("0.9.5", "0.9.7.post1", "ok"),
        ("3.12.1", "3.12", "PROBLEM"),
    ],
)
def test_versions_are_compared_as_numbers(minimum, version, state):
    [finding] = doctor.library_findings([f"x>={minimum}"], answers(Answer(True, version)))
    assert finding.state == state
    assert version in finding.text


def test_a_library_that_does_not_load_is_named_with_its_error_and_what_to_do():
    [finding] = doctor.library_findings(["no_such_library>=1.0"])
    assert finding.state == "PROBLEM"
    assert "ModuleNotFoundError: No module named 'no_such_library'" in finding.text
    assert "pip install 'no_such_library>=1.0'" in finding.advice


def test_knowing_nothing_of_the_requirements_is_a_problem():
    [finding] = doctor.library_findings([])
    assert finding.state == "PROBLEM"


def test_requirements_are_those_of_this_clone():
    names = [requirement.partition(">=")[0] for requirement in doctor.required_libraries()]
    assert {"numpy", "mpi4py", "POT"} <= set(names)
    assert "mpich" not in names


def test_without_an_mpi_one_is_advised():
    [finding] = doctor.mpi_findings(answers(Answer(False, "RuntimeError: cannot load MPI")))
    assert finding.state == "PROBLEM"
    assert "mpich" in finding.advice


def test_without_a_launcher_the_fitting_one_is_advised():
    used, finding = doctor.mpi_findings(answers(mpi()), launchers=[])
    assert "Open MPI 4.1.4" in used.text and LIBMPI in used.text
    assert finding.state == "PROBLEM"
    assert "Open MPI" in finding.advice


def test_a_launcher_whose_ranks_see_each_other_fits():
    _, finding = doctor.mpi_findings(answers(mpi(), ranks(2)), launchers=["/a/mpiexec"])
    assert finding.state == "ok"
    assert "/a/mpiexec" in finding.text


def test_a_launcher_of_another_mpi_is_seen_and_a_fitting_one_named():
    ask = answers(mpi(), ranks(1), ranks(1), ranks(2))
    _, finding = doctor.mpi_findings(ask, launchers=["/a/mpiexec", "/b/mpiexec", "/c/mpiexec"])
    assert finding.state == "PROBLEM"
    assert "/a/mpiexec" in finding.text and "another MPI" in finding.text
    assert "/c/mpiexec" in finding.advice


@pytest.mark.parametrize(
    ("said", "advised"),
    [
        ("add the --allow-run-as-root option", "OMPI_ALLOW_RUN_AS_ROOT=1"),
        ("There are not enough slots available", "oversubscribe"),
        ("something else", "first on PATH"),
    ],
)
def test_a_refusal_is_explained(said, advised):
    ask = answers(mpi(), Answer(False, said))
    _, finding = doctor.mpi_findings(ask, launchers=["/a/mpiexec"])
    assert finding.state == "PROBLEM"
    assert advised in finding.advice


def test_a_launcher_that_starts_strangers_does_not_fit(tmp_path):
    # What the launcher of another MPI does: it starts two programs, each of them alone.
    script = launcher_script(tmp_path, 'echo "ranks: 1"; echo "ranks: 1"')
    problem, advice = doctor.launcher_problem(script, "MPICH", ask_python)
    assert "another MPI" in problem
    assert "MPICH" in advice


def test_a_launcher_gets_two_ranks_of_this_python_to_start(tmp_path):
    script = launcher_script(tmp_path, f'[ "$1 $2 $3" = "-n 2 {sys.executable}" ] && echo ranks: 2')
    assert doctor.launcher_problem(script, "MPICH", ask_python) == ("", "")


def test_launchers_beside_python_come_first(tmp_path, monkeypatch):
    for folder in ("environment", "system"):
        (tmp_path / folder).mkdir()
        launcher_script(tmp_path / folder, "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "environment" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "system"))
    assert doctor.find_launchers() == [
        str(tmp_path / "environment" / "mpiexec"),
        str(tmp_path / "system" / "mpiexec"),
    ]


@pytest.fixture
def firedrake_is_there(monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda name: "2026.10.0")
    monkeypatch.delenv("PETSC_DIR", raising=False)


def elements(parallel_files=True, files=(LIBMPI,)):
    answer = Answer(True, json.dumps(["3.26.0", parallel_files, list(files)]))
    return list(doctor.finite_element_findings(answers(answer)))


@pytest.mark.usefixtures("firedrake_is_there")
class TestFiniteElements:
    def test_pieces_that_fit(self):
        findings = elements()
        assert {finding.state for finding in findings} == {"ok"}
        assert "Firedrake 2026.10.0 with PETSc 3.26.0" in findings[0].text

    def test_two_mpis_in_one_program(self):
        findings = elements(files=(LIBMPI, "/venv/lib/libmpi.so.12"))
        [problem] = [finding for finding in findings if finding.state == "PROBLEM"]
        assert LIBMPI in problem.text and "/venv/lib/libmpi.so.12" in problem.text
        assert "uninstall" in problem.advice

    def test_a_serial_h5py(self):
        [problem] = [one for one in elements(parallel_files=False) if one.state == "PROBLEM"]
        assert "HDF5_MPI=ON" in problem.advice

    def test_a_petsc_of_another_project(self, monkeypatch):
        monkeypatch.setenv("PETSC_DIR", "/opt/petsc")
        failed = answers(Answer(False, "ImportError: libpetsc.so"))
        [finding] = doctor.finite_element_findings(failed)
        assert finding.state == "PROBLEM"
        assert "unset PETSC_DIR" in finding.advice and "/opt/petsc" in finding.advice


def test_without_firedrake_the_environment_that_has_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("MEANFIELD_FEM_HOME", str(tmp_path))
    (tmp_path / "interrupted").mkdir()
    [finding] = doctor.finite_element_findings()
    assert finding.state == "absent"
    assert "make fem" in finding.advice

    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "ready").touch()
    [finding] = doctor.finite_element_findings()
    assert f"{tmp_path}/built/bin/python" in finding.advice


OK = doctor.Finding("ok", "fine")
ABSENT = doctor.Finding("absent", "not here")
PROBLEM = doctor.Finding("PROBLEM", "broken", "mend it")


@pytest.mark.parametrize(
    ("libraries", "ranks", "elements", "status", "last"),
    [
        ([OK, OK], [OK], [OK], 0, "Finite elements work."),
        ([OK], [OK], [ABSENT], 0, "Finite elements are not installed here."),
        ([OK], [OK], [OK, PROBLEM], 0, "Finite elements have a PROBLEM."),
        ([OK, PROBLEM], [OK], [OK], 1, "Finite elements work."),
        ([OK], [PROBLEM], [ABSENT], 1, "Finite elements are not installed here."),
    ],
)
def test_the_exit_status_is_about_the_core(monkeypatch, libraries, ranks, elements, status, last):
    monkeypatch.setattr(doctor, "library_findings", lambda requirements: libraries)
    monkeypatch.setattr(doctor, "mpi_findings", lambda: ranks)
    monkeypatch.setattr(doctor, "finite_element_findings", lambda: elements)
    out = io.StringIO()
    assert doctor.examine(out) == status
    *_, core, finite_elements = out.getvalue().splitlines()
    assert core == ("The core has a PROBLEM." if status else "The core works.")
    assert finite_elements == last
    found = libraries + ranks + elements
    assert out.getvalue().count("-> mend it") == found.count(PROBLEM)


def test_an_answer_is_the_last_line():
    assert ask_python("import sys; print(1); print(*sys.argv[1:])", "a", "b") == Answer(True, "a b")


def test_a_python_that_dies_is_an_answer_too():
    answer = ask_python("import os; os.abort()")
    assert not answer.fine and "signal 6" in answer.text


def test_a_launcher_that_is_not_there_is_an_answer_too(tmp_path):
    answer = ask_python("", launcher=(str(tmp_path / "mpiexec"), "-n", "2"))
    assert not answer.fine and "cannot be started" in answer.text


def test_silence_is_an_answer_too(monkeypatch):
    monkeypatch.setattr(doctor, "_SECONDS", 0.2)
    answer = ask_python("import time; time.sleep(30)")
    assert not answer.fine and "no answer" in answer.text


@pytest.mark.parametrize("arguments", [[], ["doctors"], ["doctor", "--quick"]])
def test_a_command_line_without_sense_ends_with_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "doctor" in capsys.readouterr().err
