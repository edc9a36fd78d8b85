"""The one-page drawing of docs/architecture.md is the tree: every folder is in it, with what it sees of records."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import fogline

pytestmark = pytest.mark.quick

HERE = Path(__file__).parent
PACKAGE = Path(fogline.__file__).parent
TEXT = (HERE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
LAYERS = tomllib.loads((HERE / "layers.toml").read_text(encoding="utf-8"))
SEEN = {"yes", "no", "no: it is handed a function", "hands X on unopened", "its own", ""}


def rows(text: str) -> dict[str, str]:
    """What the table of folders says of records, by name of the folder."""
    _, _, after = text.partition("| folder | what is in it | sees records |")
    told = {}
    for line in after.strip().splitlines()[1:]:
        if not line.startswith("|"):
            break
        names, _, seen = (cell.strip() for cell in line.strip("|").split("|"))
        told |= {name.strip("/").removesuffix(".py"): seen for name in re.findall(r"`([^`]+)`", names)}
    return told


def folders() -> set[str]:
    """Folders and public files right below the package."""
    found = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    return found | {path.stem for path in PACKAGE.glob("*.py") if not path.name.startswith("_")}


def wrong(told: dict[str, str], there: set[str]) -> list[str]:
    """What the drawing and the tree do not agree on, in words."""
    secret = set(LAYERS["secret"])
    found = [f"{folder} is not drawn" for folder in sorted(there - told.keys())]
    found += [f"{folder} is drawn but not there" for folder in sorted(told.keys() - there)]
    found += [f"{folder}: {seen!r} is no answer" for folder, seen in told.items() if seen not in SEEN]
    found += [f"{folder} opens rows" for folder in sorted(secret) if told.get(folder) != "yes"]
    return found + [
        f"{folder} opens no rows" for folder, seen in told.items() if seen == "yes" and folder not in secret
    ]


def drawn_order(text: str) -> list[str]:
    """Rooms in the line of arrows, from the records to the page."""
    drawing = text[text.index("sources --rows-->") : text.index("| folder |")]
    arrows = " ".join(re.sub(r"--[a-z ]*-->", " ", line) for line in drawing.splitlines() if "-->" in line)
    return list(dict.fromkeys(re.findall(r"\b[a-z]+\b(?=[ ,]|$)", arrows)))


def test_the_drawing_is_the_tree():
    assert wrong(rows(TEXT), folders()) == []


def test_the_arrows_lead_upward():
    """Each folder of the line that a later one imports stands below it, as the layers do."""
    level = {folder: height for height, side in enumerate(LAYERS["order"]) for folder in side}
    order = ["releases" if folder == "release" else folder for folder in drawn_order(TEXT)]
    assert len(order) >= 8
    assert set(order) <= level.keys()
    # Records go through the mechanisms, which lie lower and are handed a function; past the release all leads up.
    after = order[order.index("releases") + 2 :]
    assert [level[folder] for folder in after] == sorted(level[folder] for folder in after)


def test_levels_name_every_room():
    named = {folder for side in LAYERS["order"] for folder in side}
    assert folders() <= named


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda told, there: there.add("cellar"), "cellar is not drawn"),
        (lambda told, there: there.discard("density"), "density is drawn but not there"),
        (lambda told, there: told.update(queries="no"), "queries opens rows"),
        (lambda told, there: told.update(density="yes"), "density opens no rows"),
        (lambda told, there: told.update(cli="perhaps"), "cli: 'perhaps' is no answer"),
    ],
    ids=["a new folder", "a folder that went", "a secret folder", "a public folder", "no answer"],
)
def test_a_drawing_that_is_wrong_is_noticed(change, words):
    told, there = rows(TEXT), folders()
    change(told, there)
    assert words in wrong(told, there)
