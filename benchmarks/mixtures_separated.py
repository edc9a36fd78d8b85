"""Components far apart, where each method succeeds, and the Gaussian learner alone: parts of benchmarks/mixtures.py.

The separation is in the units of the theorem, (sigma_i + sigma_j)(sqrt(k log n) + 1/sqrt(w_i) + 1/sqrt(w_j)), or in
standard deviations. The mixture without privacy is the sample's weights, means and covariances on the true partition:
no learner can know that one.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

from fogline import PrivateGaussianMixture, private_gaussian
from fogline_research.datasets.separated import SeparatedMixture, separated_mixture
from fogline_research.experiments import partition_fit
from fogline_research.metrics import MixtureErrors, gaussian_norms, mixture_errors

__all__ = [
    "DELTA",
    "FIRST_SEED",
    "METHODS",
    "learner",
    "learner_groups",
    "phase",
    "phase_groups",
    "separated",
    "separated_groups",
]

DELTA = 1e-6
FIRST_SEED = 1000
"""Seeds below were used while the methods were made."""

METHODS = ("sketch", "recursive", "spherical", "sample-aggregate")

Row = dict[str, Any]


def _seeds(number: int) -> range:
    return range(FIRST_SEED, FIRST_SEED + number)


# -- the Gaussian learner alone ----------------------------------------------------------------------------------


def learner_groups(quick: bool) -> list[list[Row]]:
    """Sizes, columns and budgets; the one with a target comes first."""
    cells = [(100_000, 20, 1.0)]
    cells += [(n, d, 1.0) for n in (10_000, 100_000) for d in (2, 5, 10, 20, 50) if (n, d) != (100_000, 20)]
    cells += [(1_000_000, 20, 1.0), (100_000, 20, 0.5), (100_000, 20, 3.0)]
    return [
        [{"n": n, "d": d, "epsilon": epsilon, "seed": seed}]
        for n, d, epsilon in (cells[:1] if quick else cells)
        for seed in _seeds(1 if quick else 3 if n == 1_000_000 else 10)
    ]


def learner(keys: list[Row]) -> list[Row]:
    """Errors of mean and covariance of one Gaussian, private and of the sample, on the same records.

    Standard deviations from 0.2 to 1 in random directions; the public ball has 1000 times the largest.
    """
    rows = []
    for key in keys:
        n, d, seed = key["n"], key["d"], key["seed"]
        truth = separated_mixture(d, 1, separation=1.0, flatness=5.0, random_state=[seed, d])
        X, _ = truth.sample(n, random_state=[seed, 1])
        place = np.random.default_rng([seed, 2]).uniform(-300, 300, d) / np.sqrt(d)
        X += place
        start = time.process_time()
        found, _ = private_gaussian(X, epsilon=key["epsilon"], delta=DELTA, radius=1000.0)
        seconds = time.process_time() - start
        mean, shape = gaussian_norms(place, truth.covariances[0], found.mean, found.covariance)
        plain = gaussian_norms(place, truth.covariances[0], X.mean(axis=0), np.cov(X.T))
        rows.append(
            {
                "mean": mean,
                "covariance": shape,
                "sample_mean": plain[0],
                "sample_covariance": plain[1],
                "seconds": seconds,
            }
        )
    return rows


# -- components far apart ----------------------------------------------------------------------------------------


def separated_groups(quick: bool) -> list[list[Row]]:
    """Cells of the theorem, then other widths, shapes and constants, fewer records, less distance."""
    full = 200_000
    cells: list[tuple[str, int, int, int, float, float, float, int]] = []
    cells += [("theorem", d, k, full, 100.0, 1.0, 1.0, 10) for d in (10, 50) for k in (2, 4, 8)]
    cells += [("widths", 10, k, full, 100.0, 1000.0, 1.0, 10) for k in (2, 4, 8)]
    cells += [("theory", 10, k, full, 100.0, 1.0, 1.0, 5) for k in (2, 4)]
    sizes = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
    cells += [("records", d, k, n, 100.0, 1.0, 1.0, 5) for d, k in ((10, 2), (10, 4), (10, 8), (50, 4)) for n in sizes]
    cells += [
        ("distance", d, k, 50_000, separation, 1.0, 1.0, 5)
        for d, k in ((5, 4), (20, 4), (10, 8))
        for separation in (3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0)
    ]
    cells += [("widths", 50, 8, full, 100.0, 1000.0, 1.0, 5)]
    cells += [("shapes", 10, 4, full, 100.0, 1.0, 3.0, 5), ("shapes", 50, 2, full, 100.0, 1.0, 2.0, 5)]
    cells += [("theorem", 200, k, full, 100.0, 1.0, 1.0, 10) for k in (2, 4, 8)]
    cells += [("shapes", 200, 2, full, 100.0, 1.0, 2.0, 3)]
    names = ("set", "d", "k", "n", "separation", "sigma_max", "flatness")
    runs: list[Row] = [
        {**dict(zip(names, cell[:-1], strict=True)), "seed": seed}
        for cell in (cells[:1] if quick else cells)
        for seed in _seeds(1 if quick else cell[-1])
    ]
    runs.sort(key=lambda key: key["seed"] if key["d"] == 200 else 0)  # one run of each slow cell, then again
    return [[key] for key in runs]


def separated(keys: list[Row]) -> list[Row]:
    """What `recursive` makes of components far apart."""
    return [_separated(key) for key in keys]


def _separated(key: Row) -> Row:
    d, k, n, seed = key["d"], key["k"], key["n"], key["seed"]
    truth = separated_mixture(
        d,
        k,
        separation=key["separation"],
        records=None if key["set"] == "distance" else n,
        sigma_max=key["sigma_max"],
        flatness=key["flatness"],
        random_state=[seed, d, k],
    )
    X, labels = truth.sample(n, random_state=[seed, 1])
    start = time.process_time()
    constants = "theory" if key["set"] == "theory" else "practical"
    model = _fitted("recursive", X, truth, sigma_max=key["sigma_max"], constants=constants)
    seconds = time.process_time() - start
    errors = _errors(truth, model)
    plain = _partition_errors(truth, X, labels)
    return {
        "found": len(model.weights_),
        "missing": errors.missing,
        "purity": _purity(model, X, labels),
        "tv": float(errors.tv.max()),
        "partition_tv": float(plain.tv.max()),
        "ratio": float((errors.tv / plain.tv).max()),
        "weights": errors.weights,
        "releases": model.composition_["releases"],
        "advanced_epsilon": model.composition_["epsilon_by_advanced_composition"],
        "seconds": seconds,
    }


def _fitted(
    method: str, X: np.ndarray, truth: SeparatedMixture, sigma_max: float, constants: str = "practical"
) -> PrivateGaussianMixture:
    """A private mixture at epsilon 1; what it is told in public is true within a factor of one and a half or two."""
    k = len(truth.weights)
    return PrivateGaussianMixture(
        n_components=k,
        epsilon=1.0,
        delta=DELTA,
        radius=1.5 * truth.radius + 5.0,
        sigma_min=0.5,
        sigma_max=2.0 * sigma_max,
        weight_min=0.5 / k,
        method=method,
        constants=constants,
    ).fit(X)


def _errors(truth: SeparatedMixture, model: PrivateGaussianMixture) -> MixtureErrors:
    return mixture_errors(
        truth.weights, truth.means, truth.covariances, model.weights_, model.means_, model.covariances_
    )


def _partition_errors(truth: SeparatedMixture, X: np.ndarray, labels: np.ndarray) -> MixtureErrors:
    found = partition_fit(X, labels, len(truth.weights))
    return mixture_errors(truth.weights, truth.means, truth.covariances, *found)


def _purity(model: PrivateGaussianMixture, X: np.ndarray, labels: np.ndarray) -> float:
    """Share of the records whose found component is mostly of their own."""
    found = model.predict(X)
    return sum(int(np.bincount(labels[found == j]).max()) for j in np.unique(found)) / len(X)


# -- where each method succeeds ----------------------------------------------------------------------------------


def phase_groups(quick: bool) -> list[list[Row]]:
    """Records against separation, for every method; quick cells first."""
    sizes = (3_000,) if quick else (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
    apart = (2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0, 100.0)
    groups: list[list[Row]] = []
    for n, d, separation in itertools.product(sizes, (2,) if quick else (2, 10), apart[::4] if quick else apart):
        key = {"d": d, "k": 3, "n": n, "separation": separation}
        for seed in _seeds(1 if quick else 5 if n < 10_000 else 3):
            slow = n > 30_000 and (seed > FIRST_SEED or separation not in (3.0, 4.0, 6.0, 8.0, 16.0, 100.0))
            methods = [method for method in METHODS if method != "sample-aggregate" or not slow]
            groups.append([{**key, "method": method, "seed": seed} for method in methods])
    groups.sort(key=lambda group: group[0]["seed"] if group[0]["n"] >= 10_000 else 0)  # the plane, then again
    return groups


def phase(keys: list[Row]) -> list[Row]:
    """Largest distance of a component, for several methods on the same records, round components."""
    n, d, k, separation, seed = (keys[0][name] for name in ("n", "d", "k", "separation", "seed"))
    truth = separated_mixture(d, k, separation=separation, random_state=[seed, d, k])
    X, labels = truth.sample(n, random_state=[seed, 1])
    plain = _partition_errors(truth, X, labels)
    rows = []
    for key in keys:
        start = time.process_time()
        model = _fitted(key["method"], X, truth, sigma_max=1.0)
        seconds = time.process_time() - start
        errors = _errors(truth, model)
        rows.append(
            {
                "found": len(model.weights_),
                "tv": float(errors.tv.max()),
                "partition_tv": float(plain.tv.max()),
                "seconds": seconds,
            }
        )
    return rows
