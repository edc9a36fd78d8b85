"""Figures of the density benchmark: ratios to the best fixed baseline, to the best in hindsight, to no privacy.

A *fixed* baseline is one family at one resolution and reading for all sets of a half at one (n, epsilon): the choice
with the least geometric mean, for each metric by itself. That is more than anybody could choose in private. *Hindsight*
takes the best variant of the best family for each set alone.

The floors were set after the baselines had been seen on both halves, and before any figure of fogline's posterior:
without them one lucky baseline on one set without variation ruled the means.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "FLOORS",
    "METRICS",
    "Errors",
    "Key",
    "family_table",
    "floored",
    "geometric_mean",
    "ratio_rows",
    "show_ratios",
]

METRICS = ("hellinger", "w1", "prefix", "boxes", "squared", "rank")
FLOORS = {"w1": 0.01, "prefix": 0.02, "boxes": 0.01, "rank": 0.01}
"""In percent: errors below these count as these. They are below half of a neutral cell, or a rank in ten thousand."""
SAMPLING_SHARE = 0.5
"""Errors below this share of the sampling error of their set count as that share of it."""

NOT_BASELINES = ("limit", "smoother", "fourier", "fogline", "hindsight")
"""Families of the table that do not compete for the best fixed baseline."""

Key = tuple[str, int, float]
"""Set, number of records, epsilon."""
Cell = dict[str, Any]


@dataclass(frozen=True)
class Errors:
    """Mean errors of one method in one cell."""

    half: str
    name: str
    n: int
    epsilon: float
    method: str
    values: dict[str, float]

    @property
    def key(self) -> Key:
        """Set, number of records, epsilon."""
        return self.name, self.n, self.epsilon

    @property
    def family(self) -> str:
        """Method without its variant."""
        return self.method.partition("@")[0]


def floored(metric: str, value: float, n: int, limit: float = 0.0) -> float:
    """Error, or the least that counts.

    On a set with all its records in one cell, or with its mass spread evenly, a lucky answer has no error at all, and a
    geometric mean must not live on that. Errors count from half of what the empirical distribution itself has
    (`limit`); the Hellinger distance and the squared error at least from the sampling error of a coin, the simplest
    distribution that is not certain: 1/sqrt(8 n) and, for a fair one, 1/n.
    """
    coin = {"hellinger": 1.0 / math.sqrt(8.0 * n), "squared": 1.0 / n}
    return max(value, coin.get(metric, FLOORS.get(metric, 0.0)), SAMPLING_SHARE * limit)


def geometric_mean(values: Iterable[float]) -> float:
    """Geometric mean; nan of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def _by_budget(errors: Sequence[Errors]) -> dict[tuple[int, float], list[Errors]]:
    groups: dict[tuple[int, float], list[Errors]] = defaultdict(list)
    for row in errors:
        groups[row.n, row.epsilon].append(row)
    return dict(sorted(groups.items()))


# -- from all variants to families ----------------------------------------------------------------------------------


def family_table(rows: Sequence[Errors]) -> tuple[list[Cell], list[Cell]]:
    """Reduce all variants to families.

    Returns
    -------
    cells : list of dict
        For each set, n, epsilon and family: the errors of the family's best fixed variant of each metric. The family
        "hindsight" has the least error of all private variants.
    chosen : list of dict
        For each half, n, epsilon, metric and family: the variant and its geometric mean over the sets.
    """
    cells: list[Cell] = []
    chosen: list[Cell] = []
    for half in sorted({row.half for row in rows}):
        for (n, epsilon), group in _by_budget([row for row in rows if row.half == half]).items():
            place = {"half": half, "n": n, "epsilon": epsilon}
            limits = {row.name: row.values for row in group if row.family == "limit"}
            table: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
            for family in sorted({row.family for row in group}):
                members = [row for row in group if row.family == family]
                for metric in METRICS:
                    choice = _best_variant(members, metric, limits)
                    if choice is not None:
                        name = members[0].family
                        chosen.append(
                            {**place, "metric": metric, "family": name, "variant": choice[0], "mean": choice[1]}
                        )
                        _fill(table, members, metric, choice[0])
            for (name, family), values in sorted(table.items()):
                errors = {metric: values.get(metric, math.nan) for metric in METRICS}
                cells.append({"half": half, "set": name, "n": n, "epsilon": epsilon, "family": family, **errors})
    return cells, chosen


def _best_variant(
    members: Sequence[Errors], metric: str, limits: dict[str, dict[str, float]]
) -> tuple[str, float] | None:
    """Variant of one family with the least geometric mean over the sets."""
    variants: dict[str, list[float]] = defaultdict(list)
    for row in members:
        if metric in row.values:
            limit = limits.get(row.name, {}).get(metric, 0.0)
            variants[row.method.partition("@")[2]].append(floored(metric, row.values[metric], row.n, limit))
    if not variants:
        return None
    means = {variant: geometric_mean(values) for variant, values in variants.items()}
    best = min(means, key=lambda variant: (means[variant], variant))
    return best, means[best]


def _fill(table: dict[tuple[str, str], dict[str, float]], members: Sequence[Errors], metric: str, variant: str) -> None:
    """Write the errors of the variant, and the least of all into the row of hindsight."""
    for row in members:
        value = row.values[metric]
        if row.method.partition("@")[2] == variant:
            table[row.name, row.family][metric] = value
        if row.family not in NOT_BASELINES:
            least = table[row.name, "hindsight"]
            least[metric] = min(least.get(metric, math.inf), value)


# -- one method against the table -----------------------------------------------------------------------------------


def ratio_rows(errors: Sequence[Errors], table: Sequence[Cell]) -> list[Cell]:
    """Compare one method with the stored baselines in each cell.

    Parameters
    ----------
    errors : sequence of Errors
        Of one method.
    table : sequence of dict
        Cells of `family_table`.

    Returns
    -------
    list of dict
        Per set, n, epsilon and metric: the value, its ratio to the best fixed baseline, to hindsight and to the limit.
    """
    stored: dict[Key, dict[str, Cell]] = defaultdict(dict)
    for cell in table:
        stored[cell["set"], cell["n"], cell["epsilon"]][cell["family"]] = cell
    rows = []
    for group in _by_budget(errors).values():
        known = [row for row in group if row.key in stored]
        for metric in METRICS:
            used = [row for row in known if metric in row.values]
            best = _best_family(used, metric, stored)
            rows += [_ratios(row, metric, best, stored[row.key]) for row in used if best]
    return rows


def _counted(metric: str, row: Errors, beside: dict[str, Cell], family: str | None = None) -> float:
    """Error of the row, or of a stored family in its cell, as far as it counts."""
    value = row.values[metric] if family is None else float(beside[family][metric])
    return floored(metric, value, row.n, float(beside["limit"][metric]) if "limit" in beside else 0.0)


def _best_family(used: Sequence[Errors], metric: str, stored: dict[Key, dict[str, Cell]]) -> str:
    """Baseline with the least geometric mean over these sets; its variant was chosen over the whole half."""
    families = sorted({family for row in used for family in stored[row.key]} - {*NOT_BASELINES})
    means = {}
    for family in families:
        cells = [stored[row.key].get(family, {}).get(metric, math.nan) for row in used]
        if not any(math.isnan(value) for value in cells):
            means[family] = geometric_mean(_counted(metric, row, stored[row.key], family) for row in used)
    return min(means, key=lambda family: (means[family], family), default="")


def _ratios(row: Errors, metric: str, best: str, beside: dict[str, Cell]) -> Cell:
    value = _counted(metric, row, beside)
    ratios = {
        label: value / _counted(metric, row, beside, family)
        for label, family in (("fixed", best), ("hindsight", "hindsight"), ("limit", "limit"))
        if family in beside
    }
    place = {"set": row.name, "n": row.n, "epsilon": row.epsilon, "metric": metric}
    return {**place, "value": row.values[metric], "baseline": best, **ratios}


def show_ratios(rows: Sequence[Cell], title: str, metrics: Sequence[str] = METRICS) -> str:
    """Table of geometric means per (n, epsilon) and pooled, worst cells, and the ratio to no privacy."""
    metrics = [metric for metric in metrics if any(row["metric"] == metric for row in rows)]
    lines = [f"{title}: geometric mean of error / best fixed baseline (best of each set in hindsight)"]
    lines.append(f"{'n':>7} {'eps':>5}  " + "".join(f"{metric:>28}" for metric in metrics))
    for budget in [*sorted({(row["n"], row["epsilon"]) for row in rows}), None]:
        text = f"{'pooled':>13}  " if budget is None else f"{budget[0]:>7} {budget[1]:>5g}  "
        for metric in metrics:
            used = [row for row in rows if row["metric"] == metric and budget in (None, (row["n"], row["epsilon"]))]
            fixed, best = (geometric_mean(row[label] for row in used) for label in ("fixed", "hindsight"))
            text += f"{'' if budget is None else used[0]['baseline']:>14} {fixed:5.2f} ({best:5.2f})"
        lines.append(text)
    for metric in metrics:
        lines += _worst([row for row in rows if row["metric"] == metric], metric)
    return "\n".join(lines)


def _worst(used: Sequence[Cell], metric: str) -> list[str]:
    worst = sorted(used, key=lambda row: -row["fixed"])[:4]
    cells = "; ".join(f"{row['fixed']:.2f} {row['set']} ({row['n']}, {row['epsilon']:g})" for row in worst)
    within = sum(row["fixed"] <= 1.05 for row in used) / len(used)
    lines = [f"{metric}: within 1.05 in {within:.0%} of cells; worst {cells}"]
    many = [row["limit"] for row in used if row["n"] * row["epsilon"] >= 1e4 and "limit" in row]
    if many:
        lines.append(f"  over no privacy at n*epsilon >= 10^4: {geometric_mean(many):.2f}, worst {max(many):.2f}")
    return lines
