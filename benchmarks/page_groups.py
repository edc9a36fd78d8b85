"""The parts of docs/benchmarks/groups.md on groups and on private bounds."""

from __future__ import annotations

from common import RESULTS, markdown, number, read_csv

__all__ = ["bounds", "comparison"]

LEVEL = 0.05


def comparison() -> str:
    """Level and power of the test of difference between two groups."""
    rows = read_csv("comparison")
    by_pair: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        by_pair.setdefault((row["first"], row["second"]), {})[f"{row['n']} and {row['m']}"] = row["told_apart"]
    shown = [
        {"groups": _title(*pair), **{size: number(share) for size, share in shares.items()}}
        for pair, shares in by_pair.items()
    ]
    text = (
        "## Groups: do two shapes differ\n\nShare of runs in which the test of two released densities, at epsilon 1 "
        f"and delta 1e-6 each, tells the groups apart at [level](glossary.md#level) {LEVEL}. Where both groups are the "
        "same, the share should be "
        "at most about that level.\n\n"
    )
    if rows:
        _plot(by_pair)
        text += "![shares of runs in which two groups are told apart](benchmarks/comparison.svg)\n\n"
    return text + markdown(shown)


def bounds() -> str:
    """What private ranges hold."""
    shown = [
        {
            "column": row["column"],
            "n": row["n"],
            "runs": row["runs"],
            "no range": row["no_range"],
            "held, median": number(row["median_held"]),
            "held, least": number(row["least_held"]),
            "width": number(row["median_width"]),
        }
        for row in read_csv("bounds")
    ]
    return (
        "## Private bounds\n\nShare of the records within a range that was found privately at epsilon 1 and delta "
        "1e-6: in the median run, and in the worst one. The last column is the width of the range over that of the "
        "middle 99% of the records (median).\n\n"
    ) + markdown(shown)


def _title(first: str, second: str) -> str:
    return f"the same: {first}" if first == second else f"{first} / {second.removeprefix(first).lstrip(', ')}"


def _plot(by_pair: dict[tuple[str, str], dict[str, str]]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "fogline"
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 3.6))
    sizes = list(next(iter(by_pair.values())))
    for size, marker, colour in zip(sizes, "o^s", ("#1b6a97", "#b8600b", "#2e7d32"), strict=True):
        shares = [float(shares[size]) for shares in by_pair.values()]
        axis.plot(shares, range(len(by_pair)), marker, color=colour, label=size, alpha=0.8)
    axis.axvline(LEVEL, color="black", linewidth=0.8)
    axis.set_yticks(range(len(by_pair)), [_title(*pair) for pair in by_pair])
    axis.invert_yaxis()
    axis.set_xlabel("share of runs in which the groups are told apart")
    axis.legend(title="records", frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "comparison.svg", metadata={"Date": None})
    plt.close(figure)
