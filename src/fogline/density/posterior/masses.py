r"""From a fit to masses of leaves: the estimate itself, and draws that carry its whole error.

Two things can be asked for. The **population** is the density behind the records: a draw is
:math:`\Lambda_j (1 - e_j)` from the posterior, with the sampling error of the records inside. The **records** are what
the table itself would answer: given :math:`\Lambda_j`, the number of records in a bucket has the law
:math:`P(N_j \mid y_j, \Lambda_j) \propto \mathrm{Poisson}(N_j; \Lambda_j)\, P(Z = y_j - N_j)`, and only the noise is in
its error.

Inside a bucket the mass follows the smooth part of the field, uncertainly: a draw's shares of the leaves are a
Dirichlet variable around it, one per bucket and draw, so that probabilities of boxes add up and distribution functions
rise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import sparse
from scipy.special import log_ndtr, ndtri, ndtri_exp

from fogline._typing import FloatArray, IntArray
from fogline.density.leaves import LeafRelease
from fogline.density.partition import public_generator
from fogline.density.posterior.field import Mesh, label_leaves
from fogline.density.posterior.fit import DensityFit, FitSettings, fit_counts, settings_for
from fogline.density.posterior.likelihood import CountLaw
from fogline.density.posterior.released_sums import (
    ReleasedSums,
    reconcile_blocks,
    reconcile_halves,
    reconcile_margins,
    reconcile_walls,
)

__all__ = ["BucketPosterior", "LeafMasses", "MassSettings"]


@dataclass(frozen=True)
class MassSettings:
    """Tuned numbers of the reading.

    Attributes
    ----------
    draws : int
        Number of posterior draws.
    thinning, other_thinning : float
        Power of the probability of not being empty that multiplies the estimate; the second where emptiness follows
        the mean field beside stretches.
    levels : int
        How many times the box is halved to reconcile the estimate with released sums.
    heavy : float
        Stretches at a wall of one column with a larger share than this are halved further.
    edge : float
        A bucket of one column is the edge of a stretch where its neighbour's density is below this part of its own.
    doubted_edge : float
        Share of the draws in which the records of such a bucket begin at a random place inside it.
    most_evenness : float
        Most concentration of the shares within a bucket.
    agreement : float
        Part of the coin that buckets share when a draw decides which of them are empty; only for the mean field.
    doubt : float
        Weight, in the estimate and among the draws, of emptiness by the mean field beside stretches, in one column.
    doubtful : float
        Buckets that are empty with a larger probability than this have no more records in draws than counts allow:
    allowed : float
        their counts, this many records and this many deviations.
    tempered : float
        Power of the evidence by which a draw chooses the length of stretches and the share of emptiness.
    evidence : float
        How many times its variance the squared sum of residuals must be before shrunk buckets get anything back.
    crossing : float
        Slabs across a column are reconciled with their released sums; they end where buckets with at most this part of
        the slab's content reach across.
    wall_contrast : float
        A wall whose leaf is this many times denser than the next holds a heap.
    background : float
        Probability, before the counts are seen, that buckets which look empty hold a little together.
    pilot_sums : bool
        Whether released sums of the estimate are those of both stages; in three columns it did not pay.
    """

    draws: int = 400
    thinning: float = 1.5
    other_thinning: float = 1.5
    levels: int = 3
    heavy: float = 0.05
    edge: float = 0.1
    doubted_edge: float = 0.5
    most_evenness: float = 64.0
    agreement: float = 0.8
    doubt: float = 0.5
    doubtful: float = 0.05
    allowed: float = 3.0
    tempered: float = 0.5
    evidence: float = 10.0
    crossing: float = 0.1
    wall_contrast: float = 4.0
    background: float = 0.05
    pilot_sums: bool = True


_SETTINGS = {
    1: MassSettings(thinning=2.5, evidence=4.0),
    2: MassSettings(draws=200, thinning=2.0, levels=3),
    3: MassSettings(draws=80, levels=2, pilot_sums=False),
}


class BucketPosterior:
    """The posterior of bucket masses, and how they spread over leaves.

    Parameters
    ----------
    release : LeafRelease
    settings : MassSettings, optional
    flat : bool
        Whether the field may be taken for nearly flat.
    fit : DensityFit, optional
        Of the counts, where there is one.

    Attributes
    ----------
    fit : DensityFit
    expected : array of shape (buckets,)
        Estimated number of records behind each bucket; in one column the mean over both laws of emptiness.
    """

    def __init__(
        self,
        release: LeafRelease,
        settings: MassSettings | None = None,
        *,
        flat: bool = True,
        fit: DensityFit | None = None,
    ) -> None:
        self.release = release
        self.settings = _SETTINGS[release.spec.d] if settings is None else settings
        stage = release.counts
        self.mesh = Mesh.of(stage.boxes, release.spec.leaves)
        self.law = CountLaw(stage.noise)
        self.sums = ReleasedSums.of(release, pilot=self.settings.pilot_sums)
        settings_of_fields = settings_for(release.spec.d, flat=flat)
        self.fit = self._fitted(settings_of_fields) if fit is None else fit
        self._estimate = self._expected()
        self._other = self._by_mean_field(settings_of_fields)
        self.expected = self._estimate
        if self._other is not None:
            doubt = self.settings.doubt
            self.expected = (1 - doubt) * self._estimate + doubt * self._other.expected

    def _fitted(self, settings: FitSettings, first: DensityFit | None = None) -> DensityFit:
        with np.errstate(all="ignore"):
            counts = self.release.counts.counts.astype(np.float64)
            return fit_counts(self.mesh, counts, self.law, settings, first=first)

    def _by_mean_field(self, settings: FitSettings) -> BucketPosterior | None:
        """The same counts with emptiness by a mean field: no one law of emptiness is sure."""
        draws = round(self.settings.doubt * self.settings.draws)
        if self.fit.stretches is None or not draws:
            return None
        fit = self._fitted(replace(settings, stretches=()), self.fit)
        own = replace(self.settings, draws=draws, thinning=self.settings.other_thinning)
        return BucketPosterior(self.release, own, fit=fit)

    # -- buckets -------------------------------------------------------------------------------------------

    def _expected(self) -> FloatArray:
        thinned = self.fit.intensity * (1 - self.fit.empty) ** self.settings.thinning
        total = max(float(self.release.total), 1.0)
        if self.mesh.d > 1:
            thinned = self._with_background(thinned)
            blocks = reconcile_blocks(thinned, self.sums, self.mesh, self.settings.levels)
            slabs = reconcile_margins(blocks, self.sums, self.settings.crossing)
            return reconcile_walls(slabs, self.sums, self.settings.wall_contrast)
        if self.fit.stretches is not None:
            thinned = self._with_background(thinned)
        if self.settings.levels:
            thinned = reconcile_halves(thinned, self.sums, self.settings.levels, self.settings.heavy)
        return np.asarray(thinned * total / max(float(thinned.sum()), 1e-300))

    def _with_background(self, expected: FloatArray) -> FloatArray:
        """Give back what buckets lost together, where their released sum shows it.

        A bucket whose count says little is shrunk, often to nothing. The sum of what such counts lost shows whether it
        was records or noise: by the excess of its square over the variance of the noise. It goes to where the field
        that knows of no emptiness would have it.
        """
        free, rest, variance = self._rest(expected)
        if rest**2 <= self.settings.evidence * variance:
            return expected
        shape = free * self.fit.unthinned
        change = rest * (1 - variance / rest**2) * shape / max(float(free @ shape), 1e-300)
        return np.asarray(np.maximum(expected + change, expected * (1 - free)))

    def _rest(self, expected: FloatArray) -> tuple[FloatArray, float, float]:
        """How freely each bucket was shrunk, from 0 to 1, the sum of what that lost and the variance of its noise."""
        stage = self.release.counts
        free = 1 - (1 - self.fit.empty) * expected / (expected + stage.noise.sd)
        return free, float(free @ (stage.counts - expected)), float(free @ free) * stage.noise.variance

    @property
    def noise_ratio(self) -> float:
        r"""Variance of the numbers of records that the released counts leave, over that of sampling.

        A Poisson number with mean :math:`\lambda` of which a count with noise of variance :math:`\sigma^2` was
        released has the variance :math:`\lambda \sigma^2 / (\lambda + \sigma^2)`, to first order; sampling gives
        :math:`\lambda`.
        """
        noise, expected = self.release.counts.noise.variance, np.maximum(self.expected, 0.0)
        left = expected * noise / np.maximum(expected + noise, 1e-300)
        return float(left.sum() / max(float(expected.sum()), 1e-300))

    @cached_property
    def _population(self) -> FloatArray:
        """Drawn intensities around the estimate, 0 where a draw has the bucket empty; shape (buckets, draws)."""
        rng = public_generator(self.release.counts.counts, np.array([1]))
        wanted = self.settings.draws - (self._other.settings.draws if self._other else 0)
        sizes = np.maximum(1, np.round(wanted * self.fit.weights).astype(int))
        parts = [fit.draws(int(size), rng)[0] for fit, size in zip(self.fit.fits, sizes, strict=True)]
        intensity = self.fit.base[:, None] * np.exp(np.concatenate(parts, axis=1))
        filled, stretches = 1 - self.fit.empty, self.fit.stretches
        # Recentred: an intensity far out in a heavy tail would be taken for thousands of records. The estimate is
        # thinned more than by the probability of being empty; a draw in which a bucket is not empty is whole.
        if stretches is not None:
            full = 1 - stretches.draws(intensity.shape[1], self.settings.tempered * stretches.evidence, rng)
            _occupy_one(full, self.mesh.volumes, rng)
            whole = self._estimate / np.maximum(filled**self.settings.thinning, 1e-200)
            return self._within_counts(_recentred(intensity, whole), full)
        full = _occupied(self.fit.empty, intensity.shape[1], self.settings.agreement, rng)
        _occupy_one(full, self.mesh.volumes, rng)
        return _recentred(intensity * full, self._estimate / np.maximum(filled ** (self.settings.thinning - 1), 0.05))

    def _within_counts(self, drawn: FloatArray, full: FloatArray) -> FloatArray:
        """Lower drawn intensities of doubtful buckets to what their counts leave likely, singly and together.

        Counts of buckets that are taken for empty do not bind the field: a draw in which they are filled could have any
        number of records there. Sums over 1, 4, 16, ... of them stay below the counts and a few deviations.
        """
        allowed = self.settings.allowed
        stage, chosen = self.release.counts, np.flatnonzero(self.fit.empty > self.settings.doubtful)
        number = full[chosen]
        part, seen, width = drawn[chosen] * number, stage.counts[chosen, None] * number, 1
        while width < 4 * len(chosen):
            starts = np.arange(0, len(chosen), width)
            mass, count, noise = (np.add.reduceat(one, starts, axis=0) for one in (part, seen, number))
            count = np.maximum(count, 0.0)
            most = count + allowed + allowed * np.sqrt(count + noise * stage.noise.variance)
            part *= np.repeat(np.minimum(1.0, most / np.maximum(mass, 1e-300)), width, axis=0)[: len(chosen)]
            width *= 4
        found = drawn * full
        found[chosen] = part
        return found

    @cached_property
    def _background(self) -> FloatArray:
        """What buckets that are taken to be empty may hold together, shape (buckets, draws).

        One count says that its bucket is empty, and a hundred that say so have a sum with the noise of all of them:
        records may be there, a few in each. The sum of what the counts have beyond the estimate is normal around that
        many records. A part `background` of all columns have some, of the size of the noise in the sum; draws follow
        what the sum says about that.
        """
        rng = public_generator(self.release.counts.counts, np.array([4]))
        draws, none = self._population.shape[1], np.zeros((self.mesh.size, 1))
        free, rest, variance = self._rest(self._estimate)
        shape = free * self.fit.unthinned
        if not self.settings.background or not variance > 0 or not shape.sum() > 0:
            return none
        odds = self.settings.background / (1 - self.settings.background)
        z = rest / math.sqrt(variance)  # prior and noise have the same variance: half of the sum is believed
        log_odds = math.log(2 * odds) - 0.5 * math.log(2) + z * z / 4 + float(log_ndtr(z / math.sqrt(2)))
        present = rng.random(draws) < 1 / (1 + math.exp(-min(max(log_odds, -700.0), 700.0)))
        mean, sd = rest / 2, math.sqrt(variance / 2)
        size = mean - sd * ndtri_exp(np.log(rng.random(draws)) + log_ndtr(mean / sd))
        return np.asarray(np.outer(shape / shape.sum(), np.where(present, np.maximum(size, 0.0), 0.0)))

    def bucket_draws(self, target: str) -> FloatArray:
        """Drawn contents of buckets, shape (buckets, draws): intensities, or numbers of records."""
        found = self._population + self._background
        if target == "records":
            rng = public_generator(self.release.counts.counts, np.array([2]))
            counts = self.release.counts.counts.astype(np.float64)
            records = _records_given(counts, found, self.law, rng, exact=self.mesh.d == 1)
            found = self._seen_by_pilot(records, rng)
        return found if self._other is None else np.concatenate([found, self._other.bucket_draws(target)], axis=1)

    def _seen_by_pilot(self, records: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draws of numbers of records, given also what the pilot released.

        A region of many buckets has the noise of each of them in its sum, and the pilot's count of it has one. Draws
        are moved towards the pilot by the variances of both, each with noise of its own, so that they spread as the
        posterior of both stages does (a Kalman step on draws); buckets share a move by their variances.
        """
        pilot, boxes, buckets, regions = self.release.pilot, self.sums.pilot_region, self.sums.region, self.sums.regions
        seen = np.bincount(boxes, pilot.counts, minlength=regions)
        noise = np.bincount(boxes, minlength=regions) * pilot.noise.variance
        own = records.var(axis=1)
        gather = sparse.coo_matrix(
            (np.ones(len(buckets)), (buckets, np.arange(len(buckets)))), shape=(regions, len(buckets))
        ).tocsr()
        sums = gather @ records
        variance = sums.var(axis=1)
        gain = variance / np.maximum(variance + noise, 1e-300)
        drawn = seen[:, None] + np.sqrt(noise)[:, None] * rng.standard_normal(sums.shape)
        moves = gain[:, None] * (drawn - sums)
        if self.mesh.d > 1:
            part = own / np.maximum(np.bincount(buckets, own, minlength=regions), 1e-300)[buckets]
            return np.asarray(np.maximum(records + part[:, None] * moves[buckets], 0.0))
        movable = own[:, None] * (records > 0)  # a bucket that a draw has empty gets no record from the pilot's noise
        part = movable / np.maximum(gather @ movable, 1e-300)[buckets]
        moved = part * moves[buckets]
        return np.asarray(np.maximum(records + moved, 0.0))

    # -- leaves --------------------------------------------------------------------------------------------

    @cached_property
    def label(self) -> IntArray:
        """Bucket of each leaf, flat."""
        return label_leaves(self.release.counts.boxes, self.release.spec.leaves).ravel()

    @cached_property
    def _order(self) -> tuple[IntArray, IntArray]:
        """Leaves sorted by bucket, and where each bucket begins."""
        order = np.argsort(self.label, kind="stable")
        sizes = np.bincount(self.label, minlength=self.mesh.size)
        return order, np.concatenate([[0], np.cumsum(sizes)[:-1]])

    @cached_property
    def shape(self) -> FloatArray:
        """Share of each leaf in its bucket, flat; follows the smooth part of the field."""
        log_shape = _log_shape(self.mesh, self.fit, self.label, self.release.spec.leaves)
        values = np.exp(np.clip(log_shape, -30, 30))
        total = np.bincount(self.label, values, minlength=self.mesh.size)
        return np.asarray(values / total[self.label])

    @cached_property
    def evenness(self) -> FloatArray:
        """Concentration of the leaves' shares of each bucket: small where the density is rough."""
        rough = sum(w * fit.rough_variance for w, fit in zip(self.fit.weights, self.fit.fits, strict=True))
        return np.asarray(np.clip(1 / np.maximum(rough, 1e-9), 1.0, self.settings.most_evenness))

    def contents(self, target: str) -> LeafMasses:
        """Estimated and drawn contents of leaves."""
        buckets = self.bucket_draws(target)
        expected = self.expected if target == "population" else buckets.mean(axis=1)
        even = partial(self.leaf_draws, target, even=True)
        return LeafMasses(expected[self.label] * self.shape, self.leaf_draws(target, buckets=buckets), even)

    def leaf_draws(
        self, target: str = "population", *, even: bool = False, buckets: FloatArray | None = None
    ) -> FloatArray:
        """Drawn contents of leaves, shape (draws, leaves); with `even`, buckets spread as estimated."""
        buckets = self.bucket_draws(target) if buckets is None else buckets
        if even:
            spread = buckets.T[:, self.label]
            spread *= self.shape
            return spread
        rng = public_generator(self.release.counts.counts, np.array([3]))
        order, starts = self._order
        evenness = self.evenness
        if target == "records":  # records of a bucket fall into leaves at random, too
            evenness = 1 / (1 / evenness + 1 / np.maximum(buckets.mean(axis=1), 1.0))
        concentration = np.maximum((evenness[self.label] * self.shape)[order], 1e-3)
        draws, ordered_label, least = np.empty((buckets.shape[1], len(order))), self.label[order], 1e-12 * concentration
        edges = self._edges(buckets.shape[1])
        for k in range(len(draws)):  # one by one, so that what is written stays in the processor's cache
            share = rng.standard_gamma(concentration)
            share += least
            for leaves, begins in edges:
                share[leaves[: begins[k]]] *= _BEFORE_EDGE
            share *= (buckets[:, k] / np.add.reduceat(share, starts))[ordered_label]
            draws[k, order] = share
        return draws

    def _edges(self, draws: int) -> list[tuple[IntArray, IntArray]]:
        """Buckets of one column beside nearly empty ones: leaves from the empty side on, and how many have none.

        The field tells how a bucket spreads by its neighbours, and nothing tells where in it a stretch of records
        begins: at a least price or a minimum wage it is the first record, anywhere in the bucket.
        """
        found = list[tuple[IntArray, IntArray]]()
        if self.mesh.d > 1 or not self.settings.doubted_edge:
            return found
        rng = public_generator(self.release.counts.counts, np.array([5]))
        boxes = self.release.counts.boxes[:, 0]
        sizes = boxes[:, 1] - boxes[:, 0]
        density, clear = self.expected / sizes, 3 * self.release.counts.noise.sd
        beside = np.stack([np.append(np.inf, density[:-1]), np.append(density[1:], np.inf)])
        is_edge = (beside < self.settings.edge * density) & (sizes > 1) & (self.expected > clear)
        for side, j in np.argwhere(is_edge):
            leaves = np.arange(boxes[j, 0], boxes[j, 1])
            begins = np.floor(rng.random(draws) * sizes[j]).astype(np.int64)
            begins[rng.random(draws) >= self.settings.doubted_edge] = 0
            found.append((leaves if side == 0 else leaves[::-1], begins))
        return found


_BEFORE_EDGE = 1e-9
"""What is left of a leaf's share in a draw in which the records begin after it."""


class LeafMasses:
    """Contents of leaves: the estimate, draws, and draws in which buckets spread as estimated.

    Parameters
    ----------
    estimate, draws : array
    even : array or callable
        The last, or what makes it when it is first asked for: only the part of smoothing in an error needs it.

    Examples
    --------
    >>> masses = LeafMasses(np.array([1.0, 3.0]), np.ones((2, 2)), lambda: np.zeros((2, 2)))
    >>> masses.map(lambda part: part.sum(axis=-1)).even.tolist()
    [0.0, 0.0]
    """

    def __init__(self, estimate: FloatArray, draws: FloatArray, even: FloatArray | Callable[[], FloatArray]) -> None:
        self.estimate = estimate
        self.draws = draws
        self._even = even

    @property
    def even(self) -> FloatArray:
        """Draws in which buckets spread as estimated."""
        if callable(self._even):
            self._even = self._even()
        return self._even

    def map(self, change: Callable[[FloatArray], FloatArray]) -> LeafMasses:
        """Apply a linear change to all contents; it sees arrays whose last axes are the columns."""
        return LeafMasses(change(self.estimate), change(self.draws), lambda: change(self.even))

    def normalised(self, d: int) -> LeafMasses:
        """Contents that sum to 1 over the last d axes; even where there is nothing."""
        axes = tuple(range(-d, 0))

        def change(part: FloatArray) -> FloatArray:
            total = part.sum(axis=axes, keepdims=True)
            total = np.where(np.abs(total - 1) < 1e-12, 1.0, total)  # normalised before: what rounding left
            found = part / np.where(total > 0, total, 1.0)
            if not np.all(total > 0):
                found = np.where(total > 0, found, 1 / math.prod(part.shape[k] for k in axes))
            return np.asarray(found)

        return self.map(change)


def _occupied(empty: FloatArray, draws: int, agreement: float, rng: np.random.Generator) -> FloatArray:
    """Which buckets hold anything, per draw: each with its probability, all of a draw by nearly the same coin."""
    common = math.sqrt(agreement) * rng.standard_normal(draws)
    own = math.sqrt(1 - agreement) * rng.standard_normal((len(empty), draws))
    return np.asarray(common + own >= ndtri(np.clip(empty, 1e-12, 1 - 1e-12))[:, None], dtype=np.float64)


def _occupy_one(full: FloatArray, volumes: FloatArray, rng: np.random.Generator) -> None:
    """Where a draw leaves all buckets empty, nothing is known: everything may lie in any one of them."""
    nothing = np.flatnonzero(full.sum(axis=0) == 0)
    full[rng.choice(len(volumes), size=len(nothing), p=volumes / volumes.sum()), nothing] = 1.0


def _recentred(draws: FloatArray, expected: FloatArray) -> FloatArray:
    """Draws whose mean is the estimate."""
    mean = draws.mean(axis=1)
    factor = np.where(mean > 0, np.minimum(expected, 10 * mean) / np.maximum(mean, 1e-300), 0.0)
    return np.asarray(draws * factor[:, None])


def _records_given(
    counts: FloatArray, intensity: FloatArray, law: CountLaw, rng: np.random.Generator, *, exact: bool = True
) -> FloatArray:
    """Draw numbers of records given intensities and released counts.

    By the law itself where few are expected, if `exact` (measured in one column); else by the normal law of the records
    times the law of the noise.
    """
    y, found = np.broadcast_to(counts[:, None], intensity.shape), np.zeros(intensity.shape)
    few = intensity < (_FEW if exact else 0.0)
    if law.scale < _FEW:  # a count that far above what is expected would need more terms
        few &= y < 2 * _FEW
    for some, draw in ((few, _few_given), (~few, _many_given)):
        part = some & (intensity > 0)
        found[part] = draw(y[part], intensity[part], law, rng)
    return found


_FEW, _MOST_TERMS = 4.0, 30
"""Below this intensity numbers of records are drawn from the Poisson law, which a normal one does not resemble."""


def _few_given(y: FloatArray, v: FloatArray, law: CountLaw, rng: np.random.Generator) -> FloatArray:
    """Draw by the inverse of the distribution function: Poisson weights times those of the noise, term by term."""
    inverse, bell = 1 / law.noise.scale, law.noise.kind == "gaussian"
    if not len(v):
        return v

    def next_weight(weight: FloatArray, number: int) -> FloatArray:
        log_step = (y - number - 0.5) * inverse**2 if bell else np.where(y > number, inverse, -inverse)
        return np.asarray(weight * v * np.exp(np.clip(log_step, -20, 20)) / (number + 1))

    weight, total, terms = np.ones(len(v)), np.ones(len(v)), 0
    while terms < _MOST_TERMS and np.any(weight > 1e-9 * total):
        weight = next_weight(weight, terms)
        total += weight
        terms += 1
    left, weight, drawn = rng.random(len(v)) * total, np.ones(len(v)), np.zeros(len(v))
    for number in range(terms):
        left -= weight
        drawn += left > 0
        weight = next_weight(weight, number)
    return drawn


def _many_given(y: FloatArray, v: FloatArray, law: CountLaw, rng: np.random.Generator) -> FloatArray:
    """Draw from a normal law times that of the noise.

    For Laplace noise that is one of two normal laws, shifted up or down and cut at the released count.
    """
    if law.noise.kind == "gaussian":
        noise = law.noise.variance
        variance = v * noise / (v + noise)
        mean = (v * noise + y * v) / (v + noise)
        return np.asarray(np.maximum(mean + np.sqrt(variance) * rng.standard_normal(v.shape), 0.0))
    v = np.maximum(v, 1e-9)
    b, sd = law.scale, np.sqrt(v)
    low_mean, high_mean = v + v / b, v - v / b
    below = (v / 2 / b + v - y) / b + log_ndtr((y - low_mean) / sd)
    above = (v / 2 / b - v + y) / b + log_ndtr((high_mean - y) / sd)
    is_below = rng.random(v.shape) < 1 / (1 + np.exp(np.clip(above - below, -700, 700)))
    # The cut lies v / b**2 deviations out, where a full bucket's tail underflows: logarithms throughout.
    log_u = np.log(np.maximum(rng.random(v.shape), 1e-300))
    low = low_mean + sd * ndtri_exp(log_u + log_ndtr((y - low_mean) / sd))
    high = high_mean - sd * ndtri_exp(log_u + log_ndtr((high_mean - y) / sd))
    drawn = np.where(is_below, np.minimum(low, y), np.maximum(high, y))
    return np.asarray(np.maximum(drawn, 0.0))


def _log_shape(mesh: Mesh, fit: DensityFit, label: IntArray, leaves: tuple[int, ...]) -> FloatArray:
    """Logarithm of the smooth part at each leaf, up to a constant per bucket."""
    smooth = np.asarray(sum(w * f.smooth for w, f in zip(fit.weights, fit.fits, strict=True)))
    if mesh.d == 1:
        places = (np.arange(leaves[0]) + 0.5) / leaves[0]
        return np.asarray(np.interp(places, mesh.centres[:, 0], smooth))
    slopes = _slopes(mesh, smooth)
    grids = np.meshgrid(*[(np.arange(n) + 0.5) / n for n in leaves], indexing="ij")
    points = np.stack([g.ravel() for g in grids], axis=1)
    return np.asarray(np.einsum("ij,ij->i", slopes[label], points - mesh.centres[label]))


def _slopes(mesh: Mesh, values: FloatArray) -> FloatArray:
    """Gradient of a field per bucket by weighted least squares over its neighbours."""
    d, n = mesh.d, mesh.size
    first, second = np.concatenate([mesh.first, mesh.second]), np.concatenate([mesh.second, mesh.first])
    weight = np.concatenate([mesh.conductance, mesh.conductance])
    apart = mesh.centres[second] - mesh.centres[first]
    rise = values[second] - values[first]
    normal = np.zeros((n, d, d))
    right = np.zeros((n, d))
    for i in range(d):
        right[:, i] = np.bincount(first, weight * apart[:, i] * rise, minlength=n)
        for j in range(d):
            normal[:, i, j] = np.bincount(first, weight * apart[:, i] * apart[:, j], minlength=n)
    normal += 1e-6 * np.eye(d) * np.trace(normal, axis1=1, axis2=2)[:, None, None] + 1e-12 * np.eye(d)
    return np.asarray(np.linalg.solve(normal, right[:, :, None])[:, :, 0], dtype=np.float64)
