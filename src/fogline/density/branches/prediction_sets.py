r"""Prediction sets: regions of highest conditional density, calibrated on released numbers alone.

Where the profile at x is highest, the response is most likely. With :math:`r(x, y)` the share of the (smoothed)
conditional density that is higher than at y, the set at x is :math:`\{y : r(x, y) \le \lambda\}`. Smoothing spreads the
density, so that :math:`\lambda = c` would cover more than a share c of the responses. The true coverage of all sets
together, :math:`\int\!\int 1[r \le \lambda]\,f`, is linear in the density: it is read from the same release with a much
finer kernel of sixth order, since noise averages out over so large a region, and :math:`\lambda` is chosen such that it
is c. Coverage is that of a record drawn at random, not at each single x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import FloatArray
from fogline.density.branches.branches import grid_places, x_grid
from fogline.density.branches.profiles import Profiles, mirror_basis
from fogline.density.modes.significance import noise_sums

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = ["PREDICTION", "PredictionSets", "PredictionTuning"]


@dataclass(frozen=True)
class PredictionTuning:
    """What is tuned of prediction sets and their calibration.

    Attributes
    ----------
    clear : float
        The shape is read at the smallest bandwidth at which peaks stand this many noise deviations high.
    set_points_per_bandwidth : float
        Grid points per bandwidth of y.
    least_snr : float
        Density below this many noise deviations counts as none.
    known_snr : float
        Where the density of x is below this many noise deviations, nothing is known: the set is the whole range.
    finer : tuple
        Calibration is tried at this many times the finest bandwidth of the release.
    coverage_sd : float
        Noise of the coverage that is accepted for a finer kernel.
    simulations, smoother : int or float
        Simulated fields of noise, and how much smoother the density is that the noise is added to.
    """

    clear: float = 20.0
    set_points_per_bandwidth: float = 8.0
    least_snr: float = 1.5
    known_snr: float = 3.0
    finer: tuple[float, ...] = (1.0, 1.5, 2.25, 3.4)
    coverage_sd: float = 0.02
    simulations: int = 16
    smoother: float = 1.6


PREDICTION = PredictionTuning()


DEPTHS = np.concatenate([np.linspace(0.0, 1.0, 401), np.linspace(1.0, 2.0, 51)[1:]])
"""Ranks that are tried as the last to belong to a set."""


@dataclass(frozen=True)
class _Grid:
    """Places of x with their weights of the trapezoid rule, and the weights of all points (x, y)."""

    places: FloatArray
    place_weights: FloatArray
    weights: FloatArray


class PredictionSets:
    """Sets of likely responses at any x, from a released joint density.

    Parameters
    ----------
    density : PrivateDensity
    bandwidth : array of shape (d,)
        At which the shape of the sets is read, y last.
    coverage : float
        Wanted share of responses that fall into their sets.
    """

    def __init__(self, density: PrivateDensity, bandwidth: FloatArray, coverage: float) -> None:
        self.coverage = coverage
        self._profiles = Profiles(density, bandwidth)
        self._y = self._profiles.y_axis(PREDICTION.set_points_per_bandwidth)
        self._basis = mirror_basis(self._profiles, self._y)
        axes = x_grid(density, bandwidth)
        weights = [_trapezoid(len(a)) for a in axes]
        place_weights = np.prod([g.ravel() for g in np.meshgrid(*weights, indexing="ij")], axis=0)
        grid = _Grid(grid_places(axes), place_weights, place_weights[:, None] * _trapezoid(len(self._y)))
        self.depth = self._calibrated(density, grid)

    def at(self, x: FloatArray) -> list[FloatArray]:
        """Intervals at each row of x, one row ``(low, high)`` each; the whole range where nothing is known."""
        low, high = self._profiles.spec.bounds[-1]
        outside = ~np.all((x >= self._profiles.spec.lower[:-1]) & (x <= self._profiles.spec.upper[:-1]), axis=1)
        inside = self._ranks(np.where(outside[:, None], self._profiles.spec.lower[:-1], x)) <= self.depth
        # With few records the last rank may be that of places where nothing is known: no set is empty.
        inside[outside | ~inside.any(axis=1)] = True
        half = (self._y[1] - self._y[0]) / 2
        found = []
        for row in inside:
            step = np.diff(np.concatenate([[0], row.astype(np.int8), [0]]))
            first, last = np.flatnonzero(step == 1), np.flatnonzero(step == -1) - 1
            edges = np.stack([self._y[first] - half, self._y[last] + half], axis=1)
            found.append(np.asarray(np.clip(edges, low, high)))
        return found

    def _ranks(self, x: FloatArray) -> FloatArray:
        """Share of the conditional density above that at each grid point of y, shape (P, G)."""
        lines = self._profiles.lines(x)
        marginal, sd = self._profiles.marginal(lines)
        values, variance = lines.on(self._basis)
        ranks = _ranks_of(values, np.sqrt(variance))
        # Rank zero belongs to every set, so all of the range is in it.
        ranks[marginal < PREDICTION.known_snr * sd] = 0.0
        return ranks

    def _calibrated(self, density: PrivateDensity, grid: _Grid) -> float:
        """Largest rank that belongs to the sets."""
        ranks = self._ranks(grid.places)
        fine, total = self._fine(density, grid, ranks)
        basis = mirror_basis(fine, self._y)
        share = grid.weights * (self._y[1] - self._y[0]) / total
        mass = fine.lines(grid.places).on(basis)[0] * share
        # The finer reading shares its noise with the sets, which were drawn where that noise is positive.
        covered = _cumulated(ranks, mass) - self._optimism(density, grid, fine, share)
        reached = np.flatnonzero(covered >= self.coverage)
        return float(DEPTHS[reached[0]]) if len(reached) else 2.0

    def _fine(self, density: PrivateDensity, grid: _Grid, ranks: FloatArray) -> tuple[Profiles, float]:
        """The finest reading in which noise hardly moves the coverage, and its total mass."""
        finest = density.spec.readable[0]
        # Never coarser than the sets themselves: then nothing would be gained.
        coarsest = np.maximum(np.append(self._profiles.x_bandwidth, self._profiles.y_bandwidth), finest)
        for factor in PREDICTION.finer:
            fine = Profiles(density, np.minimum(factor * finest, coarsest), sharpened=True)
            marginal = fine.marginal(fine.lines(grid.places))[0]
            total = max(float(marginal @ grid.place_weights), 1e-300)
            weights = grid.weights * (ranks <= self.coverage) * (self._y[1] - self._y[0])
            if fine.sum_sd(grid.places, weights, mirror_basis(fine, self._y)) <= PREDICTION.coverage_sd * total:
                break
        return fine, total

    def _optimism(self, density: PrivateDensity, grid: _Grid, fine: Profiles, share: FloatArray) -> FloatArray:
        """How much of the coverage at each depth is noise that the sets were drawn around, by simulation.

        The sets prefer places where the noise is positive, and the finer reading holds the same noise.
        """
        finest = density.reading(density.spec.readable[0])
        sums = noise_sums(density, finest.grid_shape(2.0))[: PREDICTION.simulations]
        bandwidth = np.append(self._profiles.x_bandwidth, self._profiles.y_bandwidth)
        smooth = Profiles(density, np.minimum(PREDICTION.smoother * bandwidth, density.spec.readable[1]))
        values = smooth.lines(grid.places).on(mirror_basis(smooth, self._y))[0]
        variance = self._profiles.lines(grid.places).on(self._basis)[1]
        moved = (self._profiles.simulated(sums, grid.places) @ self._basis).real
        noise = (fine.simulated(sums, grid.places) @ mirror_basis(fine, self._y)).real * share
        sd = np.sqrt(variance)
        gains = [_cumulated(_ranks_of(values + m, sd), e) for m, e in zip(moved, noise, strict=True)]
        return np.asarray(np.mean(gains, axis=0))


def _ranks_of(values: FloatArray, sd: FloatArray) -> FloatArray:
    positive = np.where(values > PREDICTION.least_snr * sd, values, 0.0) * _trapezoid(values.shape[1])
    order = np.argsort(-values, axis=1, kind="stable")
    descending = np.take_along_axis(positive, order, axis=1)
    above = np.cumsum(descending, axis=1) - descending / 2
    total = np.maximum(descending.sum(axis=1, keepdims=True), 1e-300)
    ranks = np.empty_like(values)
    # What is lost in the noise comes last, highest first: between 1 and 2.
    late = 1 + np.arange(1, values.shape[1] + 1) / values.shape[1]
    np.put_along_axis(ranks, order, np.where(descending > 0, above / total, late), axis=1)
    return ranks


def _cumulated(ranks: FloatArray, mass: FloatArray) -> FloatArray:
    """Mass at ranks up to each of the depths."""
    into = np.searchsorted(DEPTHS, ranks.ravel(), side="left")
    return np.cumsum(np.bincount(into, weights=mass.ravel(), minlength=len(DEPTHS) + 1)[: len(DEPTHS)])


def _trapezoid(size: int) -> FloatArray:
    """Weights of the trapezoid rule."""
    weights = np.ones(size)
    weights[[0, -1]] = 0.5
    return weights
