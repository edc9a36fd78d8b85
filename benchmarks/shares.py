"""How a staged fit divides its budget: errors of the fixed shares beside those of others, on made data.

    python benchmarks/shares.py [fits per setting [kinds]]

Each candidate moves one share and leaves the others in proportion. The error is that of what is published last: centres
of clusters and of components in deviations of a cluster, the rank error of released ranges, the rank error of the
quartiles of a profile. Data and noise are paired: run r of every candidate has the same records and the same seed.
Candidates are chosen on the runs of the half *tune* and judged on those of the half *judge*.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import fogline.density.columns as columns_module
from common import read_csv, write_csv
from fogline import PrivateGaussianMixture, PrivateModeClustering, private_bounds, profile
from fogline.algorithms.stage_shares import CLUSTERING_SHARES, MIXTURE_SHARES
from fogline.testing import seeded_noise

DELTA = 1e-6
CAP = 3.0
"""Errors of centres count up to so many deviations: a centre that is lost is lost."""

Shares = Mapping[str, Fraction]
Measured = Callable[[Shares, int, int, float], float]


def moved(shares: Mapping[str, Any], name: str, value: Fraction) -> dict[str, Fraction]:
    """Return the shares with one of them changed and the others in proportion."""
    whole = {key: Fraction(share) for key, share in shares.items()}
    rest = 1 - whole[name]
    return {key: value if key == name else share * (1 - value) / rest for key, share in whole.items()}


def groups(run: int, n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Make records of k groups in a box of side 100, their centres and the deviation of a group."""
    rng = np.random.default_rng([18, run])
    while True:
        centres = rng.uniform(15, 85, (k, d))
        apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(k, 1)].min()
        if apart > 40:
            break
    deviation = float(rng.uniform(3.0, 6.0))
    return centres[rng.integers(k, size=n)] + deviation * rng.standard_normal((n, d)), centres, deviation


def centre_error(found: np.ndarray, true: np.ndarray, deviation: float) -> float:
    """Return the root mean square distance of matched centres, per column and in deviations, each up to the cap."""
    apart = np.linalg.norm(true[:, None] - found[None], axis=2) / deviation / np.sqrt(true.shape[1])
    apart = np.minimum(apart, CAP)
    if found.shape[0] < true.shape[0]:
        apart = np.pad(apart, ((0, 0), (0, true.shape[0] - found.shape[0])), constant_values=CAP)
    rows, columns = linear_sum_assignment(apart**2)
    return float(np.sqrt(np.mean(apart[rows, columns] ** 2)))


def clustering(shares: Shares, run: int, n: int, epsilon: float) -> float:
    """Error of the centres of three clusters in six columns."""
    X, true, deviation = groups(run, n, 6, 3)
    fit = PrivateModeClustering(epsilon=epsilon, delta=DELTA, bounds=[(0, 100)] * 6, n_clusters=3, shares=dict(shares))
    return centre_error(np.asarray(fit.fit(X).cluster_centers_), true, deviation)


def mixture(shares: Shares, run: int, n: int, epsilon: float) -> float:
    """Error of the means of three components in two columns."""
    X, true, deviation = groups(run, n, 2, 3)
    bounds = [(0, 100)] * 2
    fit = PrivateGaussianMixture(n_components=3, epsilon=epsilon, delta=DELTA, bounds=bounds, shares=dict(shares))
    return centre_error(np.asarray(fit.fit(X).means_), true, deviation)


def column(run: int, n: int) -> np.ndarray:
    """Make a column of some kind: a bell, a long tail, two bells."""
    rng = np.random.default_rng([19, run])
    scale, place = 10.0 ** rng.uniform(-2, 3), rng.normal() * 10.0 ** rng.uniform(-1, 3)
    kinds = (rng.standard_normal(n), rng.gamma(2.0, 1.0, n), rng.standard_normal(n) + 6.0 * (rng.random(n) < 0.3))
    return np.asarray(place + scale * kinds[run % 3])


def ranges(shares: Shares, run: int, n: int, epsilon: float) -> float:
    """Rank error of the median and the quartiles that released bounds tell."""
    x = column(run, n)
    chosen = shares.get("magnitudes")
    with mock.patch.object(columns_module, "MAGNITUDE_SHARE", chosen or columns_module.MAGNITUDE_SHARE):
        found = private_bounds(x[:, None], epsilon=epsilon, delta=DELTA, expect_records=None if chosen else n)
    levels = np.array([0.25, 0.5, 0.75])
    told = found.quantile(levels)[0]
    if not np.isfinite(told).all():
        return 0.5
    return float(np.abs(np.mean(x[:, None] < told, axis=0) - levels).mean())


def profiles(shares: Shares, run: int, n: int, epsilon: float) -> float:
    """Rank error of the quartiles of four columns whose ranges are to be found."""
    table = {f"c{k}": column(4 * run + k, n) for k in range(4)}
    changed: dict[str, Any] = dict(shares)
    settings = replace(columns_module.PROFILE_SETTINGS, **changed)
    with mock.patch.object(columns_module, "PROFILE_SETTINGS", settings):
        found = profile(pd.DataFrame(table), numeric=list(table), epsilon=epsilon)
    levels, errors = np.array([0.25, 0.5, 0.75]), []
    for name, x in table.items():
        told = [found[name].quantile(float(level)).value for level in levels]
        errors.append(np.abs(np.mean(x[:, None] < np.array(told), axis=0) - levels).mean())
    return float(np.mean(errors))


def candidates() -> dict[str, tuple[Measured, dict[str, Shares], list[tuple[int, float]]]]:
    """Every kind of fit: what measures it, the shares to try (the fixed ones first), and (n, epsilon)."""
    cluster: dict[str, Shares] = {"fixed": {name: Fraction(share) for name, share in CLUSTERING_SHARES.items()}}
    for name, value in (("scale", "1/20"), ("scale", "1/10"), ("density", "1/10"), ("refinement", "1/2")):
        cluster[f"{name} {value}"] = moved(CLUSTERING_SHARES, name, Fraction(value))
    mixed: dict[str, Shares] = {"fixed": {name: Fraction(share) for name, share in MIXTURE_SHARES.items()}}
    for name, value in (("scale", "1/100"), ("moments", "1/20"), ("density", "1/10"), ("steps", "4/5")):
        mixed[f"{name} {value}"] = moved(MIXTURE_SHARES, name, Fraction(value))
    magnitude: dict[str, Shares] = {"fixed": {"magnitudes": columns_module.MAGNITUDE_SHARE}}
    magnitude |= {f"magnitudes {k}": {"magnitudes": Fraction(k)} for k in ("1/6", "1/3", "1/2", "3/5", "2/3", "3/4")}
    magnitude["by the number expected"] = {}
    base = columns_module.PROFILE_SETTINGS
    staged: dict[str, Shares] = {"fixed": {"search": base.search, "magnitudes": base.magnitudes, "pilot": base.pilot}}
    for name, value in (("search", "1/4"), ("search", "1/2"), ("pilot", "1/10"), ("pilot", "1/4")):
        staged[f"{name} {value}"] = {**staged["fixed"], name: Fraction(value)}
    return {
        "clustering": (clustering, cluster, [(5000, 1.0)]),
        "mixture": (mixture, mixed, [(5000, 1.0)]),
        "bounds": (ranges, magnitude, [(300, 1.0), (1000, 0.2), (3000, 0.2), (10000, 1.0)]),
        "profile": (profiles, staged, [(1000, 1.0), (5000, 1.0), (50_000, 1.0)]),
    }


def main(fits: int, kinds: list[str]) -> None:
    """Measure, and write docs/benchmarks/shares.csv; what was measured of other kinds stays there."""
    warnings.simplefilter("ignore")
    rows = []
    for kind, (measure, listed, settings) in candidates().items():
        if kinds and kind not in kinds:
            continue
        for n, epsilon in settings:
            for name, shares in listed.items():
                errors = []
                for run in range(fits):
                    with seeded_noise(1000 + run):
                        errors.append(measure(shares, run, n, epsilon))
                halves = {half: np.array(errors[start::2]) for half, start in (("tune", 0), ("judge", 1))}
                row = {"kind": kind, "n": n, "epsilon": epsilon, "shares": name, "fits": fits}
                row |= {half: float(np.sqrt(np.mean(found**2))) for half, found in halves.items()}
                row["median"] = float(np.median(errors))
                rows.append(row)
                print(row, flush=True)
    measured = {row["kind"] for row in rows}
    write_csv("shares", [*(row for row in read_csv("shares") if row["kind"] not in measured), *rows])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24, sys.argv[2:])
