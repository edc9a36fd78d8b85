"""Write the tutorial as a notebook: its text as cells of text, its examples as cells of code, without their outputs.

    python tools/tutorial_notebook.py

The page is the source; a test holds the notebook to it.
"""

from __future__ import annotations

import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import site_hooks

PAGE = "docs/tutorial.md"
NOTEBOOK = "notebooks/0_twenty_minutes.ipynb"
ALONE = "This page is also a [notebook]"
"""Begin of the paragraph that has no place in the notebook itself."""

EXAMPLE = re.compile(r"^```python\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)
DOTS = "Dots stand for digits that the noise changes from run to run. One run gave these answers:"
FRAMES = ". Python prints many lines about where the refusal came from; the last line is the one that counts:"
"""Said of an example whose error a cell of the notebook catches."""


def code_of(block: str) -> Iterator[str]:
    r"""Cells of a block of examples: each ends where something is shown; what is refused is caught and shown.

    Examples
    --------
    >>> list(code_of(">>> a = 1\n>>> a\n1\n>>> b = 2"))
    ['a = 1\na', 'b = 2']
    >>> print(*code_of(">>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: x\n"))
    try:
        1 / 0
    except Exception as refusal:
        print(refusal)
    """
    lines: list[str] = []
    for example in doctest.DocTestParser().get_examples(block):
        source = example.source.rstrip("\n")
        if example.exc_msg is not None:
            inner = "\n".join(f"    {line}" for line in source.split("\n"))
            source = f"try:\n{inner}\nexcept Exception as refusal:\n    print(refusal)"
        lines.append(source)
        if example.want:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def text_of(part: str) -> str:
    """Text between examples, with links as they are from the notebook's folder."""

    def change(target: str) -> str:
        return target if target.startswith(("https://", "#")) else f"../docs/{target}"

    paragraphs = [text for text in part.strip().split("\n\n") if not text.startswith(ALONE)]
    text = site_hooks.with_links("\n\n".join(paragraphs), change)
    return text.replace(DOTS, "One run gave these answers:").replace(FRAMES, ":")


def cells(page: str) -> list[tuple[str, str]]:
    """Kind and source of every cell."""
    found: list[tuple[str, str]] = []
    for number, part in enumerate(EXAMPLE.split(page)):
        if number % 2:
            found += [("code", source) for source in code_of(part)]
        elif part.strip():
            found.append(("markdown", text_of(part)))
    return found


def notebook(root: Path = site_hooks.ROOT) -> str:
    """Text of the notebook that the page makes."""
    page = (root / PAGE).read_text(encoding="utf-8")
    for words in (ALONE, DOTS, FRAMES):
        if words not in page:  # it would stand in the notebook, where its link leads nowhere
            raise ValueError(f"{PAGE} has no longer the words {words!r}, which the notebook leaves out")
    made: list[dict[str, Any]] = []
    for number, (kind, source) in enumerate(cells(page)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source.splitlines(keepends=True)}
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {
        "cells": made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (site_hooks.ROOT / NOTEBOOK).write_text(notebook(), encoding="utf-8")
    print(NOTEBOOK)
