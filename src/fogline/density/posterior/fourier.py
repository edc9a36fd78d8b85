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
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.fft import dctn, idctn
from scipy.linalg import cho_factor, cho_solve

from fogline.density.partition import public_generator
from fogline.density.posterior.arrays import FloatArray
from fogline.density.posterior.field import Smoothness, field_rate
from fogline.density.posterior.fourier_sums import LeafSums, leaf_sums, require_sums

__all__ = ["FourierPosterior", "FourierSettings"]

_FLOOR, _CEILING = -30.0, 12.0
"""Logarithms of relative densities stay between these: beyond them nothing can be told apart."""


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
    most_steps: int = 25
    most_fits: int = 24


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
        coarse_side=24,
        readings=700,
        lengths=tuple(np.geomspace(0.05, 0.8, 5).tolist()),
        deviations=(1.0, 2.0, 4.0),
    ),
    3: FourierSettings(
        side=16,
        coarse_side=10,
        readings=600,
        lengths=tuple(np.geomspace(0.1, 0.8, 4).tolist()),
        deviations=(1.0, 2.0, 4.0),
        draws=80,
    ),
}


@dataclass(frozen=True)
class _Choice:
    """One smoothness and roughness."""

    smoothness: Smoothness
    roughness: float


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
    """The mode for one choice, and the normal law around it."""

    choice: _Choice
    indices: tuple[int, ...]
    evidence: float
    log_relative: FloatArray
    rough: FloatArray
    intensity: FloatArray
    pull: FloatArray
    target: FloatArray
    covariance: _Covariance
    gain: FloatArray = field(repr=False)
    solve: Callable[[FloatArray], FloatArray] = field(repr=False)

    def draws(self, data: LeafSums, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw intensities and contents of leaves, both of shape (leaves, size)."""
        intensity = self.intensity[:, None]
        fields = self.covariance.draws(size, rng)
        table = rng.poisson(np.broadcast_to(intensity, fields.shape)).astype(np.float64)
        noise = data.noise * rng.standard_normal((len(data.values), size))
        seen = data.response.T @ (intensity * (fields - 1) + table) + noise
        force = self.solve(self.target[:, None] - seen)
        change = np.clip(fields + self.gain @ force, _FLOOR, _CEILING) - self.log_relative[:, None]
        population = intensity * np.exp(change)
        # more intensity adds records, less thins them; what the sums say of the records themselves comes on top
        records = (table + np.maximum(population - intensity, 0)) * np.exp(np.minimum(change, 0))
        return population, records * np.maximum(1 + data.response @ force, 0)


def _fit(data: LeafSums, choice: _Choice, settings: FourierSettings, near: tuple[FloatArray, FloatArray]) -> _Fit:
    """Newton's method for one choice."""
    response, base = data.response, data.total / data.grid.n_leaves
    spectrum = _spectrum(data.grid.leaves, choice.smoothness, settings.level_variance)
    log_relative, rough = near[0], near[1] if choice.roughness else np.zeros(len(near[1]))
    for step in range(settings.most_steps):
        intensity = base * np.exp(log_relative)
        variance = None
        if choice.roughness:
            variance = (settings.freedom * choice.roughness**2 + rough**2) / (settings.freedom + 1)
        covariance = _Covariance(spectrum, variance)
        weighted = intensity[:, None] * response
        gain = covariance.times(weighted)
        system = response.T @ (weighted + intensity[:, None] * gain)
        diagonal = system.ravel()[:: len(system) + 1]
        diagonal += data.noise**2 + 1e-14 * diagonal.sum()
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        target = data.values + weighted.T @ (log_relative - 1)
        force = cho_solve(factor, target, check_finite=False)
        change = gain @ force - log_relative
        if variance is not None:
            moved = variance * (weighted @ force) - rough
        # long steps leave the region in which the exponential is nearly straight; late ones may circle
        length = min(1.0, 1.5 / max(float(np.abs(change).max()), 1e-9)) * (0.6 if step > 8 else 1.0)
        log_relative = np.clip(log_relative + length * change, _FLOOR, _CEILING)
        rough = rough if variance is None else rough + length * moved
        sure = np.minimum(1.0, 3 * np.sqrt(intensity * np.minimum(1.0, intensity / data.noise**2)))
        if float(np.abs(change * sure).max()) < 0.05:
            break
    evidence = -0.5 * float(target @ force) - float(np.log(np.diagonal(factor[0])).sum())
    if variance is not None:
        evidence += _rough_evidence(rough, variance, choice.roughness, settings.freedom)
    return _Fit(
        choice=choice,
        indices=(),
        evidence=evidence,
        log_relative=log_relative,
        rough=rough,
        intensity=base * np.exp(log_relative),
        pull=response @ force,
        target=target,
        covariance=covariance,
        gain=gain,
        solve=lambda right: np.asarray(cho_solve(factor, right, check_finite=False)),
    )


def _rough_evidence(rough: FloatArray, variance: FloatArray, roughness: float, freedom: float) -> float:
    """What the evidence gains as the rough part is not normal but Student."""
    tails = -0.5 * (freedom + 1) * np.log1p(rough**2 / (freedom * roughness**2))
    return float((0.5 * rough**2 / variance + tails + 0.5 * np.log(variance / roughness**2)).sum())


def _search(data: LeafSums, settings: FourierSettings) -> list[_Fit]:
    """Climb the evidence, one parameter at a time; all fits, the best first."""
    values: tuple[tuple[float, ...], ...] = (
        settings.lengths,
        settings.deviations,
        settings.roughness,
        settings.orders,
    )
    done: dict[tuple[int, ...], _Fit] = {}

    def evidence(at: tuple[int, ...], near: tuple[FloatArray, FloatArray]) -> float:
        if at not in done:
            length, deviation, roughness, order = (row[i] for row, i in zip(values, at, strict=True))
            choice = _Choice(Smoothness(length, deviation, int(order)), roughness)
            done[at] = replace(_fit(data, choice, settings, near), indices=at)
        return done[at].evidence

    current: tuple[int, ...] = settings.start
    evidence(current, _start(data))
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
    base = data.total / data.grid.n_leaves
    return np.log(np.maximum(data.smoothed / base, 0.05)), np.zeros(data.grid.n_leaves)


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
            self.data = leaf_sums(density, side=settings.coarse_side, most=settings.readings)
            ranked = _search(self.data, settings)
            fits = [fit for fit in ranked[: settings.kept] if fit.evidence > ranked[0].evidence - settings.spread]
            if settings.side != settings.coarse_side:
                coarse, self.data = self.data, leaf_sums(density, side=settings.side, most=settings.readings)
                fits = [_fit(self.data, fit.choice, settings, _refined(fit, coarse, self.data)) for fit in fits]
        weights = np.exp(np.array([fit.evidence for fit in fits]) - fits[0].evidence)
        self._fits, self._weights = fits, weights / weights.sum()

    @property
    def seed(self) -> int:
        """A number that the release fixes."""
        return int(self._released.sum()) & 0xFFFFFFFF

    def estimate(self, target: str = "population") -> FloatArray:
        """Estimated contents of leaves, flat."""
        parts = [w * fit.intensity for w, fit in zip(self._weights, self._fits, strict=True)]
        if target == "records":
            moved = [np.maximum(1 + fit.pull, 0) for fit in self._fits]
            parts = [part * move for part, move in zip(parts, moved, strict=True)]
        return np.asarray(sum(parts))

    @cached_property
    def _draws(self) -> tuple[FloatArray, FloatArray]:
        rng = public_generator(self._released, np.array([4]))
        sizes = np.maximum(1, np.round(self.settings.draws * self._weights).astype(int))
        parts = [fit.draws(self.data, int(size), rng) for fit, size in zip(self._fits, sizes, strict=True)]
        population, records = (np.concatenate([part[k] for part in parts], axis=1).T for k in (0, 1))
        return _recentred(population, self.estimate()), records

    def draws(self, target: str = "population") -> FloatArray:
        """Drawn contents of leaves, shape (draws, leaves)."""
        return self._draws[0 if target == "population" else 1]


def _refined(fit: _Fit, coarse: LeafSums, fine: LeafSums) -> tuple[FloatArray, FloatArray]:
    """A coarse fit on a finer grid: the value of the coarse leaf that holds the middle of each."""
    values = fit.log_relative.reshape(coarse.grid.leaves)
    for j, (few, many) in enumerate(zip(coarse.grid.leaves, fine.grid.leaves, strict=True)):
        values = np.take(values, ((np.arange(many) + 0.5) * few / many).astype(int), axis=j)
    return values.ravel(), np.zeros(values.size)


def _recentred(draws: FloatArray, expected: FloatArray) -> FloatArray:
    """Draws whose mean is the estimate."""
    mean = draws.mean(axis=0)
    return np.asarray(draws * np.minimum(expected / np.maximum(mean, 1e-300), 10.0))
