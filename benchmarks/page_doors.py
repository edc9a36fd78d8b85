"""The part of docs/benchmarks/isolation.md on what record isolation costs."""

from __future__ import annotations

from common import markdown, number, read_csv

__all__ = ["doors"]


def doors() -> str:
    """Conclusion first, then all figures."""
    rows = read_csv("doors")
    if not rows:
        return "## What record isolation costs\n\n*not measured yet*\n"
    compiled = _ratios(rows, "CSV", "pass over scan,")
    plain = _ratios(rows, "CSV", "pass without numba over scan,")
    parquet = _ratios(rows, "Parquet without pyarrow", "without statistics")
    shown = [{"what": row["what"], "measured": _shown(row["value"]), "wanted": row["target"]} for row in rows]
    sentences = [
        "With numba (`fogline[fast]`), reading text line by line takes",
        f"**{_span(compiled)}** times as long as DuckDB's own typed scan of the same file; at most 1.3 was wanted.",
        f"Without numba the same numbers take {_span(plain)} times as long as the scan: for large text files install",
        f"it, or use Parquet. A Parquet file is read without its statistics, which takes **{_span(parquet)}** times",
        "what it took with them (at most 1.1 was wanted). All ratios are from one process with two cores and are the",
        "least of several rounds. They are taken by the wall clock and by the processor's clock, which other work on",
        "the machine disturbs less.",
    ]
    return "## What record isolation costs\n\n" + " ".join(sentences) + "\n\n" + markdown(shown)


def _ratios(rows: list[dict[str, str]], kind: str, what: str) -> list[float]:
    return [float(row["value"]) for row in rows if row["what"].startswith(kind) and what in row["what"]]


def _span(ratios: list[float]) -> str:
    low, high = (f"{edge:.2g}" if edge >= 10 else f"{edge:.2f}" for edge in (min(ratios), max(ratios)))
    return low if low == high else f"{low} to {high}"


def _shown(value: str) -> str:
    return value if value in ("True", "False") else number(value)
