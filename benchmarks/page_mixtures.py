"""The parts of docs/benchmarks/mixtures.md on Gaussian mixtures: ordinary data here, the others beside."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from common import markdown, read_csv
from page_mixtures_routes import routes
from page_mixtures_separated import few_and_near, learner, phase, separated
from page_tools import Cells, grouped, median_of, plots, saved

__all__ = ["mixture_sections"]

COLOURS = {"2": "#1b6a97", "5": "#b8600b", "10": "#5b8c3a"}


def mixture_sections() -> str:
    """Everything on Gaussian mixtures; parts that were not measured say so."""
    return "\n".join([_ordinary(), _speed(), learner(), separated(), routes(), few_and_near(), phase()])


# -- ordinary data -----------------------------------------------------------------------------------------------


def _target(n: str, d: str, k: str) -> float | None:
    """Largest gap that was asked for at epsilon 1, in nats per record."""
    if int(k) > 5:
        return None
    return {"10000": 0.06 if int(d) > 5 else 0.015, "100000": 0.005}.get(n)


def _ordinary() -> str:
    title = "## Gaussian mixtures: ordinary data\n\n"
    rows = read_csv("mixtures_ordinary")
    if not rows:
        return title + "*not measured yet*\n"
    cells = grouped(rows, "n", "d", "k", "epsilon", "method", "separation")
    return (
        title
        + "The *gap* is the log likelihood per record, on records that were held out, that `PrivateGaussianMixture` "
        "(method `sketch`, number of components given) loses against scikit-learn's GaussianMixture with five starts "
        "on the same records; in nats, median over the seeds, delta 1e-6. Standard deviations within a component lie "
        "between 0.5 and 1, means are 3, 4.5 or 6 times the largest of them apart, and the public ball has radius 25. "
        "The contenders are sample-aggregate and DP-EM, a private expectation maximisation which starts at random and "
        "whose noise is scaled to the public radius; they have the same records, budget and ball. "
        + _verdicts(cells)
        + "\n\n"
        f"![gap by number of records, and beside the contenders]({_plot_ordinary(cells)})\n\n"
        + markdown(_ordinary_table(cells))
        + "\nOther budgets, means 4.5 apart:\n\n"
        + markdown(_budget_table(cells))
    )


def _verdicts(cells: Cells) -> str:
    """How many targets are met, and whether the contenders are beaten."""
    ours = {key: median_of(rows, "gap") for key, rows in cells.items() if key[4] == "sketch"}
    aimed = [(gap, _target(*key[:3])) for key, gap in ours.items() if key[3] == "1.0"]
    met = [gap <= target for gap, target in aimed if target is not None]
    rivals, lost = 0, []
    for key, rows in cells.items():
        if key[4] != "sketch":
            seeds = {row["seed"] for row in rows}
            same = [row for row in cells[*key[:4], "sketch", key[5]] if row["seed"] in seeds]
            gaps = median_of(same, "gap"), median_of(rows, "gap")
            rivals += 1
            if gaps[0] >= gaps[1]:
                n, d, k, epsilon, method, apart = key
                where = f"n = {n}, d = {d}, k = {k}, epsilon {float(epsilon):g}, {float(apart):g} apart"
                lost.append(f"{where}: {gaps[0]:.5f} against {gaps[1]:.5f} of {method}")
    return (
        f"The targets at epsilon 1 and up to five components are met in **{sum(met)} of {len(met)}** cells. The gap is "
        f"below that of the contender in **{rivals - len(lost)} of {rivals}** comparisons"
        + (f". It is not at {'; '.join(lost)}." if lost else ".")
    )


def _three(cells: Cells, n: str, d: str, k: str, epsilon: str, method: str) -> str:
    """Gaps at the three separations."""
    gaps = [median_of(cells.get((n, d, k, epsilon, method, apart), []), "gap") for apart in ("3.0", "4.5", "6.0")]
    return " / ".join("–" if math.isnan(gap) else f"{gap:.4f}" if gap < 0.1 else f"{gap:.2f}" for gap in gaps)


def _ordinary_table(cells: Cells) -> list[dict[str, Any]]:
    shown = []
    for n, d, k in sorted({key[:3] for key in cells if key[3] == "1.0"}, key=lambda key: tuple(map(int, key))):
        target = _target(n, d, k)
        aparts = [key for key in cells if (*key[:3], key[3], key[4]) == (n, d, k, "1.0", "sketch")]
        worst = max(median_of(cells[key], "gap") for key in aparts)
        seconds = [median_of(cells[key], "seconds") for key in aparts]
        plain = [median_of(cells[key], "reference_seconds") for key in aparts]
        shown.append(
            {
                "n": n,
                "d": d,
                "k": k,
                "**sketch**, means 3 / 4.5 / 6 apart": _three(cells, n, d, k, "1.0", "sketch"),
                "target": "" if target is None else f"{target:g}" + ("" if worst <= target else " **missed**"),
                "sample-aggregate": _three(cells, n, d, k, "1.0", "sample-aggregate"),
                "DP-EM": _three(cells, n, d, k, "1.0", "dp_em"),
                "CPU s": f"{median(seconds):.1f}",
                "scikit-learn's": f"{median(plain):.1f}",
            }
        )
    return shown


def _budget_table(cells: Cells) -> list[dict[str, Any]]:
    shown = []
    for n, d, k in sorted({key[:3] for key in cells if key[3] != "1.0"}, key=lambda key: tuple(map(int, key))):
        line: dict[str, Any] = {"n": n, "d": d, "k": k}
        for epsilon in ("0.5", "1.0", "3.0"):
            gap = median_of(cells.get((n, d, k, epsilon, "sketch", "4.5"), []), "gap")
            line[f"epsilon {float(epsilon):g}"] = "–" if math.isnan(gap) else f"{gap:.4f}"
        shown.append(line)
    return shown


def _plot_ordinary(cells: Cells) -> str:
    plt = plots()
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.7), sharey=True)
    styles = {"3": "o--", "5": "o-", "10": "s:"}
    for k, style in styles.items():
        for d, colour in COLOURS.items():
            points = [
                (int(n), median_of(cells.get((n, d, k, "1.0", "sketch", "4.5"), []), "gap"))
                for n in ("10000", "100000", "1000000")
            ]
            axes[0].plot(*_positive(points), style, color=colour, markersize=4, label=f"d = {d}, k = {k}")
    for n, style in (("10000", "o-"), ("100000", "s--")):
        for method, colour in (("sketch", "#1b6a97"), ("sample-aggregate", "#7a7a7a"), ("dp_em", "#b8600b")):
            points = [(int(d), median_of(cells.get((n, d, "5", "1.0", method, "4.5"), []), "gap")) for d in COLOURS]
            axes[1].plot(*_positive(points), style, color=colour, markersize=4, label=f"{method}, n = {n}")
    axes[0].plot([1e4, 1e4, 1e5], [0.015, 0.06, 0.005], "k_", markersize=14, label="targets, k up to 5")
    axes[0].set_xscale("log")
    axes[0].set_yscale("log")
    axes[0].set_xlabel("records")
    axes[0].set_ylabel("gap to scikit-learn, nats per record")
    axes[1].set_xlabel("columns (k = 5)")
    for axis, place in zip(axes, ("upper right", (0.02, 0.58)), strict=True):  # the second below its rivals
        axis.legend(frameon=False, fontsize=6.5, ncol=2, loc=place)
    figure.tight_layout()
    return saved(figure, "mixtures_ordinary")


def _positive(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    """Points for a logarithmic axis; a gap of nothing, or a gain, is drawn at the bottom."""
    seen = [(x, max(y, 1e-5)) for x, y in points if not math.isnan(y)]
    return [x for x, _ in seen], [y for _, y in seen]


def _speed() -> str:
    rows = read_csv("mixtures_speed")
    if not rows:
        return "### Time\n\n*not measured yet*\n"
    shown = [
        {
            "n": row["n"],
            "d": row["d"],
            "k": row["k"],
            "scikit-learn, CPU s": f"{float(row['scikit_learn']):.2f}",
            "sketch, CPU s": f"{float(row['sketch']):.2f}",
            "ratio": f"{float(row['ratio']):.2f}",
        }
        for row in rows
    ]
    return (
        "### Time\n\nOne start of scikit-learn's GaussianMixture against a private fit in the same run, one thread; "
        f"the target is a ratio of at most 10, the largest is **{max(float(row['ratio']) for row in rows):.1f}**.\n\n"
        + markdown(shown)
    )


if __name__ == "__main__":
    print(mixture_sections())
