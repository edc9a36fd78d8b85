"""The part of docs/benchmarks/calibration.md on how often stated intervals hold the truth."""

from __future__ import annotations

from typing import Any

from common import markdown, read_csv

__all__ = ["calibration"]

QUESTIONS = ("box", "quantile", "mean", "variance", "pdf at points", "cdf at points", "pdf band", "cdf band")


def calibration() -> str:
    """Pooled coverage of every question, then the worst kind of data, for both halves."""
    rows = [row for row in read_csv("calibration") if row["n"] == "all" and row["level"] == "0.95"]
    if not rows:
        return "## Calibration of the posterior in one column\n\n*not measured yet*\n"
    text = (
        "## Calibration of the posterior in one column\n\n"
        "Share of the 95% intervals that hold the truth, over simulated releases of made columns. *Least* is the kind "
        "of data with the lowest coverage; it rests on few releases. Length is that of the interval over the usual "
        "interval without privacy (median), which is for the population. Nothing was tuned on the half *judge*. Sizes "
        "and budgets: see `calibration.csv`.\n\n"
    )
    return text + markdown([shown for half in ("judge", "tune") for shown in _half(rows, half)])


def _half(rows: list[dict[str, str]], half: str) -> list[dict[str, Any]]:
    found = []
    for target in ("population", "records"):
        for question in QUESTIONS:
            own = [r for r in rows if (r["half"], r["target"], r["question"]) == (half, target, question)]
            pooled = [row for row in own if row["kind"] == "all"]
            kinds = [row for row in own if row["kind"] != "all"]
            if not pooled or not kinds:
                continue
            least = min(kinds, key=lambda row: float(row["coverage"]))
            found.append(
                {
                    "half": half,
                    "of the": target,
                    "question": question,
                    "releases": pooled[0]["releases"],
                    "intervals": pooled[0]["intervals"],
                    "coverage": f"{float(pooled[0]['coverage']):.3f}",
                    "least": f"{float(least['coverage']):.2f} ({least['kind']})",
                    "length": pooled[0]["length"] or "",
                }
            )
    return found
