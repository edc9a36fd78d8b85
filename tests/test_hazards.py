"""The tables of hazards and of what was found: each has a rule and a test that exists; a flaw can be reported."""

import ast
import re
from pathlib import Path

import pytest

import fogline

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parent.parent
HAZARDS = "## The hazards of NIST SP 800-226"
FOUND = "## What was found at the doors"


def rows_under(heading):
    """Rows of the table under a heading, as cells."""
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    section = text.partition(heading)[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def missing(held):
    """What a cell names and does not exist; the cell itself if it names nothing."""
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", held)
    absent = [f"{path}::{name}" for path, name in named if not (ROOT / path).is_file()]
    absent += [f"{p}::{n}" for p, n in named if (ROOT / p).is_file() and n and n not in names_in(p)]
    return absent if named else [held]


@pytest.mark.parametrize("heading", [HAZARDS, FOUND])
def test_every_hazard_has_a_rule_and_a_test_that_exists(heading):
    rows = rows_under(heading)
    assert len(rows) >= 30
    assert len({row[0] for row in rows}) == len(rows)
    for row in rows:
        assert len(row) == 3, row
        assert all(row), row
        assert not missing(row[2]), row


def test_what_was_found_names_single_tests():
    for row in rows_under(FOUND):
        assert all("::test_" in name for name in re.findall(r"`(tests/[^`]+)`", row[2])), row


def test_a_hazard_without_a_test_would_be_noticed():
    assert missing("nothing holds it")
    assert missing("`tests/test_hazards.py::test_that_is_not_there`")
    assert missing("`tests/test_nowhere.py`")
    assert not missing("`tests/test_hazards.py::test_a_hazard_without_a_test_would_be_noticed`")


def test_how_to_report_a_flaw_is_said():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "private security advisory" in text
    assert f"now {'.'.join(fogline.__version__.split('.')[:2])} |" in text
    assert not re.search(r"[\w.]+@[\w.]+\.\w+", text)  # no address that nobody reads
    for place in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (ROOT / place).is_file(), place
