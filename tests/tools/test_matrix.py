"""The matrix: which Pythons, where they are found, and what a cell says."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tools import matrix

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_pythons_are_those_of_the_classifiers():
    lines = [f"Programming Language :: Python :: {v}" for v in ("3.13", "3.9", "3", "3 :: Only", "3.11")]
    assert matrix.supported([*lines, "Topic :: Security"]) == ["3.9", "3.11", "3.13"]
    assert matrix.supported([]) == []


def test_a_command_that_fails_or_is_another_python_is_passed_over(tmp_path, monkeypatch):
    broken = script(tmp_path / "a" / "python3.99", "exit 127")
    other = script(tmp_path / "b" / "python3.99", "echo 3.98")
    good = script(tmp_path / "pyenv" / "versions" / "3.99.10" / "bin" / "python", "echo 3.99")
    older = script(tmp_path / "pyenv" / "versions" / "3.99.9" / "bin" / "python", "echo 3.99")
    script(tmp_path / "pyenv" / "versions" / "3.99.0rc1" / "bin" / "python", "echo 3.99")
    monkeypatch.setenv("PATH", f"{tmp_path / 'a'}:{tmp_path / 'b'}:{tmp_path / 'nowhere'}:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert list(matrix.candidates("3.99")) == [broken, other, good, older]
    assert matrix.interpreter("3.99") == good
    assert matrix.interpreter("3.97") == ""


def cell(monkeypatch, *, code=0, installed=True):
    def set_up(*_):
        if not installed:
            raise subprocess.CalledProcessError(7, "pip")
        return "python"

    def run(command, **_):
        return SimpleNamespace(returncode=code if "pytest" in command else 0, stdout="numpy 2.0\n")

    monkeypatch.setattr(matrix, "interpreter", lambda version: "python" if version == OWN else "")
    monkeypatch.setattr(matrix, "set_up", set_up)
    monkeypatch.setattr(matrix.subprocess, "run", run)
    return lambda version: matrix.run_cell(version, "lowest", ["tests"])


def test_a_cell_says_how_it_went(monkeypatch):
    assert cell(monkeypatch)(OWN) == "passed: numpy 2.0"
    assert cell(monkeypatch, code=1)(OWN) == "failed: numpy 2.0"
    assert cell(monkeypatch, installed=False)(OWN).startswith("failed: the dependencies could not be installed")
    assert cell(monkeypatch)("3.99") == "skipped: Python 3.99 is not at hand"


@pytest.mark.parametrize(
    ("sentences", "code"),
    [(["passed", "skipped"], 0), (["passed", "failed"], 1), (["skipped", "skipped"], 1)],
)
def test_one_failed_cell_or_none_at_all_fails(monkeypatch, capsys, sentences, code):
    left = iter(sentences)
    monkeypatch.setattr(matrix, "run_cell", lambda *_: next(left))
    assert matrix.main(["--python", OWN, "--", "-m", "quick", "tests"]) == code
    assert f"Python {OWN}, lowest dependencies: {sentences[0]}" in capsys.readouterr().out


def test_an_environment_is_kept_until_the_requirements_change(tmp_path, monkeypatch):
    ran = []

    def run(command, **_):
        ran.append(command)
        if "venv" in command:
            (tmp_path / "cell").mkdir()
        return SimpleNamespace(stdout=b"numpy==2.0\n")

    monkeypatch.setattr(matrix.subprocess, "run", run)
    for _ in range(2):
        matrix.set_up("python", tmp_path / "cell", "lowest")
    assert len(ran) == 4  # venv, pip, pins, the project; nothing the second time
    assert (tmp_path / "cell" / "lowest.txt").read_text() == "numpy==2.0\n"
    (tmp_path / "cell" / ".ready").write_text("another pyproject")
    matrix.set_up("python", tmp_path / "cell", "newest")
    assert len(ran) == 7
    assert "--constraint" not in ran[-1]


@pytest.mark.parametrize("words", [[], ["--python", "2.7", "tests"], ["--versions", "middling", "tests"]])
def test_bad_options_are_refused(words, capsys):
    with pytest.raises(SystemExit):
        matrix.main(words)
    assert "usage" in capsys.readouterr().err
