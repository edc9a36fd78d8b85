"""Words that were given up stay away: tests/words.toml lists them."""

import ast
import builtins
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parent.parent
WORDS = tomllib.loads((ROOT / "tests" / "words.toml").read_text())
FOLDERS = ("src", "research/src", "benchmarks", "tools")
OWN = ("fogline", "fogline_research", "tests", "benchmarks")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def foreign(tree: ast.AST, own: set[str]) -> set[str]:
    """Names that a source imports from other people's modules: they may be called as their makers please."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
                if module.partition(".")[0] not in own:
                    found.add(alias.asname or alias.name.partition(".")[0])
    return found


def root(node: ast.expr) -> str:
    """First name of ``a.b.c``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def identifiers(source: str, own: set[str]) -> Iterator[tuple[str, int]]:
    """Every identifier that a source chooses itself, with its line."""
    tree = ast.parse(source)
    others = foreign(tree, own)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name) and node.id not in others:
            yield node.id, line
        elif isinstance(node, ast.Attribute) and root(node) not in others:
            yield node.attr, line
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, line
        elif isinstance(node, ast.arg):
            yield node.arg, line
        elif isinstance(node, ast.Call) and root(node.func) not in others and not hasattr(builtins, root(node.func)):
            yield from ((keyword.arg, keyword.lineno) for keyword in node.keywords if keyword.arg)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in own:
            yield from ((part, line) for part in (node.module or "").split("."))
            yield from ((name, line) for alias in node.names for name in (alias.name, alias.asname) if name)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname, line) for alias in node.names if alias.asname)


def forbidden(path: str) -> set[str]:
    """Words that a file may not use."""
    within = {
        name
        for row in WORDS["within"]
        for name in row["names"]
        if path.startswith(tuple(f"{f}/" for f in row["folders"]))
    }
    excepted = {name for row in WORDS["excepted"] if path in row["files"] for name in row["names"]}
    return ({*WORDS["everywhere"]} | within) - excepted


def given_up(path: str, source: str, own: set[str]) -> list[str]:
    """Words that a file uses all the same, also as its own name."""
    words = forbidden(path) & {*re.findall(r"\w+", source), *Path(path).with_suffix("").parts}
    if not words:
        return []
    found = [f"{path}:{line}: {name}" for name, line in identifiers(source, own) if name in words]
    return found + [f"{path}: is a module {part}" for part in Path(path).with_suffix("").parts if part in words]


def test_words_that_were_given_up_stay_away():
    own = {*OWN, *(path.stem for path in FILES if path.parent.name == "benchmarks")}
    assert [fault for path in FILES for fault in given_up(str(path.relative_to(ROOT)), path.read_text(), own)] == []
    # what is left is named with a reason, and is not forbidden at the same time
    assert not {name for row in WORDS["left"] for name in row["names"] if row["reason"]} & {*WORDS["everywhere"]}


@pytest.mark.parametrize(
    "source",
    [
        "class Door: ...",
        "def f(door): ...",
        "def f(): held = 1",
        "x.relief",
        "g(books=1)",
        "from fogline.engines import y",
        "from fogline.sources import Table",
        "import fogline.releases.secret_models as _vault",
    ],
)
def test_a_word_that_came_back_would_be_noticed(source):
    assert given_up("src/fogline/x.py", source, {*OWN})


@pytest.mark.parametrize(
    "source", ["import click\nclick.Choice(())", "from rich.table import Table\nTable()", "'held'", "# held\nx = 1"]
)
def test_words_of_others_and_of_prose_are_free(source):
    assert not given_up("src/fogline/x.py", source, {*OWN})
