r"""Which buckets are empty: boxes joined to larger ones, and these again, are empty together or not.

Whether a narrow bucket without records is empty, or holds none by chance, its own count does not tell. Here the box is
halved, along its columns in turn, down to single buckets. A part that holds anything has two halves, of which either or
none is empty, with probabilities :math:`(p_l, p_l, 1 - 2 p_l)` at depth l; all of an empty half is empty. With
:math:`A_v` the likelihood of the counts of part v if it is empty and :math:`B_v` if it is not,

.. math:: A_v = A_s A_t, \qquad B_v = p_l (A_s B_t + B_s A_t) + (1 - 2 p_l) B_s B_t,

from the buckets up, and the probability that a part is not empty follows from the whole down, exactly. The
:math:`p_l` are learnt from the counts (expectation and maximisation): where narrow parts are hardly ever empty for
sure, one without records is not taken for empty, and a bucket alone in an empty region pays at every depth. Halves
have fixed edges; shifted ones are averaged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline.density.posterior.field import Mesh

__all__ = ["JoinedSettings", "blend", "joined_emptiness"]

_CERTAIN = 60.0
"""Log-odds beyond this decide by themselves."""
_LEAST, _MOST = 1e-4, 0.49
"""Between these lies the probability that one half, a given one, is empty."""


@dataclass(frozen=True)
class JoinedSettings:
    """Tuned numbers of the halves.

    Attributes
    ----------
    shifts : tuple of tuple of float
        By which parts of the box the halves are shifted, per column; every second one begins with the last column.
    start : float
        Probability that a given half is empty before it is learnt.
    steps : int
        How often it is learnt.
    doubt : float
        Parts with an empty half, and as many without, that count as seen at each depth.
    reach : int
        Depths as near as this count half.
    """

    shifts: tuple[tuple[float, ...], ...] = (
        (0.0, 0.0, 0.0),
        (0.31, 0.19, 0.47),
        (0.17, 0.43, 0.29),
        (0.37, 0.71, 0.13),
    )
    start: float = 0.2
    steps: int = 8
    doubt: float = 0.5
    reach: int = 2


def joined_emptiness(mesh: Mesh, gain: FloatArray, settings: JoinedSettings | None = None) -> FloatArray:
    """Probability that each bucket is empty.

    Parameters
    ----------
    mesh : Mesh
        Of the buckets, in two or three columns.
    gain : array of shape (buckets,)
        Log-likelihood of each count if its bucket is empty, less that if it is not.
    settings : JoinedSettings, optional

    Examples
    --------
    >>> quarters = np.array([[[i, i + 1], [j, j + 1]] for i in range(4) for j in range(4)])
    >>> gain = np.full(16, 3.0)
    >>> gain[:4] = -9.0
    >>> joined_emptiness(Mesh.of(quarters, (4, 4)), gain).round().reshape(4, 4)[:, 0].tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    settings = JoinedSettings() if settings is None else settings
    bounded = np.clip(gain, -_CERTAIN, _CERTAIN)
    found = []
    for turn, shift in enumerate(settings.shifts):
        columns = range(mesh.d) if turn % 2 == 0 else reversed(range(mesh.d))
        halves = _Halves.of(mesh, shift, tuple(columns))
        found.append(halves.empty(bounded, settings))
    return np.asarray(np.mean(found, axis=0))


def blend(first: FloatArray, second: FloatArray, weight: float) -> FloatArray:
    """Probabilities whose log-odds are the weighted mean of those of two others; `weight` is that of the second.

    Examples
    --------
    >>> blend(np.array([0.5, 0.9]), np.array([0.5, 0.1]), 0.5).round(12).tolist()
    [0.5, 0.5]
    """
    sure = [np.clip(part, 1e-9, 1 - 1e-9) for part in (first, second)]
    odds = [np.log(part) - np.log1p(-part) for part in sure]
    return np.asarray(1 / (1 + np.exp(-((1 - weight) * odds[0] + weight * odds[1]))))


@dataclass(frozen=True)
class _Joins:
    """Parts of one depth that have buckets in both halves: their numbers and those of the halves."""

    depth: int
    whole: IntArray
    left: IntArray
    right: IntArray


@dataclass(frozen=True)
class _Halves:
    """The tree of halves: buckets are its first parts, in this order, and joins go from the narrowest up."""

    order: IntArray
    joins: tuple[_Joins, ...]
    size: int

    @classmethod
    def of(cls, mesh: Mesh, shift: tuple[float, ...], columns: tuple[int, ...]) -> _Halves:
        bits = math.ceil(math.log2(max(mesh.leaves))) + 2  # middles are half a leaf apart: no two have the same place
        place = ((mesh.centres + np.array(shift[: mesh.d])) % 1.0 * 2**bits).astype(np.int64)
        code = np.zeros(mesh.size, dtype=np.int64)
        for bit in reversed(range(bits)):
            for column in columns:
                code = 2 * code + (place[:, column] >> bit & 1)
        order = np.argsort(code, kind="stable")
        code, part, size, joins = code[order], np.arange(mesh.size), mesh.size, list[_Joins]()
        for depth in reversed(range(bits * mesh.d)):
            code = code >> 1
            pairs = np.flatnonzero(code[1:] == code[:-1])
            if len(pairs):
                whole = np.arange(size, size + len(pairs))
                joins.append(_Joins(depth, whole, part[pairs], part[pairs + 1]))
                size += len(pairs)
                part[pairs] = whole
                code, part = np.delete(code, pairs + 1), np.delete(part, pairs + 1)
        return cls(order, tuple(joins), size)

    def empty(self, gain: FloatArray, settings: JoinedSettings) -> FloatArray:
        """Probability that each bucket is empty, with the shares of empty halves learnt."""
        shares = np.full(len(self.joins), settings.start)
        depths = np.array([join.depth for join in self.joins])
        apart = np.abs(depths[:, None] - depths)
        near = np.where(apart == 0, 1.0, np.where(apart <= settings.reach, 0.5, 0.0))
        filled = np.ones(len(gain))
        for _ in range(settings.steps):
            filled, cut, seen = self._filled(gain, shares)
            learnt = (near @ cut + settings.doubt) / (near @ seen + 2 * settings.doubt)
            shares, before = np.clip(learnt / 2, _LEAST, _MOST), shares
            if np.all(np.abs(shares - before) < 1e-3):
                break
        return 1 - filled

    def _filled(self, gain: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Probability that each bucket holds anything; expected parts with an empty half, and parts, of each depth."""
        empty, full, present = np.zeros(self.size), np.zeros(self.size), np.ones(self.size)
        empty[: len(gain)] = gain[self.order]
        for join, share in zip(self.joins, shares, strict=True):
            one = np.logaddexp(empty[join.left] + full[join.right], full[join.left] + empty[join.right])
            both = full[join.left] + full[join.right]
            empty[join.whole] = empty[join.left] + empty[join.right]
            full[join.whole] = np.logaddexp(math.log(share) + one, math.log1p(-2 * share) + both)
        cut, seen = np.zeros(len(self.joins)), np.zeros(len(self.joins))
        for k in reversed(range(len(self.joins))):
            join, top = self.joins[k], math.log(shares[k]) - full[self.joins[k].whole]
            no_left = np.exp(top + empty[join.left] + full[join.right])
            no_right = np.exp(top + full[join.left] + empty[join.right])
            present[join.left] = present[join.whole] * (1 - no_left)
            present[join.right] = present[join.whole] * (1 - no_right)
            cut[k] = float(present[join.whole] @ (no_left + no_right))
            seen[k] = float(present[join.whole].sum())
        found = np.empty(len(gain))
        found[self.order] = np.clip(present[: len(gain)], 0.0, 1.0)
        return found, cut, seen
