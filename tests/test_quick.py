"""What the commands of the Makefile run.

`make quick` covers every package: each is imported by a file in which tests are marked as quick. `make test` leaves a
list of tests to `make audit`, and nothing falls between the two.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import fogline

pytestmark = pytest.mark.quick

HERE = Path(__file__).parent
PACKAGE = Path(fogline.__file__).parent
MARK = "pytest.mark." + "quick"


def packages() -> set[str]:
    """Folders right below the package that hold code."""
    return {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}


def quick_files() -> list[Path]:
    """Files that ``QUICK`` of the Makefile names."""
    return [path for path in sorted(HERE.rglob("test_*.py")) if MARK in path.read_text(encoding="utf-8")]


def marks_a_test(tree: ast.Module) -> bool:
    """Whether the mark is set on the file or on a test, and not only named in a text."""
    set_on_file = any(
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        and MARK in ast.unparse(node.value)
        for node in tree.body
    )
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return set_on_file or any(MARK in map(ast.unparse, test.decorator_list) for test in tests)


def imported(tree: ast.AST) -> set[str]:
    """Packages of fogline that a file imports; a name of the front door stands for the package it is at home in."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            inside = {f"fogline.{alias.name}" for alias in node.names}
            names |= inside if node.module == "fogline" else {node.module}
    names = {fogline._HOMES.get(name.removeprefix("fogline."), name) for name in names}
    return {name.split(".")[1] for name in names if name.startswith("fogline.")}


def uncovered(wanted: set[str]) -> list[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in quick_files()]
    return sorted(wanted - set().union(*(imported(tree) for tree in trees if marks_a_test(tree))))


def test_every_package_has_a_quick_test():
    assert len(packages()) > 5
    assert uncovered(packages()) == []


def test_a_package_without_one_would_be_noticed():
    assert uncovered({*packages(), "cellar"}) == ["cellar"]
    assert imported(ast.parse("from fogline.cli import main\nimport fogline.report._svg\nimport numpy")) == {
        "cli",
        "report",
    }
    assert imported(ast.parse("from fogline import PrivateModes, units")) == {"estimators", "units"}


@pytest.mark.parametrize(
    ("source", "marked"),
    [
        (f"pytestmark = {MARK}\ndef test_a(): ...", True),
        (f"@{MARK}\ndef test_a(): ...", True),
        (f"# {MARK}\ndef test_a(): ...", False),
        (f"@{MARK}\ndef helper(): ...", False),
    ],
)
def test_only_a_mark_on_tests_counts(source, marked):
    assert marks_a_test(ast.parse(source)) == marked


def test_the_makefile_runs_them():
    text = (HERE.parent / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^QUICK +=.*-m quick.*{re.escape(MARK)}", text, flags=re.MULTILINE)
    assert re.search(r"^quick: .*\n.*pytest.*\$\(QUICK\)", text, flags=re.MULTILINE)


# -- the list of what `make test` leaves out -----------------------------------------------------------------

LONG = tomllib.loads((HERE / "long.toml").read_text(encoding="utf-8"))["long"]


@pytest.mark.parametrize("line", LONG, ids=lambda line: line["tests"].removeprefix("tests/"))
def test_a_line_of_the_list_names_tests_and_a_reason(line):
    path, _, name = line["tests"].partition("::")
    defined = re.findall(r"^def (test_\w+)", (HERE.parent / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
    function, bracket, _ = name.partition("[")
    assert function in defined if bracket else any(one.startswith(function) for one in defined)
    assert set(line) == {"tests", "why"}
    assert line["why"]


def test_nothing_falls_between_two_commands():
    text = (HERE.parent / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^test: .*\n.*pytest.* -m 'not long'$", text, flags=re.MULTILINE)
    assert re.search(r"^audit: .*\n.*pytest.* -m long tests$", text, flags=re.MULTILINE)
