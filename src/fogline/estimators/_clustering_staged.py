r"""Clusters of many columns, in four releases: scale, projection, density, refinement.

1. *scale*: count, mean and spread, on the public box.
2. *projection*: second moment, clipped at the released radius; the leading directions that stand out of the noise.
3. *density*: random features of the projected records; greedy pursuit finds round clusters in them, free of cost.
4. *refinement*: a few steps of private expectation-maximisation from there, where the released count says that they
   would help; else their share goes to the density.

Every choice is made from public parameters and earlier answers. The proof is in ``clustering.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._clustering_plan import FREQUENCIES, MOST_STEPS, ClusterPlan
from fogline.estimators._clustering_seen import WORTH, concentrated, distinct, groups_with_dips, seen_atoms, what_to_say
from fogline.estimators._staged import RecordPasses, Stages, asked, no_records
from fogline.locate.mixture_step import GaussianClusters, Kind, StepQuery, best_kind, offset_noise
from fogline.locate.private_pca import MomentQuery, PrivateComponents, Spread, SpreadQuery, components_of
from fogline.locate.projection import Projection
from fogline.sketch.density_sketch import DensitySketch, lattice_sensitivity
from fogline.sketch.planning import plan_spec
from fogline.sketch.private_density import PrivateDensity
from fogline.sketch.pursuit import MOST_ATOMS, Atoms, Frame, pursue, tell_apart
from fogline.sketch.spec import as_bandwidth

__all__ = ["FoundClusters", "density_spec", "find_clusters", "projected_density"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SCALES = (0.3, 0.6)
"""Bandwidths, as fractions of the leading deviation times the root of the number of directions."""

REACH = 3.5
"""Half the side of the projected box, in deviations of each direction."""

INNER = 2.0
"""Centres lie within so many deviations of the mean."""

PRECISE = 0.1
"""Steps are added while each still places a centre within this many deviations of its cluster."""

ROUND_STEPS = 0.6
"""Part of the steps, the first ones, that move centres only: shapes are learnt once the centres are about right."""

VISIBLE = 1.0
"""A cluster is seen where its weight is this many deviations of the noise."""


@dataclass(frozen=True, eq=False)
class FoundClusters:
    """What the stages found; released values only.

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
    released : array of int
        Noisy sums of the density.
    scale : float
    spec : RandomSpec
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
    released: IntArray
    scale: float
    spec: Any
    steps: int
    message: str
    portions: dict[str, Fraction]


def find_clusters(plan: ClusterPlan, stages: Stages, passes: RecordPasses | None) -> FoundClusters:
    """Run all stages."""
    each = no_records if passes is None else passes.each
    spread = _spread(plan, stages, each)
    parts = _projection(plan, stages, each, spread)
    rho = stages.terms.rho
    guess = plan.n_clusters or 5
    steps, kind = _kept_refinement(stages, *_refinement(plan, spread, parts, guess, rho))
    portions = _later_portions(plan, steps)
    spec = density_spec(parts, plan.bandwidth)
    released, scale = projected_density(stages, each, parts, spec, portions["density"])
    density = PrivateDensity(spec, released, scale=scale, guarantee=stages.terms.guarantee())
    pursued: dict[str, Any] = stages.keep("clusters", lambda: _pursued(plan, density, _frame(parts), spread))
    apart = int(pursued.pop("apart"))
    atoms = seen_atoms(Atoms(**(pursued | {"misfit": float(pursued["misfit"])})), VISIBLE)
    model = _start(atoms, pooled=kind != "full")
    found = FoundClusters(
        parts.projection,
        model,
        atoms.centre_variances,
        atoms.weight_sds,
        parts.mean_sd,
        spread,
        released,
        scale,
        spec,
        0,
        "",
        {**{name: plan.portions[name] for name in ("scale", "projection") if name in plan.portions}, **portions},
    )
    if len(atoms.weights):
        found = _refined(plan, stages, passes, found, portions, steps)
    clusters, centre_variances, weight_sds = distinct(found.clusters, found.centre_variances, found.weight_sds)
    if found.steps:  # what the density alone cannot tell apart, the steps may
        apart = max(apart, groups_with_dips(clusters, centre_variances))
    message = what_to_say(plan, stages.terms, spread, parts.projection.r, len(clusters.weights), apart)
    return replace(found, clusters=clusters, centre_variances=centre_variances, weight_sds=weight_sds, message=message)


def _pursued(plan: ClusterPlan, density: PrivateDensity, frame: Frame, spread: Spread) -> dict[str, Any]:
    """Atoms of the density, as many as are wanted or can be seen, and how many can be told apart."""
    wanted, half = plan.n_clusters, plan.level / 2  # half for more than there are, half for one where there is none
    if wanted is not None and not 1 < wanted <= MOST_ATOMS:
        return {**vars(pursue(density, wanted, frame)), "apart": wanted}
    apart = tell_apart(density, frame, level=half, most=MOST_ATOMS if wanted is None else wanted)
    if apart < 2 and not concentrated(spread, plan.lattice.d, half):
        apart = 0
    return {**vars(pursue(density, apart if wanted is None else wanted, frame)), "apart": apart}


def _frame(parts: PrivateComponents) -> Frame:
    """Where clusters may lie: within the image of the box and a few deviations, and with the released moments."""
    low, high = parts.projection.extent()
    reach = INNER * np.sqrt(parts.variances)
    leading = float(parts.variances[0])
    noise = parts.edge / (2 * math.sqrt(parts.projection.lattice.d)) * math.sqrt(2)
    return Frame(
        lower=np.maximum(-reach, low),
        upper=np.minimum(reach, high),
        variance_range=(0.0064 * leading, leading),
        mean=np.zeros(parts.projection.r),
        mean_sd=np.hypot(parts.mean_sd, 0.1 * np.sqrt(parts.variances)),
        variances=parts.variances,
        variance_sds=np.hypot(noise, 0.15 * parts.variances),
    )


def _spread(plan: ClusterPlan, stages: Stages, each: Any) -> Spread:
    query = SpreadQuery(plan.lattice)
    return query.read(*asked(stages, each, "scale", query, plan.portions["scale"]))


def _projection(plan: ClusterPlan, stages: Stages, each: Any, spread: Spread) -> PrivateComponents:
    """Directions from a private second moment, or public ones around the released mean."""
    lattice = plan.lattice
    if plan.projection is not None:
        along = max(spread.variance / lattice.d, 1e-6)
        around = Projection.on(lattice, plan.projection.components, spread.mean)
        return PrivateComponents(around, np.full(around.r, along), 0.0, around.r, spread.mean_sd)
    query = MomentQuery(lattice, np.rint(spread.mean * lattice.steps), spread.radius(lattice))
    moments = query.read(*asked(stages, each, "projection", query, plan.portions["projection"]), spread)
    found = components_of(moments, lattice, plan.most, plan.components)
    if plan.components is None and found.projection.r < plan.least:
        found = components_of(moments, lattice, plan.most, plan.least)
    return found.with_numbers(stages.keep("projection", found.numbers))


def _refinement(plan: ClusterPlan, spread: Spread, parts: PrivateComponents, k: int, rho: float) -> tuple[int, Kind]:
    """Number of steps, and what they release: from the released count and the noise that a step would have."""
    if plan.refinement is False or "refinement" not in plan.portions:
        return 0, "round"
    share = float(plan.portions["refinement"]) * rho
    r = parts.projection.r

    def scale(steps: int) -> float:
        return 1 / math.sqrt(2 * share / steps)

    kind = best_kind(k, r, spread.count, scale(4))
    if plan.steps is not None:
        return plan.steps, kind
    if plan.refinement == "auto" and offset_noise(k, r, spread.count, scale(1), kind) > WORTH:
        return 0, "round"
    steps = 1
    while steps < MOST_STEPS and offset_noise(k, r, spread.count, scale(steps + 1), kind) < PRECISE:
        steps += 1
    return steps, kind


def _kept_refinement(stages: Stages, steps: int, kind: Kind) -> tuple[int, Kind]:
    """Return the steps and the kind of the release, where those computed here should differ."""
    kinds = get_args(Kind)
    kept = stages.keep("refinement", lambda: {"steps": np.array(steps), "kind": np.array(kinds.index(kind))})
    return int(kept["steps"]), kinds[int(kept["kind"])]


def _later_portions(plan: ClusterPlan, steps: int) -> dict[str, Fraction]:
    """Portions of the density and the refinement; what is not refined goes to the density."""
    spent = plan.portions["scale"]
    if plan.projection is None:
        spent += plan.portions["projection"]
    refinement = plan.portions.get("refinement", Fraction(0)) if steps else Fraction(0)
    return {"density": 1 - spent - refinement, "refinement": refinement}


def density_spec(parts: PrivateComponents, bandwidth: Any = "auto") -> Any:
    """Box and bandwidths of the projected density, from earlier answers: whatever these are, there are some."""
    deviations = np.sqrt(parts.variances)
    low, high = parts.projection.extent()
    r = parts.projection.r
    leading = float(deviations[0]) * math.sqrt(r)
    reach = np.maximum(REACH * deviations, SCALES[-1] * leading)  # no axis is narrower than the widest bandwidth
    least = SCALES[-1] * leading
    bounds = np.column_stack([np.minimum(np.maximum(-reach, low), -least), np.maximum(np.minimum(reach, high), least)])
    if isinstance(bandwidth, str):
        wanted = [np.full(r, fraction * leading) for fraction in SCALES]
    else:
        wanted = [as_bandwidth(bandwidth, bounds[:, 1] - bounds[:, 0])]
    shares = np.full(len(wanted), 1 / len(wanted))
    return plan_spec(bounds, wanted, features=FREQUENCIES, shares=shares)


def projected_density(
    stages: Stages, each: Any, parts: PrivateComponents, spec: Any, portion: Fraction
) -> tuple[IntArray, float]:
    """Release random features of the projected records."""
    terms = stages.terms

    def query() -> IntArray:
        sketch = DensitySketch.of(replace(spec))  # what a specification has computed would tell whether rows came
        each(lambda rows: sketch.update(parts.projection.coordinates(rows)))
        return sketch.table()

    return stages.answer(
        "density",
        query,
        size=spec.n_coefficients,
        sensitivity=lattice_sensitivity(spec, terms.neighbours, terms.max_contributions),
        portion=portion,
    )


def _start(atoms: Atoms, *, pooled: bool) -> GaussianClusters:
    """Round clusters as a mixture; noisy weights and widths are drawn to their common mean."""
    k, r = atoms.centres.shape
    if k == 0:
        return GaussianClusters(np.zeros(0), np.zeros((0, r)), np.zeros((0, r, r)))
    prior = (0.5 / k) ** 2
    mean = float(atoms.weights.mean())
    weights = mean + (atoms.weights - mean) * prior / (prior + atoms.weight_sds**2)
    weights = np.maximum(weights, 0.2 * mean)
    common = float(np.average(atoms.variances, weights=atoms.weights))
    variances = np.full(k, common) if pooled else atoms.variances
    return GaussianClusters(weights / weights.sum(), atoms.centres, variances[:, None, None] * np.eye(r))


def _refined(
    plan: ClusterPlan,
    stages: Stages,
    passes: RecordPasses | None,
    found: FoundClusters,
    portions: dict[str, Fraction],
    steps: int,
) -> FoundClusters:
    """Private steps of expectation-maximisation, later ones with more of the budget."""
    terms, lattice, model = stages.terms, plan.lattice, found.clusters
    k, r = model.means.shape
    variances, weight_sds = found.centre_variances, found.weight_sds
    for step in range(steps):
        portion = portions["refinement"] * Fraction(2 * (step + 1), steps * (steps + 1))
        scale = 1 / math.sqrt(2 * float(portion) * terms.rho)
        kind = best_kind(k, r, found.spread.count, scale)
        if step < round(ROUND_STEPS * steps):
            kind, model = "round", _rounded(model)
        query = StepQuery(model, lattice.steps, kind)
        values, noise_scale = stages.answer(
            "refinement",
            lambda query=query: query.sum(_coordinates(passes, found.projection)),  # type: ignore[misc]
            size=query.size,
            sensitivity=query.sensitivity(terms.neighbours, terms.max_contributions),
            portion=portion,
        )
        model, variances, weight_sds = query.read(values, noise_scale, found.spread.count, variances)
    return replace(found, clusters=model, centre_variances=variances, weight_sds=weight_sds, steps=steps)


def _rounded(model: GaussianClusters) -> GaussianClusters:
    """Clusters of one round shape and one weight: a step with them is one of k-means."""
    k, r = model.means.shape
    variance = float(model.weights @ np.einsum("kii->k", model.covariances)) / r
    return GaussianClusters(np.full(k, 1 / k), model.means, np.repeat(variance * np.eye(r)[None], k, axis=0))


def _coordinates(passes: RecordPasses | None, projection: Projection) -> list[FloatArray]:
    """Secret: projected records as whole numbers of lattice steps, kept from one step to the next."""
    if passes is None:
        raise RuntimeError("there are no records in a release that is read again")
    if "coordinates" not in passes.memory:
        batches: list[FloatArray] = []
        passes.each(lambda rows: batches.append(np.rint(projection.coordinates(rows) * projection.lattice.steps)))
        passes.memory["coordinates"] = batches
    kept: list[FloatArray] = passes.memory["coordinates"]
    return kept
