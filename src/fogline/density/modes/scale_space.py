r"""Where a mode is, at the bandwidth that serves it best: follow it through the scales and weigh bias against noise.

A mode is followed from the scale where it was found to smaller and larger ones. At scale :math:`h_q` it lies at
:math:`x_q`. Write heights as kernel averages (the kernel is 1 at zero) and lengths in units of the smallest
planned bandwidth. With :math:`G_{qr}` the exact covariance of the privacy noise of the two gradients and
:math:`S_{qr}` that of the sampling noise for a local Gaussian of weight :math:`p` and variance :math:`\tau^2`,

.. math::
   l_q = \frac{h_q^2 + \tau^2}{p}\Bigl(\frac{h_q^2+\tau^2}{h_q^2}\Bigr)^{d/2}, \qquad
   S_{qr} = \frac{p}{n\,h_q^2h_r^2}\,\frac{u\tau^2}{u+\tau^2}\Bigl(\frac{u}{u+\tau^2}\Bigr)^{d/2},\;
   u^{-1} = h_q^{-2} + h_r^{-2},

the positions have covariance :math:`T_{qr} = d\,l_q l_r (G_{qr} + S_{qr})`. The squared bias of scale q is what
its distance to some smaller scale exceeds nine times the variance of that difference; the mode is read at the
scale with the least estimated bias squared plus variance.

Before that, positions are corrected for the pull of the other modes' tails, which the kernel widens. After it, the
positions at all steady scales are asked whether the peak is skewed (:mod:`fogline.density.modes.smoothing_bias`): the
position moves as far as they say so, and the doubt about it is part of the error.

The noise of neighbouring scales is almost the same noise, so differences must be judged by the covariance
:math:`V_q + V_r - 2T_{qr}`; and the curvature seen at a small scale is that of a noise bump, so it is modelled
through :math:`\tau^2` instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.modes.smoothing_bias import (
    SMOOTHING_BIAS,
    LinearFit,
    combine_fits,
    common_shift,
    fit_position,
    positive_part,
    skewed_shift,
    symmetric_at_walls,
    wall_shift,
)

__all__ = [
    "SCALE_SPACE",
    "Climbable",
    "Located",
    "ScaleSpace",
    "ScaleSpaceTuning",
    "error_shape",
    "locate_modes",
    "newton_ascent",
    "track_modes",
]


@dataclass(frozen=True)
class ScaleSpaceTuning:
    """What is tuned of modes as they are followed from scale to scale.

    Attributes
    ----------
    size : int
        Number of scales.
    reach : float
        They go from the smallest readable bandwidth to this many times the largest planned one.
    bias_guard : float
        A difference between scales counts as bias beyond this many times its variance.
    steady : float
        Bias is judged against scales at which the position is known to this part of the bandwidth: there the
        error is still linear in the noise, and the track has not wandered to a bump.
    apart : float
        Positions are corrected for neighbours at least this many bandwidths away.
    hidden_scales, hidden_share : int or float
        Bias that is too small to be acted on still widens the error: by this share of the squared distance,
        expected or seen, to the scale two below.
    usable_height : float
        A track can be used at a scale where it stands this many noise deviations high.
    linear : float
        Scales at which the position is known to this part of the bandwidth say whether the peak is skewed: further out
        a track follows bumps of the noise, and a symmetric peak looks skewed.
    jump : float
        A track that moves by more than this many bandwidths between two scales is another peak.
    closer : float
        A skewed mode moves by at most this part of its distance to another one.
    """

    size: int = 11
    reach: float = 4 / 3
    bias_guard: float = 9.0
    steady: float = 0.15
    apart: float = 2.0
    hidden_scales: int = 2
    hidden_share: float = 0.2
    usable_height: float = 3.0
    linear: float = 0.12
    jump: float = 1.0
    closer: float = 0.3


SCALE_SPACE = ScaleSpaceTuning()


class Climbable(Protocol):
    """What climbing asks of a reading: where it may go, how far a step reaches, and derivatives."""

    spec: Any
    bandwidth: FloatArray

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""

    def jet(self, points: FloatArray, /) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Density, gradient and Hessian at points."""


@dataclass(frozen=True)
class ScaleSpace:
    """Readings of one release at several proportional bandwidths, smallest first, and what their noise shares.

    ``scales`` are in units of ``unit`` (data units per axis); ``peak`` turns a density into a kernel average. Readings
    are those of a grid (:class:`~fogline.density.grid_reading.Reading`) or of random features.
    """

    readings: tuple[Any, ...]
    scales: FloatArray
    unit: FloatArray
    count: float

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.unit)

    @property
    def peak(self) -> FloatArray:
        """What a density at each scale is multiplied by to be an average of kernels of height one."""
        volume = np.array([float(np.prod(r.bandwidth)) for r in self.readings])
        return np.asarray(volume * (2 * np.pi) ** (self.d / 2))

    @property
    def noise(self) -> FloatArray:
        """Privacy noise of the kernel average at each scale."""
        return np.asarray(self.peak * np.array([r.noise_sd for r in self.readings]))

    def gradient_covariance(self) -> FloatArray:
        """Matrix G over the scales: privacy covariance of one component of the gradient, averaged over the axes."""
        spec = self.readings[0].spec
        noise = np.zeros((len(self.readings), len(spec.frequencies)))
        for row, reading in zip(noise, self.readings, strict=True):
            row[reading.kept] = reading.noise
        noise *= self.peak[:, None]
        squared = np.mean((spec.angular * self.unit) ** 2, axis=1)
        return np.asarray((noise * squared) @ noise.T)


@dataclass(frozen=True)
class ModeTracks:
    """Positions, heights and curvatures of k modes at Q scales; lengths in units of the scale space."""

    found_at: IntArray  # (k,) scale where each was found
    position: FloatArray  # (Q, k, d), data units
    height: FloatArray  # (Q, k), kernel averages
    curvature: FloatArray  # (Q, k, d), eigenvalues of minus the Hessian of the kernel average


@dataclass(frozen=True)
class Located:
    """Modes at their best scales."""

    position: FloatArray  # (k, d)
    scale: IntArray  # (k,) index into the scales
    privacy_variance: FloatArray  # (k,) sum over the axes, units of the scale space
    sampling_variance: FloatArray  # with the allowance for bias
    smoothing: FloatArray  # (k, d, d) covariance of what smoothing may have moved beyond that, data units
    seen: FloatArray  # (k, d) where the peak is at that scale, before smoothing is taken back: what a test is made of

    def only(self, kept: BoolArray) -> Located:
        """Some of the modes."""
        return Located(
            self.position[kept],
            self.scale[kept],
            self.privacy_variance[kept],
            self.sampling_variance[kept],
            self.smoothing[kept],
            self.seen[kept],
        )


def newton_ascent(reading: Climbable, points: FloatArray, *, rounds: int = 25) -> FloatArray:
    """Climb to the local maximum by guarded Newton steps of at most half a bandwidth."""
    h = reading.bandwidth
    points = points.copy()
    active = np.ones(len(points), dtype=bool)
    for _ in range(rounds):
        if not active.any():
            break
        value, gradient, hessian = reading.jet(points[active])
        values, vectors = np.linalg.eigh(hessian * h[:, None] * h)
        # Newton steps go astray where the density is flat or not concave: absolute eigenvalues turn every step uphill,
        # and the floor keeps noise from making one of them huge.
        floor = np.maximum(np.abs(value), reading.noise_sd)[:, None] / 6
        slope = np.einsum("pij,pi->pj", vectors, gradient * h)
        step = np.einsum("pij,pj->pi", vectors, slope / np.maximum(np.abs(values), floor))
        length = np.linalg.norm(step, axis=1, keepdims=True)
        # Half a bandwidth is the distance over which a quadratic still describes the kernel.
        step *= np.minimum(1.0, 0.5 / np.maximum(length, 1e-300))
        moved = np.clip(points[active] + step * h, reading.spec.lower, reading.spec.upper)
        # A point that the box holds back does not move either: it has arrived at a wall.
        done = np.max(np.abs(moved - points[active]) / h, axis=1) < 1e-7
        points[active] = moved
        active[np.flatnonzero(active)[done]] = False
    return points


def track_modes(scale_space: ScaleSpace, starts: FloatArray, found_at: IntArray) -> ModeTracks:
    """Follow each start from the scale where it was found to all others."""
    size, k = len(scale_space.readings), len(starts)
    position = np.zeros((size, k, scale_space.d))
    # Two sweeps, up and then down, reach every scale from wherever a mode was found, each climb starting from the
    # neighbouring scale so that it cannot jump to another mode.
    order = [(q, +1) for q in range(size)] + [(q, -1) for q in reversed(range(size))]
    for q, direction in order:
        here = found_at == q
        came = (found_at < q) if direction > 0 else (found_at > q)
        guess = position[q].copy()
        guess[here] = starts[here]
        if came.any():
            guess[came] = position[q - direction][came]
        todo = came | here if direction > 0 else came
        if todo.any():
            position[q][todo] = newton_ascent(scale_space.readings[q], guess[todo])
    height = np.zeros((size, k))
    curvature = np.zeros((size, k, scale_space.d))
    for q, reading in enumerate(scale_space.readings):
        value, _, hessian = reading.jet(position[q])
        height[q] = value * scale_space.peak[q]
        curvature[q] = -np.linalg.eigvalsh(hessian * scale_space.unit[:, None] * scale_space.unit) * scale_space.peak[q]
    return ModeTracks(found_at, position, height, curvature)


def locate_modes(scale_space: ScaleSpace, mode_tracks: ModeTracks) -> Located:
    """Choose for each mode the scale with the least estimated squared bias plus variance.

    A first choice gives the places of the modes; the second corrects each position for what the tails of the other
    modes, widened by the kernel, pull it: larger and so less noisy scales can then be used.
    """
    usable = _usable(scale_space, mode_tracks)
    spread, weight = _local_shape(scale_space, mode_tracks, usable)
    flatness = _flatness(scale_space, mode_tracks, spread, weight)  # (Q, k)
    # To first order a mode moves by the gradient error over the curvature, so covariances over the scales are those of
    # the gradient, scaled on either side.
    pair = scale_space.d * flatness[:, None] * flatness[None]
    t_privacy = pair * scale_space.gradient_covariance()[:, :, None]
    t_total = t_privacy + pair * _sampling_covariance(scale_space, spread, weight)  # (Q, Q, k)
    first = _choose(scale_space, mode_tracks, mode_tracks.position, usable, t_privacy, t_total)
    if len(scale_space.scales) == 1:  # a bandwidth that was asked for: its modes, not those of the density behind it
        return first
    pull = _neighbours_pull(scale_space, mode_tracks.position, first.position, spread, weight)
    positions = mode_tracks.position - pull
    located = _choose(scale_space, mode_tracks, positions, usable, t_privacy, t_total)
    return _with_smoothing(scale_space, positions, usable, t_total, located)


def _choose(
    scale_space: ScaleSpace,
    mode_tracks: ModeTracks,
    positions: FloatArray,
    usable: BoolArray,
    t_privacy: FloatArray,
    t_total: FloatArray,
) -> Located:
    """Choose scales for given positions, whose covariances over the scales are T: its privacy part, and in all."""
    variance = np.einsum("qqk->qk", t_total)
    spread_of_difference = variance[:, None] + variance[None] - 2 * t_total
    moved = np.sum(((positions[:, None] - positions[None]) / scale_space.unit) ** 2, axis=-1)
    # Lepski's method: what positions at two scales differ by beyond their noise is bias of the larger one.
    excess = np.maximum(moved - SCALE_SPACE.bias_guard * np.maximum(spread_of_difference, 0), 0)
    size = len(scale_space.scales)
    steady = usable & (variance < scale_space.d * (SCALE_SPACE.steady * scale_space.scales[:, None]) ** 2)
    # Only smaller scales, which have less bias, may accuse a larger one.
    smaller = np.tri(size, k=-1, dtype=bool)[:, :, None] & steady[None]
    bias = np.max(np.where(smaller, excess, 0), axis=1)
    objective = np.where(usable, bias + variance, np.inf)
    # A mode that is usable nowhere was still found somewhere: it is reported from there.
    chosen = np.where(np.isfinite(objective).any(axis=0), np.argmin(objective, axis=0), mode_tracks.found_at)
    column = np.arange(len(chosen))
    privacy_part = np.einsum("qqk->qk", t_privacy)[chosen, column]
    # No excess does not mean no bias: a part of what could hide in the noise goes into the error.
    below = np.maximum(chosen - SCALE_SPACE.hidden_scales, 0)
    unseen = np.maximum(spread_of_difference, moved)[chosen, below, column]
    unseen = SCALE_SPACE.hidden_share * np.where(usable[below, column], unseen, 0)
    spec = scale_space.readings[0].spec
    place = np.clip(positions[chosen, column], spec.lower, spec.upper)
    return Located(
        position=place,
        scale=chosen,
        privacy_variance=privacy_part,
        sampling_variance=variance[chosen, column] - privacy_part + unseen,
        smoothing=np.zeros((len(chosen), scale_space.d, scale_space.d)),
        seen=place,
    )


def _with_smoothing(
    scale_space: ScaleSpace, positions: FloatArray, usable: BoolArray, t_total: FloatArray, located: Located
) -> Located:
    """Move modes as far as their positions over the scales say that peaks are skewed; doubt goes into the error."""
    moved, smoothing, d = located.position.copy(), located.smoothing.copy(), scale_space.d
    spec, square = scale_space.readings[0].spec, scale_space.unit[:, None] * scale_space.unit
    ways = np.linalg.norm((moved[:, None] - moved) / scale_space.unit, axis=2) + np.diag(np.full(len(moved), np.inf))
    nearest = ways.min(axis=1, initial=np.inf)  # to the nearest other mode
    for k, chosen in enumerate(located.scale.tolist()):
        used = _steady_scales(scale_space, positions[:, k], usable[:, k], t_total[:, :, k], chosen)
        shape, width, near = _peak_shape(scale_space, positions[chosen, k], chosen)
        scales, track = scale_space.scales[used], positions[used, k] / scale_space.unit
        pushed = wall_shift(near, scales[:, None], width)
        alone = np.repeat((SMOOTHING_BIAS.floor * scales) ** 2, d) + pushed.ravel() ** 2
        noise = np.asarray(np.kron(t_total[used][:, used, k] / d, shape), dtype=np.float64)
        plain: FloatArray = noise + np.diag(alone) + common_shift(pushed)
        fits = [fit_position(track, plain), fit_position(track, plain + skewed_shift(scales, width))]
        evidence = np.array([fit.evidence for fit in fits])
        # A symmetric peak is where the scale with the least error shows it, and not where all of them together do:
        # their errors are nearly the same, and the best combination would be a difference of large numbers.
        at = int(np.flatnonzero(used == chosen)[0])
        own: FloatArray = (located.privacy_variance[k] + located.sampling_variance[k]) / d * shape
        fits[0] = LinearFit(track[at], own + np.diag(pushed[at] ** 2), fits[0].gain, 0.0)
        mean, _, covariance, _ = combine_fits(fits, evidence, symmetric_at_walls(near, width))
        step = mean - located.position[k] / scale_space.unit
        step *= min(1.0, SCALE_SPACE.closer * nearest[k] / max(float(np.linalg.norm(step)), 1e-300))
        moved[k] = np.clip(located.position[k] + step * scale_space.unit, spec.lower, spec.upper)
        smoothing[k] = positive_part(covariance - own) * square
    return replace(located, position=moved, smoothing=smoothing)


def _steady_scales(
    scale_space: ScaleSpace, track: FloatArray, usable: BoolArray, t_total: FloatArray, chosen: int
) -> IntArray:
    """Scales around the chosen one at which a track does not jump and its error is linear in the noise."""
    error = np.sqrt(np.diag(t_total) / scale_space.d)
    steady = usable & (error < SCALE_SPACE.linear * scale_space.scales)
    steps = np.abs(np.diff(track, axis=0)) / scale_space.unit
    far = steps.max(axis=1) > SCALE_SPACE.jump * scale_space.scales[:-1]
    first = last = chosen
    while first > 0 and steady[first - 1] and not far[first - 1]:
        first -= 1
    while last + 1 < len(steady) and steady[last + 1] and not far[last]:
        last += 1
    return np.arange(first, last + 1)


def _peak_shape(scale_space: ScaleSpace, place: FloatArray, scale: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shape of the error of a peak (trace d), its width along each axis, and how far the walls are; in units."""
    reading, h = scale_space.readings[scale], float(scale_space.scales[scale])
    value, _, hessian = reading.jet(place[None])
    shape, flat = error_shape(hessian[0] * scale_space.unit[:, None] * scale_space.unit)
    seen = float(value[0]) * flat - h**2
    width = np.sqrt(np.clip(seen, (0.3 * scale_space.scales[0]) ** 2, (2 * scale_space.scales[-1]) ** 2))
    near = np.minimum(place - reading.spec.lower, reading.spec.upper - place) / scale_space.unit
    return shape, width, near


def error_shape(hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shape of a mode's error, of trace d, long where the peak is flat; and the inverse curvature along each axis."""
    values, vectors = np.linalg.eigh(hessian)
    flatness = 1 / np.maximum(np.abs(values), 1e-3 * np.abs(values).max())
    squared = flatness**2 / np.mean(flatness**2)
    return (vectors * squared) @ vectors.T, np.einsum("ij,j,ij->i", vectors, flatness, vectors)


def _neighbours_pull(
    scale_space: ScaleSpace, positions: FloatArray, centres: FloatArray, spread: FloatArray, weight: FloatArray
) -> FloatArray:
    r"""How far the kernel moves each mode toward the others, shape (Q, k, d), data units.

    With local Gaussians of weight :math:`p` and variance :math:`v = h^2 + \tau^2`, the others' slope at mode i over its
    own curvature is

    .. math:: s_i(h) = \sum_{j \ne i} \frac{p_j}{p_i}\Bigl(\frac{v_i}{v_j}\Bigr)^{1+d/2}
       e^{-|\mu_j - x_i|^2/2v_j}\,(\mu_j - x_i);

    the density itself has :math:`s_i(0)`, so the kernel's part is the difference, kept below half a bandwidth.
    """
    towards = (centres[None, None] - positions[:, :, None]) / scale_space.unit  # (Q, i, j, d)
    distance = np.sum(towards**2, axis=-1)
    others = ~np.eye(len(centres), dtype=bool)

    def pull(h2: FloatArray) -> FloatArray:
        v = h2[:, None] + spread  # (Q, k)
        ratio = v[:, :, None] / v[:, None]
        strength = weight / weight[:, None] * ratio ** (1 + scale_space.d / 2) * np.exp(-distance / (2 * v[:, None]))
        return np.asarray(np.einsum("qij,qijd->qid", strength * others, towards))

    h2 = scale_space.scales**2
    moved = pull(h2) - pull(0 * h2)
    length = np.linalg.norm(moved, axis=-1, keepdims=True)
    nearest = np.sqrt(np.min(np.where(others, distance, np.inf), axis=-1))  # modes that nearly merge are left alone
    moved[nearest < SCALE_SPACE.apart * scale_space.scales[:, None]] = 0.0
    moved *= np.minimum(1.0, 0.5 * scale_space.scales[:, None, None] / np.maximum(length, 1e-300))
    return np.asarray(moved * scale_space.unit)


def _usable(scale_space: ScaleSpace, mode_tracks: ModeTracks) -> BoolArray:
    """Where a track stands clear of the noise and no stronger track has come to the same place."""
    k = len(mode_tracks.found_at)
    usable = mode_tracks.height > SCALE_SPACE.usable_height * scale_space.noise[:, None]
    strength = (mode_tracks.height / scale_space.noise[:, None])[mode_tracks.found_at, np.arange(k)]
    # Two tracks that meet are one mode: the stronger keeps the scale, so that no mode is counted twice.
    rank = np.argsort(np.argsort(-strength, kind="stable"))
    stronger = rank[None] < rank[:, None]
    for q, h in enumerate(scale_space.scales):
        u = mode_tracks.position[q] / scale_space.unit
        distance = np.linalg.norm(u[:, None] - u[None], axis=-1)
        usable[q] &= ~np.any((distance < h / 2) & stronger, axis=1)
    return np.asarray(usable)


def _local_shape(scale_space: ScaleSpace, mode_tracks: ModeTracks, usable: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Variance and weight of a Gaussian that would look like each mode across the usable scales."""
    h2 = scale_space.scales[:, None] ** 2
    inverse = np.mean(1 / np.maximum(np.abs(mode_tracks.curvature), 1e-12), axis=2)
    # A Gaussian of variance v seen through a kernel h has curvature height / (v + h^2).
    seen = mode_tracks.height * inverse - h2
    signal = mode_tracks.height / scale_space.noise[:, None]
    # Curvature is a second derivative and noisier than height: below four deviations it says nothing.
    trust = np.where(usable & (signal > 4), np.minimum(signal, 10) ** 2, 0.0)
    spread = np.empty(seen.shape[1])
    for j in range(seen.shape[1]):
        spread[j] = _weighted_quantile(seen[:, j], trust[:, j], 0.25, default=float(h2[0, 0]))
    spread = np.clip(spread, 0.1 * h2[0, 0], 4 * h2[-1, 0])
    mass = mode_tracks.height * ((h2 + spread) / h2) ** (scale_space.d / 2)
    weight = np.array([np.median(m[ok]) if ok.any() else m[-1] for m, ok in zip(mass.T, usable.T, strict=True)])
    return spread, np.clip(weight, 0.01, 1.0)


def _flatness(scale_space: ScaleSpace, mode_tracks: ModeTracks, spread: FloatArray, weight: FloatArray) -> FloatArray:
    """How far a unit of gradient error moves the mode: the inverse curvature, modelled or seen, the larger."""
    h2 = scale_space.scales[:, None] ** 2
    # The larger of the two, since an error that is stated too small is worse than one stated too large.
    model = (h2 + spread) / weight * ((h2 + spread) / h2) ** (scale_space.d / 2)
    seen = np.mean(1 / np.maximum(np.abs(mode_tracks.curvature), 1e-12), axis=2)
    return np.asarray(np.maximum(model, seen))


def _sampling_covariance(scale_space: ScaleSpace, spread: FloatArray, weight: FloatArray) -> FloatArray:
    h2 = scale_space.scales**2
    product = h2[:, None] * h2
    u = (product / (h2[:, None] + h2))[:, :, None]
    ratio = u / (u + spread)
    return np.asarray(weight * spread * ratio * ratio ** (scale_space.d / 2) / product[:, :, None] / scale_space.count)


def _weighted_quantile(values: FloatArray, weights: FloatArray, level: float, *, default: float) -> float:
    if weights.sum() <= 0:
        return default
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulative, level * cumulative[-1])])
