"""How a name leaves: the warning, where it points, and that nothing stays beyond its time."""

import ast
import re
import types
import warnings
from pathlib import Path

import pytest

import fogline
from fogline._validation import warn_deprecated

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "research").glob("src/**/*.py")])


def overdue(source, version):
    """Deprecated things in a source that a version was to be without."""
    now = tuple(int(number) for number in version.split(".")[:2])
    found = []
    for node in ast.walk(ast.parse(source)):
        called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if called != "warn_deprecated":
            continue
        removed_in = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg == "removed_in"}
        until = tuple(int(number) for number in removed_in["removed_in"].split(".")[:2])
        found += [f"{ast.unparse(node.args[0])}, to be removed in {removed_in['removed_in']}"] * (until <= now)
    return found


def test_the_warning_names_the_replacement_and_points_at_the_user():
    module = types.ModuleType("fogline.pretended")
    code = "def old():\n    warn('fogline.old', since='0.2', removed_in='0.3', instead='fogline.new')\n"
    module.warn = warn_deprecated
    exec(compile(code, "pretended.py", "exec"), module.__dict__)
    with pytest.warns(
        FutureWarning, match=r"fogline\.old is deprecated since version 0\.2 .* 0\.3: use fogline\.new"
    ) as seen:
        module.old()
    assert len(seen) == 1
    assert seen[0].filename == __file__


def test_a_warning_without_a_user_is_still_given():
    # called from the top of a module of fogline that is run as a script: there is no line outside
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        names = {"__name__": "fogline.pretended", "warn": warn_deprecated}
        exec("warn('a', since='0.2.1', removed_in='1.0', instead='b')", names)
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("since", "removed_in", "named"),
    [
        ("0.2", "0.2", "removed_in"),
        ("0.2.0", "0.2.9", "removed_in"),
        ("0.10", "0.9", "removed_in"),
        ("next", "0.3", "since"),
        ("0.2", "soon", "removed_in"),
        ("0.2", "0.3rc1", "removed_in"),
    ],
)
def test_at_least_one_minor_version_lies_between(since, removed_in, named):
    with pytest.raises(ValueError, match=rf"^{named} must be"):
        warn_deprecated("a", since=since, removed_in=removed_in, instead="b")


def test_nothing_stays_beyond_its_time():
    assert SOURCES
    late = {path.name: found for path in SOURCES if (found := overdue(path.read_text("utf-8"), fogline.__version__))}
    assert not late, "deprecated for long enough: remove these"


def test_what_stays_too_long_would_be_noticed():
    source = "def f():\n    warn_deprecated('f', since='0.2', removed_in='0.3', instead='g')\n"
    assert overdue(source, "0.2.7") == []
    assert overdue(source, "0.3.0") == ["'f', to be removed in 0.3"]
    assert overdue(source.replace("warn_", "_validation.warn_"), "1.0") == ["'f', to be removed in 0.3"]


def test_the_policy_says_what_the_code_does():
    page = (ROOT / "docs" / "deprecation.md").read_text("utf-8")
    assert "`FutureWarning`" in page
    assert re.search(r"warn_deprecated\(\"[\w.]+\", since=\"0\.2\", removed_in=\"0\.3\", instead=", page)
