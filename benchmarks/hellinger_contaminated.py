"""Fits of a family to contaminated records, read from a release on leaves: how often intervals hold the parameters.

    python benchmarks/hellinger_contaminated.py --runs 50 --shares 0.05 0.2

Kinds of records of a family with a share of others: far away, in an overlapping group, in one value, spread evenly.
For each fit: whether the intervals hold all parameters, whether the robust intervals do, and what the result says: that
the family does not fit (the intervals are widened, and promised under the breakdown assumption), or that for
contaminated records the plain intervals are no promise (then the robust ones are what it points at). What it says is
true where the intervals hold that it points at.
Rows go to docs/benchmarks/hellinger_contaminated.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import write_csv
from fogline import DensitySketch
from fogline.testing import seeded_noise

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]

KINDS: dict[str, tuple[str, dict[str, float], tuple[float, float], dict[str, tuple[float, float]], Draw, Draw]] = {
    "normal, far group": (
        "normal", {"mu": 20.0, "sigma": 3.0}, (0, 60), {"mu": (0, 60), "sigma": (0.5, 20)},
        lambda r, n: r.normal(20, 3, n), lambda r, n: r.normal(48, 1.5, n),
    ),
    "normal, overlapping group": (
        "normal", {"mu": 20.0, "sigma": 3.0}, (0, 60), {"mu": (0, 60), "sigma": (0.5, 20)},
        lambda r, n: r.normal(20, 3, n), lambda r, n: r.normal(27, 2, n),
    ),
    "gamma, one value": (
        "gamma", {"shape": 3.0, "scale": 2.0}, (0, 40), {"shape": (0.5, 20), "scale": (0.2, 20)},
        lambda r, n: r.gamma(3, 2, n), lambda _, n: np.full(n, 15.0),
    ),
    "lognormal, even": (
        "lognormal", {"mu": 1.0, "sigma": 0.6}, (0, 60), {"mu": (-2, 4), "sigma": (0.1, 3)},
        lambda r, n: r.lognormal(1, 0.6, n), lambda r, n: r.uniform(0, 60, n),
    ),
}  # fmt: skip


def fitted(kind: str, n: int, share: float, epsilon: float, run: int) -> tuple[bool, bool, bool, bool]:
    """Whether intervals hold all parameters, whether robust ones do, whether it fits, and whether those are named."""
    family, truth, box, bounds, clean, other = KINDS[kind]
    rng = np.random.default_rng([run, n, int(1000 * share), len(kind)])
    wrong = round(share * n)
    x = np.clip(np.concatenate([clean(rng, n - wrong), other(rng, wrong)]), *box)
    with seeded_noise(run + 77):
        density = DensitySketch([box], features="leaves").update(x[:, None]).release(epsilon=epsilon)
    fit = density.fit(family, parameter_bounds=bounds)
    kept_in = [
        all(low <= truth[name] <= high for name, (low, high) in ends.items())
        for ends in (fit.intervals, fit.robust_intervals)
    ]
    return kept_in[0], kept_in[1], fit.assumption.holds, "no promise" in str(fit.assumption)


def main() -> None:
    """Run all and write a row per kind, number of records and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.1, 0.2])
    parser.add_argument("--records", type=int, nargs="+", default=[1000])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--csv", default="hellinger_contaminated")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for n in chosen.records:
        for share in chosen.shares:
            for kind in chosen.kinds:
                found = np.array([fitted(kind, n, share, chosen.epsilon, run) for run in range(chosen.runs)])
                rows.append({
                    "kind": kind, "n": n, "share": share, "epsilon": chosen.epsilon, "fits": chosen.runs,
                    "intervals_hold": float(found[:, 0].mean()), "robust_hold": float(found[:, 1].mean()),
                    "does_not_fit": float((~found[:, 2]).mean()), "points_at_robust": float(found[:, 3].mean()),
                    "what_is_said_is_true": float(np.where(found[:, 3], found[:, 1], found[:, 0]).mean()),
                })  # fmt: skip
                print(rows[-1], flush=True)
                if chosen.csv:
                    write_csv(chosen.csv, rows)


if __name__ == "__main__":
    main()
