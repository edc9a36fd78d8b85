"""From every public estimator one can follow to its guarantee, its proof, its replay test and its attack."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fogline
from fogline import mechanisms
from fogline_research import baselines

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guarantees.md"
HEADINGS = ["what", "guarantee", "currency", "proof", "replay", "attack"]
CURRENCY = re.compile(r"\b(mu|rho|epsilon)\b")
LINK = re.compile(r"\[(`?)([^]`]+)`?\]\(([^)]+)\)")

PUBLISH_NOTHING = {
    *("PrivacyWarning", "check_pipeline", "Budget", "Guarantee", "Ledger", "PrivateDensity", "Releases", "table"),
}
"""Names of the front door that publish nothing: a release, what counts it, and what says where records are."""

MECHANISMS = {name for name in mechanisms.__all__ if name[0].islower()} - {
    "current_provider",
    "provider_reason",
    "gaussian_scale",
    "laplace_scale",
    "use_provider",
}


def table(text: str) -> dict[str, list[str]]:
    """Cells of the table, by the name in the first of them."""
    lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines() if line[:1] == "|"]
    start = lines.index(HEADINGS)
    rows = [line for line in lines[start + 2 :] if len(line) == len(HEADINGS)]
    return {LINK.search(row[0])[2]: row for row in rows}


ROWS = table(PAGE.read_text(encoding="utf-8"))


def followed(cell: str) -> list[tuple[str, str]]:
    """Names and texts of the files that a cell leads to."""
    return [(name, (PAGE.parent / path).resolve().read_text(encoding="utf-8")) for _, name, path in LINK.findall(cell)]


def function(source: str, name: str) -> str:
    """Source of a function; empty if there is none."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name]
    return ast.unparse(nodes[0]) if nodes else ""


def lacking(name: str, row: list[str] | None) -> str:
    """Say what a row of a certified name lacks; empty if nothing."""
    if row is None:
        return f"docs/guarantees.md has no row for {name}"
    what, guarantee, currency, proof, replayed, attacked = row
    home = [text for _, text in followed(what)]
    if not home or not re.search(rf"^(class|def) {name.split('.')[-1]}\b", home[0], flags=re.MULTILINE):
        return "the first cell does not lead to the code"
    if not re.search("zCDP|DP|that of", guarantee):
        return "no guarantee is stated"
    if not CURRENCY.search(currency):
        return "no currency is named"
    proofs = followed(proof)
    if not proofs or not all(file.endswith(".proof.md") and len(text) > 500 for file, text in proofs):
        return "no proof"
    if not any("replay(" in function(text, test) for test, text in followed(replayed)):
        return "no replay test"
    if not any(re.search(r"attack(ed)?\(", function(text, test)) for test, text in followed(attacked)):
        return "no attack"
    return ""


CERTIFIED = [
    *sorted(set(fogline._HOMES) - PUBLISH_NOTHING),
    "ContinualCounts",  # not at the front door, and publishes all the same
    *sorted(f"baselines.{name}" for name in baselines.__all__ if not name.endswith("Result")),
    *sorted(f"mechanisms.{name}" for name in MECHANISMS),
]


def test_every_certified_name_can_be_followed():
    assert len(CERTIFIED) > 20
    gaps = {name: lacking(name, ROWS.get(name)) for name in CERTIFIED}
    assert {name: gap for name, gap in gaps.items() if gap} == {}


def test_every_link_of_the_page_leads_somewhere():
    for row in ROWS.values():
        for cell in row[1:]:
            for name, text in followed(cell):
                assert name.endswith((".md", ".py")) or function(text, name), name


def test_a_gap_would_be_noticed():
    row = ROWS["PrivateModes"]
    assert not lacking("PrivateModes", row)
    assert "no row" in lacking("PrivateMedian", ROWS.get("PrivateMedian"))
    assert "code" in lacking("PrivateMedian", row)
    for column, word in enumerate(["code", "guarantee", "currency", "proof", "replay", "attack"]):
        assert word in lacking("PrivateModes", [*row[:column], "", *row[column + 1 :]])
    weak = [*row[:4], row[4].replace("test_modes_on_all_canaries", "test_distances_are_exact"), row[5]]
    assert lacking("PrivateModes", weak) == "no replay test"
