"""A notebook of a release: cells that open its file and read it, as Jupyter's JSON or as a plain script.

Nothing is run here, and nothing but the public description of the release is in the cells: columns, bounds, what was
promised. Whoever opens the notebook runs it on the file, as often as they like, at no privacy cost.
"""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import RandomSpec
from fogline.density.release_card import column_names

__all__ = ["ENDINGS", "Cell", "notebook_cells", "to_ipynb", "to_script", "write_notebook"]

ENDINGS = (".ipynb", ".py")
"""Names of notebooks and of scripts end so."""


class Cell(NamedTuple):
    """One cell: text for people, or code."""

    kind: str
    source: str


def notebook_cells(
    density: PrivateDensity, file: str, *, title: str | None = None, command: str | None = None
) -> list[Cell]:
    """Return the cells of a release's notebook.

    Parameters
    ----------
    density : PrivateDensity
        The release; only what is public about it is looked at.
    file : str
        Its file, as the notebook finds it.
    title, command : str, optional
        What the notebook is called, and what made it: a command, perhaps with the recipe that it is a step of.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import release
    >>> shape = release(np.random.default_rng(0).gamma(2.0, 3.0, 500), columns=["stay"], bounds=(0, 60), epsilon=1.0)
    >>> [cell.kind for cell in notebook_cells(shape, "stays.fog")][:3]
    ['markdown', 'code', 'markdown']
    """
    names = list(column_names(density))
    shown = ", ".join(names)
    made = [] if command is None else ["", "Made by", "", _fenced(command)]
    intro = [
        f"# {title or f'Shape of {shown}'}",
        "",
        f"One release of {shown} under differential privacy. Everything below reads the released file and costs no "
        "further privacy budget.",
        "",
        f"> {density.guarantee}",
        *made,
    ]
    cells = [
        Cell("markdown", "\n".join(intro)),
        Cell(
            "code", f"import fogline\n\nshape = fogline.PrivateDensity.load({json.dumps(file)})\nprint(shape.guarantee)"
        ),
    ]
    if not isinstance(density.spec, RandomSpec):
        cells += _questions(names)
    cells += _readings(names, density)
    return cells


def _questions(names: Sequence[str]) -> list[Cell]:
    """Cells that need a density in up to three columns."""
    first, last = names[0], names[-1]
    asked = ["count", *(f"median {_quoted(name)}" for name in names), f"quartiles {_quoted(last)}"]
    if len(names) > 1:
        asked.append(f"correlation of {_quoted(first)} and {_quoted(last)}")
    listed = "".join(f"    {_python(words)},\n" for words in asked)
    return [
        Cell("markdown", "## In numbers\n\nEach error holds privacy noise, the sampling of the records and smoothing."),
        Cell("code", "print(shape.summary())"),
        Cell(
            "markdown",
            "## Questions\n\nAsk in words: counts, shares, means, quantiles, conditions, parts (`shape.ask?`).",
        ),
        Cell("code", f"for question in [\n{listed}]:\n    print(shape.ask(question))"),
    ]


def _readings(names: Sequence[str], density: PrivateDensity) -> list[Cell]:
    cells = [
        Cell("markdown", "## Modes\n\nWhat is typical, and stands out of the noise."),
        Cell("code", "modes = fogline.PrivateModes().read(shape)\nprint(modes.summary())"),
    ]
    if len(names) > 1:
        cells += [
            Cell("markdown", "## Clusters\n\nHow many groups there are is read from the release, too."),
            Cell("code", "groups = fogline.PrivateModeClustering().read(shape)\nprint(groups.summary())"),
        ]
    if density.spec.d in (2, 3) and density.leaves is not None:
        y = _python(names[-1])
        cells += [
            Cell("markdown", f"## Typical values of {names[-1]}, given the other"),
            Cell("code", f"branches = fogline.PrivateModalRegression().read(shape, {y})\nprint(branches.summary())"),
        ]
    if density.leaves is not None:
        cells += [
            Cell("markdown", "## Draws\n\nMade records from the released density, for code that wants records."),
            Cell("code", "print(shape.sample(5, random_state=0))"),
        ]
    if density.spec.d <= 3:
        cells += [
            Cell("markdown", "## A picture\n\nNeeds matplotlib: `pip install matplotlib`."),
            Cell("code", "shape.plot()"),
        ]
    return cells


def _fenced(text: str) -> str:
    """Text as a block of code; a fence inside it does not end the block."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _quoted(name: str) -> str:
    """Name of a column as questions have it."""
    return name if name.isidentifier() and name.isascii() else f'"{name}"'


def _python(text: str) -> str:
    """A text as Python has it."""
    return json.dumps(text) if text.isascii() and text.isprintable() else repr(text)


def to_ipynb(cells: Sequence[Cell]) -> str:
    """Return Jupyter's JSON, format 4.5, without outputs.

    Examples
    --------
    >>> found = json.loads(to_ipynb([Cell("code", "1 + 1")]))
    >>> found["nbformat"], found["cells"][0]["source"], found["cells"][0]["outputs"]
    (4, ['1 + 1'], [])
    """
    listed: list[dict[str, object]] = []
    for number, cell in enumerate(cells):
        # An id must be there since format 4.5; the same notebook has the same ids.
        name = hashlib.sha256(f"{number}:{cell.source}".encode()).hexdigest()[:12]
        lines = cell.source.splitlines(keepends=True)
        more: dict[str, object] = {"execution_count": None, "outputs": []} if cell.kind == "code" else {}
        listed.append({"cell_type": cell.kind, "id": name, "metadata": {}, "source": lines, **more})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": listed,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def to_script(cells: Sequence[Cell]) -> str:
    """Return a script with one part per cell, marked as editors know them.

    Examples
    --------
    >>> print(to_script([Cell("markdown", "# Stays"), Cell("code", "print(1)")]))
    # %% [markdown]
    # # Stays
    <BLANKLINE>
    # %%
    print(1)
    <BLANKLINE>
    """
    parts = []
    for cell in cells:
        if cell.kind == "code":
            parts.append(f"# %%\n{cell.source}\n")
        else:
            parts.append("# %% [markdown]\n" + textwrap.indent(cell.source, "# ", lambda _: True).rstrip() + "\n")
    return "\n".join("\n".join(line.rstrip() for line in part.split("\n")) for part in parts)


def write_notebook(
    density: PrivateDensity, path: str | Path, file: str, *, title: str | None = None, command: str | None = None
) -> Path:
    """Write a notebook (.ipynb) or a script (.py), as the name of the file says."""
    target = Path(path)
    cells = notebook_cells(density, file, title=title, command=command)
    if target.suffix.lower() == ".ipynb":
        text = to_ipynb(cells)
    elif target.suffix.lower() == ".py":
        text = to_script(cells)
    else:
        raise ValueError(f"path must end in .ipynb or .py, got {target.name!r}")
    target.write_text(text, encoding="utf-8")
    return target
