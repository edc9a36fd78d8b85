r"""Which clusters can be seen, and what would help where few can: from released numbers and public parameters alone.

One cluster is reported, where their number is not given, only if the records are less spread than the uniform law on
the box: in half widths that law has the variance d/3, and the released spread has a noise of known size. Of several,
:func:`fogline.sketch.pursuit.tell_apart` says how many there are.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

from fogline.estimators._clustering_plan import ClusterPlan
from fogline.locate.mixture_step import GaussianClusters, offset_noise
from fogline.locate.private_pca import DIAGONAL, MomentQuery, Spread
from fogline.mechanisms.gaussian import gaussian_scale
from fogline.sketch.counted_records import is_nothing, joined
from fogline.sketch.density_sketch import ReleaseTerms
from fogline.sketch.pursuit import Atoms

__all__ = ["WORTH", "concentrated", "distinct", "groups_with_dips", "seen_atoms", "what_to_say"]

FloatArray = NDArray[np.float64]

WORTH = 0.2
"""Refinement helps where one step would place a centre within this many deviations of its cluster."""

TENTH = 0.1
"""Directions are hoped for that hold this share of the whole variance."""

SAME = 0.02
"""Clusters whose centres are closer than this many of their deviations, and than their noise, are the same."""


def concentrated(spread: Spread, d: int, level: float) -> bool:
    """Whether the records are less spread than the uniform law on the box, which has only a chance of `level` to be."""
    drawn = 4 * d / 45 / spread.count  # variance of a mean of squares of uniform variables
    sd = math.sqrt(spread.variance_sd**2 + (d / 3 * spread.count_sd / spread.count) ** 2 + drawn)
    return bool(d / 3 - spread.variance > norm.isf(level) * sd)


def _drowned_share(plan: ClusterPlan, terms: ReleaseTerms) -> float:
    """Share of the variance that a direction of one record needs to stand out: n records need 1/n of it."""
    if plan.projection is not None:
        return 0.0
    d = plan.lattice.d
    radius = Spread(1.0, 0.0, np.zeros(d), 0.0, d / 3.0, 0.0).radius(plan.lattice)
    query = MomentQuery(plan.lattice, np.zeros(d), radius)
    rho = terms.rho * float(plan.portions["projection"])
    scale = gaussian_scale(query.sensitivity(terms.neighbours, terms.max_contributions), rho)
    return 2 * scale / DIAGONAL / plan.lattice.steps**2 * math.sqrt(d) / (d / 3.0)


def what_to_say(plan: ClusterPlan, terms: ReleaseTerms, spread: Spread, r: int, found: int, apart: int) -> str:
    """Message about clusters that were hoped for; empty where all were found. No advice where nothing was counted.

    Parameters
    ----------
    plan : ClusterPlan
    terms : ReleaseTerms
    spread : Spread
        With the released number of records and its noise.
    r : int
        Directions of the projection.
    found : int
        Clusters that are returned.
    apart : int
        Clusters that can be told apart at the level.
    """
    wanted = plan.n_clusters
    if wanted is None:
        said = "" if found else "no cluster stands above the noise"
    elif found < wanted:
        said = f"only {found} of {wanted} clusters stand above the noise"
    elif apart < wanted:
        said = f"of {wanted} clusters, {apart or 'none'} can be told apart at level {plan.level:g}"
    else:
        said = ""
    if not said or is_nothing(spread.count, spread.count_sd):
        return said
    return joined(said, _remedy(plan, terms, spread.count, r))


def _remedy(plan: ClusterPlan, terms: ReleaseTerms, count: float, r: int) -> str:
    """How many records, or how much budget, would do: noise falls like one over both."""
    k = plan.n_clusters or 5
    relative = terms.max_contributions * (1.0 if terms.neighbours == "add-remove" else 2.0)
    share = float(plan.portions.get("refinement", Fraction(0)) or plan.portions["density"])
    centres = offset_noise(k, r, float(k), relative / math.sqrt(2 * share * terms.rho), "round") * k / WORTH
    needed = max(_drowned_share(plan, terms) / TENTH, centres)
    if needed <= count:
        return "clusters that lie closer than their noise need more records or more epsilon"
    records, times = _short(needed), _short(needed / max(count, 1.0))
    return (
        f"about {records} records, or {times} times the epsilon, would show directions that hold a tenth of the spread "
        f"and place {k} clusters to a fifth of their width"
    )


def _short(number: float) -> str:
    """Give a number with two digits, and without an exponent."""
    return f"{float(f'{number:.2g}'):.{0 if number >= 10 else 1}f}"


def distinct(
    clusters: GaussianClusters, centre_variances: FloatArray, weight_sds: FloatArray
) -> tuple[GaussianClusters, FloatArray, FloatArray]:
    """Put one cluster in the place of two that are the same, and sort by weight, the heaviest first.

    Two are the same if their centres are closer than the noise of the difference and than a fiftieth of their
    deviation: two starts that ended in one place. Wide clusters much closer than their width still divide records well.
    """
    weights, means, covariances = clusters.weights, clusters.means, clusters.covariances
    noise, sds = centre_variances, weight_sds
    while (pair := _same(means, covariances, noise)) is not None:
        keep = [j for j in range(len(weights)) if j not in pair]
        both = list(pair)
        total = float(weights[both].sum())
        part = weights[both] / total
        mean = part @ means[both]
        offsets = means[both] - mean
        covariance = np.einsum("k,kij->ij", part, covariances[both] + np.einsum("ki,kj->kij", offsets, offsets))
        weights = np.append(weights[keep], total)
        means = np.vstack([means[keep], mean])
        covariances = np.concatenate([covariances[keep], covariance[None]])
        noise = np.vstack([noise[keep], part**2 @ noise[both]])
        sds = np.append(sds[keep], math.hypot(*sds[both]))
    order = np.argsort(-weights, kind="stable")
    return GaussianClusters(weights[order], means[order], covariances[order]), noise[order], sds[order]


def groups_with_dips(clusters: GaussianClusters, centre_variances: FloatArray) -> int:
    """How many groups of refined clusters have a dip between them.

    Two normal laws of one deviation have fewer records between them than at their centres if these are more than two
    deviations apart; here by two standard errors more than that.
    """
    k = len(clusters.weights)
    joined = np.zeros((k, k), dtype=bool)
    for a in range(k):
        for b in range(a + 1, k):
            offset = clusters.means[a] - clusters.means[b]
            distance = float(np.linalg.norm(offset))
            along = offset / max(distance, 1e-300)
            width = math.sqrt(float(along @ (clusters.covariances[a] + clusters.covariances[b]) @ along) / 2)
            noise = math.sqrt(float(along**2 @ (centre_variances[a] + centre_variances[b])))
            joined[a, b] = distance < 2 * width + 2 * noise
    return int(connected_components(joined, directed=False)[0]) if k else 0


def _same(means: FloatArray, covariances: FloatArray, noise: FloatArray) -> tuple[int, int] | None:
    """Give the first two clusters that are the same."""
    k, r = means.shape
    widths = np.einsum("kii->k", covariances) / r
    for a in range(k):
        for b in range(a + 1, k):
            squared = (means[a] - means[b]) ** 2
            near = squared.sum() < SAME**2 * (widths[a] + widths[b]) / 2
            if near and np.mean(squared / (noise[a] + noise[b])) < 1:
                return a, b
    return None


def seen_atoms(atoms: Atoms, least: float) -> Atoms:
    """Atoms of at least so many deviations of the noise."""
    seen = atoms.heights > least
    return Atoms(
        atoms.weights[seen],
        atoms.centres[seen],
        atoms.variances[seen],
        atoms.heights[seen],
        atoms.centre_variances[seen],
        atoms.weight_sds[seen],
        atoms.misfit,
    )
