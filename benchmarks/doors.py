"""What record isolation costs: a pass over a file against the scan that DuckDB itself makes of it, in one process.

Actions take turns and the least time of each counts: by the wall clock, and by the clock of the processor, all threads
together, which other work on the machine disturbs less. The rows are written to a temporary folder.

    python benchmarks/doors.py [--rows 3000000] [--repeats 7]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from common import write_csv
from fogline.sources import text_lines
from fogline.sources.cell_sql import DUCKDB, DUCKDB_NARROW, CellSql
from fogline.sources.files import FileTable, connect
from scale import BOUND, GRID, figure

SCAN = "read_csv('{}', columns={{person_id: 'BIGINT', v0: 'DOUBLE', v1: 'DOUBLE'}}, auto_detect=false, header=true)"
VALUE = "least(greatest(3 * (ln(random()) - ln(random())), -12), 12)"


def least(*actions: Callable[[], Any], repeats: int) -> list[np.ndarray]:
    """Least seconds of each action, by the wall clock and by the processor's; they take turns."""
    found = np.full((len(actions), repeats, 2), np.inf)
    for turn in range(repeats):
        for i, action in enumerate(actions):
            began = time.perf_counter(), time.process_time()
            action()
            found[i, turn] = time.perf_counter() - began[0], time.process_time() - began[1]
    return list(found.min(axis=1))


def ratios(what: str, mine: Any, theirs: Any, target: str = "") -> Iterator[dict[str, Any]]:
    for clock, ratio in zip(("wall clock", "processor"), mine / theirs, strict=True):
        yield figure(f"{what}, {clock}", float(ratio), target)


def written(folder: Path, name: str, rows: int, value: str, options: str) -> Path:
    """File of so many rows: people, and two columns in a box."""
    path = folder / name
    columns = f"(hash(i) % 100000)::BIGINT AS person_id, {value} AS v0, {value} AS v1"
    with connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{path}' ({options})")
    return path


def scan(relation: str) -> Any:
    with connect() as connection:
        return connection.execute(f"SELECT avg(v0), avg(v1) FROM {relation}").fetchall()


def plain_state(path: Path) -> None:
    """A pass without compiled loops, as where numba is not installed."""
    table, fast = FileTable(path, ["v0", "v1"]), text_lines._fast_reader
    text_lines._fast_reader = lambda: None  # type: ignore[assignment]
    try:
        table.state(GRID)
    finally:
        text_lines._fast_reader = fast


def bounded_state(table: FileTable) -> None:
    table._bounded(BOUND).state(GRID)


def optimised() -> Any:
    """A connection as it was before: one that is kept, with all optimisers."""
    if not _optimised:
        import duckdb

        _optimised.append(duckdb.connect())
    return _optimised[0].cursor()


_optimised: list[Any] = []


def text_passes(folder: Path, rows: int, repeats: int) -> Iterator[dict[str, Any]]:
    kinds = {"17 digits": VALUE, "2 decimals": f"round({VALUE}, 2)"}
    for number, (kind, value) in enumerate(kinds.items()):
        path = written(folder, f"rows-{number}.csv", rows, value, "FORMAT csv, HEADER")
        relation = SCAN.format(path)
        table = FileTable(path, ["v0", "v1"])
        people = FileTable(path, ["v0", "v1"], unit="person_id")
        table.state(GRID), people._bounded(BOUND).state(GRID)  # compiles
        reading, counting, bounded = least(
            partial(scan, relation),
            partial(table.state, GRID),
            partial(bounded_state, people),
            repeats=repeats,
        )
        (slow,) = least(partial(plain_state, path), repeats=1)
        what = f"CSV, {rows:.0e} lines, {kind}"
        yield figure(f"{what}: DuckDB's own scan, processor nanoseconds per line", float(1e9 * reading[1] / rows))
        yield figure(f"{what}: the pass, processor nanoseconds per line", float(1e9 * counting[1] / rows))
        yield from ratios(f"{what}: pass over scan", counting, reading, "at most 1.3")
        yield from ratios(f"{what}: pass with a unit over scan", bounded, reading)
        yield from ratios(f"{what}: pass without numba over scan", slow, reading)


def parquet_passes(folder: Path, rows: int, repeats: int) -> Iterator[dict[str, Any]]:
    path = written(folder, "rows.parquet", rows, VALUE, "FORMAT parquet")
    table = FileTable(path, ["v0", "v1"])

    def grouped(sql: str, opened: Callable[[], Any]) -> dict[str, Any]:
        with opened() as connection:
            found: dict[str, Any] = connection.execute(sql).fetchnumpy()
            return found

    columns, relation = table._numbers(), table._relation()
    grid: Any = GRID  # of two columns
    wide, narrow = (CellSql.of(grid, kind).query(columns, relation) for kind in (DUCKDB, DUCKDB_NARROW))
    asked = partial(grouped, wide, optimised), partial(grouped, narrow, connect)
    before, after = least(*asked, repeats=repeats)
    mine, theirs = (ask() for ask in asked)
    equal = all(np.array_equal(np.sort(mine[name]), np.sort(theirs[name])) for name in ("cell", "records"))
    what = f"Parquet without pyarrow, {rows:.0e} rows"
    yield from ratios(f"{what}: without statistics over before", after, before, "at most 1.1")
    yield figure(f"{what}: equal where there is no NaN", equal, "True")
    reading, counting = least(lambda: scan(f"'{path}'"), lambda: table.state(GRID), repeats=repeats)
    yield from ratios(f"Parquet with pyarrow, {rows:.0e} rows: pass over scan of DuckDB", counting, reading)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for part in (text_passes, parquet_passes):
            for row in part(Path(folder), options.rows, options.repeats):
                print(f"{row['what']}: {row['value']}", flush=True)
                found.append(row)
    write_csv("doors", found)


if __name__ == "__main__":
    main()
