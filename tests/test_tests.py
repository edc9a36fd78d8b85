"""Tests that cannot fail: found in the syntax trees of all tests, by the mechanical signs."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.py"))
TESTS = [path for path in FILES if path.name.startswith("test_")]

WITHOUT_ASSERTION = {
    "test_any_axes_can_be_planned": "that no plan raises, for any axes, is what is tested",
    "test_columns_that_do_not_vary_are_never_an_error": "that no fit raises is what is tested",
}
"""Tests that pass if nothing is raised, each with the reason why that is what they test."""

CHECKERS = ("raises", "warns", "fail")
STOPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
TOO_BROAD = ("Exception", "BaseException")


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of a function, without those of functions and classes defined in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield node
            waiting += ast.iter_child_nodes(node)


def called(node: ast.AST) -> str:
    """Last part of the name of what is called, empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def asserts(node: ast.AST) -> bool:
    """Whether a node by itself asserts something."""
    return (
        isinstance(node, ast.Assert) or called(node) in CHECKERS or called(node).startswith("assert_")
        or (isinstance(node, ast.Raise) and "AssertionError" in ast.unparse(node))
    )  # fmt: skip


def checks_something(node: ast.AST, checkers: frozenset[str]) -> bool:
    """Whether there is an assertion at or below a node, or a call of something that has one."""
    return any(asserts(below) or called(below) in checkers for below in ast.walk(node))


def checkers_of(trees: Iterable[ast.AST]) -> frozenset[str]:
    """Names of helpers that assert something, themselves or through others."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    known: set[str] = set()
    calls: dict[str, set[str]] = defaultdict(set)
    for helper in (node for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)):
        below = list(ast.walk(helper))
        calls[helper.name] |= {called(node) for node in below}
        if any(map(asserts, below)):
            known.add(helper.name)
    while found := {name for name, names in calls.items() if name not in known and names & known}:
        known |= found
    return frozenset(known)


def early_returns(function: ast.FunctionDef, checkers: frozenset[str]) -> Iterator[str]:
    """Returns before which nothing was checked: from there the test passes, whatever comes after."""
    for node in [function, *own_nodes(function)]:
        for block in (getattr(node, name, None) for name in ("body", "orelse", "handlers", "finalbody")):
            for number, statement in enumerate(block if isinstance(block, list) else ()):
                checked = any(checks_something(before, checkers) for before in block[:number])
                if isinstance(statement, ast.Return) and not checked:
                    yield f"line {statement.lineno}: returns before anything was checked"


def weak_assertion(node: ast.Assert) -> str:
    """Why an assertion always holds, or an empty text."""
    test = node.test
    if isinstance(test, ast.Tuple) and test.elts:
        return "asserts a tuple, which is true"
    if isinstance(test, ast.Constant) and test.value:
        return "asserts a constant"
    if isinstance(test, ast.Lambda | ast.GeneratorExp):
        return "asserts a function or a generator, which is true"
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else []
    if any(isinstance(part, ast.Constant) and part.value for part in parts):
        return "asserts something or a constant"
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.LtE | ast.GtE | ast.Is):
        same = ast.dump(test.left) == ast.dump(test.comparators[0])
        if same and not any(isinstance(below, ast.Call) for below in ast.walk(test.left)):
            return "compares something with itself"
    return ""


def is_raises(node: ast.AST) -> bool:
    return called(node) in ("raises", "warns")


def weak_spots(tree: ast.AST) -> Iterator[str]:
    """Signs in the code of a file, wherever they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and (why := weak_assertion(node)):
            yield f"line {node.lineno}: {why}"
        if is_raises(node) and node.args and ast.unparse(node) in [f"pytest.raises({name})" for name in TOO_BROAD]:
            yield f"line {node.lineno}: any exception would do"
        if isinstance(node, ast.For) and ast.unparse(node.iter) in ("[]", "()", "{}"):
            yield f"line {node.iter.lineno}: loops over nothing"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
            yield f"line {node.lineno}: a comparison that is not asserted"
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            for before, after in itertools.pairwise(block if isinstance(block, list) else ()):
                if isinstance(before, STOPS):
                    yield f"line {after.lineno}: is never reached"
                raising = isinstance(node, ast.With) and any(is_raises(item.context_expr) for item in node.items)
                if raising and isinstance(after, ast.Assert):
                    yield f"line {after.lineno}: an assertion after what must raise"


def empty_parameters(function: ast.FunctionDef) -> Iterator[str]:
    """Parametrised over nothing: such a test is skipped."""
    for decorator in function.decorator_list:
        if called(decorator) == "parametrize" and [ast.unparse(one) for one in decorator.args[1:]] in (["[]"], ["()"]):
            yield f"line {decorator.lineno}: has no parameters to run with"


def findings(tree: ast.Module, checkers: frozenset[str]) -> list[str]:
    """All signs in one file that a test cannot fail."""
    found = list(weak_spots(tree))
    names: set[str] = set()
    for function in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        if not function.name.startswith("test"):
            continue
        if function.name in names:
            found.append(f"line {function.lineno}: {function.name} hides a test of the same name")
        names.add(function.name)
        found += empty_parameters(function)
        found += early_returns(function, checkers)
        if not checks_something(function, checkers) and function.name not in WITHOUT_ASSERTION:
            found.append(f"line {function.lineno}: {function.name} checks nothing")
    return found


@pytest.fixture(scope="module")
def parsed() -> dict[Path, ast.Module]:
    """Trees of all files; made when a test asks for them, since every worker imports this file."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def test_every_test_can_fail(parsed):
    assert len(TESTS) > 100
    ledger = (HERE.parent / "src/fogline/ledger").glob("*.py")
    known = checkers_of([*parsed.values(), *(ast.parse(path.read_text(encoding="utf-8")) for path in ledger)])
    found = {str(path.relative_to(HERE)): findings(parsed[path], known) for path in TESTS}
    assert {name: signs for name, signs in found.items() if signs} == {}


def test_exceptions_are_still_there(parsed):
    names = {function.name for tree in parsed.values() for function in functions(tree)}
    assert set(WITHOUT_ASSERTION) <= names


WEAK = {
    "returns before": "def test_a(x):\n    if x:\n        return\n    assert x",
    "checks nothing": "def test_a(x):\n    x()",
    "asserts a tuple": "def test_a(x):\n    assert (x, 'words')",
    "asserts a constant": "def test_a(x):\n    assert True",
    "asserts a function": "def test_a(x):\n    assert (y > 1 for y in x)",
    "or a constant": "def test_a(x):\n    assert x or True",
    "with itself": "def test_a(x):\n    assert x.y == x.y",
    "any exception": "def test_a(x):\n    with pytest.raises(Exception):\n        x()",
    "over nothing": "def test_a(x):\n    for y in []:\n        assert y",
    "not asserted": "def test_a(x):\n    x == 1\n    assert x",
    "never reached": "def helper(x):\n    return x\n    assert x",
    "after what must raise": "def test_a(x):\n    with pytest.raises(ValueError):\n        y = x()\n        assert y",
    "hides a test": "def test_a(x):\n    assert x\ndef test_a(x):\n    assert x",
    "no parameters": "@pytest.mark.parametrize('x', [])\ndef test_a(x):\n    assert x",
}


@pytest.mark.parametrize("words", WEAK)
def test_each_sign_is_found(words):
    found = findings(ast.parse(WEAK[words]), frozenset())
    assert any(words in finding for finding in found), found


def test_what_is_sound_is_not_reported():
    sound = (
        "def check(x):\n    assert x\ndef test_a(x):\n    if x:\n        assert x == 1\n        return\n    check(x)"
    )
    assert findings(ast.parse(sound), checkers_of([ast.parse(sound)])) == []
