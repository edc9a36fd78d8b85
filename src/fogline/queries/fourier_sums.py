r"""From cell counts to exact integer Fourier sums, in floating-point matrix products that cannot round.

For the frequencies :math:`m` of a specification and integer tables
:math:`E_j[m_j, c_j] \approx 2^{20} e^{-2\pi i m_j c_j/N_j}`, truncated toward zero, we need

.. math:: F_m = \sum_c n_c \prod_j E_j[m_j, c_j] \in \mathbb{Z}[i].

Axis by axis this is a matrix product. Counts are split into limbs of :math:`b` bits such that no partial sum of
a product reaches :math:`2^{53}`; BLAS then computes integers exactly, in any order of summation. Carries are
moved in int64 between the products, and the sum is put together in Python's unbounded integers at the end.

Truncation keeps :math:`|E_j| \le 2^{20}` exactly, so a record's vector has norm at most :math:`2^{20 d}` per
frequency: no rounding enters the sensitivity before the final floor to the lattice.

The secret state of a grid sketch: how many records lie in each cell of the public grid.

A record :math:`x` falls into the cell :math:`\lfloor (x_j - lo_j)/\delta_j + s_j \rfloor` on each axis
(:math:`s_j` is 0, or 1/2 where values are rounded), the last one if rounding carries it past the end. One with
a missing or infinite value, or outside the box, falls nowhere. Counts are integers: exact, order-free,
mergeable, and equal to what ``GROUP BY`` gives in any SQL engine that evaluates the same expression in double
precision.

How far neighbouring data sets can be apart on the lattice of a release, in Euclidean norm. The proof is in
``fourier_sums.proof.md`` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._typing import FloatArray, IntArray
from fogline._validation import compiled_loops, quiet
from fogline.density.random_spec import CellSpec, FourierSpec, RandomSpec
from fogline.density.spec import LATTICE_BITS, WEIGHT_BITS, SketchSpec
from fogline.queries.random_feature_sums import random_sensitivity

__all__ = [
    "TABLE_BITS",
    "CellCounts",
    "cell_keys",
    "covers_gain_and_loss",
    "lattice_sensitivity",
    "lattice_sums",
    "least_kernel",
    "phase_table",
    "row_cells",
    "strata_sensitivity",
]


TABLE_BITS = 20
"""Cosines and sines are integers of this many bits."""


def phase_table(cells: int, period: int, indices: IntArray) -> tuple[IntArray, IntArray]:
    r"""Cosine and sine of :math:`-2\pi m c/N` times :math:`2^{20}`, truncated so that no modulus exceeds it."""
    # Reduced in integers first: the angle of a large product would lose its low bits.
    residue = np.outer(np.arange(cells), indices) % period
    angle = -2 * np.pi * np.arange(period) / period
    unit = 2**TABLE_BITS
    cosine = np.trunc(unit * np.cos(angle)).astype(np.int64)
    sine = np.trunc(unit * np.sin(angle)).astype(np.int64)
    # A float cosine may land an ulp beyond an integer: take one step back wherever the modulus shows it.
    beyond = cosine**2 + sine**2 > unit**2
    cosine -= np.sign(cosine) * (beyond & (np.abs(cosine) >= np.abs(sine)))
    sine -= np.sign(sine) * (beyond & (np.abs(cosine) < np.abs(sine)))
    if np.any(cosine**2 + sine**2 > unit**2):
        raise AssertionError("a phase exceeds modulus one")
    return cosine[residue], sine[residue]


def lattice_sums(table: IntArray, spec: SketchSpec, *, record_bits: int = 0) -> IntArray:
    """Weighted sums on the integer lattice: real parts of all frequencies, then imaginary parts of all but the first.

    Each is ``floor(q_m * F_m / 2**(20 d + 24 - 22 + record_bits))``, saturated to 61 bits, where a record adds at most
    ``2**record_bits`` to the table.
    """
    real, imaginary = _exact_sums(table, spec)
    shift = TABLE_BITS * spec.d + WEIGHT_BITS - LATTICE_BITS + record_bits
    weights = spec.integer_weights.tolist()
    limit = 2**61
    # Python integers shift toward minus infinity, whatever the sign: one floor for all
    values = [(q * f) >> shift for q, f in zip(weights, real, strict=True)]
    values += [(q * f) >> shift for q, f in zip(weights[1:], imaginary[1:], strict=True)]
    return np.array([min(max(v, -limit), limit) for v in values], dtype=np.int64)


def _exact_sums(table: IntArray, spec: SketchSpec) -> tuple[list[int], list[int]]:
    # limbs so small that a product, summed over the longest axis, stays below 2^52
    bits = 53 - TABLE_BITS - 1 - int(np.ceil(np.log2(max(spec.cells))))
    real = _split(table, bits)
    imaginary: list[IntArray] = []
    for j in reversed(range(spec.d)):  # the last axis is contracted and its frequencies moved to the front
        indices = np.arange(0 if j == 0 else -spec.reach[j], spec.reach[j] + 1)
        cosine, sine = phase_table(spec.cells[j], spec.torus_cells[j], indices)
        real, imaginary = _contract(real, imaginary, cosine.astype(np.float64), sine.astype(np.float64), bits)
    place = tuple(
        spec.frequencies[:, j] + (0 if j == 0 else spec.reach[j]) for j in range(spec.d)
    )  # after all contractions the axes are m_1, ..., m_d
    return _join(real, place, bits), _join(imaginary, place, bits)


def _split(table: IntArray, bits: int) -> list[IntArray]:
    """Limbs of counts, lowest first, the top one with the sign; as many as 63 bits need, whatever the counts are."""
    mask, top = 2**bits - 1, -(-63 // bits) - 1
    return [*((table >> (bits * i)) & mask for i in range(top)), table >> (bits * top)]


def _contract(
    real: list[IntArray], imaginary: list[IntArray], cosine: FloatArray, sine: FloatArray, bits: int
) -> tuple[list[IntArray], list[IntArray]]:
    """Multiply (real + i imaginary) by (cosine + i sine) along the last axis; frequencies come out in front."""
    out_real, out_imaginary = [], []
    for i, limb in enumerate(real):
        re = _product(limb, cosine)
        im = _product(limb, sine)
        if imaginary:
            re -= _product(imaginary[i], sine)
            im += _product(imaginary[i], cosine)
        out_real.append(re)
        out_imaginary.append(im)
    return _carry(out_real, bits), _carry(out_imaginary, bits)


def _product(limb: IntArray, matrix: FloatArray) -> IntArray:
    exact = limb.astype(np.float64) @ matrix  # partial sums below 2**52: every order of summation is exact
    return np.ascontiguousarray(np.moveaxis(exact, -1, 0)).astype(np.int64)


def _carry(limbs: list[IntArray], bits: int) -> list[IntArray]:
    """Bring all limbs but the top one into [0, 2**bits); the top one keeps the sign."""
    mask = 2**bits - 1
    carried, carry = [], np.zeros_like(limbs[0])
    for limb in limbs:
        value = limb + carry
        carried.append(value & mask)
        carry = value >> bits
    for _ in range(-(-(TABLE_BITS + 2) // bits)):  # a product adds at most 21 bits
        carried.append(carry & mask)
        carry = carry >> bits
    carried[-1] = carried[-1] + (carry << bits)  # carry is 0 or -1 here
    if np.any(np.abs(carried[-1]) > 2**bits):
        raise AssertionError("limbs are too few")
    return carried


def _join(limbs: list[IntArray], place: tuple[IntArray, ...], bits: int) -> list[int]:
    total = [0] * len(place[0])
    for i, limb in enumerate(limbs):
        total = [t + (v << (bits * i)) for t, v in zip(total, limb[place].tolist(), strict=True)]
    return total


CHUNK_ROWS = 2**15
"""Rows turned into cells at a time: what one chunk needs stays in the cache."""

DENSE_CELLS = 2**22
"""Up to this many cells the counts are a plain array of 32 MiB; above, sorted keys and counts."""

MOST_DECLARED = 2**41
"""Most records of counts made elsewhere that are taken on trust."""

MOST_HIDDEN = 2**36
"""Most records of a cell in a sum that nobody could look at before it was read: more are cut off, not refused."""


def cell_keys(rows: FloatArray, spec: CellSpec) -> IntArray:
    """Flat cell of each row (C order), or the number of cells for a row that falls nowhere."""
    total = math.prod(spec.cells)
    key = np.zeros(len(rows))
    inside = np.ones(len(rows), dtype=bool)
    with np.errstate(all="ignore"):  # infinities and NaN are not news
        for j, cells in enumerate(spec.cells):
            x = np.ascontiguousarray(rows[:, j])
            inside &= (x >= spec.lower[j]) & (x <= spec.upper[j])  # false for NaN
            x = (x - spec.lower[j]) / spec.cell_widths[j]
            if spec.shift[j]:
                x += spec.shift[j]
            np.floor(x, out=x)
            # The upper bound itself belongs to the last cell.
            np.minimum(x, cells - 1.0, out=x)
            # in doubles: cells are few enough that every key is a whole number below 2^53
            key *= cells
            key += x
    np.copyto(key, float(total), where=~inside)
    return key.astype(np.int64)


def row_cells(rows: FloatArray, spec: CellSpec) -> IntArray:
    """Cells of :func:`cell_keys`, by the compiled loop where there is one and its keys of 32 bits hold all cells."""
    if _fast_counter() is None:
        return cell_keys(rows, spec)
    from fogline.queries._numba import MOST_CELLS, write_cells

    if math.prod(spec.cells) > MOST_CELLS:
        return cell_keys(rows, spec)

    cells = np.empty(len(rows), dtype=np.int64)
    write_cells(rows, spec, cells)
    return cells


class CellCounts:
    """Integer counts of the cells, as a dense array or, on a large grid, as sorted keys with counts.

    Parameters
    ----------
    spec : SketchSpec or LeafSpec
        The public grid.
    """

    def __init__(self, spec: CellSpec) -> None:
        self.spec = spec
        self.total_cells = math.prod(spec.cells)
        self.is_dense = self.total_cells <= DENSE_CELLS
        self._dense = np.zeros(self.total_cells if self.is_dense else 0, dtype=np.int64)
        self._keys = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)
        # Loaded and compiled now, not with the first batch: what the process holds must not tell that there was one.
        self.add_rows(np.zeros((0, len(spec.cells))))

    @quiet()
    def add_rows(self, rows: FloatArray) -> None:
        """Count the rows of an array of shape (n, d), chunk by chunk."""
        fast = _fast_counter() if self.is_dense else None
        if fast is not None:
            fast(rows, self.spec, self._dense)
            return
        for start in range(0, len(rows), CHUNK_ROWS):
            keys = cell_keys(rows[start : start + CHUNK_ROWS], self.spec)
            if self.is_dense:
                self._dense += np.bincount(keys, minlength=self.total_cells + 1)[:-1]
            else:
                unique, counts = np.unique(keys[keys < self.total_cells], return_counts=True)
                self.add_state(unique, counts.astype(np.int64))

    def add_state(self, keys: IntArray, counts: IntArray) -> None:
        """Add counts of distinct cells, such as another sketch's or the answer to a ``GROUP BY``."""
        if self.is_dense:
            self._dense[keys] += counts
            return
        joined, inverse = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        sums = np.zeros(len(joined), dtype=np.int64)
        np.add.at(sums, inverse, np.concatenate([self._counts, counts]))
        self._keys, self._counts = joined, sums

    def take_rows(self, rows: FloatArray) -> None:
        """Take rows back: the inverse of :meth:`add_rows`."""
        gone = CellCounts(self.spec)
        gone.add_rows(rows)
        keys, counts = gone.state()
        self.add_state(keys, -counts)

    def checked(self, keys: ArrayLike, counts: ArrayLike, *, signed: bool = False) -> tuple[IntArray, IntArray]:
        """Return counts from elsewhere, if records can have made them; with ``signed``, some were taken back."""
        cells, numbers = self._as_cells(keys, counts)
        if len(cells) and numbers.min() < 0 and not signed:
            raise ValueError("keys must be cells of the grid and counts must not be negative")
        # as Python integers: a sum of int64 could wrap and pass
        if sum(map(abs, numbers.tolist())) > MOST_DECLARED:
            raise ValueError(f"counts must not add up to more than {MOST_DECLARED} records")
        return cells.astype(np.int64), numbers.astype(np.int64)

    def cut(self, keys: ArrayLike, counts: ArrayLike, *, signed: bool = False) -> tuple[IntArray, IntArray, int]:
        """Return a sum of counts, each cut to a public range, and how many declared parts it stands for.

        Whether a sum of several parties is refused must not depend on what one of them adds to the counts of another.
        """
        cells, numbers = self._as_cells(keys, counts)
        kept = np.clip(numbers.astype(np.int64), -MOST_HIDDEN if signed else 0, MOST_HIDDEN)
        return cells.astype(np.int64), kept, -(-self.total_cells * MOST_HIDDEN // MOST_DECLARED)

    def _as_cells(self, keys: ArrayLike, counts: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Distinct cells of the grid, and a whole number for each."""
        cells, numbers = np.asarray(keys), np.asarray(counts)
        if (
            cells.dtype.kind not in "iu"
            or numbers.dtype.kind not in "iu"
            or cells.shape != numbers.shape
            or cells.ndim != 1
        ):
            raise ValueError("keys and counts must be integers, one count for each key")
        if len(cells) and (cells.min() < 0 or cells.max() >= self.total_cells):
            raise ValueError("keys must be cells of the grid and counts must not be negative")
        # a key that comes twice would be counted once, by the assignment of arrays
        if len(np.unique(cells)) != len(cells):
            raise ValueError("keys must be distinct")
        return cells, numbers

    def state(self) -> tuple[IntArray, IntArray]:
        """Keys, ascending, and counts of the cells that are not empty: the canonical form."""
        if self.is_dense:
            keys = np.flatnonzero(self._dense)
            return keys.astype(np.int64), self._dense[keys]
        # Records that were added and taken back leave a zero, which must not tell that they were there.
        keep = self._counts != 0
        return self._keys[keep], self._counts[keep]

    def table(self) -> IntArray:
        """Counts as a dense array with one axis for each of the box's."""
        if self.is_dense:
            return self._dense.reshape(self.spec.cells).copy()
        full = np.zeros(self.total_cells, dtype=np.int64)
        full[self._keys] = self._counts
        return full.reshape(self.spec.cells)


_counter: Callable[[FloatArray, CellSpec, IntArray], None] | None = None
_counter_known = False


def _fast_counter() -> Callable[[FloatArray, CellSpec, IntArray], None] | None:
    """Give the numba counter where the ``fast`` extra is installed, else nothing."""
    global _counter, _counter_known
    if not compiled_loops():
        return None
    if not _counter_known:
        try:
            from fogline.queries._numba import count_rows
        except ImportError:
            _counter = None
        else:
            _counter = count_rows
        _counter_known = True
    return _counter


SQRT2 = math.sqrt(2.0)


def lattice_sensitivity(spec: FourierSpec, neighbours: str, max_contributions: int) -> float:
    r"""How far the lattice sums of neighbouring data sets can be apart, in steps, in Euclidean norm.

    .. math:: c\,2^{22} + \sqrt{K} \quad\text{(add-remove)}, \qquad c\,\sqrt{2 - 2\kappa}\;2^{22} + \sqrt{K}
       \quad\text{(replace)},

    with :math:`K` coefficients, :math:`c` contributions and :math:`\kappa` the least value of the kernel that
    the features make. The square root is what the floor to the lattice adds. Random features have their own formula,
    :func:`~fogline.queries.random_feature_sums.random_sensitivity`.
    """
    if isinstance(spec, RandomSpec):
        return random_sensitivity(spec, neighbours, max_contributions)
    # a feature vector has norm at most one; two of them are apart by the kernel between them
    per_record = 1.0 if neighbours == "add-remove" else math.sqrt(2 - 2 * least_kernel(spec))
    steps = max_contributions * per_record * 2.0**LATTICE_BITS + math.sqrt(spec.n_coefficients)
    return _up(steps)


def strata_sensitivity(spec: FourierSpec, strata: int, neighbours: str, max_contributions: int) -> float:
    r"""How far the sums of several strata, one after the other in one vector, can be apart for neighbouring data sets.

    A record is in one stratum. Adding it moves that one as it would move a sketch of all records; replacing it may take
    it from one stratum to another, which moves two at right angles: :math:`\sqrt 2` where a sketch of all records has
    :math:`\sqrt{2 - 2\kappa}`. Floors differ only in strata that are touched.
    """
    if strata == 1:
        return lattice_sensitivity(spec, neighbours, max_contributions)
    added = neighbours == "add-remove"
    if isinstance(spec, RandomSpec):
        apart = random_sensitivity(spec, "add-remove", max_contributions)
        return apart if added else max(random_sensitivity(spec, neighbours, max_contributions), _up(SQRT2 * apart))
    # A floor differs only where a sum does: in strata that are touched.
    per_record = 1.0 if added else max(math.sqrt(2 - 2 * least_kernel(spec)), SQRT2)
    touched = min(strata, (1 if added else 2) * max_contributions)
    return _up(max_contributions * per_record * 2.0**LATTICE_BITS + math.sqrt(spec.n_coefficients * touched))


def covers_gain_and_loss(spec: FourierSpec, max_contributions: int, strata: int = 1) -> bool:
    """Whether a release under "replace" holds, at the same cost, for a record that comes or goes.

    It does where replacing moves the sums at least as far as adding does; a wide kernel makes records so much alike
    that it does not. Needed for parts of a data set, which a replaced record may leave and enter.

    Examples
    --------
    >>> from fogline.density.random_spec import plan_spec
    >>> covers_gain_and_loss(plan_spec([(0, 1)], [0.1]), 1)
    True
    """
    replaced, added = (
        strata_sensitivity(spec, strata, neighbours, max_contributions) for neighbours in ("replace", "add-remove")
    )
    return replaced >= added


def _up(steps: float) -> float:
    # more than the rounding of the few operations above
    return math.nextafter(steps * (1 + 1e-12), math.inf)


def least_kernel(spec: SketchSpec) -> float:
    r"""Give a lower bound of :math:`\langle z(c), z(c')\rangle` over all pairs of cells.

    The kernel of the real-valued weights is evaluated at every difference of cells by one FFT; the margin pays
    for the integer tables (less than three units of :math:`2^{-20}` per axis and side) and the FFT.
    """
    pairs = (spec.integer_weights / 2.0**WEIGHT_BITS) ** 2
    spectrum = np.zeros(spec.torus_cells)
    index = tuple(spec.frequencies.T % np.array(spec.torus_cells)[:, None])
    spectrum[index] = pairs
    kernel = np.fft.fftn(spectrum).real  # pairs already hold both signs of a frequency: the real part is the kernel
    for axis, cells in enumerate(spec.cells):  # differences of cells of the box only
        size = spec.torus_cells[axis]
        possible = np.minimum(np.arange(size), size - np.arange(size)) < cells
        kernel = np.compress(possible, kernel, axis=axis)
    # a smaller bound is a safe one: it makes neighbours further apart
    margin = 2 * spec.d * 3.0 * 2.0**-TABLE_BITS + 1e-9
    return min(max(float(kernel.min()) - margin, -1.0), 0.5)
