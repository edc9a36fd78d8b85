r"""What is public about a staged clustering: checked before anything is spent.

Which clusters can be seen, and what would help where few can: from released numbers and public parameters alone.

One cluster is reported, where their number is not given, only if the records are less spread than the uniform law on
the box: in half widths that law has the variance d/3, and the released spread has a noise of known size. Of several,
:func:`fogline.density.components.pursuit.count_separable` says how many there are.

Clusters of many columns, in four releases: scale, projection, density, refinement.

1. *scale*: count, mean and spread, on the public box.
2. *projection*: second moment, clipped at the released radius; the leading directions that stand out of the noise.
3. *density*: random features of the projected records; greedy pursuit finds round clusters in them, free of cost.
4. *refinement*: a few steps of private expectation-maximisation from there, where the released count says that they
   would help; else their share goes to the density.

Every choice is made from public parameters and earlier answers. The proof is in ``clustering.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

from fogline import _validation
from fogline._typing import BandwidthLike, FloatArray
from fogline.accounting.budget import Budget
from fogline.algorithms.stage_shares import CLUSTERING_SHARES, cluster_shares, paid_portions
from fogline.density.components.pursuit import (
    MOST_SPHERICAL_COMPONENTS,
    ClusterPrior,
    SphericalComponents,
    count_separable,
    matching_pursuit,
)
from fogline.density.counted_records import is_nothing, joined
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import RandomSpec
from fogline.density.shortfall import separation_words, two_digits
from fogline.density.spec import as_bandwidth
from fogline.mechanisms.discrete_gaussian import gaussian_scale
from fogline.queries.em_step import (
    ClusterStepQuery,
    GaussianClusters,
    Kind,
    ProjectedRecords,
    best_kind,
    offset_noise,
)
from fogline.queries.lattice import Projection, RecordLattice
from fogline.queries.moments import (
    DIAGONAL,
    MOST_COLUMNS,
    MomentQuery,
    PrivateComponents,
    Spread,
    SpreadQuery,
    components_of,
)
from fogline.queries.projected_density import ProjectedDensityQuery
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms

__all__ = [
    "CLUSTERING",
    "FREQUENCIES",
    "MOST_STEPS",
    "ClusterPlan",
    "ClusterSettings",
    "ClusteringTuning",
    "FoundClusters",
    "Refinement",
    "checked_number",
    "concentrated",
    "density_spec",
    "distinct",
    "divided_for",
    "find_clusters",
    "groups_with_dips",
    "plan_clusters",
    "seen_components",
    "shortfall_message",
]


@dataclass(frozen=True)
class ClusteringTuning:
    """What is tuned of clusters of projected records.

    Attributes
    ----------
    least_components : int
        Fewest directions that are kept by default, or one for each cluster that is asked for where these are
        fewer.
    random_components : int
        Directions of a random projection.
    worth : float
        Refinement helps where one step would place a centre within this many deviations of its cluster.
    tenth : float
        Directions are hoped for that hold this share of the whole variance.
    same : float
        Clusters whose centres are closer than this many of their deviations, and than their noise, are the
        same.
    scales : tuple
        Bandwidths, as fractions of the leading deviation times the root of the number of directions.
    reach : float
        Half the side of the projected box, in deviations of each direction.
    inner : float
        Centres lie within this many deviations of the mean.
    precise : float
        Steps are added while each still places a centre within this many deviations of its cluster.
    round_steps : float
        Part of the steps, the first ones, that move centres only: shapes are learnt once the centres are about
        right.
    visible_weight : float
        A cluster is seen where its weight is this many deviations of the noise.
    """

    least_components: int = 3
    random_components: int = 8
    worth: float = 0.2
    tenth: float = 0.1
    same: float = 0.02
    scales: tuple[float, float] = (0.3, 0.6)
    reach: float = 3.5
    inner: float = 2.0
    precise: float = 0.1
    round_steps: float = 0.6
    visible_weight: float = 1.0


CLUSTERING = ClusteringTuning()

MOST_CLUSTERS = 256

AUTO_COMPONENTS = 20
"""Most directions that are kept by default."""


MOST_COMPONENTS = 64
"""Most directions that may be asked for."""


FREQUENCIES = 768
"""Random frequencies of the density."""

MOST_STEPS = 12
"""Most steps of refinement by default; four times as many may be asked for."""

PUBLIC_SEED = 20060608
"""Of random projections; it hides nothing."""


Refinement = bool | int | str
"""Whether clusters are refined: True, False, "auto", or a number of steps."""


class ClusterSettings(Protocol):
    """Parameters of an estimator that a plan is made from."""

    n_clusters: int | None
    components: int | None
    projection: ArrayLike
    bandwidth: BandwidthLike
    refinement: Refinement
    shares: Mapping[str, Any] | None
    expect_records: int | None
    neighbours: str
    max_contributions: int


@dataclass(frozen=True, eq=False)
class ClusterPlan:
    """All that is public about a staged clustering.

    Attributes
    ----------
    lattice : RecordLattice
    projection : Projection or None
        A public one, or None for a private one.
    components, n_clusters : int or None
    level : float
    bandwidth : "auto", number or array
    portions : dict of Fraction
        Of the whole budget, by name; they sum to one.
    refinement : "auto" or bool
    steps : int or None
        Steps of refinement that were asked for.
    fixed : dict of Fraction or None
        The portions without an expected number of records, where these are others.
    """

    lattice: RecordLattice
    projection: Projection | None
    components: int | None
    n_clusters: int | None
    level: float
    bandwidth: float | str
    portions: dict[str, Fraction]
    refinement: bool | str
    steps: int | None
    fixed: dict[str, Fraction] | None = None

    @property
    def most(self) -> int:
        """Most directions."""
        if self.projection is not None:
            return self.projection.r
        return min(AUTO_COMPONENTS if self.components is None else self.components, self.lattice.d)

    @property
    def least(self) -> int:
        """Fewest directions of a private projection: few records show few of those in which their clusters differ."""
        # Fewer clusters than that span fewer directions anyway.
        return min(CLUSTERING.least_components, self.n_clusters or 1, self.most)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        public = self.projection
        return {
            "bounds": [list(pair) for pair in self.lattice.bounds],
            "projection": "private" if public is None else public.directions.astype(np.int64).tolist(),
            "components": self.components,
            "n_clusters": self.n_clusters,
            "level": self.level,
            "bandwidth": self.bandwidth if isinstance(self.bandwidth, str) else np.asarray(self.bandwidth).tolist(),
            "portions": {name: str(portion) for name, portion in self.portions.items()},
            "refinement": self.refinement,
            "steps": self.steps,
        }

    @property
    def formerly(self) -> dict[str, Any] | None:
        """The question in the words of before, when a number of records that was expected chose no shares."""
        return None if self.fixed is None else {"portions": {name: str(part) for name, part in self.fixed.items()}}

    def payload(self) -> int:
        """Most bytes that all answers, and what is remembered with them, can take."""
        d, r, k = self.lattice.d, self.most, self.n_clusters or MOST_SPHERICAL_COMPONENTS
        moments = d * (d + 3) // 2 if self.projection is None else 0
        steps = (MOST_STEPS if self.steps is None else self.steps) * k * (1 + r + r * (r + 1) // 2)
        kept = r * (d + 1) + k * (2 * r + 5)
        return 8 * (d + 2 + moments + 2 * FREQUENCIES + 1 + steps + kept) + 2**16


def checked_number(n_clusters: int | None) -> int | None:
    """Return the wanted number of clusters, None where it is to be found."""
    if n_clusters is None:
        return None
    wanted = _validation.check_count(n_clusters, "n_clusters")
    if wanted > MOST_CLUSTERS:
        raise ValueError(f"n_clusters must be at most {MOST_CLUSTERS}, got {wanted}")
    return wanted


def plan_clusters(
    settings: ClusterSettings, bounds: FloatArray, level: float, rho: float | None = None
) -> ClusterPlan | None:
    """Check an estimator's parameters; None where the density of up to three columns is read as it is.

    Parameters
    ----------
    settings : PrivateModeClustering or ClusterSettings
        Its constructor's parameters are read, nothing else.
    bounds : array of shape (d, 2)
    level : float
    rho : float, optional
        Of the whole fit: with a number of records that is expected it decides the shares.

    Returns
    -------
    ClusterPlan or None
    """
    wanted = checked_number(settings.n_clusters)
    lattice = RecordLattice.of(bounds)
    refinement, steps = _planned_refinement(settings.refinement)
    projected, projection = _planned_projection(settings.projection, settings.components, lattice)
    if not projected:
        return None
    # A private projection releases a whole second moment, whose size grows with the square of the columns.
    if projection is None and lattice.d > MOST_COLUMNS:
        raise ValueError(
            f"bounds has {lattice.d} columns: beyond {MOST_COLUMNS}, projection must be 'random' or a public matrix"
        )
    components = _components(settings.components, lattice.d) if projection is None else None
    wished = settings.bandwidth
    if isinstance(wished, str) and wished != "auto":
        raise ValueError(f"bandwidth must be 'auto', a number or one value per axis, got {wished!r}")
    bandwidth = wished if isinstance(wished, str) else _fraction(wished)
    portions = _portions(settings.shares, private=projection is None, refined=refinement is not False)
    plan = ClusterPlan(lattice, projection, components, wanted, level, bandwidth, portions, refinement, steps)
    return plan if rho is None else divided_for(plan, settings, settings.expect_records, rho)


def divided_for(plan: ClusterPlan, settings: ClusterSettings, expected: int | None, rho: float) -> ClusterPlan:
    """Return a plan with the shares of a fit of about so many records, where the user left them open.

    Parameters
    ----------
    plan : ClusterPlan
        With the fixed shares.
    settings : ClusterSettings
        Of the plan.
    expected : int or None
        About how many records there are, as a guess.
    rho : float
        Of the whole fit.
    """
    # Only the division between all four stages was measured.
    if settings.shares is not None or len(plan.portions) < len(CLUSTERING_SHARES):
        return plan
    chosen = cluster_shares(expected, rho, plan.n_clusters, settings.neighbours, settings.max_contributions)
    return plan if chosen == plan.portions else replace(plan, portions=chosen, fixed=plan.portions)


def _fraction(bandwidth: BandwidthLike) -> float:
    """Check a fixed bandwidth of the projected density: its axes are not known yet, so only a fraction will do."""
    value = _validation.check_positive(bandwidth, "bandwidth")
    if not 0.02 <= value <= 0.7:
        raise ValueError(f"bandwidth must be between 0.02 and 0.7 of each projected axis, got {value}")
    return value


def _planned_refinement(choice: Refinement) -> tuple[bool | str, int | None]:
    if isinstance(choice, bool) or (isinstance(choice, str) and choice == "auto"):
        return choice, None
    if isinstance(choice, str):
        raise ValueError(f"refinement must be 'auto', True, False or a number of steps, got {choice!r}")
    steps = _validation.check_count(choice, "refinement")
    if steps > 4 * MOST_STEPS:
        raise ValueError(f"refinement must be at most {4 * MOST_STEPS} steps, got {steps}")
    return True, steps


def _components(components: int | None, d: int) -> int | None:
    if components is None:
        return None
    count = _validation.check_count(components, "components")
    most = min(d, MOST_COMPONENTS)
    if count > most:
        raise ValueError(f"components must be at most {most}, got {count}")
    return count


def _planned_projection(
    choice: ArrayLike, components: int | None, lattice: RecordLattice
) -> tuple[bool, Projection | None]:
    """Whether records are projected, and the projection where it is public."""
    if not isinstance(choice, str):
        public = Projection.public(lattice, choice)
        if public.r > MOST_COMPONENTS:
            raise ValueError(f"projection must have at most {MOST_COMPONENTS} rows, got {public.r}")
        return True, public
    if choice not in ("auto", "identity", "private", "random"):
        raise ValueError(f"projection must be 'auto', 'identity', 'private', 'random' or a matrix, got {choice!r}")
    if lattice.d <= 3 and choice in ("auto", "identity"):
        return False, None
    if choice == "identity":
        if lattice.d > MOST_COMPONENTS:
            raise ValueError(f"projection must not be 'identity' beyond {MOST_COMPONENTS} columns")
        return True, Projection.on(lattice, np.eye(lattice.d))
    if choice == "random":
        r = _components(components, lattice.d) or min(CLUSTERING.random_components, lattice.d)
        rows = np.random.default_rng(PUBLIC_SEED).standard_normal((lattice.d, r))
        return True, Projection.on(lattice, np.linalg.qr(rows)[0].T)
    return True, None


def _portions(shares: object, *, private: bool, refined: bool) -> dict[str, Fraction]:
    """Portions of the budget by name; by default what is not needed goes to the density."""
    names = {"scale", "density"} | ({"projection"} if private else set()) | ({"refinement"} if refined else set())
    if shares is None:
        chosen = {name: Fraction(share) for name, share in CLUSTERING_SHARES.items() if name in names}
        # No part of the budget lapses: what has no use goes where it serves most.
        chosen["density"] += 1 - sum(chosen.values())
        return chosen
    if not isinstance(shares, Mapping) or set(shares) != names:
        raise ValueError(f"shares must name exactly {', '.join(sorted(names))}")
    try:
        split = Budget(rho=1.0).split(**shares)
    except (TypeError, ValueError) as error:
        raise ValueError(f"shares: {error}") from None
    return {name: share.portion for name, share in split.items()}


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
    query = MomentQuery.around(Spread(1.0, 0.0, np.zeros(d), 0.0, d / 3.0, 0.0), plan.lattice)
    rho = terms.rho * float(plan.portions["projection"])
    scale = gaussian_scale(query.sensitivity(terms.neighbours, terms.max_contributions), rho)
    return 2 * scale / DIAGONAL / plan.lattice.steps**2 * math.sqrt(d) / (d / 3.0)


def shortfall_message(plan: ClusterPlan, terms: ReleaseTerms, spread: Spread, r: int, found: int, apart: int) -> str:
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
    said = separation_words(plan.n_clusters, found, apart, plan.level)
    if not said or is_nothing(spread.count, spread.count_sd):
        return said
    return joined(said, _shortfall_advice(plan, terms, spread.count, r))


def _shortfall_advice(plan: ClusterPlan, terms: ReleaseTerms, count: float, r: int) -> str:
    """How many records, or how much budget, would do: noise falls like one over both."""
    k = plan.n_clusters or 5
    relative = terms.max_contributions * (1.0 if terms.neighbours == "add-remove" else 2.0)
    # Centres are placed by the last release that sees them.
    share = float(plan.portions.get("refinement", Fraction(0)) or plan.portions["density"])
    centres = offset_noise(k, r, float(k), relative / math.sqrt(2 * share * terms.rho), "round") * k / CLUSTERING.worth
    needed = max(_drowned_share(plan, terms) / CLUSTERING.tenth, centres)
    if needed <= count:
        return "clusters that lie closer than their noise need more records or more epsilon"
    records, times = two_digits(needed), two_digits(needed / max(count, 1.0))
    return (
        f"about {records} records, or {times} times the epsilon, would show directions that hold a tenth of the spread "
        f"and place {k} clusters to a fifth of their width"
    )


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
        # Law of total variance: the merged cluster covers both.
        covariance = np.einsum("k,kij->ij", part, covariances[both] + np.einsum("ki,kj->kij", offsets, offsets))
        weights = np.append(weights[keep], total)
        means = np.vstack([means[keep], mean])
        covariances = np.concatenate([covariances[keep], covariance[None]])
        # The noise of two centres is about independent, so their mean has less of it.
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
            # In favour of one cluster: a dip must be there beyond doubt before two are claimed.
            joined[a, b] = distance < 2 * width + 2 * noise
    return int(connected_components(joined, directed=False)[0]) if k else 0


def _same(means: FloatArray, covariances: FloatArray, noise: FloatArray) -> tuple[int, int] | None:
    """Give the first two clusters that are the same."""
    k, r = means.shape
    widths = np.einsum("kii->k", covariances) / r
    for a in range(k):
        for b in range(a + 1, k):
            squared = (means[a] - means[b]) ** 2
            near = squared.sum() < CLUSTERING.same**2 * (widths[a] + widths[b]) / 2
            if near and np.mean(squared / (noise[a] + noise[b])) < 1:
                return a, b
    return None


def seen_components(atoms: SphericalComponents, least: float) -> SphericalComponents:
    """Components of at least this many deviations of the noise."""
    seen = atoms.heights > least
    return SphericalComponents(
        atoms.weights[seen],
        atoms.centres[seen],
        atoms.variances[seen],
        atoms.heights[seen],
        atoms.centre_variances[seen],
        atoms.weight_sds[seen],
        atoms.misfit,
    )


@dataclass(frozen=True, eq=False)
class FoundClusters:
    """What the answers say; released values only.

    Attributes
    ----------
    projection : Projection
    clusters : GaussianClusters
    centre_variances : array of shape (k, r)
        Variance of the centres' projected coordinates from the noise.
    weight_sds : array of shape (k,)
    outside_sd : float
        Noise of the mean, which all centres share, in half widths.
    spread : Spread
    density : PrivateDensity
        Of the projected records.
    steps : int
        Refinement steps that were made.
    message : str
    portions : dict
        Portion of the budget that each release had, of its kind.
    """

    projection: Projection
    clusters: GaussianClusters
    centre_variances: FloatArray
    weight_sds: FloatArray
    outside_sd: float
    spread: Spread
    density: PrivateDensity
    steps: int
    message: str
    portions: dict[str, Fraction]


def find_clusters(plan: ClusterPlan, curator: Curator) -> FoundClusters:
    """Ask for scale, projection, density and refinement, one after the other."""
    plan = replace(plan, portions=paid_portions(curator, plan.portions, plan.fixed))
    spread = curator.ask(SpreadQuery(plan.lattice), plan.portions["scale"], "scale")
    parts = _projection(plan, curator, spread)
    guess = plan.n_clusters or 5
    # Decided before the density is asked for, since the steps take their share from it.
    steps, kind = _kept_refinement(curator, *_refinement(plan, spread, parts, guess, curator.terms.rho))
    portions = _later_portions(plan, steps)
    spec = density_spec(parts, plan.bandwidth)
    sums = ProjectedDensityQuery(parts.projection, spec, curator.terms.guarantee())
    density = curator.ask(sums, portions["density"], "density")
    # Floating-point searches may differ from machine to machine: a release read again must ask the same steps.
    pursued: dict[str, Any] = curator.remember("clusters", lambda: _pursued(plan, density, _frame(parts), spread))
    apart = int(pursued.pop("apart"))
    atoms = seen_components(
        SphericalComponents(**(pursued | {"misfit": float(pursued["misfit"])})), CLUSTERING.visible_weight
    )
    model = _start(atoms, pooled=kind != "full")
    found = FoundClusters(
        parts.projection,
        model,
        atoms.centre_variances,
        atoms.weight_sds,
        parts.mean_sd,
        spread,
        density,
        0,
        "",
        {**{name: plan.portions[name] for name in ("scale", "projection") if name in plan.portions}, **portions},
    )
    if len(atoms.weights):
        found = _refined(plan, curator, found, portions, steps)
    clusters, centre_variances, weight_sds = distinct(found.clusters, found.centre_variances, found.weight_sds)
    if found.steps:  # what the density alone cannot tell apart, the steps may
        apart = max(apart, groups_with_dips(clusters, centre_variances))
    message = shortfall_message(plan, curator.terms, spread, parts.projection.r, len(clusters.weights), apart)
    return replace(found, clusters=clusters, centre_variances=centre_variances, weight_sds=weight_sds, message=message)


def _pursued(plan: ClusterPlan, density: PrivateDensity, frame: ClusterPrior, spread: Spread) -> dict[str, Any]:
    """Components of the density, as many as are wanted or can be seen, and how many can be told apart."""
    wanted, half = plan.n_clusters, plan.level / 2  # half for more than there are, half for one where there is none
    if wanted is not None and not 1 < wanted <= MOST_SPHERICAL_COMPONENTS:
        return {**vars(matching_pursuit(density, wanted, frame)), "apart": wanted}
    apart = count_separable(density, frame, level=half, most=MOST_SPHERICAL_COMPONENTS if wanted is None else wanted)
    # One cluster is claimed only if the records are less spread than evenly filled bounds.
    if apart < 2 and not concentrated(spread, plan.lattice.d, half):
        apart = 0
    return {**vars(matching_pursuit(density, apart if wanted is None else wanted, frame)), "apart": apart}


def _frame(parts: PrivateComponents) -> ClusterPrior:
    """Where clusters may lie: within the image of the box and a few deviations, and with the released moments."""
    low, high = parts.projection.extent()
    reach = CLUSTERING.inner * np.sqrt(parts.variances)
    leading = float(parts.variances[0])
    noise = parts.edge / (2 * math.sqrt(parts.projection.lattice.d)) * math.sqrt(2)
    return ClusterPrior(
        lower=np.maximum(-reach, low),
        upper=np.minimum(reach, high),
        variance_range=(0.0064 * leading, leading),
        mean=np.zeros(parts.projection.r),
        # A tenth of a deviation on top: clipped and projected records do not have exactly the released moments.
        mean_sd=np.hypot(parts.mean_sd, 0.1 * np.sqrt(parts.variances)),
        variances=parts.variances,
        variance_sds=np.hypot(noise, 0.15 * parts.variances),
    )


def _projection(plan: ClusterPlan, curator: Curator, spread: Spread) -> PrivateComponents:
    """Directions from a private second moment, or public ones around the released mean."""
    lattice = plan.lattice
    if plan.projection is not None:
        # Public directions say nothing of the spread along them: an even share each.
        along = max(spread.variance / lattice.d, 1e-6)
        around = Projection.on(lattice, plan.projection.components, spread.mean)
        return PrivateComponents(around, np.full(around.r, along), 0.0, around.r, spread.mean_sd)
    moments = curator.ask(MomentQuery.around(spread, lattice), plan.portions["projection"], "projection")
    found = components_of(moments, lattice, plan.most, plan.components)
    # Few records show few directions; clusters that differ in the next ones would fall together.
    if plan.components is None and found.projection.r < plan.least:
        found = components_of(moments, lattice, plan.most, plan.least)
    return found.with_numbers(curator.remember("projection", found.numbers))


def _refinement(plan: ClusterPlan, spread: Spread, parts: PrivateComponents, k: int, rho: float) -> tuple[int, Kind]:
    """Number of steps, and what they release: from the released count and the noise that a step would have."""
    if plan.refinement is False or "refinement" not in plan.portions:
        return 0, "round"
    share = float(plan.portions["refinement"]) * rho
    r = parts.projection.r

    def scale(steps: int) -> float:
        return 1 / math.sqrt(2 * share / steps)

    # The number of steps depends on the kind, so a few of them are assumed for the choice.
    kind = best_kind(k, r, spread.count, scale(4))
    if plan.steps is not None:
        return plan.steps, kind
    if plan.refinement == "auto" and offset_noise(k, r, spread.count, scale(1), kind) > CLUSTERING.worth:
        return 0, "round"
    steps = 1
    # More steps have less budget each: as many as still place a centre well.
    while steps < MOST_STEPS and offset_noise(k, r, spread.count, scale(steps + 1), kind) < CLUSTERING.precise:
        steps += 1
    return steps, kind


def _kept_refinement(curator: Curator, steps: int, kind: Kind) -> tuple[int, Kind]:
    """Return the steps and the kind of the release, where those computed here should differ."""
    kinds = get_args(Kind)
    kept = curator.remember("refinement", lambda: {"steps": np.array(steps), "kind": np.array(kinds.index(kind))})
    return int(kept["steps"]), kinds[int(kept["kind"])]


def _later_portions(plan: ClusterPlan, steps: int) -> dict[str, Fraction]:
    """Portions of the density and the refinement; what is not refined goes to the density."""
    spent = plan.portions["scale"]
    if plan.projection is None:
        spent += plan.portions["projection"]
    refinement = plan.portions.get("refinement", Fraction(0)) if steps else Fraction(0)
    return {"density": 1 - spent - refinement, "refinement": refinement}


def density_spec(parts: PrivateComponents, bandwidth: float | str = "auto") -> RandomSpec:
    """Box and bandwidths of the projected density, from earlier answers: whatever these are, there are some."""
    deviations = np.sqrt(parts.variances)
    low, high = parts.projection.extent()
    r = parts.projection.r
    leading = float(deviations[0]) * math.sqrt(r)
    least = CLUSTERING.scales[-1] * leading
    reach = np.maximum(CLUSTERING.reach * deviations, least)  # no axis is narrower than the widest bandwidth
    bounds = np.column_stack([np.minimum(np.maximum(-reach, low), -least), np.maximum(np.minimum(reach, high), least)])
    if isinstance(bandwidth, str):
        wanted = [np.full(r, fraction * leading) for fraction in CLUSTERING.scales]
    else:
        wanted = [as_bandwidth(bandwidth, bounds[:, 1] - bounds[:, 0])]
    shares = np.full(len(wanted), 1 / len(wanted))
    return RandomSpec.plan(bounds, wanted, shares=shares, n_features=FREQUENCIES)


def _start(atoms: SphericalComponents, *, pooled: bool) -> GaussianClusters:
    """Round clusters as a mixture; noisy weights and widths are drawn to their common mean."""
    k, r = atoms.centres.shape
    if k == 0:
        return GaussianClusters(np.zeros(0), np.zeros((0, r)), np.zeros((0, r, r)))
    # Empirical Bayes: weights are expected to differ from an even share by about half of it.
    prior = (0.5 / k) ** 2
    mean = float(atoms.weights.mean())
    weights = mean + (atoms.weights - mean) * prior / (prior + atoms.weight_sds**2)
    weights = np.maximum(weights, 0.2 * mean)
    common = float(np.average(atoms.variances, weights=atoms.weights))
    variances = np.full(k, common) if pooled else atoms.variances
    return GaussianClusters(weights / weights.sum(), atoms.centres, variances[:, None, None] * np.eye(r))


def _refined(
    plan: ClusterPlan, curator: Curator, found: FoundClusters, portions: dict[str, Fraction], steps: int
) -> FoundClusters:
    """Private steps of expectation-maximisation, later ones with more of the budget."""
    model, variances, weight_sds = found.clusters, found.centre_variances, found.weight_sds
    k, r = model.means.shape
    image = ProjectedRecords(found.projection)
    for step in range(steps):
        # Errors of early steps are corrected by later ones; the last step's error stays.
        portion = portions["refinement"] * Fraction(2 * (step + 1), steps * (steps + 1))
        scale = 1 / math.sqrt(2 * float(portion) * curator.terms.rho)
        kind = best_kind(k, r, found.spread.count, scale)
        # Round shapes first: while centres still move, a covariance would learn their offset.
        if step < round(CLUSTERING.round_steps * steps):
            kind, model = "round", _rounded(model)
        query = ClusterStepQuery(model, plan.lattice.steps, kind, image, found.spread.count, variances)
        told = curator.ask(query, portion, "refinement")
        model, variances, weight_sds = told.model, told.centre_variances, told.weight_sds
    return replace(found, clusters=model, centre_variances=variances, weight_sds=weight_sds, steps=steps)


def _rounded(model: GaussianClusters) -> GaussianClusters:
    """Clusters of one round shape and one weight: a step with them is one of k-means."""
    k, r = model.means.shape
    variance = float(model.weights @ np.einsum("kii->k", model.covariances)) / r
    return GaussianClusters(np.full(k, 1 / k), model.means, np.repeat(variance * np.eye(r)[None], k, axis=0))
