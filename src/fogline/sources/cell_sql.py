"""The cell of a record in SQL: one expression, in double precision, for every engine that groups by it.

It is the expression of :func:`fogline.queries.fourier_sums.cell_keys`: the same subtraction, division and addition of
the same doubles, each rounded once, hence the same integers. Bounds are written so that each engine reads back exactly
the double that was meant: as text for a parser that rounds correctly, or as a parameter (SQLite, whose parser need
not).

Rows outside the box are left out before their cell is computed, so that nothing can overflow; comparisons are false for
NULL everywhere, and for NaN in every engine that has it, since it counts as larger than all numbers or as no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fogline.density.random_spec import CellSpec

__all__ = ["DUCKDB", "DUCKDB_NARROW", "POSTGRES", "SPARK", "CellSql", "Dialect", "SqliteDialect", "quoted"]


@dataclass(frozen=True)
class Dialect:
    """How an engine writes what all of them compute.

    Parameters
    ----------
    double, whole : str
        Names of the types.
    quote : str
        Around names.
    """

    double: str
    whole: str
    quote: str = '"'

    def number(self, value: float) -> str:
        """A double, exactly."""
        # repr gives the shortest decimal that reads back as the same double
        return f"CAST('{value!r}' AS {self.double})"

    def quotient(self, part: str, width: float) -> str:
        """A nonnegative number over the width of a cell."""
        return f"{part} / {self.number(width)}"

    def index(self, position: str, cells: int) -> str:
        """Whole part of a nonnegative position, at most the last cell."""
        return f"CAST(least(floor({position}), {self.number(cells - 1.0)}) AS {self.whole})"


@dataclass(frozen=True)
class SqliteDialect(Dialect):
    """SQLite: numbers are numbered parameters, and the whole part is a cast."""

    double: str = "REAL"
    whole: str = "INTEGER"
    parameters: list[float] = field(default_factory=list)

    def number(self, value: float) -> str:
        """A double, as a parameter."""
        self.parameters.append(value)
        return f"?{len(self.parameters)}"

    def index(self, position: str, cells: int) -> str:
        """Whole part of a nonnegative position, at most the last cell."""
        # a cast cuts toward zero, which is down for what is not negative
        return f"min(CAST({position} AS INTEGER), {cells - 1})"


@dataclass(frozen=True)
class PostgresDialect(Dialect):
    """Postgres: a quotient too small for a double is an error there, and a zero everywhere else."""

    double: str = "double precision"
    whole: str = "bigint"

    def quotient(self, part: str, width: float) -> str:
        """A nonnegative number over the width of a cell; zero where it is below 2^-1000, which no sum with it shows."""
        tiny = f"{part} < {self.number(width * 2.0**-1000)}"
        return f"CASE WHEN {tiny} THEN {self.number(0.0)} ELSE {super().quotient(part, width)} END"


DUCKDB = Dialect("DOUBLE", "BIGINT")
DUCKDB_NARROW = Dialect("DOUBLE", "INTEGER")
"""For grids whose cells have numbers below 2^31: half the bytes to group by."""
POSTGRES = PostgresDialect()
SPARK = Dialect("DOUBLE", "BIGINT", "`")


@dataclass(frozen=True)
class CellSql:
    """The parts of the query that counts the records of each cell.

    Examples
    --------
    >>> from fogline.density.spec import SketchSpec
    >>> sql = CellSql.of(SketchSpec.plan([(0, 1)]), DUCKDB)
    >>> sql.inside
    "x0 >= CAST('0.0' AS DOUBLE) AND x0 <= CAST('1.0' AS DOUBLE)"
    """

    inside: str
    cell: str
    axes: int

    @classmethod
    def of(cls, spec: CellSpec, dialect: Dialect, places: Sequence[int] | None = None) -> CellSql:
        """For doubles that are called x0, x1, ...; or for those of some places among them."""
        cell, inside = "0", []
        for j, cells in enumerate(spec.cells):
            x, lower = f"x{j if places is None else places[j]}", dialect.number(float(spec.lower[j]))
            inside.append(f"{x} >= {lower} AND {x} <= {dialect.number(float(spec.upper[j]))}")
            # the same operations in the same order as cell_keys: every engine rounds alike
            steps = dialect.quotient(f"({x} - {lower})", float(spec.cell_widths[j]))
            # Row-major, as cell_keys numbers them.
            cell = f"({cell}) * {cells} + {dialect.index(f'{steps} + {dialect.number(float(spec.shift[j]))}', cells)}"
        return cls(" AND ".join(inside), cell, spec.d)

    def query(self, columns: Sequence[str], relation: str) -> str:
        """The whole query: one ``GROUP BY``.

        Parameters
        ----------
        columns : sequence of str
            SQL that gives a double or NULL for each axis.
        relation : str
            What follows FROM.
        """
        doubles = ", ".join(f"{column} AS x{j}" for j, column in enumerate(columns))
        return (
            f"SELECT cell, count(*) AS records FROM (SELECT {self.cell} AS cell FROM "
            f"(SELECT {doubles} FROM {relation}) AS numbers WHERE {self.inside}) AS cells GROUP BY cell"
        )


def quoted(name: str, quote: str = '"') -> str:
    """A name as SQL writes it."""
    return quote + name.replace(quote, 2 * quote) + quote
