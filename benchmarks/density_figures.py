"""Figures of the density benchmark: ratios to the best fixed baseline, to the best in hindsight, to no privacy.

A *fixed* baseline is one family at one resolution and reading for all sets of a half at one (n, epsilon): the choice
with the least geometric mean, for each metric by itself. That is more than anybody could choose in private. *Hindsight*
takes the best variant of the best family for each set alone.
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

OWN_FAMILIES = ("limit", "smoother", "fourier", "hindsight")
"""Rows of the table that are no competing baseline."""

Key = tuple[str, int, float]
"""Set, number of records, epsilon."""


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


def floored(metric: str, value: float, n: int) -> float:
    """Error, or the least that counts.

    On a set with all its records in one cell a lucky answer has no error at all, and a geometric mean must not live on
    that. The Hellinger distance and the squared error count from the sampling error of a coin, the simplest
    distribution that is not certain: 1/sqrt(8 n) and, for a fair one, 1/n.
    """
    coin = {"hellinger": 1.0 / math.sqrt(8.0 * n), "squared": 1.0 / n}
    return max(value, coin.get(metric, FLOORS.get(metric, 0.0)))


def geometric_mean(values: Iterable[float]) -> float:
    """Geometric mean; nan of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def family_table(rows: Sequence[Errors]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Reduce all variants to families.

    Returns
    -------
    cells : list of dict
        For each set, n, epsilon and family: the errors of the family's best fixed variant of each metric. The family
        "hindsight" has the least error of all private variants.
    chosen : list of dict
        For each half, n, epsilon, metric and family: the variant and its geometric mean over the sets.
    """
    groups: dict[tuple[str, int, float], dict[str, dict[str, dict[str, float]]]] = defaultdict(dict)
    for row in rows:
        groups[row.half, row.n, row.epsilon].setdefault(row.method, {})[row.name] = row.values
    cells: list[dict[str, Any]] = []
    chosen: list[dict[str, Any]] = []
    for (half, n, epsilon), methods in sorted(groups.items()):
        sets = sorted(set.intersection(*(set(values) for values in methods.values())))
        families: dict[str, list[str]] = defaultdict(list)
        for method in methods:
            families[method.partition("@")[0]].append(method)
        place = {"half": half, "n": n, "epsilon": epsilon}
        table: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for family, members in sorted(families.items()):
            for metric in METRICS:
                known = [m for m in members if all(metric in methods[m][name] for name in sets)]
                if not known:
                    continue
                means = {
                    m: geometric_mean(floored(metric, methods[m][name][metric], n) for name in sets) for m in known
                }
                best = min(means, key=lambda m: (means[m], m))
                variant = best.partition("@")[2]
                chosen.append({**place, "metric": metric, "family": family, "variant": variant, "mean": means[best]})
                for name in sets:
                    table[name, family][metric] = methods[best][name][metric]
                    if family not in OWN_FAMILIES:
                        least = min(methods[m][name][metric] for m in known)
                        before = table[name, "hindsight"].get(metric, math.inf)
                        table[name, "hindsight"][metric] = min(before, least)
        for (name, family), values in sorted(table.items()):
            errors = {metric: values.get(metric, math.nan) for metric in METRICS}
            cells.append({"half": half, "set": name, "n": n, "epsilon": epsilon, "family": family, **errors})
    return cells, chosen


def ratio_rows(errors: Sequence[Errors], table: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
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
    stored: dict[Key, dict[str, dict[str, float]]] = defaultdict(dict)
    for cell in table:
        stored[cell["set"], cell["n"], cell["epsilon"]][cell["family"]] = cell
    rows = []
    for (n, epsilon), group in _by_budget(errors).items():
        known = [row for row in group if row.key in stored]
        families = sorted({f for row in known for f in stored[row.key]} - set(OWN_FAMILIES))
        for metric in METRICS:
            used = [row for row in known if metric in row.values]
            means = {
                family: geometric_mean(floored(metric, float(stored[row.key][family][metric]), n) for row in used)
                for family in families
                if used and all(not math.isnan(float(stored[row.key][family][metric])) for row in used)
            }
            if not means:
                continue
            best = min(means, key=lambda family: (means[family], family))
            for row in used:
                value, beside = floored(metric, row.values[metric], n), stored[row.key]
                ratios = {
                    label: value / floored(metric, float(beside[family][metric]), n)
                    for label, family in (("fixed", best), ("hindsight", "hindsight"), ("limit", "limit"))
                    if family in beside
                }
                place = {"set": row.name, "n": n, "epsilon": epsilon, "metric": metric}
                rows.append({**place, "value": row.values[metric], "baseline": best, **ratios})
    return rows


def _by_budget(errors: Sequence[Errors]) -> dict[tuple[int, float], list[Errors]]:
    groups: dict[tuple[int, float], list[Errors]] = defaultdict(list)
    for row in errors:
        groups[row.n, row.epsilon].append(row)
    return dict(sorted(groups.items()))


def show_ratios(rows: Sequence[dict[str, Any]], title: str, metrics: Sequence[str] = METRICS) -> str:
    """Table of geometric means per (n, epsilon) and pooled, worst cells, and the ratio to no privacy."""
    metrics = [metric for metric in metrics if any(row["metric"] == metric for row in rows)]
    lines = [f"{title}: geometric mean of error / best fixed baseline (best of each set in hindsight)"]
    lines.append(f"{'n':>7} {'eps':>5}  " + "".join(f"{metric:>24}" for metric in metrics))
    budgets = sorted({(row["n"], row["epsilon"]) for row in rows})
    for budget in [*budgets, None]:
        text = f"{'pooled':>13}  " if budget is None else f"{budget[0]:>7} {budget[1]:>5g}  "
        for metric in metrics:
            used = [r for r in rows if r["metric"] == metric and budget in (None, (r["n"], r["epsilon"]))]
            fixed, best = (geometric_mean(row[label] for row in used) for label in ("fixed", "hindsight"))
            family = "" if budget is None else used[0]["baseline"]
            text += f"{family:>10} {fixed:5.2f} ({best:5.2f})"
        lines.append(text)
    for metric in metrics:
        used = [row for row in rows if row["metric"] == metric]
        worst = sorted(used, key=lambda row: -row["fixed"])[:3]
        cells = "; ".join(f"{r['fixed']:.2f} {r['set']} ({r['n']}, {r['epsilon']:g})" for r in worst)
        within = sum(row["fixed"] <= 1.05 for row in used) / len(used)
        lines.append(f"{metric}: within 1.05 in {within:.0%} of cells; worst {cells}")
        many = [row["limit"] for row in used if row["n"] * row["epsilon"] >= 1e4 and "limit" in row]
        if many:
            lines.append(
                f"{metric}: over no privacy at n*epsilon >= 10^4: {geometric_mean(many):.2f}, worst {max(many):.2f}"
            )
    return "\n".join(lines)
