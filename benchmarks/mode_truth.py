"""Are reported modes true: false modes where there is none, coverage of 95% intervals, and the share that is found.

Kinds of columns and pairs of columns with a known density (``mode_kinds.py``), in two halves: "tune" may be looked at
while the search is made, "judge" only to report, and so are kinds that are "new". A mode is false where it lies further
than the kind's tolerance from every true one, unless its interval holds a true one; an interval covers where the true
mode lies within 1.96 standard errors (two columns: in the 95% ellipse). Releases go through the public interface with
seeded noise. Writes a CSV in docs/benchmarks: one row per kind, n and epsilon, per kind, per group, and pooled.

    python benchmarks/mode_truth.py --half judge --runs 50                    one process
    python benchmarks/mode_truth.py --half tune --runs 5 --csv "" --settings 1000:1
    python benchmarks/mode_truth.py --runs 10 --first 0 --raw a.jsonl         a part, one line per fit
    python benchmarks/mode_truth.py --pool a.jsonl b.jsonl                    the CSV of parts that were run before
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from common import write_csv
from fogline import PrivateModes
from fogline.testing import seeded_noise
from fogline_research.datasets.columns import generator
from mode_kinds import KINDS
from page_tools import plots, saved

__all__ = ["SETTINGS", "Outcome", "judge_fit", "pooled_rows"]

SETTINGS = ((500, 5.0), (1000, 1.0), (5000, 0.3), (10_000, 1.0), (50_000, 0.1), (200_000, 1.0))
"""Numbers of records and epsilons."""

DELTA = 1e-6


@dataclass(frozen=True)
class Outcome:
    """One fit: whether a mode was false, how many true ones there are, were found and are covered, squared errors.

    `wide` counts modes that are near no true one but whose interval holds one; `squared` adds up squared errors in
    units of the tolerance, `stated` the squared standard errors in the same units.
    """

    kind: str
    n: int
    epsilon: float
    false: bool
    modes: int
    found: int
    wide: int
    covered: int
    squared: float
    stated: float
    seconds: float
    features: str = "leaves"
    run: int = 0


def judge_fit(name: str, n: int, epsilon: float, run: int, features: str = "leaves", seed: int = 0) -> Outcome:
    """Draw records, fit, and compare with the truth."""
    kind = KINDS[name]
    records = kind.draw(n, generator("mode truth", seed, name, n, run))
    model = PrivateModes(
        epsilon=epsilon, delta=None if features == "leaves" else DELTA, bounds=kind.bounds, features=features,
        steps=None if kind.steps is None else list(kind.steps),
    )  # fmt: skip
    start = time.process_time()
    with seeded_noise(1_000_003 * seed + run + 1):
        model.fit(records)
    seconds = time.process_time() - start
    taken: set[int] = set()
    covered, squared, stated = 0, 0.0, 0.0
    limit = stats.chi2(len(kind.bounds)).ppf(0.95)

    def apart(i: int, mode: Any) -> float:
        offset = model.modes_[i] - mode
        return float(offset @ np.linalg.solve(model.covariances_[i], offset))

    for mode in kind.modes:
        offset = model.modes_ - mode
        near = [i for i in range(len(offset)) if i not in taken and np.all(np.abs(offset[i]) <= kind.tolerance)]
        if not near:
            continue
        best = min(near, key=lambda i: float(np.sum((offset[i] / kind.tolerance) ** 2)))
        taken.add(best)
        covered += int(apart(best, mode) <= limit)
        squared += float(np.sum((offset[best] / kind.tolerance) ** 2))
        stated += float(np.sum((model.standard_errors_[best] / kind.tolerance) ** 2))
    others = [i for i in range(len(model.modes_)) if i not in taken]
    wide = sum(any(apart(i, mode) <= limit for mode in kind.modes) for i in others)
    false = len(others) > wide
    return Outcome(
        name, n, epsilon, bool(false), len(kind.modes), len(taken), wide, covered, squared, stated, seconds, features,
        run,
    )  # fmt: skip


def pooled_rows(outcomes: Sequence[Outcome], features: str) -> Iterator[dict[str, Any]]:
    """Rows of the CSV: by kind and setting, by kind, by setting, by group of kinds, and by half."""
    groups: dict[tuple[str, ...], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        kind = KINDS[one.kind]
        there = "with a mode" if one.modes else "without a mode"
        setting = str(one.n), f"{one.epsilon:g}"
        for key in (
            ("all", "all", "all", "all"), ("all", "all", *setting), (kind.group, "all", "all", "all"),
            (kind.group, one.kind, "all", "all"), (kind.group, one.kind, *setting),
        ):  # fmt: skip
            groups[kind.half, there, *key].append(one)
    for (half, there, group, kind_name, n, epsilon), some in sorted(groups.items()):
        modes, found = sum(one.modes for one in some), sum(one.found for one in some)
        yield {
            "features": features, "half": half, "truth": there, "group": group, "kind": kind_name, "n": n,
            "epsilon": epsilon, "fits": len(some), "false": sum(one.false for one in some) / len(some),
            "found": found / modes if modes else "", "wide": sum(one.wide for one in some),
            "coverage": sum(o.covered for o in some) / found if found else "",
            "rms_error": (sum(one.squared for one in some) / found) ** 0.5 if found else "",
            "rms_stated": (sum(one.stated for one in some) / found) ** 0.5 if found else "",
            "seconds": sum(one.seconds for one in some) / len(some),
        }  # fmt: skip


def paired_rows(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    """Squared errors of leaves over those of Fourier sums on the same records, where both found the same modes.

    Per kind and setting, then geometric means of these ratios per kind, per group and over all.
    """
    by_fit: dict[tuple[str, int, float, int], dict[str, Outcome]] = defaultdict(dict)
    for one in outcomes:
        by_fit[one.kind, one.n, one.epsilon, one.run][one.features] = one
    cells: dict[tuple[str, int, float], list[tuple[Outcome, Outcome]]] = defaultdict(list)
    for (kind, n, epsilon, _), both in by_fit.items():
        if (
            len(both) == len({"leaves", "grid"})
            and both["leaves"].found == both["grid"].found == both["grid"].modes > 0
        ):
            cells[kind, n, epsilon].append((both["leaves"], both["grid"]))
    ratios: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (kind, n, epsilon), pairs in sorted(cells.items()):
        modes = sum(leaf.found for leaf, _ in pairs)
        leaf, grid = sum(leaf.squared for leaf, _ in pairs), sum(grid.squared for _, grid in pairs)
        group, half = KINDS[kind].group, KINDS[kind].half
        for key in ((half, group, kind), (half, group, "all"), (half, "all", "all")):
            ratios[key].append(leaf / grid)
        yield {
            "half": half, "group": group, "kind": kind, "n": n, "epsilon": epsilon, "pairs": len(pairs),
            "mse_ratio": leaf / grid, "coverage_leaves": sum(leaf.covered for leaf, _ in pairs) / modes,
            "coverage_fourier": sum(grid.covered for _, grid in pairs) / modes,
        }  # fmt: skip
    for (half, group, kind), some in sorted(ratios.items()):
        mean = float(np.exp(np.mean(np.log(some))))
        yield {"half": half, "group": group, "kind": kind, "n": "all", "epsilon": "all", "pairs": "", "mse_ratio": mean}


def draw_coverage(outcomes: Sequence[Outcome]) -> str:
    """Picture of the coverage per kind with its 95% range (Clopper and Pearson), a dot for all kinds together."""
    counts = {"all kinds": (sum(o.covered for o in outcomes), sum(o.found for o in outcomes))}
    for kind in sorted({one.kind for one in outcomes if one.modes}):
        own = [one for one in outcomes if one.kind == kind]
        counts[kind] = sum(one.covered for one in own), sum(one.found for one in own)
    figure, axes = plots().subplots(figsize=(7, 0.28 * len(counts) + 0.8), layout="constrained")
    for place, (covered, found) in enumerate(counts.values()):
        low = float(stats.beta(covered, found - covered + 1).ppf(0.025)) if covered else 0.0
        high = float(stats.beta(covered + 1, found - covered).ppf(0.975)) if covered < found else 1.0
        axes.plot([low, high], [-place] * 2, color="0.6")
        axes.plot(covered / found, -place, "o", color="C0")
    axes.axvspan(0.93, 0.97, color="C2", alpha=0.2, label="93 to 97%")
    axes.axvline(0.9, color="0.3", linestyle=":", label="90%")
    axes.set(yticks=[-k for k in range(len(counts))], yticklabels=list(counts), xlim=(0.75, 1.005))
    axes.set_xlabel("share of the 95% intervals that hold the mode")
    axes.legend(loc="lower left", fontsize="small")
    return saved(figure, "mode_truth")


def run_fits(chosen: argparse.Namespace) -> Iterator[Outcome]:
    """All fits that were asked for, one run of every kind and setting after the other, so that any end is balanced."""
    settings = [(int(n), float(e)) for n, e in (pair.split(":") for pair in chosen.settings)]
    names = [
        name for name in chosen.kinds
        if chosen.half in ("both", KINDS[name].half) and len(KINDS[name].bounds) in chosen.columns
        and chosen.truth in ("any", "with" if len(KINDS[name].modes) else "without")
    ]  # fmt: skip
    start = time.monotonic()
    for run in range(chosen.first, chosen.first + chosen.runs):
        if (time.monotonic() - start) > 60 * chosen.minutes:
            break
        for features in chosen.features:
            for name in names:
                for n, epsilon in settings:
                    yield judge_fit(name, n, epsilon, run, features, chosen.seed)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["tune", "judge", "both", "new"], default="judge")
    parser.add_argument("--truth", choices=["any", "with", "without"], default="any", help="kinds with a mode or none")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first run: other runs have other seeds")
    parser.add_argument("--features", nargs="+", default=["leaves"], choices=["leaves", "grid"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--settings", nargs="+", default=[f"{n}:{e}" for n, e in SETTINGS], metavar="N:EPSILON")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many, at the end of a run")
    parser.add_argument("--raw", type=Path, help="a file to which one line per fit is added, for --pool")
    parser.add_argument("--pool", type=Path, nargs="+", help="files of --raw: no fit is made, only rows are")
    parser.add_argument("--paired", action="store_true", help="compare squared errors of leaves and grid instead")
    parser.add_argument("--figure", action="store_true", help="draw the coverage per kind as well")
    parser.add_argument("--csv", default="mode_truth", help="name of the file, empty to print only")
    chosen = parser.parse_args()
    if chosen.pool:
        lines = [line for path in chosen.pool for line in path.read_text().splitlines()]
        outcomes = [Outcome(**json.loads(line)) for line in lines]
    elif chosen.raw:
        with chosen.raw.open("a", encoding="utf-8") as file:
            for one in run_fits(chosen):
                print(json.dumps(asdict(one)), file=file, flush=True)
        return
    else:
        outcomes = list(run_fits(chosen))
    rows: list[dict[str, Any]] = list(paired_rows(outcomes)) if chosen.paired else []
    for features in () if chosen.paired else dict.fromkeys(one.features for one in outcomes):
        rows += pooled_rows([one for one in outcomes if one.features == features], features)
    if chosen.figure:
        print(draw_coverage(outcomes))
    if chosen.csv:
        print(write_csv(chosen.csv, rows))
        return
    for row in rows:
        print("\t".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))


if __name__ == "__main__":
    main()
