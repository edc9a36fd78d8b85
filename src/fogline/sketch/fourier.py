r"""From cell counts to exact integer Fourier sums, in floating-point matrix products that cannot round.

For the frequencies :math:`m` of a specification and integer tables
:math:`E_j[m_j, c_j] \approx 2^{20} e^{-2\pi i m_j c_j/N_j}`, truncated toward zero, we need

.. math:: F_m = \sum_c n_c \prod_j E_j[m_j, c_j] \in \mathbb{Z}[i].

Axis by axis this is a matrix product. Counts are split into limbs of :math:`b` bits such that no partial sum of
a product reaches :math:`2^{53}`; BLAS then computes integers exactly, in any order of summation. Carries are
moved in int64 between the products, and the sum is put together in Python's unbounded integers at the end.

Truncation keeps :math:`|E_j| \le 2^{20}` exactly, so a record's vector has norm at most :math:`2^{20 d}` per
frequency: no rounding enters the sensitivity before the final floor to the lattice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.spec import WEIGHT_BITS, SketchSpec

__all__ = ["LATTICE_BITS", "TABLE_BITS", "lattice_sums", "phase_table"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TABLE_BITS = 20
"""Cosines and sines are integers of this many bits."""

LATTICE_BITS = 22
"""A record's vector has norm at most 2**22 lattice steps; the sums fit int64 up to 2**41 records."""


def phase_table(cells: int, period: int, indices: IntArray) -> tuple[IntArray, IntArray]:
    r"""Cosine and sine of :math:`-2\pi m c/N` times :math:`2^{20}`, truncated so that no modulus exceeds it."""
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
    values = [(q * f) >> shift for q, f in zip(weights, real, strict=True)]
    values += [(q * f) >> shift for q, f in zip(weights[1:], imaginary[1:], strict=True)]
    return np.array([min(max(v, -limit), limit) for v in values], dtype=np.int64)


def _exact_sums(table: IntArray, spec: SketchSpec) -> tuple[list[int], list[int]]:
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
