r"""The query that a warehouse runs by itself: a count per cell of the grid that a release uses, and nothing else.

    records -> doubles -> inside the box -> cell [-> at most c per unit] -> count per cell

The grid is that of :func:`fogline.queries.fourier_sums.cell_keys`, by the same subtraction, division and addition of
the same doubles (:mod:`fogline.sources.dialects`), hence the same integers. Every row of the answer bears the *grid*: a
text with the dialect and a fingerprint of columns, bounds, unit and bound, by which a later release knows that the file
belongs to it; and the *total* of all counts, so that a file that was cut short is noticed. One row is always there,
with the cell -1 and no records, and bears the total too: the answer about an empty table looks like any other, and an
answer of which nothing but that row is left does not look like it.

With a unit at most c records of each are counted: those whose keyed hash of (unit, cell, number among equals) is
smallest. What is kept of a unit depends on that unit's records alone; the proof is in ``warehouse.proof.md``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fogline._validation import check_max_contributions, check_name
from fogline.accounting.guarantee import ROWS
from fogline.density.random_spec import CellSpec
from fogline.mechanisms.randomness import SystemSource
from fogline.sources.dialects import Dialect, dialect_named

__all__ = ["COUNTS_FORMAT", "GRID_COLUMNS", "NO_CELL", "WarehouseQuery"]

COUNTS_FORMAT = "fogline-counts-1"
"""What a grid text begins with. Changes whenever the same cell may have another number."""

GRID_COLUMNS = ("cell", "records", "total", "grid")
"""Columns of the answer."""

NO_CELL = -1
"""Cell of the row that is always there."""


@dataclass(frozen=True)
class WarehouseQuery:
    """A query that counts the records of each cell, in the dialect of some engine; public.

    Parameters
    ----------
    spec : SketchSpec or LeafSpec
    columns : tuple of str
        One per axis.
    dialect : Dialect
    table : str
        Name of a table, with dots between catalogue, schema and name; or a SELECT.
    unit : str, optional
        Column that says whose record a row is.
    max_contributions : int
        Most records of a unit that the query counts.

    Examples
    --------
    >>> from fogline.density.leaves import LeafSpec
    >>> spec = LeafSpec.plan([(0, 60)], leaves=[4])
    >>> query = WarehouseQuery.of(spec, ["stay"], dialect="duckdb", table="visits")
    >>> print(query.sql())
    WITH fogline_numbers AS (
      SELECT CAST("stay" AS DOUBLE) AS x0
      FROM "visits"
    ), fogline_box AS (
      SELECT CASE WHEN x0 >= CAST(0 AS DOUBLE) AND x0 <= CAST(60 AS DOUBLE) THEN x0 ELSE CAST(0 AS DOUBLE) END AS y0
      FROM fogline_numbers
      WHERE x0 >= CAST(0 AS DOUBLE) AND x0 <= CAST(60 AS DOUBLE)
    ), fogline_places AS (
      SELECT FLOOR((y0 - CAST(0 AS DOUBLE)) / CAST(15 AS DOUBLE) + CAST(0 AS DOUBLE)) AS p0
      FROM fogline_box
    ), fogline_cells AS (
      SELECT CAST(CASE WHEN p0 > CAST(3 AS DOUBLE) THEN CAST(3 AS DOUBLE) ELSE p0 END AS BIGINT) AS cell
      FROM fogline_places
    ), fogline_counts AS (
      SELECT cell, COUNT(*) AS records
      FROM fogline_cells
      GROUP BY cell
    ), fogline_answer AS (
      SELECT cell, records
      FROM fogline_counts
      UNION ALL
      SELECT -1 AS cell, 0 AS records
    )
    SELECT cell, records, CAST(SUM(records) OVER () AS BIGINT) AS total, '...' AS grid
    FROM fogline_answer
    """

    spec: CellSpec
    columns: tuple[str, ...]
    dialect: Dialect
    table: str
    unit: str | None = None
    max_contributions: int = 1

    @classmethod
    def of(
        cls,
        spec: CellSpec,
        columns: Sequence[str],
        *,
        dialect: str,
        table: str,
        unit: str | None = None,
        max_contributions: int = 1,
    ) -> WarehouseQuery:
        """Check a user's wishes; every error names its parameter."""
        names = tuple(check_name(name, "columns") for name in columns)
        if len(names) != spec.d or len(set(names)) != len(names):
            raise ValueError(f"columns: name {spec.d} different columns, one per range of bounds")
        if unit is not None:
            if check_name(unit, "unit") in names:
                raise ValueError(f"unit: column {unit!r} is one of the columns")
            if unit in ROWS:
                raise ValueError(f"unit: {unit!r} is a row, and rows are not cut; rename the column in a SELECT")
        elif check_max_contributions(max_contributions) != 1:
            raise ValueError("max_contributions: name the unit's column by unit, so that the query can bound it")
        if not table.strip():
            raise ValueError("table must be the name of a table, or a SELECT")
        found = dialect_named(dialect)
        made = cls(
            spec, names, found, table.strip().rstrip(";").rstrip(), unit, check_max_contributions(max_contributions)
        )
        made.relation()  # refused here if it is no name
        return made

    # -- what the answer bears -------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """Of everything that a count depends on but the rows: 16 hexadecimal digits."""
        cut = None if self.unit is None else [self.unit, self.max_contributions]
        content = json.dumps([COUNTS_FORMAT, self.spec.to_dict(), self.columns, cut], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def grid(self) -> str:
        """Text that every row of the answer bears: format, dialect, fingerprint, and that of the table's name."""
        place = hashlib.sha256(self.table.encode()).hexdigest()[:16]
        return f"{COUNTS_FORMAT} {self.dialect.name} {self.fingerprint} {place}"

    # -- SQL -------------------------------------------------------------------------------------------------

    def relation(self) -> str:
        """What follows FROM."""
        if re.match(r"(?i)(select|with|values)\b\s", self.table):
            return f"({self.table}\n  ) fogline_source"  # a comment at its end stays there
        return self.dialect.relation(self.table)

    def sql(self, *, key: str | None = None) -> str:
        """Return the query.

        Parameters
        ----------
        key : str, optional
            Hexadecimal key of the order by which a unit's records are kept; by default a fresh one from the operating
            system. Privacy does not rest on it.
        """
        steps = [*self._cells(), *([] if self.unit is None else self._cut(_checked_key(key)))]
        last = steps[-1][0]
        kept = "" if self.unit is None else f"\n  WHERE place <= {self.max_contributions}"
        steps.append(
            ("counts", f"SELECT cell, {self.dialect.count} AS records\n  FROM fogline_{last}{kept}\n  GROUP BY cell")
        )
        marker = f"SELECT {NO_CELL} AS cell, 0 AS records{self.dialect.nowhere}"
        steps.append(("answer", f"SELECT cell, records\n  FROM fogline_counts\n  UNION ALL\n  {marker}"))
        named = ", ".join(f"fogline_{name} AS (\n  {step}\n)" for name, step in steps)
        # One window over all rows: a second look at the counts would count twice what an engine does not keep, or draw
        # the lots of SQLite twice.
        total = self.dialect.whole.format("SUM(records) OVER ()")
        return f"WITH {named}\nSELECT cell, records, {total} AS total, '{self.grid}' AS grid\nFROM fogline_answer"

    def _cells(self) -> list[tuple[str, str]]:
        """Steps from columns to cells."""
        write, spec, axes = self.dialect, self.spec, range(self.spec.d)
        unit = [] if self.unit is None else ["who"]
        columns = [f"{write.number.format(write.quoted(name))} AS x{j}" for j, name in enumerate(self.columns)]
        if self.unit is not None:
            columns.append(f"{write.quoted(self.unit)} AS who")
        low, high = ([write.double(float(end)) for end in ends] for ends in (spec.lower, spec.upper))
        # Names change at each step: where an alias hides a column of the same name, a filter would see the alias.
        inside = [f"x{j} >= {low[j]} AND x{j} <= {high[j]}" for j in axes]
        safe = [f"CASE WHEN {inside[j]} THEN x{j} ELSE {low[j]} END AS y{j}" for j in axes]
        known = [*inside, *("who IS NOT NULL" for _ in unit)]
        places = [self._place(j, low[j]) for j in axes]
        cell = ""
        for j, cells in enumerate(spec.cells):
            last = write.double(cells - 1.0)
            index = write.whole.format(f"CASE WHEN p{j} > {last} THEN {last} ELSE p{j} END")
            cell = f"({cell}) * {cells} + {index}" if cell else index  # row-major, as cell_keys numbers them
        return [
            ("numbers", f"SELECT {', '.join(columns)}\n  FROM {self.relation()}"),
            ("box", f"SELECT {', '.join([*safe, *unit])}\n  FROM fogline_numbers\n  WHERE {' AND '.join(known)}"),
            ("places", f"SELECT {', '.join([*places, *unit])}\n  FROM fogline_box"),
            ("cells", f"SELECT {', '.join([f'{cell} AS cell', *unit])}\n  FROM fogline_places"),
        ]

    def _place(self, j: int, low: str) -> str:
        """Place of a value along an axis, in cells."""
        write = self.dialect
        quotient = write.quotient(f"(y{j} - {low})", float(self.spec.cell_widths[j]))
        position = f"{quotient} + {write.double(float(self.spec.shift[j]))}"
        if write.underflow:
            position = f"({quotient}) + {write.double(float(self.spec.shift[j]))}"
        return f"{write.floor.format(position)} AS p{j}"

    def _cut(self, key: str) -> list[tuple[str, str]]:
        """Steps that rank a unit's records by a keyed hash, or at random where the engine has no hash."""
        write = self.dialect
        parts = (f"'{key}'", *(write.text.format(name) for name in ("who", "cell", "twin")))
        lot = write.lot.format(write.joined(*parts))
        return [
            ("twins", "SELECT who, cell, ROW_NUMBER() OVER (PARTITION BY who, cell ORDER BY cell) AS twin\n"
                      "  FROM fogline_cells"),
            ("order", f"SELECT who, cell, twin, {lot} AS lot\n  FROM fogline_twins"),
            ("ranked", "SELECT cell, ROW_NUMBER() OVER (PARTITION BY who ORDER BY lot, cell, twin) AS place\n"
                       "  FROM fogline_order"),
        ]  # fmt: skip


def _checked_key(key: str | None) -> str:
    """Return the key, or a fresh one; nothing that could end the text it stands in."""
    if key is None:
        return SystemSource().bytes(16).hex()
    if not re.fullmatch("[0-9a-f]{1,64}", key):
        raise ValueError("key must be 1 to 64 hexadecimal digits")
    return key
