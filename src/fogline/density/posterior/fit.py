r"""The density behind noisy counts: a log-Gaussian field with a rough part and structural emptiness.

Bucket j of volume :math:`h_j` has intensity :math:`\Lambda_j = n h_j e^{f_j}` with
:math:`f_j = \mu + s_j + r_j`: a level, a smooth field (:mod:`fogline.density.posterior.field`) and a rough part of
independent Student variables for heaps and spikes. Its count has the law of
:mod:`fogline.density.posterior.likelihood`. The mode of the posterior is found by Newton's method: at each step the
likelihood is a normal one in f with weight w and target z, the rough part is eliminated (weight
:math:`w/(1 + t w)` with the current variance t of r) and one factorisation of the field's precision plus a diagonal
remains. Length, deviation, order and roughness are chosen by their evidence (Laplace's approximation).

**Emptiness.** A log field cannot be zero, and real columns are empty in most of their box. Bucket j is empty with
probability :math:`q_j`: the likelihood of its count under noise alone is compared with what the field predicts for it
from all the others (its own count is taken out), mixed with a broad law so that a wrong field does not decide. In one
column emptiness comes in stretches (:mod:`fogline.density.posterior.stretches`); in several, neighbours agree by a
mean-field coupling, which in two is blended with what joined boxes say (:mod:`fogline.density.posterior.emptiness`).
Counts then enter the field with weight :math:`1 - q_j`, and the two steps alternate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from fogline._typing import FloatArray
from fogline.density.posterior.emptiness import blend, joined_emptiness
from fogline.density.posterior.field import Factor, FieldPrior, Mesh, Smoothness
from fogline.density.posterior.likelihood import CountLaw
from fogline.density.posterior.stretches import Stretches

__all__ = ["DensityFit", "FieldFit", "FitSettings", "fit_counts", "search_smoothness", "settings_for"]

_HERMITE = np.polynomial.hermite_e.hermegauss(15)
_FLOOR, _CEILING = -30.0, 12.0
"""Logarithms of relative densities stay between these: beyond them nothing can be told apart."""
_NO_EVIDENCE = -1e300
"""Evidence of a fit that overflowed."""
_NEAR = 0.05
"""Newton's method ends where a step changes the log-likelihood by about half of this: evidence needs no more."""


@dataclass(frozen=True)
class FitSettings:
    """Tuned numbers of the fit; lengths are parts of the box.

    Attributes
    ----------
    lengths, deviations, roughness : tuple of float
        Values that the evidence chooses from.
    orders : tuple of int
    start : tuple of int
        Where the climb begins, an index into each of the four.
    freedom : float
        Degrees of freedom of the rough part; 0 for a normal one.
    mended : bool
        Whether the evidence of a rough part is mended where counts say little about it; judged in one column.
    level_precision : float
        Prior precision of the level.
    empty_prior, coupling : float
        Log-odds of an empty bucket without empty neighbours, and what a neighbourhood that is all empty adds.
    most_empty_prior : float
        How far the log-odds rise where most buckets turn out to be empty.
    narrow : float
        Buckets of less than one part in so many of the box are less likely to be empty by themselves; 0 for none.
    stretches, empty_shares : tuple of float
        Mean lengths of empty and filled stretches and shares of emptiness that are averaged over, in one column;
        without any, neighbours agree by a mean field.
    mostly_empty : float
        Evidence, before counts are seen, for a column that is empty throughout: boxes are drawn wide.
    joined : float
        Weight, in log-odds, of what joined boxes say about emptiness, against the coupling of neighbours.
    rounds : int
        How often emptiness and field alternate.
    broad : float
        Weight of the broad law that the field's prediction is mixed with.
    kept, spread : int, float
        How many of the best fits are averaged, and within which distance of evidence.
    most_fits : int
    """

    lengths: tuple[float, ...]
    deviations: tuple[float, ...]
    roughness: tuple[float, ...]
    orders: tuple[int, ...] = (1, 2)
    start: tuple[int, int, int, int] = (0, 0, 0, 0)
    freedom: float = 2.0
    mended: bool = False
    level_precision: float = 1 / 9
    empty_prior: float = -2.0
    most_empty_prior: float = 2.0
    coupling: float = 4.0
    narrow: float = 0.0
    stretches: tuple[float, ...] = ()
    empty_shares: tuple[float, ...] = (0.02, 0.1, 0.3, 0.6, 0.9, 0.98)
    mostly_empty: float = 15.0
    joined: float = 0.0
    rounds: int = 3
    broad: float = 0.1
    kept: int = 3
    spread: float = 4.0
    most_fits: int = 60
    predictive_draws: int = 48


_FLAT = (0.1, 0.3)
"""Deviations of a field that is nearly flat: without them, noise on even data is read as slopes."""

_SETTINGS = {
    1: FitSettings(
        lengths=tuple(np.geomspace(0.01, 1.28, 8).tolist()),
        deviations=(*_FLAT, 0.5, 1.0, 2.0, 4.0),
        roughness=(0.0, 0.1, 0.25, 0.6, 1.4),
        start=(4, 4, 2, 0),
        narrow=256.0,
        stretches=tuple(np.geomspace(0.003, 1.0, 6).tolist()),
        most_fits=66,
        mended=True,
    ),
    2: FitSettings(
        lengths=tuple(np.geomspace(0.04, 0.64, 5).tolist()),
        deviations=(*_FLAT, 1.0, 2.0, 4.0),
        roughness=(0.0, 0.25, 0.8),
        start=(2, 3, 1, 0),
        joined=0.5,
        rounds=2,
        kept=1,
        most_fits=26,
    ),
    3: FitSettings(
        lengths=tuple(np.geomspace(0.08, 0.64, 4).tolist()),
        deviations=(*_FLAT, 1.0, 2.0, 4.0),
        roughness=(0.0, 0.8),
        orders=(1,),
        start=(2, 3, 1, 0),
        rounds=2,
        kept=1,
        most_fits=18,
    ),
}


def settings_for(d: int, *, flat: bool = True) -> FitSettings:
    """Settings for a number of columns; without `flat`, the field is never taken for nearly flat."""
    found = _SETTINGS[d]
    if flat:
        return found
    length, deviation, roughness, order = found.start
    start = (length, deviation - len(_FLAT), roughness, order)
    return replace(found, deviations=found.deviations[len(_FLAT) :], start=start)


@dataclass(frozen=True)
class FieldFit:
    """The mode of the posterior for one choice of smoothness and roughness, and the normal law around it."""

    evidence: float
    level: float
    smooth: FloatArray
    rough: FloatArray
    log_relative: FloatArray
    intensity: FloatArray
    weight: FloatArray
    slope: FloatArray
    combined: FloatArray
    rough_variance: FloatArray
    level_precision: float
    level_response: FloatArray
    factor: Factor = field(repr=False)
    prior: FieldPrior = field(repr=False)
    indices: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def is_flat(self) -> bool:
        """Whether the field is nearly flat."""
        return self.prior.smoothness.deviation <= max(_FLAT)

    def draws(self, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw from the normal law: log relative densities and their smooth part (with the level), (buckets, size)."""
        root, om = self.prior.root, self.combined
        noise = np.sqrt(om)[:, None] * rng.standard_normal((len(om), size))
        right = root @ rng.standard_normal((root.shape[1], size)) + noise
        level = math.sqrt(self.level_precision) * rng.standard_normal(size) + noise.sum(axis=0)
        free = self.factor.solve(right)
        gain = self.level_precision + float(om.sum() - om @ self.level_response)
        level = (level - om @ free) / gain
        smooth = free - np.outer(self.level_response, level) + level
        shrink = 1 / (1 + self.rough_variance * self.weight)
        rough = -(self.rough_variance * self.weight * shrink)[:, None] * smooth
        rough += np.sqrt(self.rough_variance * shrink)[:, None] * rng.standard_normal(smooth.shape)
        log_relative = np.clip(self.log_relative[:, None] + smooth + rough, _FLOOR, _CEILING)
        return log_relative, smooth + (self.smooth + self.level)[:, None]


@dataclass(frozen=True)
class DensityFit:
    """The best fits with their weights, the probability that each bucket is empty, and the fits if none is."""

    mesh: Mesh
    counts: FloatArray
    law: CountLaw
    total: float
    fits: tuple[FieldFit, ...]
    weights: FloatArray
    empty: FloatArray
    without_emptiness: tuple[tuple[FieldFit, ...], FloatArray] = field(repr=False)
    stretches: Stretches | None = None

    @property
    def unthinned(self) -> FloatArray:
        """Intensity of the best fit that knows of no emptiness."""
        return self.without_emptiness[0][0].intensity

    @property
    def base(self) -> FloatArray:
        """Records per bucket if all were spread evenly."""
        return self.total * self.mesh.volumes

    @property
    def is_flat(self) -> bool:
        """Whether the field of the best fit is nearly flat."""
        return self.fits[0].is_flat

    @property
    def intensity(self) -> FloatArray:
        """Intensity at the mode, averaged over the fits; before emptiness."""
        return np.asarray(sum(w * fit.intensity for w, fit in zip(self.weights, self.fits, strict=True)))


@dataclass(frozen=True)
class _Problem:
    mesh: Mesh
    counts: FloatArray
    law: CountLaw
    total: float
    present: FloatArray | float
    settings: FitSettings

    @property
    def base(self) -> FloatArray:
        return self.total * self.mesh.volumes


@dataclass
class _State:
    level: float
    smooth: FloatArray
    rough: FloatArray


@dataclass(frozen=True)
class _Quadratic:
    """The likelihood near one point as a normal law in f, with the rough part eliminated."""

    log_likelihood: float
    intensity: FloatArray
    log_relative: FloatArray
    weight: FloatArray
    slope: FloatArray
    variance: FloatArray
    combined: FloatArray
    target: FloatArray


def _quadratic(problem: _Problem, state: _State, roughness: float, *, steady: bool = False) -> _Quadratic:
    """Expand the likelihood, with its expected information or, to be `steady`, with a weight that bounds it.

    The law of a count seen through Laplace noise is nearly kinked at the count, and intensities are exponentials: with
    the information alone Newton's steps would jump over the kink and back for ever. The slope over the distance to the
    count bounds the curvature of such a law from there on (it is a mixture of normal laws), and a falling slope is
    itself curvature of the exponential. The mode is the same.
    """
    f = np.clip(state.smooth + state.rough + state.level, _FLOOR, _CEILING)
    intensity = problem.base * np.exp(f)
    curvature = problem.law.curvature(problem.counts, intensity)
    slope = problem.present * intensity * curvature.score
    information = curvature.information
    if steady:
        secant = np.abs(curvature.score) / np.maximum(np.abs(problem.counts - intensity), 1e-9)
        information = np.maximum(information, np.minimum(secant, 1 / np.maximum(intensity, 1e-9)))
    weight = problem.present * intensity**2 * information
    if steady:
        weight = weight + np.maximum(-slope, 0)
    weight = np.maximum(weight, 1e-9)
    freedom = problem.settings.freedom
    variance = np.full(len(f), roughness**2)
    if freedom and roughness > 0:
        variance = (freedom * roughness**2 + state.rough**2) / (freedom + 1)
    shrink = 1 / (1 + variance * weight)
    log_likelihood = float(np.sum(problem.present * curvature.log_density))
    return _Quadratic(
        log_likelihood, intensity, f, weight, slope, variance, weight * shrink, (weight * f + slope) * shrink
    )


def _fit(
    problem: _Problem, smoothness: Smoothness, roughness: float, state: _State | None, *, most_steps: int = 20
) -> FieldFit:
    """Newton's method for one choice of smoothness and roughness."""
    prior = FieldPrior(problem.mesh, smoothness)
    state = _start(problem) if state is None else _State(state.level, state.smooth.copy(), state.rough.copy())
    if roughness == 0:
        state.rough = np.zeros(problem.mesh.size)
    precision = problem.settings.level_precision
    for _ in range(most_steps):
        near = _quadratic(problem, state, roughness, steady=True)
        om = near.combined
        solved = prior.factor(om).solve(np.column_stack([near.target, om]))
        gain = precision + float(om.sum() - om @ solved[:, 1])
        level = float(near.target.sum() - om @ solved[:, 0]) / gain
        smooth = solved[:, 0] - level * solved[:, 1]
        pull = near.weight * near.log_relative + near.slope - near.weight * (smooth + level)
        rough = near.variance * pull / (1 + near.variance * near.weight)
        change = smooth + rough + level - near.log_relative
        # long steps leave the region in which the likelihood is nearly normal
        length = min(1.0, 1.5 / max(float(np.abs(change).max()), 1e-9))
        state.smooth += length * (smooth - state.smooth)
        state.rough += length * (rough - state.rough)
        state.level += length * (level - state.level)
        if float(near.weight @ change**2) < _NEAR:
            break
    return _finish(problem, prior, state, roughness)


def _start(problem: _Problem) -> _State:
    b = problem.law.scale
    smooth = np.clip(np.log((np.maximum(problem.counts, 0) + b) / (problem.base + b)), -4, 8)
    return _State(0.0, smooth, np.zeros(problem.mesh.size))


def _finish(problem: _Problem, prior: FieldPrior, state: _State, roughness: float) -> FieldFit:
    """Evidence and the normal law at the mode."""
    near = _quadratic(problem, state, roughness)
    om, precision = near.combined, problem.settings.level_precision
    factor = prior.factor(om)
    response = factor.solve(om)
    gain = precision + float(om.sum() - om @ response)
    evidence = near.log_likelihood - 0.5 * prior.quadratic(state.smooth) - 0.5 * precision * state.level**2
    evidence += 0.5 * prior.log_determinant - 0.5 * factor.log_determinant - 0.5 * math.log(gain / precision)
    evidence -= 0.5 * float(np.log1p(near.variance * near.weight).sum())
    if roughness > 0:
        evidence += _rough_evidence(state.rough, near.variance, roughness, problem.settings.freedom)
        if problem.settings.mended:
            evidence += _rough_mend(near.variance * near.weight, problem.settings.freedom)
    return FieldFit(
        evidence=evidence,
        level=state.level,
        smooth=state.smooth,
        rough=state.rough,
        log_relative=near.log_relative,
        intensity=near.intensity,
        weight=near.weight,
        slope=near.slope,
        combined=om,
        rough_variance=near.variance,
        level_precision=precision,
        level_response=response,
        factor=factor,
        prior=prior,
    )


def _rough_evidence(rough: FloatArray, variance: FloatArray, roughness: float, freedom: float) -> float:
    if not freedom:
        return -0.5 * float((rough**2).sum()) / roughness**2
    tails = -0.5 * (freedom + 1) * np.log1p(rough**2 / (freedom * roughness**2))
    return float((tails + 0.5 * np.log(variance / roughness**2)).sum())


def _rough_mend(known: FloatArray, freedom: float) -> float:
    r"""What Laplace's approximation of a Student variable lacks, by how much its count knows (weight times variance).

    Where a count says nothing the integral of the prior is 1, and the approximation has the factor
    :math:`\sqrt{\nu/(\nu+1)}` for each bucket: with thousands of narrow buckets no small roughness had a chance, and a
    search that began at a large one stayed there. Where it says much, the density of a normal law stands for that of
    a Student variable. In between, a curve that follows the integral (`tests/density/test_posterior.py`).
    """
    if not freedom:
        return 0.0
    at_zero = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom / 2)
    nothing = 0.5 * math.log1p(1 / freedom)
    return float((nothing + (at_zero - nothing) * known / (known + 0.2)).sum())


def search_smoothness(
    problem: _Problem, start: tuple[int, int, int, int], warm: FieldFit | None = None
) -> tuple[tuple[FieldFit, ...], FloatArray]:
    """Climb the evidence over the settings' grid, one parameter at a time; return the best fits and their weights."""
    settings = problem.settings
    values = (settings.lengths, settings.deviations, settings.roughness, settings.orders)
    done: dict[tuple[int, ...], FieldFit] = {}

    def evidence(at: tuple[int, ...], near: FieldFit | None) -> float:
        if at not in done:
            smoothness = Smoothness(settings.lengths[at[0]], settings.deviations[at[1]], settings.orders[at[3]])
            state = None if near is None else _State(near.level, near.smooth, near.rough)
            found = _fit(problem, smoothness, settings.roughness[at[2]], state)
            sound = found.evidence if math.isfinite(found.evidence) else _NO_EVIDENCE
            done[at] = replace(found, evidence=sound, indices=(at[0], at[1], at[2], at[3]))
        return done[at].evidence

    current: tuple[int, ...] = start
    evidence(current, warm)
    moved = True
    while moved and len(done) < settings.most_fits:
        moved = False
        for axis in (3, 0, 1, 2):
            for step in (1, -1):
                while 0 <= current[axis] + step < len(values[axis]):
                    there = (*current[:axis], current[axis] + step, *current[axis + 1 :])
                    if evidence(there, done[current]) <= done[current].evidence + 1e-6:
                        break
                    current, moved = there, True
    ranked = sorted(done.values(), key=lambda fit: -fit.evidence)[: settings.kept]
    best = tuple(fit for fit in ranked if fit.evidence >= ranked[0].evidence - settings.spread)
    weights = np.exp(np.array([fit.evidence for fit in best]) - best[0].evidence)
    return best, weights / weights.sum()


def fit_counts(
    mesh: Mesh,
    counts: FloatArray,
    law: CountLaw,
    settings: FitSettings | None = None,
    *,
    emptiness: bool = True,
    first: DensityFit | None = None,
) -> DensityFit:
    """Fit smoothness by evidence and emptiness, alternating.

    Parameters
    ----------
    mesh : Mesh
        Of the buckets.
    counts : array of shape (buckets,)
        Released counts.
    law : CountLaw
    settings : FitSettings, optional
    emptiness : bool
        Whether buckets may be empty; a pilot is read without.
    first : DensityFit, optional
        Of the same counts with another law of emptiness: its first fit, which knows of none, is taken over.
    """
    settings = settings_for(mesh.d) if settings is None else settings
    counts = np.asarray(counts, dtype=np.float64)
    total = max(float(counts.sum()), 3 * law.scale)
    problem = _Problem(mesh, counts, law, total, 1.0, settings)
    rng = np.random.default_rng(0)
    fits, weights = search_smoothness(problem, settings.start) if first is None else first.without_emptiness
    whole, empty, stretches = (fits, weights), np.zeros(mesh.size), None
    if emptiness:
        for turn in range(settings.rounds):
            gain = _gain_if_empty(problem, fits[0], rng)
            if settings.stretches:
                stretches = _in_stretches(problem, gain)
                empty = stretches.probability(stretches.evidence + settings.mostly_empty * stretches.shares)
            else:
                previous = _first_guess(mesh.size, fits[0], settings) if turn == 0 else empty
                empty = _among_neighbours(problem, gain, previous)
            if turn < settings.rounds - 1 or turn == 0:
                thinned = replace(problem, present=1 - empty)
                fits, weights = search_smoothness(thinned, fits[0].indices, fits[0])
    return DensityFit(mesh, counts, law, total, fits, weights, empty, whole, stretches)


def _first_guess(size: int, fit: FieldFit, settings: FitSettings) -> FloatArray:
    """Probabilities of being empty that the mean field starts from.

    Neighbours that have to agree are all empty or all filled, and from an even start noise decides which. Where a flat
    field accounts for all counts there is nothing that emptiness has to explain: few buckets are empty.
    """
    flat = fit.is_flat and settings.roughness[fit.indices[2]] == 0
    return np.full(size, 1 / (1 + math.exp(-settings.empty_prior)) if flat else 0.5)


def _gain_if_empty(problem: _Problem, fit: FieldFit, rng: np.random.Generator) -> FloatArray:
    """By how much each count is likelier if its bucket is empty than by the field of the others, as a logarithm."""
    settings, law, y = problem.settings, problem.law, problem.counts
    mean, variance = _left_out(fit, settings, rng)
    log_relative = np.clip(mean[:, None] + np.sqrt(variance)[:, None] * _HERMITE[0], _FLOOR, _CEILING)
    predicted = law.log_density(y[:, None], problem.base[:, None] * np.exp(log_relative))
    filled = _log_mean(predicted, _HERMITE[1] / _HERMITE[1].sum())
    sizes = np.geomspace(law.scale, max(float(y.max()), 10 * law.scale), 24)
    broad = _log_mean(law.log_density(y[:, None], sizes[None, :]), np.full(24, 1 / 24))
    filled = np.logaddexp(math.log1p(-settings.broad) + filled, math.log(settings.broad) + broad)
    return np.asarray(law.log_noise(y) - filled)


def _in_stretches(problem: _Problem, gain: FloatArray) -> Stretches:
    """Emptiness along one column, from what each count says."""
    settings = problem.settings
    ratio, apart = np.exp(np.clip(gain, -40, 40)), np.diff(problem.mesh.centres[:, 0])
    return Stretches.of(ratio, apart, settings.stretches, settings.empty_shares)


def _among_neighbours(problem: _Problem, gain: FloatArray, empty: FloatArray) -> FloatArray:
    """Probability that each bucket is empty by the mean field, blended with what joined boxes say."""
    alone, joined = _mean_field(problem, gain, empty), problem.settings.joined
    return blend(alone, joined_emptiness(problem.mesh, gain), joined) if joined else alone


def _mean_field(problem: _Problem, gain: FloatArray, empty: FloatArray) -> FloatArray:
    """Settle which buckets are empty, from what each count says and from their neighbours."""
    settings = problem.settings
    prior = settings.empty_prior
    # no record in a narrow bucket that expects few is chance: a hole that small needs an empty neighbour
    narrow = np.log(np.minimum(problem.mesh.volumes * settings.narrow, 1.0)) if settings.narrow else 0.0
    for _ in range(8):
        around = problem.mesh.neighbour_mean(empty)
        odds = prior + narrow * np.maximum(1 - 2 * around, 0) + settings.coupling * around + gain
        empty = 0.5 * empty + 0.5 / (1 + np.exp(-np.clip(odds, -40, 40)))
        # where most buckets are empty, the next one is likely to be: the prior is learnt from the share of empty ones
        share = min(max(float(empty.mean()), 1e-3), 1 - 1e-3)
        learnt = settings.empty_prior + max(math.log(share / (1 - share)), 0.0)
        prior = min(learnt, settings.most_empty_prior)
    return empty


def _left_out(fit: FieldFit, settings: FitSettings, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each bucket's log density given all the other counts."""
    om, size = fit.combined, len(fit.combined)
    if size <= 1500 and fit.prior.mesh.d == 1:
        own = np.diag(fit.factor.solve(np.eye(size)))
    else:
        root, draws = fit.prior.root, settings.predictive_draws
        noise = np.sqrt(om)[:, None] * rng.standard_normal((size, draws))
        own = (fit.factor.solve(root @ rng.standard_normal((root.shape[1], draws)) + noise) ** 2).mean(axis=1)
    own = np.maximum(own, 1e-9)
    target = (fit.weight * fit.log_relative + fit.slope) / (1 + fit.rough_variance * fit.weight)
    precision = np.maximum(1 / own - om, 0.05 / own)
    mean = np.clip(((fit.smooth + fit.level) / own - target) / precision, -25, 10)
    return mean, np.minimum(1 / precision + fit.rough_variance, 9.0)


def _log_mean(logs: FloatArray, weights: FloatArray) -> FloatArray:
    """Logarithm of the weighted mean of exponentials along the last axis."""
    top = logs.max(axis=-1)
    return np.asarray(np.log(np.exp(logs - top[..., None]) @ weights) + top)
