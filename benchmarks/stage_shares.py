"""Whether shares that depend on the number of records beat fixed ones, for clusters and for mixtures, on made data.

    python benchmarks/stage_shares.py clusters|mixture|one tune|judge [runs [levels=1000,3000] [candidate ...]]
    python benchmarks/stage_shares.py plot

Errors of a fit in stages depend on the records and the budget almost only by the *level*: the number of records over
the noise that a count would have if it had the whole budget, n sqrt(2 rho). Records are drawn from kinds of mixtures
that differ in columns, groups, distances, sizes and shapes: those of even number are *tune*, those of odd number
*judge*. Every candidate has the same records and the same seed of the noise, so that its error is divided by that of
the fixed shares fit by fit; the geometric mean of the ratios is what counts. A candidate ``density x2`` has twice
the fixed share of the density, and the others in proportion; one such as ``1/20 1/10 1/10 3/4`` names all shares.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from common import RESULTS, read_csv, write_csv
from fogline import PrivateGaussianMixture, PrivateModeClustering
from fogline.accounting.costs import release_rho
from fogline.algorithms.stage_shares import CLUSTERING_SHARES, MIXTURE_SHARES
from fogline.testing import seeded_noise
from shares import centre_error, moved

DELTA = 1e-6
LEVELS = {100: 1000, 300: 2000, 1000: 4000, 3000: 8000, 10000: 15000}
"""Records over the noise of a count that had the whole budget, and how many records are drawn."""

FIXED: dict[str, Mapping[str, str]] = {"clusters": CLUSTERING_SHARES, "mixture": MIXTURE_SHARES, "one": MIXTURE_SHARES}
KINDS = 24
"""Kinds of records; every second one is of the other half."""


@dataclass(frozen=True)
class Kind:
    """One kind of records: a mixture in a box of side 100, and what is public of it."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    deviation: float

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw records."""
        labels = rng.choice(len(self.weights), size=n, p=self.weights)
        factors = np.linalg.cholesky(self.covariances)
        steps = rng.standard_normal((n, self.means.shape[1]))
        return np.asarray(self.means[labels] + np.einsum("nij,nj->ni", factors[labels], steps))

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Logarithm of the density at each row."""
        return log_density(X, self.weights, self.means, self.covariances)


def log_density(X: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """Logarithm of the density of a mixture."""
    factors = np.linalg.cholesky(covariances)
    white = np.stack([np.linalg.solve(f, (X - m).T).T for f, m in zip(factors, means, strict=True)], axis=1)
    logs = np.log(np.einsum("kii->ki", factors)).sum(axis=1) + X.shape[1] / 2 * math.log(2 * math.pi)
    return np.asarray(logsumexp(np.log(weights) - logs - (white**2).sum(axis=2) / 2, axis=1))


def kind_of(fit: str, number: int) -> Kind:
    """Make the kind of this number: columns, groups, sizes and shapes by turns, distances and places by chance."""
    rng = np.random.default_rng([1804, number, len(fit)])
    half = number // 2  # both halves have the same columns and numbers of groups
    d = (4, 6, 10, 16)[half % 4] if fit == "clusters" else (2, 3, 5, 8)[half % 4]
    k = 1 if fit == "one" else (2, 3, 5)[half % 3]
    weights = np.full(k, 1 / k) if half % 2 else np.geomspace(1, 4, k)
    covariances = np.repeat(np.eye(d)[None], k, axis=0)
    if half // 2 % 2:  # tilted, each group in its own way
        turns = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(k)]
        lengths = np.exp(rng.uniform(-0.7, 0.7, (k, d)))
        covariances = np.stack([(q * values) @ q.T for q, values in zip(turns, lengths, strict=True)])
    centres = rng.standard_normal((k, d))
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(k, 1)]
    if k > 1:  # the nearest two are so many deviations apart
        centres *= rng.uniform(4.0, 8.0) / apart.min()
    deviation = min(float(rng.uniform(3.0, 7.0)), 35.0 / (2.0 + np.abs(centres).max()))
    return Kind(weights / weights.sum(), 50 + deviation * centres, deviation**2 * covariances, deviation)


def epsilon_of(level: float, n: int) -> float:
    """Epsilon at which a count that has the whole budget has the noise n / level."""
    rho = (level / n) ** 2 / 2
    return float(brentq(lambda epsilon: release_rho(epsilon, DELTA) - rho, 1e-3, 50.0))


def measured(fit: str, shares: Mapping[str, Fraction], level: int, number: int, run: int) -> tuple[float, float]:
    """Error of the centres in deviations and, of mixtures, how many nats per record the density is worse."""
    kind, n = kind_of(fit, number), LEVELS[level]
    rng = np.random.default_rng([1805, number, run])
    X = np.clip(kind.draw(n, rng), 0.0, 100.0)
    d, k = X.shape[1], len(kind.weights)
    terms: dict[str, Any] = {"epsilon": epsilon_of(level, n), "delta": DELTA, "bounds": [(0, 100)] * d}
    with seeded_noise(1000 * number + run):
        if fit == "clusters":
            found = PrivateModeClustering(n_clusters=k, shares=dict(shares), **terms).fit(X).cluster_centers_
            return centre_error(np.asarray(found), kind.means, kind.deviation), math.nan
        model = PrivateGaussianMixture(n_components=k, shares=dict(shares), **terms).fit(X)
    fresh = kind.draw(2000, rng)
    told = log_density(fresh, model.weights_, model.means_, model.covariances_)
    nats = float(np.mean(kind.log_density(fresh) - told))
    return centre_error(model.means_, kind.means, kind.deviation), max(nats, 1e-4)


def shares_of(fit: str, candidate: str) -> dict[str, Fraction]:
    """Shares of a candidate by its name."""
    fixed = FIXED[fit]
    if candidate == "fixed":
        return {name: Fraction(share) for name, share in fixed.items()}
    if " x" in candidate:
        name, factor = candidate.split(" x")
        return moved(fixed, name, Fraction(fixed[name]) * Fraction(factor))
    return dict(zip(fixed, map(Fraction, candidate.split()), strict=True))


def plain_moves(fit: str) -> list[str]:
    """Each share at half and at twice its fixed size, or that of the steps halfway to all of the budget."""
    return [
        f"{name} x{'17/14' if factor == '2' and share == '7/10' else factor}"
        for name, share in FIXED[fit].items()
        for factor in ("1/2", "2")
    ]


def judged(errors: np.ndarray, fixed: np.ndarray) -> tuple[float, float]:
    """Geometric mean of the ratios of paired fits, and the standard error of its logarithm over kinds."""
    logs = np.log(errors / fixed).mean(axis=1)
    return float(np.exp(logs.mean())), float(logs.std(ddof=1) / math.sqrt(len(logs)))


def study(fit: str, half: str, runs: int, candidates: list[str], levels: list[int]) -> None:
    """Measure candidates beside the fixed shares; rows of other candidates and halves stay in the file."""
    numbers = range(0 if half == "tune" else 1, KINDS, 2)
    offset = 0 if half == "tune" else 500
    for level in levels:
        fixed: np.ndarray | None = None
        for candidate in ["fixed", *candidates]:
            shares = shares_of(fit, candidate)
            found = np.array([[measured(fit, shares, level, m, offset + r) for r in range(runs)] for m in numbers])
            fixed = found if fixed is None else fixed
            row: dict[str, Any] = {"fit": fit, "half": half, "level": level, "n": LEVELS[level], "shares": candidate}
            row |= {"kinds": len(numbers), "runs": runs, "error": float(np.exp(np.log(found[..., 0]).mean()))}
            row["rms"] = float(np.sqrt(np.mean(found[..., 0] ** 2)))
            row["ratio"], row["log_error"] = judged(found[..., 0], fixed[..., 0])
            row["nats"] = float(np.exp(np.log(found[..., 1]).mean()))
            row["nats_ratio"] = judged(found[..., 1], fixed[..., 1])[0]
            print(row, np.log(found / fixed).mean(axis=1)[:, 0].round(3).tolist(), flush=True)
            same = ("fit", "half", "level", "shares")
            kept = [old for old in read_csv(f"stage_shares_{fit}") if any(old[key] != str(row[key]) for key in same)]
            write_csv(f"stage_shares_{fit}", [*kept, row])


def plot() -> None:
    """Draw the ratios of the judge half by level, one curve per fit and candidate."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "fogline"  # the same figures make the same file
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.3), sharey=True)
    titles = {"clusters": "clusters: centres", "mixture": "mixtures: means", "one": "one Gaussian: mean"}
    for axis, (fit, title) in zip(axes, titles.items(), strict=True):
        rows = [row for row in read_csv(f"stage_shares_{fit}") if row["half"] == "judge" and row["shares"] != "fixed"]
        for name in dict.fromkeys(row["shares"] for row in rows):
            own = sorted((row for row in rows if row["shares"] == name), key=lambda row: int(row["level"]))
            ratios = np.array([float(row["ratio"]) for row in own])
            spread = np.exp(2 * np.array([float(row["log_error"]) for row in own]))
            bars = np.abs(np.array([ratios / spread, ratios * spread]) - ratios)
            axis.errorbar([int(row["level"]) for row in own], ratios, yerr=bars, marker="o", capsize=3, label=name)
        axis.axhline(1.0, color="grey", linewidth=1)
        axis.set(
            xscale="log", title=title, xlabel="records over the noise of a count", xlim=(70, 14_000), ylim=(0.4, 1.8)
        )
        if rows:
            axis.legend(fontsize=7)
    axes[0].set_ylabel("error over that of fixed shares")
    figure.tight_layout()
    figure.savefig(RESULTS / "stage_shares.svg", metadata={"Date": None})


def main(fit: str, half: str, runs: str = "2", *asked: str) -> None:
    """Measure what the command line asks for."""
    levels = [int(level) for word in asked if word.startswith("levels=") for level in word[7:].split(",")]
    candidates = [word for word in asked if not word.startswith("levels=")]
    study(fit, half, int(runs), candidates or plain_moves(fit), levels or list(LEVELS))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["plot"]:
        plot()
    else:
        main(*sys.argv[1:])
