r"""A Gaussian mixture in four releases: scale, moments, density, steps of expectation-maximisation.

1. *scale*: count, mean and spread on the public ball.
2. *moments*: mean and covariance, clipped at the released radius.
3. *density*: random features on the leading directions; greedy pursuit finds round components, free of cost, for
   every number of them that is asked for.
4. *steps*: private expectation-maximisation in all columns, from there.

Every choice is made from public parameters and earlier answers. The proof is in ``mixture.proof.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._clustering_staged import density_spec, projected_density
from fogline.estimators._mixture_fit import MixtureFit
from fogline.estimators._mixture_plan import MixturePlan
from fogline.estimators._mixture_steps import MixtureState, read_step, step_kind
from fogline.estimators._staged import RecordPasses, Stages, asked, no_records
from fogline.locate.mixture_step import GaussianClusters, StepQuery
from fogline.locate.private_pca import MomentQuery, Moments, PrivateComponents, Spread, SpreadQuery, components_of
from fogline.sketch.matching import MatchedMixture, match
from fogline.sketch.private_density import PrivateDensity
from fogline.sketch.pursuit import Atoms, Frame, pursue

__all__ = ["find_mixture"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

INNER = 2.5
"""Components are sought within so many deviations of the mean along each direction."""

PATIENCE = 3
"""Where the number of components is open: how many more than the best are tried before the search ends."""


def find_mixture(plan: MixturePlan, stages: Stages, passes: RecordPasses | None) -> MixtureFit:
    """Run all stages."""
    each = no_records if passes is None else passes.each
    spread, moments = _moments(plan, stages, each)
    found = components_of(moments, plan.lattice, plan.most_directions)
    parts = found.with_numbers(stages.keep("projection", found.numbers))
    density = _density(plan, stages, each, parts)
    kept = stages.keep("start", lambda: _start(plan, density, moments, parts))
    model = GaussianClusters(kept["weights"], kept["means"], kept["covariances"])
    criteria = {int(k): float(value) for k, value in zip(kept["tried"], kept["criteria"], strict=True)}
    start = MixtureState(model, kept["mean_variances"], np.zeros(len(model.weights)), kept["weight_sds"])
    state = _steps(plan, stages, passes, start, spread, parts)
    return _in_data_units(plan, state, spread, parts, density, criteria)


def _in_data_units(
    plan: MixturePlan,
    state: MixtureState,
    spread: Spread,
    parts: PrivateComponents,
    density: PrivateDensity,
    criteria: dict[int, float],
) -> MixtureFit:
    """Components as users see them; the errors of the means are those of the noise and of the draw of the records."""
    model, radius = state.model, float(plan.lattice.half_widths[0])
    counts = model.weights * spread.count
    known = state.mean_variances + 1 / np.maximum(counts, 1.0)
    variances = known[:, None] * np.einsum("kii->ki", model.covariances)
    return MixtureFit(
        weights=model.weights,
        means=plan.lattice.inside(plan.lattice.places(parts.projection.centre + model.means * plan.lattice.steps)),
        covariances=model.covariances * radius**2,
        counts=counts,
        count_sd=math.hypot(float(np.max(state.weight_sds)) * spread.count, spread.count_sd / len(counts)),
        mean_sd=np.sqrt(variances) * radius,
        density=density,
        components=parts.projection.components,
        centre=parts.projection.mean,
        criteria=criteria,
        whole=(max(spread.count, 1.0), spread.count_sd),
    )


def _moments(plan: MixturePlan, stages: Stages, each: Any) -> tuple[Spread, Moments]:
    """Count, mean and spread, then mean and covariance with records clipped accordingly."""
    lattice = plan.lattice
    first = SpreadQuery(lattice)
    spread = first.read(*asked(stages, each, "scale", first, plan.portions["scale"]))
    second = MomentQuery(lattice, np.rint(spread.mean * lattice.steps), spread.radius(lattice))
    return spread, second.read(*asked(stages, each, "moments", second, plan.portions["moments"]), spread)


def _density(plan: MixturePlan, stages: Stages, each: Any, parts: PrivateComponents) -> PrivateDensity:
    """Random features of the records on the leading directions."""
    spec = density_spec(parts)
    values, scale = projected_density(stages, each, parts, spec, plan.portions["density"])
    return PrivateDensity(spec, values, scale=scale, guarantee=stages.terms.guarantee())


def _start(plan: MixturePlan, density: PrivateDensity, moments: Moments, parts: PrivateComponents) -> dict[str, Any]:
    """Components that match the density, lifted to all columns; their number by the criterion where it is open."""
    frame = _frame(plan, parts)
    numbers = range(1, plan.most_components + 1) if plan.n_components is None else [plan.n_components]
    tried: dict[int, float] = {}
    for k in numbers:
        atoms = pursue(density, k, frame)
        matched = match(density, atoms)
        if not tried or matched.criterion < min(tried.values()):
            best = atoms, matched
        tried[k] = matched.criterion
        if k >= len(best[1].weights) + PATIENCE:
            break
    return {
        **_lifted(plan, *best, moments, parts),
        "tried": np.array(list(tried)),
        "criteria": np.array(list(tried.values())),
    }


def _frame(plan: MixturePlan, parts: PrivateComponents) -> Frame:
    """Where components may lie: within the image of the ball and a few deviations, with the released moments."""
    low, high = parts.projection.extent()
    reach = INNER * np.sqrt(parts.variances)
    leading = float(parts.variances[0])
    noise = parts.edge / (2 * math.sqrt(plan.lattice.d)) * math.sqrt(2)
    least, most = plan.variance_range
    smallest = float(np.clip(0.0016 * leading, least, leading / 2))
    return Frame(
        lower=np.maximum(-reach, low),
        upper=np.minimum(reach, high),
        variance_range=(smallest, float(np.clip(most, 2 * smallest, leading))),
        mean=np.zeros(parts.projection.r),
        mean_sd=np.hypot(parts.mean_sd, 0.1 * np.sqrt(parts.variances)),
        variances=parts.variances,
        variance_sds=np.hypot(noise, 0.15 * parts.variances),
    )


def _lifted(
    plan: MixturePlan, atoms: Atoms, matched: MatchedMixture, moments: Moments, parts: PrivateComponents
) -> dict[str, FloatArray]:
    """Components on the leading directions as a mixture in all columns.

    Means and shapes are the matched ones on those directions. Across them the components are alike: there the released
    covariance is theirs, where it stands out of its noise.
    """
    components, d = parts.projection.components, plan.lattice.d
    weights = np.maximum(matched.weights, plan.least_weight)
    weights = weights / weights.sum()
    common = float(weights @ np.einsum("kii->k", matched.covariances)) / parts.projection.r
    edge = 2 * moments.noise_sd * math.sqrt(d)
    across = np.eye(d) - components.T @ components
    values, vectors = np.linalg.eigh(across @ moments.covariance @ across)
    beside = (vectors * np.where(values > edge, values, common)) @ vectors.T
    inside = np.einsum("ra,krs,sb->kab", components, matched.covariances, components)
    least, most = plan.variance_range
    floor = min(max(0.05 * common, least), most)
    covariances = inside + across @ beside @ across
    values, vectors = np.linalg.eigh((covariances + np.swapaxes(covariances, 1, 2)) / 2)
    clipped = np.clip(values, floor, max(min(max(9 * common, 2 * floor), most), floor))
    return {
        "weights": weights,
        "means": matched.means @ components,  # from the released mean
        "covariances": np.einsum("kij,kj,klj->kil", vectors, clipped, vectors),
        "mean_variances": atoms.centre_variances.mean(axis=1) / common,
        "weight_sds": atoms.weight_sds,
    }


def _steps(
    plan: MixturePlan,
    stages: Stages,
    passes: RecordPasses | None,
    start: MixtureState,
    spread: Spread,
    parts: PrivateComponents,
) -> MixtureState:
    """Private steps of expectation-maximisation in all columns, later ones with more of the budget."""
    terms, steps, state = stages.terms, plan.steps, start
    for step in range(steps):
        portion = plan.portions["steps"] * Fraction(2 * (step + 1), steps * (steps + 1))
        scale = 1 / math.sqrt(2 * float(portion) * terms.rho)
        kind = step_kind(state.model.weights, plan.lattice.d, spread.count, scale)
        query = StepQuery(state.model, plan.lattice.steps, kind)
        values, noise = stages.answer(
            "steps",
            lambda query=query: query.sum(_vectors(passes, parts.projection.centre, plan)),  # type: ignore[misc]
            size=query.size,
            sensitivity=query.sensitivity(terms.neighbours, terms.max_contributions),
            portion=portion,
        )
        state = read_step(
            state,
            query,
            values,
            noise,
            count=spread.count,
            least=plan.least_weight,
            variance_range=plan.variance_range,
        )
    return state


def _vectors(passes: RecordPasses | None, centre: FloatArray, plan: MixturePlan) -> list[FloatArray]:
    """Secret: records as whole numbers of lattice steps from the released mean, kept from one step to the next."""
    if passes is None:
        raise RuntimeError("there are no records in a release that is read again")
    if "vectors" not in passes.memory:
        batches: list[FloatArray] = []
        passes.each(lambda rows: batches.append(plan.lattice.vectors(rows) - centre))
        passes.memory["vectors"] = batches
    kept: list[FloatArray] = passes.memory["vectors"]
    return kept
