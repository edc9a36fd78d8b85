"""The part of docs/benchmarks/scale.md on scale."""

from __future__ import annotations

from common import markdown, number, read_csv

__all__ = ["scale"]


def scale() -> str:
    rows = [
        {"what": row["what"], "measured": _shown(row["value"]), "wanted": row["target"]} for row in read_csv("scale")
    ]
    return (
        (
            "## From a file to a cluster\n\nA pass reads every row once and counts it. The table has the time of a "
            "pass against the time that the engine itself needs to read the same rows (in one process, the least of "
            "several rounds), and compares the counts of every engine with those of numpy, integer by integer. "
            "[My data are large](scale.md) has the recipes.\n\n"
        )
        + markdown(rows)
        + _warehouse()
    )


def _warehouse() -> str:
    """The equality table of queries that warehouses run themselves."""
    rows = [{**row, "different": number(row["different"])} for row in read_csv("warehouse")]
    wrong = sum(float(row["different"]) for row in rows)
    said = "Every engine that runs here gives numpy's integers in every cell." if not wrong else "Engines differ."
    return (
        f"\n\n### Queries of warehouses\n\n{said} Rows are edges of cells and their neighbouring doubles, "
        "NaN of both signs, infinities, -0.0, subnormals, nulls, decimals and integers beyond 2^53; cells are those of "
        "seven grids together. "
        "fakesnow is no Snowflake, but DuckDB behind a translation: Snowflake stays not certified. Dask (above) "
        "and Sail, a server of Spark Connect (`make test-connect`), count without a query.\n\n"
    ) + markdown(rows)


def _shown(value: str) -> str:
    return value if value in ("True", "False") else number(value)
