r"""Sets of likely responses from a posterior: highest conditional density, honest on average over the records.

The set at x holds the leaves of y where the pooled slice is highest. Its depth is one number for all x, chosen such
that the sets together hold the wanted share of the *unpooled* estimate: that is the posterior mean of the density
behind the records, so the share is what one expects them to hold. Pieces whose mass is within what noise leaves
in the draws are left out before the depth is chosen. Where x itself is unknown, the set is the whole range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import BoolArray, FloatArray
from fogline.density.branches.posterior_branches import response_of
from fogline.density.branches.slices import Slices

if TYPE_CHECKING:
    from fogline.density.posterior.posterior import Posterior

__all__ = ["LIKELY_SETS", "LikelySetTuning", "LikelySets"]


@dataclass(frozen=True)
class LikelySetTuning:
    """What is tuned of sets of likely responses.

    Attributes
    ----------
    widths : tuple of float
        Widths of pooling along x, as parts of its range: the smallest at which a place is known.
    smoothing : float
        Width of smoothing along y, as a part of the spread of a slice.
    least_piece : float
        A piece of a set holds at least this part of the slice,
    piece_sd : float
        and this many deviations of its mass over the draws.
    reserve : float
        Share that is added to the wanted one, in deviations of the coverage over the draws.
    """

    widths: tuple[float, ...] = (0.035, 0.06, 0.1, 0.17)
    smoothing: float = 0.25
    least_piece: float = 0.01
    piece_sd: float = 1.5
    reserve: float = 1.0


LIKELY_SETS = LikelySetTuning()


class LikelySets:
    """Sets of likely responses at any x.

    Parameters
    ----------
    posterior : Posterior
        Of two or three columns.
    y : str or int, optional
        The response; by default the last column.
    coverage : float
        Wanted share of responses that fall into their sets.
    """

    @np.errstate(all="ignore")
    def __init__(self, posterior: Posterior, y: str | int | None = None, coverage: float = 0.9) -> None:
        self.slices = Slices(posterior, response_of(posterior, y))
        self.coverage = coverage
        slices = self.slices
        rows, known = self._ranked(slices.cells)
        low, high = 0.0, 1.0
        for _ in range(12):
            depth = (low + high) / 2
            inside = self._inside(rows, depth) | ~known[:, None]
            share = float((slices.joint * inside).sum())
            drawn = np.einsum("dcy,cy->d", slices.drawn, inside.astype(np.float32))
            # what the set holds in truth is as uncertain as in the draws
            enough = share - LIKELY_SETS.reserve * float(drawn.std()) >= coverage
            low, high = (low, depth) if enough else (depth, high)
        self.depth = high

    def _ranked(self, places: FloatArray) -> tuple[tuple[FloatArray, FloatArray, FloatArray], BoolArray]:
        """Pooled slices at places, the share above each leaf, and the error of the leaves; and which are known."""
        slices = self.slices
        width, known = slices.known_widths(places, 0.0, LIKELY_SETS.widths)
        estimate, drawn = slices.pooled(slices.weights(places, width))
        estimate = estimate / np.maximum(estimate.sum(axis=1, keepdims=True), 1e-300)
        drawn = drawn / np.maximum(drawn.sum(axis=2, keepdims=True), 1e-30)
        smooth = np.empty_like(estimate)
        for i, b in enumerate(LIKELY_SETS.smoothing * slices.spreads(estimate)):
            smooth[i] = slices.smoother(float(b)) @ estimate[i]
        order = np.argsort(-smooth, axis=1, kind="stable")
        above = np.empty_like(smooth)
        descending = np.take_along_axis(smooth, order, axis=1)
        np.put_along_axis(above, order, np.cumsum(descending, axis=1) - descending, axis=1)
        return (smooth, above, drawn), known

    def _inside(self, rows: tuple[FloatArray, FloatArray, FloatArray], depth: float) -> BoolArray:
        """Leaves of y in the sets of this depth, without pieces that noise could have left."""
        smooth, above, drawn = rows
        inside = above < depth
        steps = np.diff(np.pad(inside.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        for i in np.flatnonzero((steps == 1).sum(axis=1) > 1).tolist():
            first, last = np.flatnonzero(steps[i] == 1), np.flatnonzero(steps[i] == -1)
            mass = [float(smooth[i, a:b].sum()) for a, b in zip(first, last, strict=True)]
            for a, b, own in zip(first.tolist(), last.tolist(), mass, strict=True):
                sd = float(drawn[:, i, a:b].sum(axis=1).std())
                if own < max(mass) and own < max(LIKELY_SETS.least_piece, LIKELY_SETS.piece_sd * sd):
                    inside[i, a:b] = False
        return np.asarray(inside)

    @np.errstate(all="ignore")
    def at(self, x: FloatArray) -> list[FloatArray]:
        """Intervals at each row of x, one row ``(low, high)`` each; the whole range where nothing is known."""
        axis = self.slices.y
        low = np.array([a.bounds[0] for a in self.slices.x_axes])
        high = np.array([a.bounds[1] for a in self.slices.x_axes])
        outside = ~np.all((x >= low) & (x <= high), axis=1)
        rows, known = self._ranked(np.where(outside[:, None], low, x)) if len(x) else ((x, x, x), outside)
        inside = self._inside(rows, self.depth) if len(x) else np.zeros((0, 1), dtype=bool)
        inside[outside | ~known] = True
        found = []
        for row in inside:
            step = np.diff(np.concatenate([[0], row.astype(np.int8), [0]]))
            first, last = np.flatnonzero(step == 1), np.flatnonzero(step == -1) - 1
            found.append(np.stack([axis.first(first), axis.last(last)], axis=1))
        return found
