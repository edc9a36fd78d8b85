r"""The noise of a clustering before any budget is spent: from its exact sensitivities and a public guess of the spread.

Nothing here has seen a private record. What a fit would *find* depends on the data; how much noise each of its
releases has does not, and that is what is told: the count, the mean, the variance a direction needs to be seen, and
how well one step of refinement would place a centre.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace
from typing import Protocol

import numpy as np

from fogline import _validation
from fogline._typing import BoundsLike, FloatArray, StepsLike
from fogline.accounting.costs import release_rho
from fogline.algorithms.clustering import ClusterPlan, ClusterSettings, divided_for, plan_clusters
from fogline.mechanisms.discrete_gaussian import gaussian_scale
from fogline.planning.modes import EPSILONS, ExpectedError, expected_mode_error
from fogline.planning.scenarios import Shape, ShapeLike
from fogline.queries.em_step import offset_noise
from fogline.queries.moments import DIAGONAL, MomentQuery, Spread, SpreadQuery

__all__ = ["ExpectedClusterError", "NoiseAtEpsilon", "expected_cluster_error"]


@dataclass(frozen=True, eq=False)
class NoiseAtEpsilon:
    """Noise of one fit at one epsilon.

    Attributes
    ----------
    epsilon, rho : float
    count_error : float
        Standard deviation of the privacy noise in the released count, in records; records are counted, so that there is
        neither sampling nor smoothing in it.
    mean_errors : array of shape (d,)
        Standard deviation of the privacy noise in the released mean, in data units; neither sampling nor smoothing is
        in it.
    smallest_variance : float
        Share of the total variance that a direction must hold to stand out of the noise; 0 without a private
        projection.
    centre_error : float
        Standard deviation of a centre along each direction by privacy noise, in deviations of its cluster, if one step
        of refinement had the whole share and the clusters were of equal size; infinite where there is no refinement.
        The sampling of the records is not in it, and averages have no smoothing.
    shares : mapping of str to Fraction
        How the stages of a fit with ``expect_records=n`` divide the budget.
    """

    epsilon: float
    rho: float
    count_error: float
    mean_errors: FloatArray
    smallest_variance: float
    centre_error: float
    shares: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ExpectedClusterError:
    """Noise of a fit by epsilon; free.

    Attributes
    ----------
    n, n_clusters : int
        The guesses it is for.
    rows : tuple of NoiseAtEpsilon
    modes : ExpectedError or None
        What the modes would show, where the density of up to three columns is read as it is.
    shares : mapping of str to Fraction
        How the stages of a fit without ``expect_records`` divide its budget; nothing where there is one stage.
    """

    n: int
    n_clusters: int
    rows: tuple[NoiseAtEpsilon, ...]
    modes: ExpectedError | None = None
    shares: Mapping[str, Fraction] = field(default_factory=dict)


class PlannedClusters(ClusterSettings, Protocol):
    """Parameters of an estimator of which the noise is reckoned, and its public box."""

    epsilon: float | None
    delta: float | None
    bounds: BoundsLike
    level: float
    steps: StepsLike
    neighbours: str
    max_contributions: int

    def _box(self, width: int | None) -> FloatArray: ...


def expected_cluster_error(
    settings: PlannedClusters, n: int, *, shape: ShapeLike = "uniform", epsilons: Sequence[float] | None = None
) -> ExpectedClusterError:
    """Noise of a clustering of n records, by epsilon."""
    count = _validation.check_count(n, "n")
    sample = None if isinstance(shape, str | Shape) else _validation.records(shape, public=True)
    bounds = settings._box(None if sample is None else sample.shape[1])
    plan = plan_clusters(settings, bounds, _validation.check_level(settings.level))
    if plan is None:
        return ExpectedClusterError(count, settings.n_clusters or 0, (), _modes(settings, count, shape, epsilons))
    if sample is None and not (isinstance(shape, str) and shape == "uniform"):
        raise ValueError(f"shape must be 'uniform' or a public sample beyond three columns, got {shape!r}")
    spread = _guess(plan, count, sample)
    delta = _validation.check_delta(settings.delta)
    own = [] if settings.epsilon is None else [settings.epsilon]
    tried = sorted({*map(_validation.check_epsilon, EPSILONS if epsilons is None else epsilons), *own})
    k = plan.n_clusters or 5
    rhos = {epsilon: release_rho(epsilon, delta) for epsilon in tried}
    rows = tuple(
        _row(settings, divided_for(plan, settings, count, rho), spread, k, epsilon, rho)
        for epsilon, rho in rhos.items()
    )
    return ExpectedClusterError(count, k, rows, shares=dict(plan.portions))


def _modes(settings: PlannedClusters, n: int, shape: ShapeLike, epsilons: Sequence[float] | None) -> ExpectedError:
    names = ("epsilon", "delta", "bounds", "level", "bandwidth", "steps", "neighbours", "max_contributions")
    # Up to three columns clusters are read as modes, so their plan is that of modes.
    modes = SimpleNamespace(n_modes=settings.n_clusters, **{name: getattr(settings, name) for name in names})
    return expected_mode_error(modes, n, shape=shape, epsilons=epsilons)


def _guess(plan: ClusterPlan, n: int, sample: FloatArray | None) -> Spread:
    d = plan.lattice.d
    variance = d / 3.0  # of the uniform law on [-1, 1]
    if sample is not None and sample.shape[1] == d:
        inside = plan.lattice.vectors(sample) / plan.lattice.steps
        variance = float(np.clip(inside.var(axis=0).sum(), 1e-4 * d, d)) if len(inside) else variance
    return Spread(float(n), 0.0, np.zeros(d), 0.0, variance, 0.0)


def _row(
    settings: PlannedClusters, plan: ClusterPlan, guess: Spread, k: int, epsilon: float, rho: float
) -> NoiseAtEpsilon:
    neighbours, c = settings.neighbours, settings.max_contributions
    lattice, n = plan.lattice, guess.count

    def scale(query: SpreadQuery | MomentQuery, name: str) -> float:
        return gaussian_scale(query.sensitivity(neighbours, c), rho * float(plan.portions[name]))

    first = SpreadQuery(lattice)
    noise = scale(first, "scale")
    mean, smallest = noise / lattice.steps / n, 0.0
    if plan.projection is None:
        second = MomentQuery(lattice, np.zeros(lattice.d), guess.radius(lattice), guess)
        squares = scale(second, "projection")
        again = squares / second.mean_unit / lattice.steps / n
        # Two releases of the mean are combined by their precisions.
        mean = mean * again / math.hypot(mean, again)
        edge = 2 * squares / DIAGONAL / lattice.steps**2 / n * math.sqrt(lattice.d)
        smallest = edge / guess.variance
    share = float(plan.portions.get("refinement", Fraction(0))) * rho
    centre = math.inf
    if share > 0:
        relative = c * (1.0 if neighbours == "add-remove" else 2.0) / math.sqrt(2 * share)
        centre = offset_noise(k, plan.most, n, relative, "round")
    errors = noise / first.count_unit, mean * lattice.half_widths, smallest, centre
    return NoiseAtEpsilon(epsilon, rho, *errors, dict(plan.portions))
