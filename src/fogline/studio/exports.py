"""What can be taken home: report, release, recipe, script, notebook, registry card, page to explore.

All of it holds public values only. Where a source must be named, the id of the data set stands for its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from fogline.density.private_density import PrivateDensity
from fogline.report.interactive import render_interactive
from fogline.report.notebook import Cell, notebook_cells, to_ipynb, to_script
from fogline.report.page import find, render_report
from fogline.studio.config import Dataset
from fogline.studio.questions import Question
from fogline.studio.store import StoredRelease

__all__ = ["EXPORTS", "Export", "recipe_text"]


@dataclass(frozen=True)
class Export:
    """One kind of export.

    Parameters
    ----------
    ending : str
        Of the file's name.
    media : str
    title, about : str
    make : callable
        Takes the release as it is stored, its data set and its numbers.
    suffix : str
        Of the file's name before its ending, so that no two exports of a release have one name.
    """

    ending: str
    media: str
    title: str
    about: str
    make: Callable[[StoredRelease, Dataset | None, PrivateDensity], bytes]
    suffix: str = ""


def _report(stored: StoredRelease, _: Dataset | None, density: PrivateDensity) -> bytes:
    command = release_call(stored.question, file_name(stored.dataset, None))
    return render_report(find(density), title=None, command=command).encode()


def _page(stored: StoredRelease, _: Dataset | None, density: PrivateDensity) -> bytes:
    return render_interactive(density, title=f"{stored.title}: {', '.join(stored.question.names)}").encode()


def _card(stored: StoredRelease, _: Dataset | None, density: PrivateDensity) -> bytes:
    return json.dumps(density.card(date=stored.date[:10]), indent=2, ensure_ascii=False, allow_nan=False).encode()


def file_name(dataset: str, entry: Dataset | None) -> str:
    """Name that stands for the place of a data set; nothing of the place itself.

    Examples
    --------
    >>> file_name("visits", None)
    'visits.csv'
    """
    endings = {"Parquet": ".parquet", "files": ""}
    if entry is not None and entry.is_address:
        return f"sqlite:///{dataset}.db"
    return f"{dataset}{'.csv' if entry is None else endings.get(entry.kind, '.csv')}"


def release_call(question: Question, file: str) -> str:
    """The release as a Python call."""
    parts = [repr(file), f"bounds={question.bounds!r}", f"epsilon={question.epsilon!r}"]
    steps = {name: step for name, step in question.steps.items() if step is not None}
    parts += [f"steps={steps!r}"] if steps else []
    parts += [f"unit={question.unit!r}"] if question.unit else []
    parts += [f"max_contributions={question.max_contributions}"] if question.max_contributions != 1 else []
    parts += [f"{name}={value!r}" for name, value in question.reading.items()]
    return f"fogline.release({', '.join(parts)})"


def recipe_text(stored: StoredRelease, entry: Dataset | None) -> str:
    """The release and some readings as a recipe for ``fogline run``."""
    question = stored.question
    lines = [
        f"# The release {stored.id} of the data set {stored.dataset!r}, as a recipe: fogline run recipe.toml",
        "# Write the place of the data set and of its ledger where their names stand.",
        "",
        "[source]",
        f"file = {_toml(file_name(stored.dataset, entry))}",
    ]
    lines += ['query = "SELECT ..."'] if entry is not None and entry.is_address else []
    if question.unit:
        lines += [f"unit = {_toml(question.unit)}"]
    if question.max_contributions != 1:
        lines += [f"max_contributions = {question.max_contributions}"]
    lines += [f"{name} = {_toml(value)}" for name, value in question.reading.items()]
    lines += ["", "[ledger]", 'path = "budget.fogline"', "", "[release.shape]"]
    lines += [f"columns = {_toml(question.names)}", f"epsilon = {question.epsilon!r}"]
    lines += ['out = "shape.fog"', "", "[release.shape.bounds]"]
    lines += [
        f"{_toml(name)} = {_toml(list(ends) if isinstance(ends, tuple) else ends)}"
        for name, ends in question.bounds.items()
    ]
    steps = {name: step for name, step in question.steps.items() if step is not None}
    if steps:
        lines += ["", "[release.shape.steps]"]
        lines += [f"{_toml(name)} = {step!r}" for name, step in steps.items()]
    questions = ["count", *(f'median "{name}"' for name in question.names)]
    lines += ["", "[[reading]]", 'kind = "card"', "", "[[reading]]", 'kind = "ask"', f"questions = {_toml(questions)}"]
    return "\n".join([*lines, ""])


def _toml(value: object) -> str:
    """A text or a list in TOML: basic strings are those of JSON."""
    return json.dumps(value, ensure_ascii=False)


def _cells(stored: StoredRelease, entry: Dataset | None, density: PrivateDensity) -> list[Cell]:
    """Cells that read the release, as ``fogline notebook`` makes them, under the call that made it."""
    call = release_call(stored.question, file_name(stored.dataset, entry))
    title = f"{stored.title}: {', '.join(stored.question.names)}"
    return notebook_cells(density, f"{stored.id}.fog", title=title, command=call)


EXPORTS = {
    "report": Export(
        "html", "text/html; charset=utf-8", "Report", "One page for readers: curves, numbers, guarantee.", _report,
        "-report",
    ),
    "explore": Export(
        "html", "text/html; charset=utf-8", "Page to explore", "Slices and quantiles in any browser, offline.", _page,
        "-explore",
    ),
    "release": Export(
        "fog", "application/octet-stream", "Release", "The released numbers, for fogline.",
        lambda stored, _, density: density.to_fog(date=stored.date[:10]),
    ),
    "recipe": Export(
        "toml", "application/toml", "Recipe", "The question, for fogline run.",
        lambda stored, entry, _: recipe_text(stored, entry).encode(),
    ),
    "script": Export(
        "py", "text/x-python; charset=utf-8", "Script", "Readings in Python.",
        lambda stored, entry, density: to_script(_cells(stored, entry, density)).encode(),
    ),
    "notebook": Export(
        "ipynb", "application/x-ipynb+json", "Notebook", "The same readings, cell by cell.",
        lambda stored, entry, density: to_ipynb(_cells(stored, entry, density)).encode(),
    ),
    "card": Export(
        "json", "application/json", "Registry card", "For an ethics board, or a registry of deployments.", _card,
        "-card",
    ),
}  # fmt: skip
"""By the names that stand in addresses."""
