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
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import log_ndtr, ndtri, ndtri_exp

from fogline._typing import FloatArray, IntArray
from fogline.density.leaves import LeafRelease
from fogline.density.partition import public_generator
from fogline.density.posterior.field import Mesh, label_leaves
from fogline.density.posterior.fit import DensityFit, fit_counts, settings_for
from fogline.density.posterior.likelihood import CountLaw

__all__ = ["BucketPosterior", "LeafMasses", "MassSettings", "crossing_shares", "resolved_slabs"]


@dataclass(frozen=True)
class MassSettings:
    """Tuned numbers of the reading.

    Attributes
    ----------
    draws : int
        Number of posterior draws.
    thinning : float
        Power of the probability of not being empty that multiplies the estimate.
    levels : int
        How many times the box is halved to reconcile the estimate with released sums.
    most_evenness : float
        Most concentration of the shares within a bucket.
    agreement : float
        Part of the coin that buckets share when a draw decides which of them are empty: stretches are empty together.
    evidence : float
        How many times its variance the squared sum of residuals must be before shrunk buckets get anything back.
    crossing : float
        Slabs across a column are reconciled with their released sums; they end where buckets with at most this part of
        the slab's content reach across.
    wall_contrast : float
        A wall whose leaf is this many times denser than the next holds a heap.
    background : float
        Probability, before the counts are seen, that buckets which look empty hold a little together.
    """

    draws: int = 400
    thinning: float = 1.5
    levels: int = 3
    most_evenness: float = 64.0
    agreement: float = 0.8
    evidence: float = 10.0
    crossing: float = 0.1
    wall_contrast: float = 4.0
    background: float = 0.05


_SETTINGS = {1: MassSettings(), 2: MassSettings(draws=200, levels=3), 3: MassSettings(draws=80, levels=2)}


class BucketPosterior:
    """The posterior of bucket masses, and how they spread over leaves.

    Parameters
    ----------
    release : LeafRelease
    settings : MassSettings, optional
    flat : bool
        Whether the field may be taken for nearly flat.

    Attributes
    ----------
    fit : DensityFit
    expected : array of shape (buckets,)
        Estimated number of records behind each bucket.
    """

    def __init__(self, release: LeafRelease, settings: MassSettings | None = None, *, flat: bool = True) -> None:
        self.release = release
        self.settings = _SETTINGS[release.spec.d] if settings is None else settings
        stage = release.counts
        self.mesh = Mesh.of(stage.boxes, release.spec.leaves)
        self.law = CountLaw(stage.noise)
        with np.errstate(all="ignore"):
            fields = settings_for(release.spec.d, flat=flat)
            self.fit: DensityFit = fit_counts(self.mesh, stage.counts.astype(np.float64), self.law, fields)
        self.expected = self._expected()

    # -- buckets -------------------------------------------------------------------------------------------

    def _expected(self) -> FloatArray:
        thinned = self.fit.intensity * (1 - self.fit.empty) ** self.settings.thinning
        total = max(float(self.release.total), 1.0)
        if self.mesh.d > 1:
            thinned = self._with_background(thinned)
            blocks = _reconcile_blocks(thinned, self.release, self.mesh, self.settings.levels)
            slabs = _reconcile_margins(blocks, self.release, self.settings.crossing)
            return _reconcile_walls(slabs, self.release, self.settings.wall_contrast)
        if self.settings.levels:
            thinned = _reconcile(thinned, self.release, self.settings.levels)
        return np.asarray(thinned * total / max(float(thinned.sum()), 1e-300))

    def _with_background(self, expected: FloatArray) -> FloatArray:
        """Give back what buckets lost together, where their released sum shows it.

        A bucket whose count says little is shrunk, often to nothing. The sum of what such counts lost shows whether it
        was records or noise: by the excess of its square over the variance of the noise. It goes to where the field
        that knows of no emptiness would have it.
        """
        free, rest, variance = self._rest(expected)
        if rest**2 < self.settings.evidence * variance:
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
    def _population(self) -> tuple[FloatArray, FloatArray]:
        """Drawn intensities and smooth parts, shape (buckets, draws)."""
        rng = public_generator(self.release.counts.counts, np.array([1]))
        sizes = np.maximum(1, np.round(self.settings.draws * self.fit.weights).astype(int))
        parts = [fit.draws(int(size), rng) for fit, size in zip(self.fit.fits, sizes, strict=True)]
        log_relative = np.concatenate([part[0] for part in parts], axis=1)
        smooth = np.concatenate([part[1] for part in parts], axis=1)
        full = _occupied(self.fit.empty, log_relative.shape[1], self.settings.agreement, rng)
        _occupy_one(full, self.mesh.volumes, rng)
        return self.fit.base[:, None] * np.exp(log_relative) * full, smooth

    @cached_property
    def _background(self) -> FloatArray:
        """What buckets that are taken to be empty may hold together, shape (buckets, draws).

        One count says that its bucket is empty, and a hundred that say so have a sum with the noise of all of them:
        records may be there, a few in each. The sum of what the counts have beyond the estimate is normal around that
        many records. A part `background` of all columns have some, of the size of the noise in the sum; draws follow
        what the sum says about that.
        """
        rng = public_generator(self.release.counts.counts, np.array([4]))
        draws, none = self._population[0].shape[1], np.zeros((self.mesh.size, 1))
        free, rest, variance = self._rest(self.expected)
        shape = free * self.fit.unthinned
        if not self.settings.background or not variance > 0 or not shape.sum() > 0:
            return none
        odds = self.settings.background / (1 - self.settings.background)
        z = rest / math.sqrt(variance)  # prior and noise have the same variance: half of the sum is believed
        log_odds = math.log(2 * odds) - 0.5 * math.log(2) + z * z / 4 + float(log_ndtr(z / math.sqrt(2)))
        present = rng.random(draws) < 1 / (1 + math.exp(-min(log_odds, 700.0)))
        mean, sd = rest / 2, math.sqrt(variance / 2)
        size = mean - sd * ndtri_exp(np.log(rng.random(draws)) + log_ndtr(mean / sd))
        return np.asarray(np.outer(shape / shape.sum(), np.where(present, np.maximum(size, 0.0), 0.0)))

    def bucket_draws(self, target: str) -> FloatArray:
        """Drawn contents of buckets, shape (buckets, draws): intensities, or numbers of records."""
        # Recentred for both: an intensity far out in a heavy tail would be taken for thousands of records. The estimate
        # is thinned more than by the probability of being empty; a draw in which a bucket is not empty is whole.
        kept = (1 - self.fit.empty) ** (self.settings.thinning - 1)
        intensity = _recentred(self._population[0], self.expected / np.maximum(kept, 0.05)) + self._background
        if target == "population":
            return intensity
        rng = public_generator(self.release.counts.counts, np.array([2]))
        counts = self.release.counts.counts.astype(np.float64)
        return self._seen_by_pilot(_records_given(counts, intensity, self.law, rng), rng)

    @cached_property
    def _pilot_regions(self) -> tuple[IntArray, IntArray]:
        """Region of each of the pilot's boxes and of each bucket: the least ones that both stages counted."""
        pilot = label_leaves(self.release.pilot.boxes, self.release.spec.leaves).ravel()
        boxes = int(pilot.max()) + 1
        pairs = np.unique(pilot * self.mesh.size + self.label)
        ends = pairs // self.mesh.size, boxes + pairs % self.mesh.size
        size = boxes + self.mesh.size
        _, region = connected_components(sparse.coo_matrix((np.ones(len(pairs)), ends), shape=(size, size)), False)
        return region[:boxes].astype(np.int64), region[boxes:].astype(np.int64)

    def _seen_by_pilot(self, records: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draws of numbers of records, given also what the pilot released.

        A region of many buckets has the noise of each of them in its sum, and the pilot's count of it has one. Draws
        are moved towards the pilot by the variances of both, each with noise of its own, so that they spread as the
        posterior of both stages does (a Kalman step on draws); buckets share a move by their variances.
        """
        pilot, (boxes, buckets) = self.release.pilot, self._pilot_regions
        regions = int(max(boxes.max(), buckets.max())) + 1
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
        part = own / np.maximum(np.bincount(buckets, own, minlength=regions), 1e-300)[buckets]
        return np.asarray(np.maximum(records + part[:, None] * moves[buckets], 0.0))

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

    def leaf_estimate(self, target: str = "population") -> FloatArray:
        """Estimated contents of leaves, flat."""
        expected = self.expected if target == "population" else self.bucket_draws(target).mean(axis=1)
        return np.asarray(expected[self.label] * self.shape)

    def leaf_draws(self, target: str = "population", *, even: bool = False) -> FloatArray:
        """Drawn contents of leaves, shape (draws, leaves); with `even`, buckets spread as estimated."""
        buckets = self.bucket_draws(target)
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
        for k in range(len(draws)):  # one by one, so that what is written stays in the processor's cache
            share = rng.standard_gamma(concentration)
            share += least
            share *= (buckets[:, k] / np.add.reduceat(share, starts))[ordered_label]
            draws[k, order] = share
        return draws


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
    factor = np.where(mean > 0, expected / np.maximum(mean, 1e-300), 0.0)
    return np.asarray(draws * np.minimum(factor, 10.0)[:, None])


def _records_given(counts: FloatArray, intensity: FloatArray, law: CountLaw, rng: np.random.Generator) -> FloatArray:
    """Draw numbers of records given intensities and released counts.

    The normal law of the records times the law of the noise; for Laplace noise that is one of two normal laws, shifted
    up or down and cut at the released count.
    """
    y, v = counts[:, None], np.maximum(intensity, 1e-9)
    if law.noise.kind == "gaussian":
        noise = law.noise.variance
        variance = v * noise / (v + noise)
        mean = (v * noise + y * v) / (v + noise)
        drawn = mean + np.sqrt(variance) * rng.standard_normal(v.shape)
        return np.where(intensity > 0, np.maximum(drawn, 0), 0.0)
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
    return np.where(intensity > 0, np.maximum(drawn, 0.0), 0.0)


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


def _reconcile(expected: FloatArray, release: LeafRelease, levels: int) -> FloatArray:
    """Scale the estimate so that the masses of halves, quarters, ... agree with the released sums.

    At each node the estimate M (taken to be as uncertain as the sampling error of so many records) and the released
    sum Y (with its known noise) are combined by their variances; the totals are handed down from the top.
    """
    stage = release.counts
    counts = np.concatenate([[0.0], np.cumsum(stage.counts.astype(np.float64))])
    scaled = expected * max(float(release.total), 1.0) / max(float(expected.sum()), 1e-300)
    model = np.concatenate([[0.0], np.cumsum(scaled)])
    edges = np.append(stage.boxes[:, 0, 0], release.spec.leaves[0]).astype(np.float64)
    out = scaled.copy()

    def descend(first: int, last: int, total: float, level: int) -> None:
        if level == 0 or last - first < 2:
            out[first:last] = scaled[first:last] * (total / max(model[last] - model[first], 1e-300))
            return
        middle = int(np.clip(np.searchsorted(edges, (edges[first] + edges[last]) / 2), first + 1, last - 1))
        shares = []
        for start, stop in ((first, middle), (middle, last)):
            mass, seen = model[stop] - model[start], counts[stop] - counts[start]
            noise = (stop - start) * stage.noise.variance
            shares.append(max(mass + mass / (mass + noise) * (seen - mass), 0.0))
        if sum(shares) <= 0:
            shares = [model[middle] - model[first], model[last] - model[middle]]
        whole = max(sum(shares), 1e-300)
        descend(first, middle, total * shares[0] / whole, level - 1)
        descend(middle, last, total * shares[1] / whole, level - 1)

    descend(0, len(scaled), 1.0, levels)
    return out


def _reconcile_margins(expected: FloatArray, release: LeafRelease, crossing: float) -> FloatArray:
    """Bring the content of slabs across each column near their released sums; the total stays.

    The field shrinks each of many small counts towards its neighbours. Beside zeros, which are in the outermost leaf
    whatever the other columns hold, all are shrunk the same way, and their sum, which is known well, is off. Slabs end
    where few buckets reach across (:func:`resolved_slabs`); estimate and sum are combined as in :func:`_reconcile`.
    """
    stage = release.counts
    counts, total = stage.counts.astype(np.float64), float(expected.sum())
    for axis in range(release.spec.d):
        ends = resolved_slabs(crossing_shares(release, axis, expected), _margin(release, axis, expected), crossing)
        middle = (stage.boxes[:, axis, 0] + stage.boxes[:, axis, 1]) / 2
        slab = np.searchsorted(ends, middle, side="right") - 1
        mass, seen, size = (np.bincount(slab, part) for part in (expected, counts, np.ones(len(counts))))
        wanted = mass + mass / np.maximum(mass + size * stage.noise.variance, 1e-300) * (seen - mass)
        wanted = np.clip(wanted, mass / 2, 2 * mass)
        scaled = expected * (wanted / np.maximum(mass, 1e-300))[slab]
        expected = np.asarray(scaled * (total / max(float(scaled.sum()), 1e-300)))
    return expected


def _reconcile_walls(expected: FloatArray, release: LeafRelease, contrast: float) -> FloatArray:
    """Bring the content of buckets that are one leaf at a wall near their released sums; the total stays.

    Full boxes at a wall are cut at their outermost leaf, where zeros are. What lies beside a heap says nothing about
    it, yet the field shrinks its buckets towards the nearly empty ones there, all the same way. Where the wall is this
    many times denser than what is beside it, estimate and released sums are combined as in :func:`_reconcile`: of the
    whole wall, of its halves, and so on down to single buckets.
    """
    stage, total = release.counts, float(expected.sum())
    for axis, leaves in enumerate(release.spec.leaves):
        start, stop = stage.boxes[:, axis, 0], stage.boxes[:, axis, 1]
        for wall, beside in ((stop == 1, start == 1), (start == leaves - 1, stop == leaves - 1)):
            mass = float(expected[wall].sum())
            next_leaf = float((expected[beside] / (stop - start)[beside]).sum())
            if not contrast * next_leaf < mass < total:
                continue
            wanted = min(_combined(expected, release, wall), 2 * mass, (mass + total) / 2)
            changed = expected * ((total - wanted) / (total - mass))
            changed[wall] = expected[wall]
            _hand_down(changed, release, np.flatnonzero(wall), wanted)
            expected = changed
    return expected


def _combined(expected: FloatArray, release: LeafRelease, chosen: NDArray[Any]) -> float:
    """Content of some buckets: their estimate and their released sum, by their variances."""
    stage, mass = release.counts, float(expected[chosen].sum())
    seen, size = float(stage.counts[chosen].sum()), len(stage.counts[chosen])
    return max(mass + mass / max(mass + size * stage.noise.variance, 1e-300) * (seen - mass), 0.0)


def _hand_down(expected: FloatArray, release: LeafRelease, chosen: IntArray, total: float) -> None:
    """Give some buckets a total, in place: halves get theirs by estimate and released sum, and so on."""
    expected[chosen] *= total / max(float(expected[chosen].sum()), 1e-300)
    if len(chosen) < 2:
        return
    centres = release.counts.boxes[chosen].mean(axis=2)
    axis = int(np.argmax(np.ptp(centres, axis=0)))
    order = chosen[np.argsort(centres[:, axis], kind="stable")]
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    shares = [_combined(expected, release, half) for half in halves]
    if sum(shares) <= 0:
        return
    for half, share in zip(halves, shares, strict=True):
        _hand_down(expected, release, half, total * share / sum(shares))


def _margin(release: LeafRelease, axis: int, expected: FloatArray) -> FloatArray:
    """Content of each leaf of a column, every bucket spread evenly along it."""
    start, stop = release.counts.boxes[:, axis, 0], release.counts.boxes[:, axis, 1]
    change = np.zeros(release.spec.leaves[axis] + 1)
    np.add.at(change, start, expected / (stop - start))
    np.add.at(change, stop, -expected / (stop - start))
    return np.asarray(np.maximum(np.cumsum(change)[:-1], 0.0))


def crossing_shares(release: LeafRelease, axis: int, expected: FloatArray) -> FloatArray:
    """Share of the records in buckets that reach across each edge of a column's leaves."""
    start, stop = release.counts.boxes[:, axis, 0], release.counts.boxes[:, axis, 1]
    change = np.zeros(release.spec.leaves[axis] + 2)
    np.add.at(change, start + 1, expected)
    np.add.at(change, stop, -expected)
    return np.asarray(np.maximum(np.cumsum(change)[:-1], 0.0) / max(float(expected.sum()), 1e-300))


def resolved_slabs(crossing: FloatArray, margin: FloatArray, most: float) -> IntArray:
    """Edges, from the lowest on, across which buckets reach that hold at most this part of what lies below it.

    Between two such edges the content is known from the released counts; how it spreads there is not.

    Parameters
    ----------
    crossing : array of shape (leaves + 1,)
        Share of the records in buckets that reach across each edge.
    margin : array of shape (leaves,)
        Content of the leaves.
    most : float
        Of the content since the edge before.

    Examples
    --------
    >>> resolved_slabs(np.array([0, 0.02, 0.4, 0.0, 0]), np.array([0.4, 0.2, 0.2, 0.2]), 0.1).tolist()
    [0, 1, 3, 4]
    """
    below = np.concatenate([[0.0], np.cumsum(margin)]) / max(float(margin.sum()), 1e-300)
    edges = [0]
    for edge in range(1, len(margin)):
        if crossing[edge] <= most * (below[edge] - below[edges[-1]]):
            edges.append(edge)
    return np.array([*edges, len(margin)], dtype=np.int64)


def _reconcile_blocks(expected: FloatArray, release: LeafRelease, mesh: Mesh, levels: int) -> FloatArray:
    """Like :func:`_reconcile` in two and three columns: blocks of halves, quarters, ... of every axis at once."""
    stage = release.counts
    counts, noise = stage.counts.astype(np.float64), stage.noise.variance
    parent = np.zeros(mesh.size, dtype=np.int64)
    for level in range(levels + 1):
        parts = 2**level
        place = np.minimum((mesh.centres * parts).astype(np.int64), parts - 1)
        block = np.ravel_multi_index(tuple(place.T), (parts,) * mesh.d)
        mass, seen, size = (np.bincount(block, part) for part in (expected, counts, np.ones(mesh.size)))
        wanted = np.maximum(mass + mass / np.maximum(mass + size * noise, 1e-300) * (seen - mass), 0.0)
        scaled = expected * (wanted / np.maximum(mass, 1e-300))[block]
        if level:  # blocks of one parent share what it has
            before, after = np.bincount(parent, expected), np.bincount(parent, scaled)
            scaled *= (before / np.maximum(after, 1e-300))[parent]
        expected, parent = scaled, block
    return np.asarray(expected * max(1.0, 1.0 / max(float(expected.sum()), 1e-300)))
