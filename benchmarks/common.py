"""What the benchmark scripts share: where results go, work on two cores, tables for the page."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["RESULTS", "markdown", "number", "read_csv", "spread_over_cores", "table", "write_csv"]

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
"""Figures and their CSV files, beside the page that shows them."""

Job = TypeVar("Job")
Result = TypeVar("Result")


def spread_over_cores(work: Callable[[Job], Result], jobs: Sequence[Job], *, label: str) -> list[Result]:
    """Run the jobs on all cores, with a progress bar; results in the order of the jobs."""
    from rich.progress import track

    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        done = pool.map(work, jobs, chunksize=max(1, min(4, len(jobs) // 8)))
        return list(track(done, description=label, total=len(jobs)))


def write_csv(name: str, rows: Iterable[Any]) -> Path:
    """Write dictionaries or dataclasses to docs/benchmarks/NAME.csv."""
    records = [asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row) for row in rows]
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _short(value) for key, value in record.items()} for record in records)
    return path


def read_csv(name: str) -> list[dict[str, str]]:
    """Read docs/benchmarks/NAME.csv; nothing where it does not exist yet."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Table of a list of dictionaries with the same keys."""
    if not rows:
        return "*not measured yet*\n"
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def number(text: str, digits: int = 3) -> str:
    """Short form of a number of a CSV file; nothing where it is missing."""
    value = float(text)
    return "" if math.isnan(value) else f"{value:.{digits}g}"


def table(name: str, columns: dict[str, str]) -> str:
    """Show some columns of docs/benchmarks/NAME.csv as a table, with these titles."""
    return markdown([{title: _shown(row[column]) for column, title in columns.items()} for row in read_csv(name)])


def _shown(text: str) -> str:
    if text == "nan":
        return "–"
    try:
        return f"{float(text):.3g}" if "." in text or "e-" in text else text
    except ValueError:
        return text


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
