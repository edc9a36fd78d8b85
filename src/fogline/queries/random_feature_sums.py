r"""The secret state of a sketch by random features: exact integer sums of cosines and sines.

A coordinate :math:`x_j` in the box becomes the integer :math:`u_j = \lfloor (x_j - lo_j)/\delta_j \rfloor - 2^{11}` of
:math:`2^{12}` cells. With the integer frequencies :math:`w_m` the phase :math:`t_m = w_m \cdot u` is an integer below
:math:`2^{31}` in absolute value, and so is every partial sum: a float64 matrix product gives it exactly, whatever the
shape of the batch, the library or the machine. The upper twelve bits of :math:`t_m` modulo :math:`2^{20}`, one full
turn, choose a direction from a table of integer cosines and sines that were cut toward zero. Sums are int64: the same
for any order, batching and partition of the records, with and without the compiled loop.

A record with a missing or infinite value, or outside the box, contributes nothing. The proof is in
``random_feature_sums.proof.md`` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._typing import FloatArray, IntArray
from fogline._validation import quiet
from fogline.density.random_spec import COORDINATE_BITS, PHASE_BITS, TABLE_BITS, UNIT, RandomSpec

__all__ = ["PhaseSums", "add_phases", "direction_table", "lattice_vector", "random_sensitivity"]


BLOCK_ROWS = 256
"""Rows multiplied at a time."""

BLOCK_COLUMNS = 512
"""Frequencies multiplied at a time: phases of one block fill 1 MiB."""

LIMIT = 2**61
"""Sums that are merged are cut to plus and minus this: they cannot wrap, and cutting spreads no neighbours."""

MOST_DECLARED = 2**41
"""Most records of sums made elsewhere that are taken on trust."""


@cache
def direction_table() -> NDArray[np.int32]:
    r"""Cosines and sines of the :math:`2^{12}` directions, packed: ``cosine * 2**16 + (sine mod 2**16)``.

    Directions are the middles of their sectors. Both parts are cut toward zero, so that the modulus is at most
    ``UNIT``: checked in integers, since the proof leans on it.
    """
    angles = 2 * np.pi * (np.arange(2**TABLE_BITS) + 0.5) / 2**TABLE_BITS
    cosine = np.trunc(UNIT * np.cos(angles) * (1 - 1e-12)).astype(np.int64)
    sine = np.trunc(UNIT * np.sin(angles) * (1 - 1e-12)).astype(np.int64)
    if np.any(cosine**2 + sine**2 > UNIT**2):
        raise AssertionError("a direction exceeds modulus one")
    table: NDArray[np.int32] = (cosine * 2**16 + sine % 2**16).astype(np.int32)
    # shared by all that count: who changed it would change their sensitivity
    table.flags.writeable = False
    return table


def coordinates(rows: FloatArray, spec: RandomSpec) -> FloatArray:
    """Integer coordinates, as doubles, of the rows that lie in the box; the others are left out."""
    with np.errstate(all="ignore"):  # infinities and NaN are not news
        inside = np.all((rows >= spec.lower) & (rows <= spec.upper), axis=1)  # false for NaN
    cells = np.floor((rows[inside] - spec.lower) / spec.cell_widths)
    return np.asarray(np.minimum(cells, 2.0**COORDINATE_BITS - 1) - 2.0 ** (COORDINATE_BITS - 1))


def add_phases(
    phases: FloatArray,
    table: NDArray[np.int32],
    shift: np.int32,
    mask: np.int32,
    cosines: NDArray[np.int32],
    sines: NDArray[np.int32],
) -> None:
    """Add cosine and sine of each column's phases; a table entry holds both, the sine in its lower 16 bits."""
    both = table[(phases.astype(np.int32) >> shift) & mask]
    cosines += np.add.reduce(both >> 16, axis=0, dtype=np.int32)
    sines += np.add.reduce((both << 16) >> 16, axis=0, dtype=np.int32)


class PhaseSums:
    """Integer sums of the features of records.

    Parameters
    ----------
    spec : RandomSpec
        The public frequencies.
    """

    def __init__(self, spec: RandomSpec) -> None:
        self.spec = spec
        self.count = 0
        self._sums = np.zeros((2, spec.n_features), dtype=np.int64)
        # Loaded and compiled now, not with the first batch: what the process holds must not tell that there was one.
        self.add_rows(np.zeros((0, spec.d)))

    @quiet()
    def add_rows(self, rows: FloatArray) -> None:
        """Add the rows of an array of shape (n, d), block by block."""
        shift, mask = np.int32(PHASE_BITS - TABLE_BITS), np.int32(2**TABLE_BITS - 1)
        table, add = direction_table(), _fast_adder() or add_phases
        columns = range(0, self.spec.n_features, BLOCK_COLUMNS)
        weights = [self.spec.frequencies[j : j + BLOCK_COLUMNS].T.astype(np.float64, order="C") for j in columns]
        scratch = np.empty(BLOCK_ROWS * BLOCK_COLUMNS)
        # No rows take the same path as one: whether the loop was ever compiled must not tell that there was a record.
        for start in range(0, max(len(rows), 1), BLOCK_ROWS):
            u = coordinates(rows[start : start + BLOCK_ROWS], self.spec)
            parts = np.zeros((2, self.spec.n_features), dtype=np.int32)  # 2**8 rows of less than 2**15 each
            for j, block in zip(columns, weights, strict=True):
                here = slice(j, j + BLOCK_COLUMNS)
                phases = scratch[: len(u) * block.shape[1]].reshape(len(u), block.shape[1])
                np.matmul(u, block, out=phases)  # integers below 2**31: every order of summation is exact
                add(phases, table, shift, mask, parts[0, here], parts[1, here])
            self._sums += parts
            self.count += len(u)

    def add_state(self, count: IntArray, sums: IntArray) -> None:
        """Add sums of the same features that were made elsewhere, cut so that they cannot wrap."""
        self.count = _cut(self.count + int(count[0]))
        mine, theirs = (np.clip(part, -LIMIT, LIMIT) for part in (self._sums, sums))
        self._sums = np.clip(mine + theirs, -LIMIT, LIMIT)

    def take_rows(self, rows: FloatArray) -> None:
        """Take rows back: the inverse of :meth:`add_rows`."""
        gone = PhaseSums(self.spec)
        gone.add_rows(rows)
        count, sums = gone.state()
        self.add_state(-count, -sums)

    def checked(self, count: ArrayLike, sums: ArrayLike, *, signed: bool = False) -> tuple[IntArray, IntArray]:
        """Return sums from elsewhere, if records can have made them; with ``signed``, some were taken back."""
        total, array = self._as_sums(count, sums)
        if not (-MOST_DECLARED if signed else 0) <= total <= MOST_DECLARED:
            raise ValueError(f"count must be that of at most {MOST_DECLARED} records")
        # Where rows were taken back the count bounds nothing: what is left may be the difference of many.
        most = UNIT * (MOST_DECLARED if signed else total)
        if int(array.max()) > most or int(array.min()) < -most:
            raise ValueError("sums are larger than this many records can make them")
        return np.array([total]), array.astype(np.int64)

    def cut(self, count: ArrayLike, sums: ArrayLike, *, signed: bool = False) -> tuple[IntArray, IntArray, int]:
        """Return sums of several parties, each cut to a public range, and how many declared parts they stand for."""
        total, array = self._as_sums(count, sums)
        kept = min(max(total, -MOST_DECLARED if signed else 0), MOST_DECLARED)
        most = UNIT * MOST_DECLARED
        return np.array([kept]), np.clip(array.astype(np.int64), -most, most), 1

    def _as_sums(self, count: ArrayLike, sums: ArrayLike) -> tuple[int, NDArray[Any]]:
        """One whole number, and one for each part of each feature."""
        number, array = np.asarray(count), np.asarray(sums)
        if number.dtype.kind not in "iu" or array.dtype.kind not in "iu" or number.size != 1:
            raise ValueError("count and sums must be integers")
        if array.shape != self._sums.shape:
            raise ValueError(f"sums must have shape {self._sums.shape}, got {array.shape}")
        return int(number.reshape(-1)[0]), array

    def state(self) -> tuple[IntArray, IntArray]:
        """Secret: the number of records as an array of one, and the sums, shape (2, F)."""
        return np.array([self.count], dtype=np.int64), self._sums.copy()

    def table(self) -> IntArray:
        """Secret: the vector to which noise is added."""
        return lattice_vector(self.count, self._sums, self.spec)


def lattice_vector(count: int, sums: IntArray, spec: RandomSpec) -> IntArray:
    """Exact integers of a release: the weighted count, the cosines, the sines."""
    head = np.array([_cut(count * spec.count_unit)], dtype=np.int64)
    return np.concatenate([head, np.clip(sums, -LIMIT, LIMIT).ravel()])


def _cut(value: int) -> int:
    return min(max(value, -LIMIT), LIMIT)


def random_sensitivity(spec: RandomSpec, neighbours: str, max_contributions: int) -> float:
    r"""How far the integer sums of neighbouring data sets can be apart, in Euclidean norm.

    .. math:: c\,\sqrt{F U^2 + q_0^2} \quad\text{(add-remove)}, \qquad
              c\,\max\bigl(2\sqrt{F}\,U, \sqrt{F U^2 + q_0^2}\bigr) \quad\text{(replace)},

    with :math:`F` frequencies, the modulus :math:`U` of a direction, :math:`c` contributions and what a record adds to
    the weighted count, :math:`q_0`: a record replaced by another in the box does not change the count.
    """
    squared = spec.squared_norm
    if neighbours != "add-remove":
        squared = max(squared, 4 * spec.n_features * UNIT**2)
    return math.nextafter(max_contributions * math.sqrt(squared) * (1 + 1e-12), math.inf)


@cache
def _fast_adder() -> Callable[..., None] | None:
    """Give the compiled loop where the ``fast`` extra is installed, else nothing."""
    try:
        from fogline.queries._numba import add_phases as fast
    except ImportError:
        return None
    return fast  # type: ignore[no-any-return, unused-ignore]
