"""The public facts of a data set: names of columns, how text would be read, what the ledger says of it.

Only a header or a schema is read, as ``fogline check`` does. A message of a reader may quote a path, so that only those
which are about a reading option are repeated; all else is one sentence.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fogline import units
from fogline.sources.check import FileCheck, check
from fogline.sources.registry import table
from fogline.sources.tables import Source
from fogline.studio.config import READING, Dataset

__all__ = ["Catalogue", "Facts", "NotReadable", "as_reading", "suggested_range"]

MOST_COLUMNS = 400
"""Most columns that a page lists."""

MOST_KEPT = 64

UNREADABLE = "The data set cannot be opened at the moment, or its header cannot be read with these options."


class NotReadable(ValueError):
    """A header cannot be read; the message may stand on a page."""


@dataclass(frozen=True)
class Facts:
    """What may be known of a data set without looking at a record.

    Parameters
    ----------
    columns : tuple of str
        Of the header or the schema, without the unit's.
    unit : str or None
    check : FileCheck or None
        Of a file: how it would be read.
    left_out : int
        Columns beyond the number that a page lists.
    """

    columns: tuple[str, ...]
    unit: str | None
    check: FileCheck | None
    left_out: int = 0


class Catalogue:
    """Facts of all data sets, read when asked for and kept while the options are the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[Any, ...], Facts] = {}

    def facts(self, dataset: Dataset, unit: str | None, reading: Mapping[str, Any]) -> Facts:
        """Read the facts of a data set.

        Parameters
        ----------
        dataset : Dataset
        unit : str or None
            Column that says whose record a row is.
        reading : mapping
            Options of how text is read, over those of the administrator.
        """
        key = (dataset.id, unit, tuple(sorted((name, str(value)) for name, value in reading.items())))
        with self._lock:
            found = self._kept.get(key)
        if found is None:
            found = _read(dataset, unit, reading)
            with self._lock:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = found
        return found

    def source(self, dataset: Dataset, columns: list[str], unit: str | None, reading: Mapping[str, Any]) -> Source:
        """Return some columns of a data set, unopened, for a release."""
        options = {} if dataset.is_address else {**dataset.reading, **reading}
        return table(dataset.source, columns, query=dataset.query, unit=unit, **options)


def _read(dataset: Dataset, unit: str | None, reading: Mapping[str, Any]) -> Facts:
    options = {**dataset.reading, **reading}
    try:
        if dataset.is_address:
            known = table(dataset.source, query=dataset.query, unit=unit).columns or ()
            checked = None
        else:
            checked = check(dataset.source, unit=unit, **options)
            known = checked.columns
    except (ValueError, TypeError) as error:
        raise NotReadable(_public(str(error), dataset)) from None
    except (OSError, ImportError, RuntimeError):
        raise NotReadable(UNREADABLE) from None
    return Facts(tuple(known[:MOST_COLUMNS]), unit, checked, max(0, len(known) - MOST_COLUMNS))


def _public(message: str, dataset: Dataset) -> str:
    """Repeat a message about a reading option, and nothing else: others may quote a path or an address."""
    about = message.partition(" ")[0].rstrip(":")
    quotes = any(part in message for part in (dataset.source, "/", "\\")) or about not in READING
    return UNREADABLE if quotes else message


def as_reading(form: Mapping[str, str]) -> dict[str, Any]:
    r"""Reading options of a form, as keywords; what is empty was not said.

    Examples
    --------
    >>> as_reading({"delimiter": "tab", "decimal": ",", "null": "NA, -999", "thousands": ""})
    {'delimiter': '\t', 'decimal': ',', 'null': ['NA', '-999']}
    """
    found: dict[str, Any] = {}
    for name in READING:
        text = form.get(name, "")[:400]
        if not text.strip() and text != " ":
            continue
        if name in ("null", "header"):
            found[name] = [part.strip() for part in text.split(",") if part.strip()]
        else:
            found[name] = {"tab": "\t", "space": " "}.get(text, text)
    return found


def suggested_range(dataset: Dataset, column: str) -> Any:
    """Range that a form begins with: the administrator's, or the public one that bears the column's name.

    Examples
    --------
    >>> from fogline.studio.config import Dataset
    >>> visits = Dataset("visits", "visits.csv", "Visits", account="visits", ranges={"stay": [0, 60]})
    >>> suggested_range(visits, "stay"), suggested_range(visits, "age"), suggested_range(visits, "cost")
    ((0.0, 60.0), 'age', None)
    """
    given = dataset.ranges.get(column)
    if isinstance(given, str):
        return given
    if given is not None:
        low, high = given
        return float(low), float(high)
    plain = column.strip().lower().replace(" ", "_")
    return plain if plain in units.names() else None
