r"""Conditional densities of one column given the others, from the leaf masses of a posterior.

At a place x the slice is a local linear fit of the masses along x,

.. math:: s(y \mid x) \propto \sum_i \ell_i(x)\, p(x_i, y), \qquad
          \ell_i(x) = K_i \Big(1 - \bar u^\top U^{-1} (u_i - \bar u)\Big), \quad u_i = x_i - x,

with a kernel K of width w, mean :math:`\bar u` and covariance U of u under it. It follows a density that rises or falls
towards a wall of x. Along y it is smoothed by a Gaussian that is reflected at the walls. The estimate and every draw of
the posterior go through the same sums, so that what is read from a slice has draws of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fogline._typing import BoolArray, FloatArray
from fogline.density.posterior.axes import LeafAxis

if TYPE_CHECKING:
    from fogline.density.posterior.posterior import Posterior

__all__ = ["SLICES", "SliceTuning", "Slices", "grid_places"]


@dataclass(frozen=True)
class SliceTuning:
    """What is tuned of slices.

    Attributes
    ----------
    places : tuple of int
        Places per axis of x on which branches are kept, for one and for two of them.
    cells : tuple of int
        Most cells per axis of x, for one and for two; leaves are put together to reach it.
    draws : int
        Most draws that are used.
    known : float
        Relative error of the density of x up to which a place counts as known.
    least_records : float
        Records that a pooled slice must hold.
    near, least_near : tuple of float, float
        A place counts as known only if this many records are estimated within this part of every axis of x, for one
        and for two of them: pooling must not answer where nobody is.
    """

    places: tuple[int, int] = (49, 13)
    cells: tuple[int, int] = (64, 32)
    draws: int = 200
    known: float = 0.3
    least_records: float = 15.0
    near: tuple[float, float] = (0.032, 0.08)
    least_near: float = 10.0


SLICES = SliceTuning()


def grid_places(axes: tuple[FloatArray, ...]) -> FloatArray:
    """All places of a grid, shape (places, axes)."""
    return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)


class Slices:
    """Masses of a posterior with the response last and the other columns in cells.

    Parameters
    ----------
    posterior : Posterior
        Of two or three columns.
    response : int
        Column whose conditional density is wanted.

    Attributes
    ----------
    y : LeafAxis
    x_axes : tuple of LeafAxis
    grid : tuple of arrays
        Places on which branches are kept, from wall to wall.
    joint, drawn : arrays of shape (cells, leaves of y) and (draws, cells, leaves of y)
    count : float
    """

    def __init__(self, posterior: Posterior, response: int) -> None:
        self.y: LeafAxis = posterior.axes[response]
        self.x_axes = tuple(axis for k, axis in enumerate(posterior.axes) if k != response)
        self.count = float(posterior.count.value)
        masses = posterior.masses()
        most = SLICES.cells[len(self.x_axes) - 1]
        self._groups = [-(-len(axis.centres) // most) for axis in self.x_axes]
        self.centres = [_grouped_mean(axis.centres, g) for axis, g in zip(self.x_axes, self._groups, strict=True)]
        self.cells = grid_places(tuple(self.centres))
        self.joint = self._flat(np.moveaxis(masses.estimate, response, -1)[None])[0]
        self.drawn = self._flat(np.moveaxis(masses.draws[: SLICES.draws], response + 1, -1)).astype(np.float32)
        places = SLICES.places[len(self.x_axes) - 1]
        self.grid = tuple(np.linspace(*axis.bounds, places) for axis in self.x_axes)
        self.widths = np.array([axis.bounds[1] - axis.bounds[0] for axis in self.x_axes])

    def _flat(self, part: FloatArray) -> FloatArray:
        for k, group in enumerate(self._groups):
            part = np.add.reduceat(part, np.arange(0, part.shape[k + 1], group), axis=k + 1)
        return np.asarray(part.reshape(part.shape[0], len(self.cells), -1))

    def weights(self, places: FloatArray, width: FloatArray) -> FloatArray:
        """Local linear weights of the cells at places, shape (places, cells).

        Parameters
        ----------
        places : array of shape (places, dx)
        width : array of shape (places,)
            Width of the kernel at each place, as a part of every axis of x.
        """
        u = (self.cells[None] - places[:, None]) / self.widths
        # a cell is never narrower than the kernel, or a place between two cells would see none
        least = np.array([1.0 / len(c) for c in self.centres])
        scale = np.maximum(width[:, None, None], least)
        kernel = np.exp(-0.5 * np.sum((u / scale) ** 2, axis=2))
        kernel /= kernel.sum(axis=1, keepdims=True)
        mean = np.einsum("pc,pcj->pj", kernel, u)
        centred = u - mean[:, None]
        spread = np.einsum("pc,pci,pcj->pij", kernel, centred, centred) + 1e-12 * np.eye(u.shape[2])
        slope = np.linalg.solve(spread, mean[:, :, None])[:, :, 0]
        return np.asarray(kernel * (1 - np.einsum("pcj,pj->pc", centred, slope)))

    def pooled(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slices of the estimate and of the draws, shapes (places, leaves) and (draws, places, leaves); not scaled."""
        estimate = np.maximum(weights @ self.joint, 0.0)
        drawn = np.maximum(weights.astype(np.float32) @ self.drawn, 0.0)
        return estimate, drawn

    def known_widths(
        self, places: FloatArray, least: float, candidates: tuple[float, ...]
    ) -> tuple[FloatArray, BoolArray]:
        """Smallest width from `least` on at which a place is known, and whether any is, per place."""
        marginal, drawn = self.joint.sum(axis=1), self.drawn.sum(axis=2, dtype=np.float64)
        width, known = np.full(len(places), max(candidates)), np.zeros(len(places), dtype=bool)
        for candidate in sorted((c for c in candidates if c >= least), reverse=True):
            weights = self.weights(places, np.full(len(places), candidate))
            mass, sd = weights @ marginal, (drawn @ weights.T).std(axis=0)
            records = self.count * mass**2 / np.maximum((weights**2) @ marginal, 1e-300)
            fine = (mass > 0) & (sd <= SLICES.known * mass) & (records >= SLICES.least_records)
            width = np.where(fine, candidate, width)
            known |= fine
        return width, known & (self._near(places, marginal) >= SLICES.least_near)

    def _near(self, places: FloatArray, marginal: FloatArray) -> FloatArray:
        """Estimated records near to each place."""
        reach = max(SLICES.near[len(self.x_axes) - 1], max(1 / len(c) for c in self.centres))
        near = (np.abs(self.cells[None] - places[:, None]) <= reach * self.widths).all(axis=2)
        return np.asarray(self.count * (near @ marginal))

    def spreads(self, estimate: FloatArray) -> FloatArray:
        """Deviation of a normal law whose shortest interval with a quarter of its mass is as long, per place."""
        cumulative = np.cumsum(estimate, axis=1) / np.maximum(estimate.sum(axis=1, keepdims=True), 1e-300)
        found = np.empty(len(estimate))
        for i, row in enumerate(cumulative):
            above = np.concatenate([[0.0], row])
            end = np.searchsorted(above, above + 0.25 - 1e-12)
            length = np.where(end < len(above), end - np.arange(len(above)), len(above))
            found[i] = length.min()
        return np.asarray(np.maximum(found, 1.0) * self.y.width / 0.6373)

    def smoother(self, bandwidth: float) -> FloatArray:
        """Matrix of a Gaussian along y that is reflected at the walls, columns that sum to one."""
        n = len(self.y.centres)
        b = max(bandwidth / self.y.width, 1e-3)
        # Leaf i lies |i - j| steps from leaf j, and i + j + 1 and 2n - 1 - i - j from its images behind the walls: 2n
        # values serve all entries.
        bell = np.exp(-0.5 * (np.arange(2 * n) / b) ** 2)
        total = sliding_window_view(np.concatenate([bell[n - 1 : 0 : -1], bell[:n]]), n)[:, ::-1]
        total = total + sliding_window_view(bell[1:], n)
        total += sliding_window_view(bell[:0:-1], n)
        total /= total.sum(axis=0)
        return np.asarray(total)


def _grouped_mean(values: FloatArray, group: int) -> FloatArray:
    starts = np.arange(0, len(values), group)
    sizes = np.diff(np.append(starts, len(values)))
    return np.asarray(np.add.reduceat(values, starts) / sizes)
