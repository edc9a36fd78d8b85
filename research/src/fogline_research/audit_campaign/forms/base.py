"""What a form is: a way to write a hostile table down, so that one of fogline's readers can be given it."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fogline_research.audit_campaign.hostile_tables import Record, Shape
from fogline_research.audit_campaign.reference_reader import Item, record_item

__all__ = ["NAMES", "UNIT", "Form", "Opened", "Place", "is_available", "record_items"]

NAMES = ("a", "b", "c", "d")
"""Names of the columns."""

UNIT = "who"
"""Name of the column of ids."""

Public = Mapping[str, Any]
"""What is public about a table: chosen apart from its records, and the same for both of a pair."""


@dataclass(frozen=True)
class Opened:
    """A source, and what :func:`fogline.sources.registry.table` is told beside it.

    Parameters
    ----------
    source : object
    keywords : mapping
        Of ``engines.table``: columns, unit, query.
    """

    source: Any
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Place:
    """Where forms are written: a folder, what servers there are, by name, and connections to them."""

    folder: Path
    servers: dict[str, Any] = field(default_factory=dict)
    walks: int = 0
    _open: dict[str, Any] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def new(cls, servers: Mapping[str, Any] | None = None) -> Iterator[Place]:
        """An empty place, which is cleared at the end."""
        with tempfile.TemporaryDirectory() as folder, closing(cls(Path(folder), dict(servers or {}))) as place:
            yield place

    def connection(self, name: str, connect: Callable[[], Any]) -> Any:
        """A connection that is kept until the end; opened anew where it was closed."""
        if name not in self._open or getattr(self._open[name], "closed", False):
            self._open[name] = connect()
        return self._open[name]

    def close(self) -> None:
        """Close all connections."""
        while self._open:
            self._open.popitem()[1].close()


Write = Callable[[Sequence[Record], Shape, Public, Place], Opened]
WriteAll = Callable[[Sequence[Sequence[Record]], Shape, Public, Place], Iterator[Opened]]
Items = Callable[[Sequence[Record], Shape, Public], list[Item]]


def record_items(rows: Sequence[Record], shape: Shape, public: Public) -> list[Item]:  # noqa: ARG001
    """Records as they are, for every form but a text file."""
    return [record_item(record, shape.cells, shape.columns) for record in rows]


@dataclass(frozen=True)
class Form:
    """One way to write a table.

    Parameters
    ----------
    name : str
        As the audit's page prints it.
    shapes : tuple of Shape
        What its records may hold; walks take them in turn.
    write : callable
        Writes one table.
    options : mapping
        Public features, each with its possible values.
    needs : tuple of str
        Packages without which there is no such form.
    server : str
        Name of the server that holds it: "postgres", "spark"; empty where there is none.
    items : callable
        What the reference reader makes of a table.
    write_all : callable, optional
        Writes all tables of a walk at once, where that is cheaper; gives them one by one.
    is_refused : bool
        Whether the source is refused by its declared type, before a record is looked at.
    bundle : int
        Walks that the tests and the short audit lay side by side in one table, where a reading is dear: each of its
        pairs then differs by so many records, and the state by so many vectors. The long audit does not.
    pairs : int
        Pairs that the tests try: enough to find each of the breaks that are planted in readers of such a form.
    """

    name: str
    shapes: tuple[Shape, ...]
    write: Write
    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    server: str = ""
    items: Items = record_items
    write_all: WriteAll | None = None
    is_refused: bool = False
    bundle: int = 1
    pairs: int = 100

    def each(self, tables: Sequence[Sequence[Record]], shape: Shape, public: Public, place: Place) -> Iterator[Opened]:
        """Write table after table; each is read before the next is written."""
        if self.write_all is not None:
            yield from self.write_all(tables, shape, public, place)
            return
        for rows in tables:
            yield self.write(rows, shape, public, place)


def is_available(form: Form) -> bool:
    """Whether all packages are installed that a form needs."""
    return all(importlib.util.find_spec(name) is not None for name in form.needs)
