r"""The density behind released Fourier sums: a log-Gaussian field, seen through noisy sums of all leaves at once.

Leaf j holds :math:`N_j \sim \mathrm{Poisson}(\Lambda_j)` records with :math:`\log\Lambda_j = \log(n/J) + f_j`, and the
data are :math:`z = R^\top N + \sigma\varepsilon` (:mod:`fogline.density.posterior.fourier_sums`). The field f is the
Matérn field by finite volumes of :mod:`fogline.density.posterior.field`: on equal leaves its covariance
:math:`\Sigma` is diagonal in cosines, and a product with it is two cosine transforms. A rough part of independent
Student variables may be added.

Near a field with :math:`D = \operatorname{diag}(\Lambda)`, sampling noise included, z is normal with mean
:math:`R^\top(\Lambda + D(f' - f))` and covariance :math:`\sigma^2 I + R^\top D R`. Newton's step is then

.. math:: f' = \Sigma D R\, S^{-1} (z - R^\top\Lambda + R^\top D f), \qquad
   S = \sigma^2 I + R^\top (D + D\Sigma D) R,

with a matrix S no larger than the number of readings; its determinant gives the evidence, by which length, deviation,
order and roughness are chosen. With many leaves they are chosen on a coarser grid.

**Draws** are made by simulation: a field, records and noise from the prior, moved by what S makes of the difference
between their readings and the released ones. A simulated table of Poisson counts is moved along, and is a draw of the
records themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.fft import dctn, idctn
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.special import ndtri

from fogline._typing import FloatArray
from fogline.density.leaves import LeafSpec
from fogline.density.partition import public_generator
from fogline.density.posterior.field import Smoothness, field_rate
from fogline.density.posterior.fourier_sums import LeafSums, leaf_sums, require_sums

__all__ = ["FourierPosterior", "FourierSettings"]

_FLOOR, _CEILING = -30.0, 12.0
"""Logarithms of relative densities stay between these: beyond them nothing can be told apart."""


_TEXTURE = Smoothness(0.04, 0.6, 1)


@dataclass(frozen=True)
class _Choice:
    """One smoothness and roughness."""

    smoothness: Smoothness
    roughness: float


@dataclass(frozen=True)
class FourierSettings:
    """Tuned numbers of the reading; lengths are parts of the box.

    Attributes
    ----------
    side, coarse_side : int
        Leaves per axis of the reading, and of the search for the smoothness.
    readings : int
        Most independent readings.
    lengths, deviations, roughness : tuple of float
        Values that the evidence chooses from.
    orders : tuple of int
    start : tuple of int
        Where the climb begins, an index into each of the four.
    draws : int
        Number of posterior draws.
    kept, spread : int, float
        How many of the best fits are averaged, and within which distance of evidence.
    level_variance : float
        Prior variance of the mean log density.
    freedom : float
        Degrees of freedom of the rough part.
    texture : Smoothness
        A short field that is added to the prior of draws: nobody knows what is too fine for the sums to tell.
    empty_prior, sureness : float
        Log-odds that nothing is where the sums cannot tell, at most; and what multiplies the logarithm of the field's
        own deviation, if that is less.
    contrast : float
        Leaves whose densities differ by less than this factor are empty together.
    thinning : float
        Power of the probability of not being empty that multiplies the estimate.
    agreement : float
        Part of the coin that leaves share when a draw decides which of them are empty.
    indifference : float
        Newton's steps end when the evidence changes less.
    most_steps, most_fits : int
    """

    side: int
    coarse_side: int
    readings: int
    lengths: tuple[float, ...]
    deviations: tuple[float, ...]
    roughness: tuple[float, ...] = (0.0,)
    orders: tuple[int, ...] = (1, 2)
    start: tuple[int, int, int, int] = (2, 1, 0, 1)
    draws: int = 200
    kept: int = 1
    spread: float = 4.0
    level_variance: float = 9.0
    freedom: float = 2.0
    texture: Smoothness = _TEXTURE
    empty_prior: float = 0.5
    sureness: float = 2.0
    contrast: float = 3.0
    thinning: float = 1.5
    agreement: float = 0.8
    indifference: float = 0.1
    most_steps: int = 25
    most_fits: int = 24

    @property
    def values(self) -> tuple[tuple[float, ...], ...]:
        """Values that the evidence chooses from, one row per parameter."""
        return self.lengths, self.deviations, self.roughness, self.orders

    def choice(self, at: tuple[int, ...]) -> _Choice:
        """The choice at an index into each row."""
        length, deviation, roughness, order = (row[i] for row, i in zip(self.values, at, strict=True))
        return _Choice(Smoothness(length, deviation, int(order)), roughness)


_SETTINGS = {
    1: FourierSettings(
        side=512,
        coarse_side=512,
        readings=512,
        lengths=tuple(np.geomspace(0.02, 1.28, 7).tolist()),
        deviations=(0.5, 1.0, 2.0, 4.0),
        roughness=(0.0, 0.25, 0.8),
        start=(3, 2, 0, 0),
        draws=400,
        kept=3,
    ),
    2: FourierSettings(
        side=48,
        coarse_side=20,
        readings=600,
        lengths=tuple(np.geomspace(0.05, 0.8, 5).tolist()),
        deviations=(1.0, 2.0, 4.0),
        most_steps=14,
        most_fits=12,
    ),
    3: FourierSettings(
        side=16,
        coarse_side=10,
        readings=600,
        lengths=tuple(np.geomspace(0.1, 0.8, 4).tolist()),
        deviations=(1.0, 2.0, 4.0),
        draws=80,
        most_steps=12,
        most_fits=10,
    ),
}


@dataclass(frozen=True, eq=False)
class _Covariance:
    """Prior covariance of the field: diagonal in cosines, plus the variance of the rough part per leaf."""

    spectrum: FloatArray
    rough: FloatArray | None

    def times(self, columns: FloatArray) -> FloatArray:
        """Product with a matrix of shape (leaves, k)."""
        shape, axes = self.spectrum.shape, tuple(range(self.spectrum.ndim))
        waves = dctn(columns.reshape(*shape, -1), axes=axes, norm="ortho")
        waves *= self.spectrum[..., None]
        product = np.asarray(idctn(waves, axes=axes, norm="ortho", overwrite_x=True)).reshape(columns.shape)
        return product if self.rough is None else product + self.rough[:, None] * columns

    def variance(self) -> FloatArray:
        """Variance of the field in each leaf."""
        found = self.spectrum / self.spectrum.size
        for axis, n in enumerate(self.spectrum.shape):
            squares = np.full((n, n), 2.0) * np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(n)) / n) ** 2
            squares[:, 0] = 1.0
            found = np.moveaxis(np.tensordot(found, squares, (axis, 1)), -1, axis)
        return found.ravel() if self.rough is None else found.ravel() + self.rough

    def draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Fields from the prior, shape (leaves, size)."""
        shape, axes = self.spectrum.shape, tuple(range(self.spectrum.ndim))
        waves = np.sqrt(self.spectrum)[..., None] * rng.standard_normal((*shape, size))
        drawn = np.asarray(idctn(waves, axes=axes, norm="ortho", overwrite_x=True)).reshape(-1, size)
        if self.rough is not None:
            drawn += np.sqrt(self.rough)[:, None] * rng.standard_normal(drawn.shape)
        return drawn


def _spectrum(leaves: tuple[int, ...], smoothness: Smoothness, level_variance: float) -> FloatArray:
    """Variances of the cosines; those of all but the constant make up the field's deviation."""
    d, laplacian = len(leaves), np.zeros(leaves)
    for j, n in enumerate(leaves):
        laplacian = laplacian + _along(n**2 * (2 - 2 * np.cos(np.pi * np.arange(n) / n)), j, d)
    variances = (field_rate(smoothness, d) ** 2 + laplacian) ** (-float(smoothness.order))
    variances.flat[0] = 0.0
    if variances.size > 1:
        variances *= smoothness.deviation**2 * variances.size / float(variances.sum())
    variances.flat[0] = level_variance * variances.size
    return np.asarray(variances)


def _along(values: FloatArray, axis: int, d: int) -> FloatArray:
    return values.reshape([-1 if j == axis else 1 for j in range(d)])


@dataclass(frozen=True, eq=False)
class _Fit:
    """The mode for one choice; `force` is what the data still pull with at it, a number per reading."""

    choice: _Choice
    evidence: float
    log_relative: FloatArray
    rough: FloatArray
    intensity: FloatArray
    force: FloatArray
    covariance: _Covariance


def _fit(data: LeafSums, choice: _Choice, settings: FourierSettings, near: tuple[FloatArray, FloatArray]) -> _Fit:
    """Newton's method for one choice."""
    response, base = data.response, data.total / data.grid.n_leaves
    spectrum = _spectrum(data.grid.leaves, choice.smoothness, settings.level_variance)
    log_relative, rough = near[0], near[1] if choice.roughness else np.zeros(len(near[1]))
    length, last, evidence = 1.0, math.inf, -math.inf
    for step in range(settings.most_steps):
        intensity = base * np.exp(log_relative)
        variance = None
        if choice.roughness:
            variance = (settings.freedom * choice.roughness**2 + rough**2) / (settings.freedom + 1)
        covariance = _Covariance(spectrum, variance)
        weighted = intensity[:, None] * response
        gain = covariance.times(weighted)
        system = _raised(response.T @ (weighted + intensity[:, None] * gain), data.noise)
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        target = data.values + weighted.T @ (log_relative - 1)
        force = cho_solve(factor, target, check_finite=False)
        change = gain @ force - log_relative
        if variance is not None:
            moved = variance * (weighted @ force) - rough
        sure = np.minimum(1.0, 3 * np.sqrt(intensity * np.minimum(1.0, intensity / data.noise**2)))
        # a rise is taken as a factor, since the exponential outruns its tangent; steps that circle are cut
        largest = float(np.abs(change * sure).max())
        length = 1.0 if largest < 0.8 * last else max(0.7 * length, 0.2)
        log_relative = np.clip(log_relative + length * _tamed(change), _FLOOR, _CEILING)
        rough = rough if variance is None else rough + length * moved
        before, evidence = evidence, -0.5 * float(target @ force) - float(np.log(np.diagonal(factor[0])).sum())
        if largest < 0.05 or (step > 2 and abs(evidence - before) < settings.indifference):
            break
        last = largest
    if variance is not None:
        evidence += _rough_evidence(rough, variance, choice.roughness, settings.freedom)
    intensity = base * np.exp(log_relative)
    return _Fit(choice, evidence, log_relative, rough, intensity, force, covariance)


def _raised(system: FloatArray, noise: float) -> FloatArray:
    """Add the noise to a covariance of readings, and as much as rounding may have taken; in place."""
    diagonal = system.ravel()[:: len(system) + 1]
    diagonal += noise**2 + 1e-14 * float(diagonal.sum())
    return system


def _tamed(change: FloatArray) -> FloatArray:
    return np.where(change > 0, np.log1p(np.maximum(change, 0)), np.maximum(change, -2))


def _rough_evidence(rough: FloatArray, variance: FloatArray, roughness: float, freedom: float) -> float:
    """What the evidence gains as the rough part is not normal but Student."""
    tails = -0.5 * (freedom + 1) * np.log1p(rough**2 / (freedom * roughness**2))
    return float((0.5 * rough**2 / variance + tails + 0.5 * np.log(variance / roughness**2)).sum())


def _search(data: LeafSums, settings: FourierSettings, first: _Fit) -> list[_Fit]:
    """Climb the evidence, one parameter at a time; all fits, the best first."""
    values = settings.values
    done: dict[tuple[int, ...], _Fit] = {}

    def evidence(at: tuple[int, ...], near: tuple[FloatArray, FloatArray]) -> float:
        if at not in done:
            done[at] = _fit(data, settings.choice(at), settings, near)
        return done[at].evidence

    current: tuple[int, ...] = settings.start
    evidence(current, (first.log_relative, first.rough))
    moved = True
    while moved and len(done) < settings.most_fits:
        moved = False
        for axis in (3, 0, 1, 2):
            for step in (1, -1):
                while 0 <= current[axis] + step < len(values[axis]):
                    there = (*current[:axis], current[axis] + step, *current[axis + 1 :])
                    best = done[current]
                    if evidence(there, (best.log_relative, best.rough)) <= best.evidence + 1e-6:
                        break
                    current, moved = there, True
    return sorted(done.values(), key=lambda fit: -fit.evidence)


def _start(data: LeafSums) -> tuple[FloatArray, FloatArray]:
    relative = data.sharpened() * data.grid.n_leaves / data.total
    return np.log(np.clip(relative, 0.02, 1e5)), np.zeros(data.grid.n_leaves)


class FourierPosterior:
    """The posterior of leaf contents given released Fourier sums.

    Parameters
    ----------
    density : PrivateDensity
        A release of grid features.
    settings : FourierSettings, optional

    Attributes
    ----------
    data : LeafSums
        Readings of the leaves; ``data.grid`` has their edges.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> x = np.random.default_rng(0).normal(4, 1, size=(5000, 1))
    >>> density = DensitySketch([(0, 10)], features="grid").update(x).release(epsilon=1.0, delta=1e-6)
    >>> contents = FourierPosterior(density).estimate()
    >>> contents.shape, bool(contents.min() >= 0), bool(contents[:50].sum() < 0.01 * contents.sum())
    ((512,), True, True)
    """

    def __init__(self, density: Any, settings: FourierSettings | None = None) -> None:
        settings = _SETTINGS[require_sums(density).d] if settings is None else settings
        self.settings = settings
        released = density.coefficients / density.noise_scale
        self._released = np.round(2.0**20 * np.concatenate([released.real, released.imag])).astype(np.int64)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            fits = self._fitted(density)
        weights = np.exp(np.array([fit.evidence for fit in fits]) - fits[0].evidence)
        self._weights = weights / weights.sum()
        self._laws = [_Law(self.data, fit, settings) for fit in fits]

    def _fitted(self, density: Any) -> list[_Fit]:
        """Find the smoothness on the coarse grid, fit on the fine one; on each, contents first, then their errors."""
        settings = self.settings
        self.data = leaf_sums(density, side=settings.coarse_side, most=settings.readings)
        first = _fit(self.data, settings.choice(settings.start), settings, _start(self.data))
        self.data = leaf_sums(density, side=settings.coarse_side, most=settings.readings, contents=first.intensity)
        ranked = _search(self.data, settings, first)
        fits = [fit for fit in ranked[: settings.kept] if fit.evidence > ranked[0].evidence - settings.spread]
        if settings.side == settings.coarse_side:
            return fits
        near = _refined(fits[0], self.data, settings.side)
        for _ in range(2):
            contents = density.count * np.exp(near[0]) / len(near[0])
            self.data = leaf_sums(density, side=settings.side, most=settings.readings, contents=contents)
            found = _fit(self.data, fits[0].choice, settings, near)
            near = found.log_relative, found.rough
        return [found]

    @property
    def seed(self) -> int:
        """A number that the release fixes."""
        return int(self._released.sum()) & 0xFFFFFFFF

    def estimate(self, target: str = "population") -> FloatArray:
        """Estimated contents of leaves, flat."""
        parts = zip(self._weights, self._laws, strict=True)
        return np.asarray(sum(w * (law.expected if target == "population" else law.records) for w, law in parts))

    @cached_property
    def _draws(self) -> tuple[FloatArray, FloatArray]:
        rng = public_generator(self._released, np.array([4]))
        sizes = np.maximum(1, np.round(self.settings.draws * self._weights).astype(int))
        parts = [law.draws(int(size), rng) for law, size in zip(self._laws, sizes, strict=True)]
        population, records = (np.concatenate([part[k] for part in parts], axis=1).T for k in (0, 1))
        return population, records

    def draws(self, target: str = "population") -> FloatArray:
        """Drawn contents of leaves, shape (draws, leaves)."""
        return self._draws[0 if target == "population" else 1]


class _Law:
    """The law of the contents around one mode: normal in the logarithm, with leaves that may be empty.

    Attributes
    ----------
    empty : array of shape (leaves,)
        Probability that a leaf and what surrounds it hold nothing.
    expected, records : array of shape (leaves,)
        Estimated intensity, and estimated number of records.
    """

    def __init__(self, data: LeafSums, fit: _Fit, settings: FourierSettings) -> None:
        self.data, self.fit, self.settings = data, fit, settings
        texture = _spectrum(data.grid.leaves, settings.texture, 0.0)
        self.covariance = _Covariance(fit.covariance.spectrum + texture, fit.covariance.rough)
        self.seen = data.response.T @ (fit.intensity[:, None] * data.response)
        self.empty = self._empty()
        self.expected = fit.intensity * (1 - self.empty) ** settings.thinning
        self.records = self.expected * np.maximum(1 + data.response @ fit.force, 0)

    def _empty(self) -> FloatArray:
        """Compare the likelihood with that of a field without what lies around each leaf and is no denser.

        Around is what the kernel sees of it. Denser leaves stay: the tail of the kernel at a far heap says nothing
        about the leaf.
        """
        data, response, intensity = self.data, self.data.response, self.fit.intensity
        peak = float(np.sum(response**2, axis=1).max())
        level = np.floor(np.log(intensity) / math.log(self.settings.contrast))
        below = np.zeros_like(self.seen)
        removed = np.empty(response.T.shape)
        for step in np.unique(level):
            here = level == step
            part = response[here]
            below += part.T @ (intensity[here, None] * part)
            removed[:, here] = below @ part.T / peak
        total = _raised(self.seen.copy(), data.noise)
        spread = solve_triangular(cholesky(total, lower=True, check_finite=False), removed, lower=True)
        gain = -(self.fit.force @ removed) - 0.5 * np.sum(spread**2, axis=0)
        # a field that is sure of its value has seen records there, if by way of neighbours
        prior = np.minimum(self.settings.empty_prior, self.settings.sureness * np.log(self._deviation()))
        return np.asarray(1 / (1 + np.exp(-np.clip(prior + gain, -40, 40))))

    def _deviation(self) -> FloatArray:
        """Standard deviation of the log density of each leaf, as the fit has it."""
        weighted = self.fit.intensity[:, None] * self.data.response
        covariance = self.fit.covariance
        gain = covariance.times(weighted)
        factor = cholesky(_raised(self.seen + weighted.T @ gain, self.data.noise), lower=True, check_finite=False)
        explained = np.sum(solve_triangular(factor, gain.T, lower=True) ** 2, axis=0)
        return np.asarray(np.sqrt(np.maximum(covariance.variance() - explained, 1e-4)))

    def draws(self, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw intensities and contents of leaves, both of shape (leaves, size)."""
        data, intensity = self.data, self.fit.intensity[:, None]
        weighted = intensity * data.response
        gain = self.covariance.times(weighted)
        system = _raised(self.seen + weighted.T @ gain, data.noise)
        fields = self.covariance.draws(size, rng)
        table = rng.poisson(np.broadcast_to(intensity, fields.shape)).astype(np.float64)
        noise = data.noise * rng.standard_normal((len(data.values), size))
        seen = data.response.T @ (intensity * (fields - 1) + table) + noise
        force = cho_solve(cho_factor(system, lower=True, check_finite=False), seen, check_finite=False)
        change = np.exp(np.clip(fields - gain @ force, -20, 20))
        filled = _occupied(self.empty, size, self.settings.agreement, rng)
        population = filled * _recentred(intensity * change, self.expected / (1 - self.empty))
        # more intensity adds records, less thins them; what the sums say of the records themselves comes on top
        records = (table + np.maximum(population - intensity, 0)) * np.minimum(population / intensity, 1)
        return population, records * np.maximum(1 + data.response @ (self.fit.force[:, None] - force), 0)


def _occupied(empty: FloatArray, draws: int, agreement: float, rng: np.random.Generator) -> FloatArray:
    """Which leaves hold anything, per draw: each with its probability, all of a draw by nearly the same coin."""
    common = math.sqrt(agreement) * rng.standard_normal(draws)
    own = math.sqrt(1 - agreement) * rng.standard_normal((len(empty), draws))
    return np.asarray(common + own >= ndtri(np.clip(empty, 1e-12, 1 - 1e-12))[:, None], dtype=np.float64)


def _refined(fit: _Fit, coarse: LeafSums, side: int) -> tuple[FloatArray, FloatArray]:
    """A coarse fit on a finer grid: the value of the coarse leaf that holds the middle of each."""
    values = fit.log_relative.reshape(coarse.grid.leaves)
    fine = LeafSpec.plan(coarse.grid.bounds, [step or None for step in coarse.grid.steps], leaves=[side] * values.ndim)
    for j, (few, many) in enumerate(zip(coarse.grid.leaves, fine.leaves, strict=True)):
        values = np.take(values, ((np.arange(many) + 0.5) * few / many).astype(int), axis=j)
    return values.ravel(), np.zeros(values.size)


def _recentred(draws: FloatArray, expected: FloatArray) -> FloatArray:
    """Draws (one per column) whose mean is the estimate."""
    factor = expected / np.maximum(draws.mean(axis=1), 1e-300)
    return np.asarray(draws * np.minimum(factor, 10.0)[:, None])
