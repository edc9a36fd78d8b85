"""The part of docs/benchmarks.md on scale."""

from __future__ import annotations

from common import markdown, number, read_csv

__all__ = ["scale"]


def scale() -> str:
    rows = [
        {"what": row["what"], "measured": _shown(row["value"]), "wanted": row["target"]} for row in read_csv("scale")
    ]
    return (
        "## From a file to a cluster\n\nPasses over generated rows: the time of a pass against the time that the "
        "engine itself needs to read the same rows, in one run, the least of some turns; and states of every engine "
        "against the one that numpy makes, integer by integer. `docs/scale.md` has the recipes.\n\n"
    ) + markdown(rows)


def _shown(value: str) -> str:
    return value if value in ("True", "False") else number(value)
