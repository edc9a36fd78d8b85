r"""Principal components under differential privacy: where the records lie, how wide, and in which directions.

Two releases. The first sums, over the records in the box, one, the record and its squared distance from the middle of
the box: with Gaussian noise this gives the count :math:`\hat n`, the mean and the spread
:math:`\hat s^2 = \widehat{E}|u - \hat m|^2`. The second centres at the released mean, clips at the *released* radius
:math:`B = 1.25\,\hat s` and sums :math:`v` and :math:`vv^\top`. A record moves the second sum by :math:`B^2`, not by
the square of the box's diagonal: in many columns that is what lets components be seen at all. A direction is kept
where its eigenvalue exceeds :math:`2\sigma\sqrt d`, the edge of the spectrum of the noise alone [1]_.

Columns are measured in half widths of their bounds. The proof is in ``moments.proof.md`` beside this file.

References
----------
.. [1] C. Dwork, K. Talwar, A. Thakurta, L. Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal
   component analysis", STOC 2014.
.. [2] F. Benaych-Georges, R. R. Nadakuditi, "The eigenvalues and eigenvectors of finite, low rank perturbations of
   large random matrices", Advances in Mathematics 227, 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, IntArray
from fogline.queries.lattice import Projection, RecordLattice, clipped
from fogline.queries.query import Records

__all__ = [
    "MOST_COLUMNS",
    "ExactSum",
    "MomentQuery",
    "Moments",
    "PrivateComponents",
    "Spread",
    "SpreadQuery",
    "components_of",
]


LIMIT = 2**61
"""Sums are cut to plus and minus this, which the mechanism can add noise to."""

MOST_COLUMNS = 1024
"""Most columns whose second moment is released: its size grows with the square."""

LOW = 2**32 - 1
"""The lower half of an integer."""


@dataclass(frozen=True)
class MomentsTuning:
    """What was tuned in the release of moments; the sensitivity is computed from the weights, whatever they are.

    Parameters
    ----------
    count_weight : float
        Length of the count in a record's first vector, as a fraction of the longest record.
    spread_weight : float
        Length of the squared distance in that vector, as a fraction of the longest record.
    mean_weight : float
        Length of the record itself in its second vector, as a fraction of that of its square.
    clip : float
        Radius of the clip in root mean square distances.
    least_spread : float
        The squared spread is not believed to be below this fraction of the box's.
    """

    count_weight: float = 0.8
    spread_weight: float = 0.45
    mean_weight: float = 0.7
    clip: float = 1.25
    least_spread: float = 2e-4


TUNING = MomentsTuning()


DIAGONAL, BESIDE = 5, 7
"""Weights of the entries of the second moment on and above the diagonal: 7/5 is just below the square root of two."""


class ExactSum:
    """Sum of vectors of whole numbers, exact for any number of them that can be counted, cut once, at the end.

    A number is kept in two parts, its lower 32 bits and the rest: neither can wrap.

    Examples
    --------
    >>> total = ExactSum(2)
    >>> for _ in range(3):
    ...     total.add(np.array([2.0**52, -1.0]))
    >>> bool((total.cut() == [3 * 2**52, -3]).all())
    True
    """

    def __init__(self, size: int) -> None:
        self._high = np.zeros(size, dtype=np.int64)
        self._low = np.zeros(size, dtype=np.int64)

    def add(self, part: FloatArray) -> None:
        """Add whole numbers below 2**53."""
        # The carry goes up before the low half is masked.
        self._low += part.astype(np.int64) & LOW
        self._high += (part.astype(np.int64) >> 32) + (self._low >> 32)
        self._low &= LOW

    def cut(self) -> IntArray:
        """Return the sum, cut to plus and minus 2**61."""
        most = LIMIT >> 32
        # clipped before the shift, which would wrap
        inside = (np.clip(self._high, -most, most - 1) << 32) + self._low
        return np.where(self._high >= most, LIMIT, np.where(self._high < -most, -LIMIT, inside))


@dataclass(frozen=True)
class SpreadQuery:
    r"""Sum over records of (one, the record, its squared length), each weighted.

    With :math:`S` the longest record (:math:`T\sqrt d` in a box, :math:`T` in a ball), a record :math:`q` contributes
    :math:`(\lfloor .8S\rfloor,\; q,\; \lfloor .45\,|q|^2/S\rfloor)`.
    """

    lattice: RecordLattice

    @property
    def longest(self) -> int:
        """Whole number not below the length of any record."""
        return self.lattice.longest

    @property
    def count_unit(self) -> int:
        """What a record adds to the count."""
        return int(TUNING.count_weight * self.longest)

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.lattice.d + 2

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the sums of neighbours can be apart, in Euclidean norm."""
        spread = int(TUNING.spread_weight * self.longest) ** 2
        squared = self.count_unit**2 + self.longest**2 + spread
        if neighbours != "add-remove":
            # replaced, the count stays; the record may turn into its opposite
            squared = max(squared, 4 * self.longest**2 + spread)
        return math.nextafter(max_contributions * math.sqrt(squared) * (1 + 1e-12), math.inf)

    def vectors(self, q: FloatArray) -> FloatArray:
        """Contribution of each record."""
        squared = np.einsum("ij,ij->i", q, q)
        spread = np.floor(squared * (TUNING.spread_weight / self.longest))
        capped = np.minimum(spread, float(int(TUNING.spread_weight * self.longest)))
        return np.column_stack([np.full(len(q), float(self.count_unit)), q, capped])

    def exact(self, records: Records) -> IntArray:
        """Secret: the sum over all records."""
        total = ExactSum(self.size)
        records.each(lambda rows: total.add(self.vectors(self.lattice.vectors(rows)).sum(axis=0)))
        return total.cut()

    def decode(self, values: IntArray, noise_scale: float) -> Spread:
        """Count, mean and spread from the released sum."""
        d, steps = self.lattice.d, float(self.lattice.steps)
        count_sd = noise_scale / self.count_unit
        count = max(float(values[0]) / self.count_unit, 1.0)
        safe = max(count, 2 * count_sd)
        mean = values[1:-1] / steps / safe
        mean_sd = noise_scale / steps / safe
        length = float(mean @ mean)
        squared = float(values[-1]) * self.longest / TUNING.spread_weight / steps**2 / safe
        # noise lengthens a mean by its own variance in every column
        spread = squared - max(length - d * mean_sd**2, 0.0)
        return Spread(
            count=count,
            count_sd=count_sd,
            mean=np.clip(mean, -1.0, 1.0),
            mean_sd=mean_sd,
            variance=float(
                np.clip(spread, TUNING.least_spread * d, max((self.longest / steps) ** 2, 2 * TUNING.least_spread * d))
            ),
            variance_sd=noise_scale * self.longest / TUNING.spread_weight / steps**2 / safe,
        )


@dataclass(frozen=True, eq=False)
class Spread:
    """Released count, mean and spread, in half widths."""

    count: float
    count_sd: float
    mean: FloatArray
    mean_sd: float
    variance: float
    variance_sd: float

    def radius(self, lattice: RecordLattice) -> int:
        """Radius of the clip around the mean, in lattice steps: from released numbers alone."""
        wide = self.variance + 0.5 * self.variance_sd + lattice.d * self.mean_sd**2
        # an uncertain spread makes the clip wider: too small a ball would cut off the directions looked for
        return max(1, int(min(TUNING.clip * math.sqrt(wide) * lattice.steps, 2 * lattice.longest)))


@dataclass(frozen=True, eq=False)
class MomentQuery:
    r"""Sum over records, centred and clipped to radius B, of :math:`v` and of :math:`vv^\top`.

    A record contributes :math:`(Mv,\; 5v_i^2,\; 7v_iv_j\;(i<j))`, with :math:`M = \lfloor 3.5B \rfloor`. Since
    :math:`49 \le 2\cdot 25`, the second part is no longer than :math:`5|v|^2 \le 5B^2`.

    Parameters
    ----------
    lattice : RecordLattice
    centre : array of shape (d,)
        In lattice steps.
    radius : int
        The radius B, in lattice steps.
    spread : Spread
        Released before; its count divides the sums.
    """

    lattice: RecordLattice
    centre: FloatArray
    radius: int
    spread: Spread

    @classmethod
    def around(cls, spread: Spread, lattice: RecordLattice) -> MomentQuery:
        """The moments about a released mean, clipped at the released radius."""
        return cls(lattice, np.rint(spread.mean * lattice.steps), spread.radius(lattice), spread)

    @property
    def mean_unit(self) -> int:
        """Weight M of the record itself."""
        return max(1, int(TUNING.mean_weight * DIAGONAL * self.radius))

    @property
    def size(self) -> int:
        """Length of the vector."""
        d = self.lattice.d
        return d + d * (d + 1) // 2

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the sums of neighbours can be apart, in Euclidean norm."""
        linear, quadratic = (self.mean_unit * self.radius) ** 2, (DIAGONAL * self.radius**2) ** 2
        # Replaced, v may turn into -v, which doubles the linear part; squares of v and v' cannot point against each
        # other.
        squared = linear + quadratic if neighbours == "add-remove" else 4 * linear + 2 * quadratic
        return math.nextafter(max_contributions * math.sqrt(squared) * (1 + 1e-12), math.inf)

    def exact(self, records: Records) -> IntArray:
        """Secret: the sum over all records."""
        d = self.lattice.d
        first, second = np.triu_indices(d)
        weights = np.where(first == second, DIAGONAL, BESIDE).astype(np.float64)
        total = ExactSum(self.size)

        def take(rows: FloatArray) -> None:
            v = clipped(self.lattice.vectors(rows) - self.centre, self.radius)
            square = (v.T @ v)[first, second] * weights  # whole numbers below 2**53 for any batch of 2**16 rows
            total.add(np.concatenate([v.sum(axis=0) * self.mean_unit, square]))

        records.each(take)
        return total.cut()

    def decode(self, values: IntArray, noise_scale: float) -> Moments:
        """Mean and covariance from the released sum."""
        d, steps, spread = self.lattice.d, float(self.lattice.steps), self.spread
        # A count within its noise may be zero or below, and would blow up what it divides.
        count = max(spread.count, 2 * spread.count_sd)
        shift = values[:d] / self.mean_unit / steps / count
        shift_sd = noise_scale / self.mean_unit / steps / count
        square = np.zeros((d, d))
        first, second = np.triu_indices(d)
        square[first, second] = values[d:] / np.where(first == second, DIAGONAL, BESIDE) / steps**2 / count
        square = square + np.triu(square, 1).T
        kept = spread.mean_sd**2 / (spread.mean_sd**2 + shift_sd**2)  # the first mean is off by noise of known size
        return Moments(
            mean=np.clip(self.centre / steps + kept * shift, -1.0, 1.0),
            mean_sd=shift_sd * math.sqrt(kept),
            covariance=square - kept**2 * np.outer(shift, shift),
            noise_sd=noise_scale / BESIDE / steps**2 / count,
        )


@dataclass(frozen=True, eq=False)
class Moments:
    """Released mean and covariance, in half widths, with the noise of each entry."""

    mean: FloatArray
    mean_sd: float
    covariance: FloatArray
    noise_sd: float


@dataclass(frozen=True, eq=False)
class PrivateComponents:
    """Directions in which the records spread, as far as they stand out of the noise.

    Attributes
    ----------
    projection : Projection
        On the leading directions, from the released mean.
    variances : array of shape (r,)
        Variance along each direction in squared half widths, less what the noise adds to an eigenvalue.
    edge : float
        Largest eigenvalue that noise alone would show.
    standing : int
        How many eigenvalues stand above the edge; the projection has at least one direction in any case.
    mean_sd : float
        Noise of each coordinate of the mean, in half widths.
    """

    projection: Projection
    variances: FloatArray
    edge: float
    standing: int
    mean_sd: float

    def numbers(self) -> dict[str, NDArray[Any]]:
        """What was computed by linear algebra, whose last bits differ from machine to machine."""
        return {
            "directions": self.projection.directions,
            "variances": self.variances,
            "standing": np.array(self.standing),
        }

    def with_numbers(self, numbers: dict[str, NDArray[Any]]) -> PrivateComponents:
        """Take these numbers, those of the release, for the ones computed here."""
        return replace(
            self,
            projection=replace(self.projection, directions=numbers["directions"]),
            variances=numbers["variances"],
            standing=int(numbers["standing"]),
        )


def components_of(moments: Moments, lattice: RecordLattice, most: int, exactly: int | None = None) -> PrivateComponents:
    """Leading directions of a released covariance: those above the noise, at least one and at most `most`."""
    values, vectors = np.linalg.eigh(moments.covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    # the edge of the semicircle of a noise matrix of this size
    edge = 2 * moments.noise_sd * math.sqrt(lattice.d)
    standing = int(np.sum(values > edge))
    r = min(max(1, min(standing, most)) if exactly is None else exactly, lattice.d)
    top = values[:r]
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(lattice.d)])  # else left to the library
    vectors = vectors * signs
    # what is left of an eigenvalue once the noise matrix has pushed it up
    shrunk = (top + np.sqrt(np.maximum(top**2 - edge**2, 0.0))) / 2
    floor = max(TUNING.least_spread, 0.05 * edge)
    return PrivateComponents(
        projection=Projection.on(lattice, vectors[:, :r].T, moments.mean),
        variances=np.maximum(shrunk, floor),
        edge=edge,
        standing=standing,
        mean_sd=moments.mean_sd,
    )
