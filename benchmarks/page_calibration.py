"""The part of docs/benchmarks/calibration.md on how often stated intervals hold the truth."""

from __future__ import annotations

import math
from typing import Any

from common import markdown, read_csv
from page_tools import plots, saved

__all__ = ["calibration"]

QUESTIONS = ("box", "quantile", "mean", "variance", "pdf at points", "cdf at points", "pdf band", "cdf band")


def calibration() -> str:
    """Picture of the half *judge*, pooled coverage of every question for both halves, then every kind of data."""
    rows = [row for row in read_csv("calibration") if row["n"] == "all" and row["level"] == "0.95"]
    if not rows:
        return "## Calibration of the posterior in one column\n\n*not measured yet*\n"
    cells = sorted({(int(row["n"]), float(row["epsilon"])) for row in read_csv("calibration") if row["n"] != "all"})
    budgets = ", ".join(f"({n}, {epsilon:g})" for n, epsilon in cells)
    judge = [row for row in rows if row["half"] == "judge"]
    return (
        "## Calibration of the posterior in one column\n\n"
        "Share of the 95% intervals that hold the truth, over simulated releases of made columns at (n, epsilon) = "
        f"{budgets}. *Least* is the kind of data with the lowest [coverage](glossary.md#coverage); it rests on few "
        "releases. *Length* is that of the interval over that of the usual interval for the population without privacy "
        "(median). Nothing was tuned on the half *judge*.\n\n"
        f"![coverage of every question, pooled and by kind of data]({_picture(judge)})\n\n"
        + markdown([shown for half in ("judge", "tune") for shown in _half(rows, half)])
        + "\nBy kind of data, half *judge*; in brackets the number of intervals of that question. An honest 95% falls "
        "below 90% by chance once in 13 with 20 intervals that stand alone, and once in 900 with 200.\n\n"
        + markdown(_by_kind(judge))
        + _order()
    )


WORSE = 1.05


def _order() -> str:
    """Whether more epsilon or more records make errors worse, from the same releases."""
    rows = [row for row in read_csv("calibration_order") if row["half"] == "judge" and row.get("chance")]
    if not rows:
        return ""
    shown, worst = [], []
    for more in ("epsilon", "n"):
        for metric, name in (("hellinger", "Hellinger"), ("w1", "W1")):
            own = [row for row in rows if (row["more"], row["metric"]) == (more, metric)]
            if not own:
                continue
            logs = [(math.log(float(row["ratio"])), float(row["chance"])) for row in own]
            over = [row for row in own if float(row["ratio"]) > WORSE]
            sure = sum(log - 2 * chance > math.log(WORSE) for log, chance in logs)
            pairs = sum(int(row["pairs"]) for row in own)
            mean = sum(int(row["pairs"]) * log for row, (log, _) in zip(own, logs, strict=True)) / pairs
            shown.append(
                {
                    "more": "records" if more == "n" else more,
                    "error": name,
                    "pairs of releases": pairs,
                    "ratio": f"{math.exp(mean):.2f}",
                    "comparisons": len(own),
                    "worse by 5%": len(over),
                    "of them beyond two errors of chance": sure,
                }
            )
            worst += [(float(row["ratio"]), row) for row in over]
    listed = "; ".join(
        f"{row['kind']}, more {'records' if row['more'] == 'n' else 'epsilon'} "
        f"from ({row['n']}, {float(row['epsilon']):g}), "
        f"{row['metric']}: {ratio:.2f} ± {2 * ratio * float(row['chance']):.2f} ({row['pairs']} pairs)"
        for ratio, row in sorted(worst, key=lambda pair: -pair[0])
    )
    return (
        "\n## More epsilon, more records\n\n"
        "Error with the next larger epsilon (of 0.1, 0.3, 1, 3), or with ten times the records, over that without; "
        "pairs share their records. One comparison is one kind of data at one (n, epsilon).\n\n"
        + markdown(shown)
        + (f"\nWorse by more than 5%: {listed}.\n" if listed else "\nNone is worse by more than 5%.\n")
    )


def _by_kind(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Coverage of the main questions for each kind of data."""
    shown = []
    for kind in sorted({row["kind"] for row in rows} - {"all"}):
        own = {(row["target"], row["question"]): row for row in rows if row["kind"] == kind}
        line: dict[str, Any] = {"kind": kind, "releases": own["population", "mean"]["releases"]}
        for target in ("population", "records"):
            for question in ("box", "quantile", "mean", "variance"):
                row = own[target, question]
                line[f"{question}, {target}"] = f"{float(row['coverage']):.2f} ({row['intervals']})"
        shown.append(line)
    return shown


def _picture(rows: list[dict[str, str]]) -> str:
    """Pooled coverage with two errors of chance, and a dot per kind of data, for both targets."""
    plt = plots()
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    places = [(t, q) for t in ("population", "records") for q in QUESTIONS]
    places = [place for place in places if any((row["target"], row["question"]) == place for row in rows)]
    for y, (target, question) in enumerate(places):
        own = [row for row in rows if (row["target"], row["question"]) == (target, question)]
        kinds = [float(row["coverage"]) for row in own if row["kind"] != "all"]
        (pooled,) = (row for row in own if row["kind"] == "all")
        coverage = float(pooled["coverage"])
        chance = 2 * math.sqrt(max(coverage * (1 - coverage), 1e-9) / int(pooled["releases"]))
        axes.plot(kinds, [y] * len(kinds), "o", color="#a8c5da", markersize=4, zorder=1)
        axes.errorbar(coverage, y, xerr=chance, fmt="o", color="#1d3557", markersize=6, capsize=3, zorder=2)
    axes.axvspan(0.93, 0.97, color="#eef4f8", zorder=0)
    axes.axvline(0.95, color="#c1121f", linewidth=1, zorder=0)
    axes.set_yticks(range(len(places)), [f"{question}, {target}" for target, question in places])
    axes.invert_yaxis()
    axes.set_xlim(right=1.005)
    axes.set_xlabel("share of 95% intervals that hold the truth (light: each kind of data; band: 93 to 97%)")
    axes.spines[["top", "right"]].set_visible(False)
    return saved(figure, "calibration")


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
