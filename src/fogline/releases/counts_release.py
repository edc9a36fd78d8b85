"""Bring your own warehouse: a query that is printed and run elsewhere, and the release of the counts that it gave.

    columns and bounds -> SQL -> (the user's warehouse) -> a file of exact counts -> noise, once -> PrivateDensity

The file is as secret as the records. What it says is taken on trust: that the query ran as it was printed, on a table
of which each row is one record. The guarantee says so. Where the query itself bounds what a unit contributes, the bound
is part of it (``sources/warehouse.proof.md``). Counts by a dialect that was never run against its engine are not
certified.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fogline import _validation
from fogline._typing import LedgerLike
from fogline.density.counted_records import check_expected
from fogline.density.leaves import LeafSpec
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import RandomSpec, Spec
from fogline.releases.density_sketch import DensitySketch, release_density
from fogline.releases.table_release import plan_release, units_of, warn_of_count
from fogline.releases.terms import ReleaseTerms
from fogline.sources.counts_file import check_secret_file, read_counts
from fogline.sources.dialects import DIALECTS
from fogline.sources.warehouse import COUNTS_FORMAT, WarehouseQuery

__all__ = ["counts_caution", "counts_query", "release_counts"]


def counts_caution(path: str | Path, *, allow_readable: bool = False) -> str:
    """Refuse a file that everybody on this machine can read, unless told; return a caution where others can."""
    return check_secret_file(Path(path), allow_readable=allow_readable)


def counts_query(
    *,
    dialect: str,
    table: str,
    columns: Sequence[str] | None = None,
    bounds: Any = None,
    steps: Any = None,
    unit: str | None = None,
    max_contributions: int = 1,
    features: str = "auto",
) -> WarehouseQuery:
    """Return the query whose answer :func:`release_counts` takes; its text is ``.sql()``.

    Parameters
    ----------
    dialect : str
        One of :data:`fogline.sources.dialects.DIALECTS`.
    table : str
        Name of a table, with dots between catalogue, schema and name; or a SELECT of which each row is one record.
    columns, bounds, steps, unit, max_contributions
        As for :func:`fogline.release`. The columns must hold numbers; with a unit the query counts at most so many
        records of each.
    features : {"auto", "leaves", "grid"}

    Examples
    --------
    >>> query = counts_query(dialect="bigquery", table="clinic.visits", columns=["age"], bounds=["age"])
    >>> print(query.sql().splitlines()[1].strip())
    SELECT CAST(`age` AS FLOAT64) AS x0
    >>> query.dialect.reason
    'the SQL for BigQuery was never run against that engine'
    """
    names = _names(columns, bounds)
    _, spec = plan_release(bounds, names, steps, features, width=len(names))
    return _query(spec, names, dialect, table, unit, max_contributions)


def release_counts(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    bounds: Any = None,
    epsilon: float | None = None,
    delta: float | None = 0.0,
    steps: Any = None,
    unit: str | None = None,
    max_contributions: int = 1,
    neighbours: str = "add-remove",
    ledger: LedgerLike | None = None,
    features: str = "auto",
    expect_records: int | None = None,
    allow_readable: bool = False,
    delete: bool = False,
) -> PrivateDensity:
    """Release the counts that a warehouse's query gave, as :func:`fogline.release` does with records.

    Parameters
    ----------
    path : path
        CSV or Parquet with the whole answer to the query of :func:`counts_query`. Secret.
    columns, bounds, steps, unit, features
        As the query was made with; a file that was made with others is refused.
    max_contributions : int
        With a unit, the bound in the query, which it enforces; without one, declared.
    epsilon, delta, neighbours, ledger, expect_records
        As for :func:`fogline.release`.
    allow_readable : bool
        Take a file that everybody on this machine can read.
    delete : bool
        Delete the file once it was released. What a file system or a backup keeps of it is beyond this.

    Returns
    -------
    PrivateDensity

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> import duckdb
    >>> visits = duckdb.sql("SELECT 20 + 50 * random() AS age FROM range(3000)")
    >>> asked = dict(columns=["age"], bounds=["age"])
    >>> sql = counts_query(dialect="duckdb", table="visits", **asked).sql()
    >>> answer = Path(tempfile.mkdtemp()) / "counts.csv"
    >>> duckdb.sql(sql).write_csv(str(answer))
    >>> os.chmod(answer, 0o600)
    >>> shape = release_counts(answer, epsilon=1.0, delete=True, **asked)
    >>> answer.exists(), bool(abs(shape.mean("age").value - 45) < 3)
    (False, True)
    """
    check_expected(expect_records)
    _validation.check_ledger(ledger)
    place = Path(path)
    names = _names(columns, bounds)
    pairs, spec = plan_release(bounds, names, steps, features, width=len(names))
    # of the same columns, bounds, unit and bound; the table's name is known to the file alone
    asked = _query(spec, names, "duckdb", "any", unit, max_contributions if unit is not None else 1)
    terms = ReleaseTerms.checked(
        epsilon, delta, neighbours, max_contributions, unit or "record", allow_pure=isinstance(spec, LeafSpec),
        mechanism="this kind of features", ledger=ledger,
    )  # fmt: skip
    caution = check_secret_file(place, allow_readable=allow_readable)
    if caution:
        warnings.warn(caution, UserWarning, stacklevel=2)
    cells, counts, grid = read_counts(place, asked.spec)
    dialect, where = _known_grid(grid, asked)
    terms = replace(
        terms,
        remark=_remark(dialect, unit),
        on_trust=True,  # whoever wrote the file could have written anything
        caveat=DIALECTS[dialect].reason,
    )
    sketch = DensitySketch.from_state(spec, (cells, counts))
    del cells, counts
    with np.errstate(all="ignore"):
        terms.warn()
        density = release_density(spec, terms, sketch.table, ledger, columns=names, facts={"counts": [dialect, where]})
    del sketch
    if delete:
        # after the release: a file that is gone could not be released again if it failed
        os.unlink(place)
    warn_of_count(density)
    return density.labelled(units=units_of(pairs), expect_records=expect_records)


def _remark(dialect: str, unit: str | None) -> str:
    """Say what is taken on trust: the query bounds a unit's records, but nobody saw it run."""
    bounded = f", which bounds the records of each {unit}" if unit is not None else ""
    return f"counts made by fogline's query for {DIALECTS[dialect].title}{bounded}, on trust that it ran as printed"


def _names(columns: Sequence[str] | None, bounds: Any) -> tuple[str, ...]:
    if columns is None and isinstance(bounds, Mapping):
        columns = list(bounds)
    if columns is None or isinstance(columns, str):
        raise TypeError("columns must be a list of names, since nothing else tells what a count is of")
    return tuple(_validation.check_name(name, "columns") for name in columns)


def _query(spec: Spec, names: tuple[str, ...], dialect: str, table: str, unit: str | None, most: int) -> WarehouseQuery:
    if isinstance(spec, RandomSpec):
        raise ValueError("features: a query counts cells, of leaves or of a grid; random features need the records")
    return WarehouseQuery.of(spec, names, dialect=dialect, table=table, unit=unit, max_contributions=most)


def _known_grid(grid: str, asked: WarehouseQuery) -> tuple[str, str]:
    """Dialect and place of counts that were made as is asked for here; all of it public."""
    words = grid.split(" ")
    if len(words) != 4 or words[0] != COUNTS_FORMAT or words[1] not in DIALECTS:
        raise ValueError(f"counts: column grid does not begin with {COUNTS_FORMAT}: the query must run as printed")
    # counts of other columns or bounds would be released as those that were asked for
    if words[2] != asked.fingerprint:
        raise ValueError(
            "counts: made for other columns, bounds, steps, features, unit or max_contributions than are asked for here"
        )
    return words[1], words[3]
