r"""Gaussian mixtures in the regime of the separated-mixtures theorem, and on ordinary data.

The paper [1]_ has a theorem and no experiments, so that there are no figures to put beside these. Its regime, means
:math:`100\,(\sigma_i + \sigma_j)(\sqrt{k\log n} + 1/\sqrt{w_i} + 1/\sqrt{w_j})` apart, is for `method="recursive"`;
ordinary data, means 3 to 6 standard deviations apart, are for `method="sketch"`. Errors are beside those of a mixture
without privacy on the same records: the sample's own moments on the *true* partition where components are far apart,
scikit-learn's GaussianMixture where they overlap.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from fogline._validation import check_count
from fogline_research.baselines import dp_em
from fogline_research.certified import pegme, pgme
from fogline_research.datasets.separated import SeparatedMixture, separated_mixture
from fogline_research.experiments._shared import Progress, check_methods, fresh_seed, reported
from fogline_research.metrics import log_likelihood_gap, mixture_errors

__all__ = [
    "MIXTURE_METHODS",
    "RECOVERED_TV",
    "MixtureCell",
    "MixtureRow",
    "Parameters",
    "mixture_cells",
    "ordinary_mixture",
    "partition_fit",
    "reproduce_mixtures",
]

Array = NDArray[np.float64]
Parameters = tuple[Array, Array, Array]
"""Weights, means and covariances."""

MIXTURE_METHODS = ("certified", "spherical", "terrific", "halves", "sample-aggregate", "dp_em")

DELTA = 1e-6
HELD_OUT = 20_000

RECOVERED_TV = 0.3
"""A component counts as recovered when its total variation from the true one is below this."""


@dataclass(frozen=True)
class MixtureCell:
    """A kind of data.

    Attributes
    ----------
    data : {"separated", "ordinary"}
        The separation is in the units of the theorem, or in standard deviations.
    d, k, n : int
    separation : float
    sigma_max : float
        Width of the widest component; the narrowest has 1.
    """

    data: str
    d: int
    k: int
    n: int
    separation: float
    sigma_max: float = 1.0


@dataclass(frozen=True)
class MixtureRow:
    """One method on one kind of data, over several runs, at epsilon 1 and delta 1e-6.

    Attributes
    ----------
    data, d, k, n, separation, sigma_max, method, runs
        What was run.
    recovered : float
        Share of the runs in which every component was recovered.
    components : float
        Mean number of components found.
    tv : float
        Mean over the runs of the largest total variation of a component from the true one.
    plain_tv : float
        The same of the mixture without privacy.
    weights : float
        Mean l1 error of the weights.
    gap : float
        Mean log-likelihood of fresh records under the mixture without privacy, less that under the found one.
    seconds : float
        Mean CPU time of a fit.
    """

    data: str
    d: int
    k: int
    n: int
    separation: float
    sigma_max: float
    method: str
    runs: int
    recovered: float
    components: float
    tv: float
    plain_tv: float
    weights: float
    gap: float
    seconds: float

    @property
    def ratio(self) -> float:
        """Total variation over that of the mixture without privacy."""
        return self.tv / self.plain_tv


# -- data --------------------------------------------------------------------------------------------------------


def ordinary_mixture(d: int, k: int, separation: float, random_state: Any) -> SeparatedMixture:
    """A mixture with ordinary overlap: unequal weights, standard deviations from 0.5 to 1 within a component.

    Examples
    --------
    >>> ordinary_mixture(2, 3, 4.5, 0).sigmas
    array([1., 1., 1.])
    """
    return separated_mixture(d, k, separation=separation, weight_min=0.5 / k, flatness=2.0, random_state=random_state)


def partition_fit(X: Array, labels: NDArray[np.int64], k: int) -> Parameters:
    """Weights, means and covariances of the true partition: no learner can know that one.

    Examples
    --------
    >>> weights, means, covariances = partition_fit(np.array([[0.0], [2.0], [9.0], [9.0]]), np.array([0, 0, 1, 1]), 2)
    >>> weights.tolist(), means.tolist(), covariances.tolist()
    ([0.5, 0.5], [[1.0], [9.0]], [[[2.0]], [[0.0]]])
    """
    parts = [X[labels == j] for j in range(k)]
    d = X.shape[1]
    return (
        np.array([len(part) for part in parts]) / len(X),
        np.array([part.mean(axis=0) for part in parts]),
        np.array([np.cov(part.T).reshape(d, d) for part in parts]),
    )


def _truth(cell: MixtureCell, stream: Sequence[int]) -> SeparatedMixture:
    if cell.data == "ordinary":
        return ordinary_mixture(cell.d, cell.k, cell.separation, [*stream, 0])
    return separated_mixture(
        cell.d,
        cell.k,
        separation=cell.separation,
        records=cell.n,
        sigma_max=cell.sigma_max,
        random_state=[*stream, 0],
    )


# -- fits --------------------------------------------------------------------------------------------------------


def _plain(cell: MixtureCell, X: Array, labels: NDArray[np.int64]) -> Parameters:
    """The mixture without privacy."""
    if cell.data == "separated":
        return partition_fit(X, labels, cell.k)
    found = GaussianMixture(cell.k, n_init=5, random_state=0).fit(X)
    return found.weights_, found.means_, found.covariances_


def _private(cell: MixtureCell, method: str, X: Array, truth: SeparatedMixture, seed: int) -> Parameters:
    """One private mixture; what it is told in public is true within a factor of two."""
    from fogline.estimators import PrivateGaussianMixture

    radius = 1.5 * truth.radius + 5.0
    if method == "dp_em":
        plain = dp_em(X, n_components=cell.k, epsilon=1.0, delta=DELTA, radius=radius, random_state=seed)
        return plain.weights, plain.means, plain.covariances
    if method in ("terrific", "halves"):
        shared: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "sigma_min": 0.25, "sigma_max": 2.0 * cell.sigma_max}
        if method == "terrific":
            fit, _ = pgme(X, n_components=cell.k, radius=radius, weight_min=0.25 / cell.k, **shared)
        else:
            fit, _ = pegme(X, n_components=cell.k, radius=radius, **shared)
        return fit.weights, fit.means, fit.covariances
    best = "recursive" if cell.data == "separated" else "sketch"
    model = PrivateGaussianMixture(
        n_components=cell.k,
        epsilon=1.0,
        delta=DELTA,
        radius=radius,
        sigma_min=0.25,
        sigma_max=2.0 * cell.sigma_max,
        weight_min=0.25 / cell.k,
        method=best if method == "certified" else method,
    ).fit(X)
    return model.weights_, model.means_, model.covariances_


def _one_run(cell: MixtureCell, method: str, stream: Sequence[int]) -> tuple[float, ...]:
    truth = _truth(cell, stream)
    X, labels = truth.sample(cell.n, random_state=[*stream, 1])
    fresh, _ = truth.sample(HELD_OUT, random_state=[*stream, 2])
    plain = _plain(cell, X, labels)
    seed = int(np.random.SeedSequence([*stream, 3]).generate_state(1)[0])
    began = time.process_time()
    found = _private(cell, method, X, truth, seed)
    seconds = time.process_time() - began
    known = truth.weights, truth.means, truth.covariances
    errors, others = mixture_errors(*known, *found), mixture_errors(*known, *plain)
    largest = float(errors.tv.max())
    return (
        float(largest < RECOVERED_TV),
        float(len(found[0])),
        largest,
        float(others.tv.max()),
        errors.weights,
        log_likelihood_gap(fresh, plain, found),
        seconds,
    )


# -- cells and rows ----------------------------------------------------------------------------------------------


def mixture_cells(which: str = "all") -> list[MixtureCell]:
    """Kinds of data: all 16, or a "small" choice of 4.

    Examples
    --------
    >>> len(mixture_cells()), [(cell.data, cell.d, cell.k) for cell in mixture_cells("small")]
    (16, [('separated', 10, 4), ('separated', 10, 4), ('ordinary', 2, 3), ('ordinary', 5, 5)])
    """
    if which not in ("small", "all"):
        raise ValueError(f'cells must be "small", "all" or a list of cells, got {which!r}')
    if which == "small":
        far = [MixtureCell("separated", 10, 4, 100_000, 100.0, widest) for widest in (1.0, 1000.0)]
        return far + [MixtureCell("ordinary", d, k, 10_000, 4.5) for d, k in ((2, 3), (5, 5))]
    far = [MixtureCell("separated", d, k, 200_000, 100.0) for d in (10, 50) for k in (2, 4, 8)]
    far.append(MixtureCell("separated", 10, 8, 200_000, 100.0, 1000.0))
    return far + [MixtureCell("ordinary", d, 5, 10_000, apart) for d in (2, 5, 10) for apart in (3.0, 4.5, 6.0)]


def reproduce_mixtures(
    *,
    runs: int = 3,
    cells: str | Sequence[MixtureCell] = "small",
    methods: Sequence[str] = ("certified",),
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[MixtureRow]:
    """Learn mixtures far apart and ordinary ones; every method sees the same records in the same run.

    Parameters
    ----------
    runs : int
        Fresh mixtures and records a cell.
    cells : "small", "all" or sequence of MixtureCell
    methods : sequence of str
        Out of "certified" (`PrivateGaussianMixture`, "recursive" where components are far apart and "sketch" where they
        overlap), "spherical" and "sample-aggregate" (others of its methods), "terrific" and "halves" (the paper's own
        routes, `fogline_research.certified.pgme` and `pegme`) and "dp_em" (expectation-maximisation with noisy sums).
    seed : int, optional
        Of the mixtures and records; certified noise has none.
    progress : callable, optional
        Called with (runs done, runs in all, label) before each run and once at the end.

    Returns
    -------
    list of MixtureRow
        Cell by cell, in the order of `methods`.

    Examples
    --------
    >>> (row,) = reproduce_mixtures(runs=1, cells=[MixtureCell("separated", 3, 2, 20_000, 100.0)], seed=0)
    >>> row.recovered, row.components, row.tv < 0.1
    (1.0, 2.0, True)
    """
    runs = check_count(runs, "runs")
    chosen = mixture_cells(cells) if isinstance(cells, str) else list(cells)
    check_methods(methods, MIXTURE_METHODS)
    root = fresh_seed(seed)
    jobs = [(cell, method) for cell in chosen for method in methods]
    labels = [f"{cell.data}, d = {cell.d}, k = {cell.k}, {method}" for cell, method in jobs for _ in range(runs)]
    found = [_one_run(*jobs[i // runs], [root, i % runs]) for i in reported(labels, progress)]
    return [_row(*job, found[i * runs : (i + 1) * runs]) for i, job in enumerate(jobs)]


def _row(cell: MixtureCell, method: str, found: Sequence[tuple[float, ...]]) -> MixtureRow:
    means = (float(np.mean(column)) for column in zip(*found, strict=True))
    where = (cell.data, cell.d, cell.k, cell.n, cell.separation, cell.sigma_max)
    return MixtureRow(*where, method, len(found), *means)
