r"""A private density by the Bernstein mechanism: noise on a lattice of values, a polynomial through them.

A kernel density estimate is evaluated at the :math:`(k+1)^d` points of a public lattice in the box, Laplace noise is
added to each value, and the noisy values become the coefficients of an iterated Bernstein polynomial: with
:math:`B f(u) = \sum_\nu f(\nu/k)\, b_{\nu,k}(u)` on the unit box,

.. math:: B^{(h)} = 1 - (1 - B)^h = B \sum_{i=0}^{h-1} (1 - B)^i .

The polynomial may be negative and does not integrate to one: it is shifted until it is positive, and scaled. All of
that reads the noisy values only, so that any number of draws and plots costs nothing more.

The noise has to cover how far one record moves *all* values together, its kernel's sum over the lattice. The original
takes the number of points times the kernel's top, which is far more: see ``sensitivity`` in `BernsteinDensity.fit`.
To be exact, records are put into cells and each cell has a row of integers, the kernel of its middle at the lattice
points, in a public table. Proof: ``bernstein.proof.md``, beside this file.

References
----------
Aldà and Rubinstein (2017), *The Bernstein mechanism: function release under differential privacy*.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from fogline._typing import FloatArray, IntArray
from fogline._validation import (
    check_bounds,
    check_count,
    check_epsilon,
    check_neighbours,
    check_positive,
    records,
)
from fogline.accounting.guarantee import Guarantee
from fogline.mechanisms.discrete_laplace import add_laplace
from fogline.mechanisms.errors import sealed
from fogline.mechanisms.lattice import LIMIT
from fogline.mechanisms.randomness import provider_reason
from fogline_research.baselines.noisy_histogram import _cell_counts

__all__ = ["BernsteinDensity", "lattice_sensitivity"]


_DEGREES = {1: 80, 2: 40, 3: 16}
_CELLS_A_BANDWIDTH = 8
_MOST_CELLS = 1 << 22
_TABLE_BITS = 28
_LIMB_BITS = 12
_FLOOR = 1e-3
_DRAWS_AT_A_TIME = 1 << 15


@dataclass(frozen=True, eq=False)
class BernsteinDensity:
    """A density that was released by the Bernstein mechanism. Everything here is released or public.

    Attributes
    ----------
    bounds : ndarray of shape (d, 2)
    values : ndarray of int64, d axes of degree + 1
        The noisy sums at the lattice points, in steps of the table.
    coefficients : ndarray, d axes of degree + 1
        Of the polynomial on the unit box, before it is made a density.
    shift, total : float
        The density on the unit box is (polynomial + shift) / total.
    bandwidth : float
        Of the kernel, as a fraction of each side of the box.
    noise_scale : float
        Scale of the discrete Laplace on every value.
    guarantee : Guarantee

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(5.0, 1.0, 5000)
    >>> density = BernsteinDensity.fit(X, epsilon=1.0, bounds=(0, 10))
    >>> bool(0.25 < density.pdf([[5.0]])[0] < 0.5)
    True
    >>> density.guarantee.certified, density.guarantee.delta
    (True, 0.0)
    >>> density.sample(3, random_state=0).shape
    (3, 1)
    """

    bounds: FloatArray
    values: IntArray
    coefficients: FloatArray
    shift: float
    floor: float
    total: float
    bandwidth: float
    noise_scale: float
    guarantee: Guarantee

    @classmethod
    def fit(
        cls,
        X: object,
        *,
        epsilon: float,
        bounds: object,
        degree: int | None = None,
        iterations: int = 8,
        bandwidth: float | None = None,
        neighbours: str = "add-remove",
        sensitivity: Literal["sum", "sup"] = "sum",
    ) -> BernsteinDensity:
        r"""Release a density of the records, epsilon-DP for every data set.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Up to three columns. Records that are missing, infinite or outside the bounds contribute nothing.
        epsilon : float
        bounds : sequence of (low, high)
            Public range of each axis.
        degree : int, optional
            k of the polynomial; by default 80, 40 and 16 in one, two and three dimensions.
        iterations : int
            h: more of them follow the values more closely, and wave more.
        bandwidth : float, optional
            Of the Gaussian kernel, as a fraction of each side; by default one step of the lattice, 1/degree. It must
            not be chosen with the records: cross-validation, as in the papers, reads all of them, so that its choice
            (a likelihood on held-out records, which one outlier can move without bound) is a second release that
            nobody has paid for.
        neighbours : {"add-remove", "replace"}
            The result does not read the number of records, so that both are possible.
        sensitivity : {"sum", "sup"}
            How the noise is scaled: to the greatest sum of a record's values over the lattice, or as in the original
            to the number of lattice points times the kernel's top. Both are safe; the second is larger by about
            :math:`((k + 1)/2.5)^d` at the default bandwidth.

        Returns
        -------
        BernsteinDensity
        """
        epsilon, relation = check_epsilon(epsilon), check_neighbours(neighbours)
        box = check_bounds(bounds)
        d = box.shape[0]
        if d not in _DEGREES:
            raise ValueError(f"bounds must have one to three axes, got {d}: the lattice would be too large")
        k = _DEGREES[d] if degree is None else check_count(degree, "degree")
        rounds = check_count(iterations, "iterations")
        width = 1.0 / k if bandwidth is None else check_positive(bandwidth, "bandwidth")
        table = _kernel_table(k, width, d)
        moved = lattice_sensitivity(table, d, relation, sensitivity)
        rows = records(X, d)
        shape = (k + 1,) * d
        release = add_laplace(
            sealed(lambda: _lattice_sums(_cell_counts(rows, box, (len(table),) * d), table, d)),
            size=math.prod(shape),
            sensitivity=moved,
            epsilon=epsilon,
        )
        values = release.values.reshape(shape)
        coefficients = _iterated(values.astype(np.float64), rounds)
        shift, floor, total = _positive(coefficients)
        return cls(
            bounds=box,
            values=values,
            coefficients=coefficients,
            shift=shift,
            floor=floor,
            total=total,
            bandwidth=width,
            noise_scale=release.scale,
            guarantee=Guarantee.certified_release(
                epsilon=epsilon,
                delta=0.0,
                neighbours=relation,
                mechanism="Bernstein mechanism, discrete Laplace on lattice sums",
                proof="bernstein",
                reason=provider_reason(),
            ),
        )

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at points of shape (m, d); zero outside the box."""
        points = records(x, len(self.bounds), name="x")
        low, high = self.bounds.T
        unit = (points - low) / (high - low)
        inside = ((unit >= 0.0) & (unit <= 1.0)).all(axis=1)
        result = np.zeros(len(points))
        result[inside] = self._unit_density(unit[inside]) / float(np.prod(high - low))
        return result

    def sample(self, k: int, *, random_state: int | np.random.Generator | None = None) -> FloatArray:
        """Draw k points by rejection; free, and as private as the density itself."""
        size, rng = check_count(k, "k", minimum=0), np.random.default_rng(random_state)
        low, high = self.bounds.T
        # A Bernstein polynomial lies between its least and its greatest coefficient.
        top = max(float(self.coefficients.max()) + self.shift, self.floor) / self.total
        kept, missing = [np.empty((0, len(low)))], size
        while missing > 0:
            unit = rng.random((_DRAWS_AT_A_TIME, len(low)))
            accepted = unit[rng.random(len(unit)) * top < self._unit_density(unit)][:missing]
            kept.append(accepted)
            missing -= len(accepted)
        return np.asarray(low + (high - low) * np.concatenate(kept))

    def _unit_density(self, unit: FloatArray) -> FloatArray:
        values = np.maximum(_polynomial(self.coefficients, unit) + self.shift, self.floor)
        return np.asarray(values / self.total)


# -- the lattice: exact -----------------------------------------------------------------------------------------


def _kernel_table(degree: int, bandwidth: float, d: int) -> IntArray:
    """Kernel of each cell's middle (rows) at the lattice points of one axis, as integers; public."""
    cells = math.ceil(_CELLS_A_BANDWIDTH / bandwidth)
    if cells**d > _MOST_CELLS or degree > cells:
        raise ValueError(
            f"bandwidth must be at most {_CELLS_A_BANDWIDTH}/degree and large enough for {_MOST_CELLS} cells in all, "
            f"got {bandwidth:g} with degree {degree}"
        )
    middles = (np.arange(cells) + 0.5) / cells
    offsets = (middles[:, None] - np.arange(degree + 1) / degree) / bandwidth
    return np.floor(2.0 ** (_TABLE_BITS // d) * np.exp(-0.5 * offsets**2)).astype(np.int64)


def lattice_sensitivity(table: IntArray, d: int, neighbours: str, rule: str = "sum") -> int:
    """Greatest distance, as a sum of absolute values, between the lattice sums of neighbours.

    Parameters
    ----------
    table : int64 array of shape (cells, points)
        Not negative; a record's value at a lattice point is a product of one entry an axis.
    d : int
    neighbours : {"add-remove", "replace"}
    rule : {"sum", "sup"}

    Examples
    --------
    >>> table = np.array([[3, 1], [1, 1]])
    >>> [lattice_sensitivity(table, 2, relation) for relation in ("add-remove", "replace")]
    [16, 32]
    >>> lattice_sensitivity(table, 2, "replace", "sup")              # four points, at most 9 at each
    36
    """
    if rule not in ("sum", "sup"):
        raise ValueError(f'sensitivity must be "sum" or "sup", got {rule!r}')
    by_points: int = math.prod([int(table.max()) * table.shape[1]] * d)
    one_record: int = math.prod([int(table.sum(axis=1).max())] * d)
    if rule == "sup":
        return max(by_points, 1)
    return max(one_record if neighbours == "add-remove" else min(2 * one_record, by_points), 1)


def _lattice_sums(counts: IntArray, table: IntArray, d: int) -> IntArray:
    """Sum over the records of the products of their rows, exact for any number of records."""
    rest = counts.reshape((len(table),) * d)
    total = np.zeros((table.shape[1],) * d, dtype=object)
    for limb in itertools.count():
        if not rest.any():
            break
        part = rest & ((1 << _LIMB_BITS) - 1)
        for _ in range(d):  # contracts the first axis and appends the lattice's, so that the order is kept
            part = np.tensordot(part, table, axes=(0, 0))
        total += part.astype(object) << (limb * _LIMB_BITS)
        rest = rest >> _LIMB_BITS
    return np.clip(total, -LIMIT, LIMIT).astype(np.int64).ravel()


# -- the polynomial: post-processing ----------------------------------------------------------------------------


def _basis(degree: int, unit: FloatArray) -> FloatArray:
    """Bernstein polynomials of one axis (columns) at points in the unit interval."""
    return np.asarray(binom.pmf(np.arange(degree + 1), degree, unit[:, None]))


def _along_axes(values: FloatArray, matrix: FloatArray) -> FloatArray:
    for _ in range(values.ndim):
        values = np.tensordot(values, matrix, axes=(0, 1))
    return values


def _iterated(values: FloatArray, rounds: int) -> FloatArray:
    """Coefficients of the iterated polynomial: the values, then what the polynomial so far leaves of them."""
    degree = values.shape[0] - 1
    at_lattice = _basis(degree, np.arange(degree + 1) / degree)
    coefficients, rest = np.zeros_like(values), values
    for _ in range(rounds):
        coefficients = coefficients + rest
        rest = rest - _along_axes(rest, at_lattice)
    return coefficients


def _polynomial(coefficients: FloatArray, unit: FloatArray) -> FloatArray:
    degree, d = coefficients.shape[0] - 1, coefficients.ndim
    bases = [_basis(degree, unit[:, j]) for j in range(d)]
    letters = "abc"[:d]
    formula = f"{letters},{','.join('z' + letter for letter in letters)}->z"
    return np.asarray(np.einsum(formula, coefficients, *bases, optimize=True))


def _positive(coefficients: FloatArray) -> tuple[float, float, float]:
    """Shift that lifts the polynomial above a small floor, the floor, and the integral of the result."""
    degree = coefficients.shape[0] - 1
    fine = _along_axes(coefficients, _basis(degree, np.linspace(0.0, 1.0, 4 * degree + 1)))
    floor = _FLOOR * float(fine.max() - fine.min())
    if not floor > 0.0:
        return 1.0 - float(fine.max()), 1.0, 1.0  # the same everywhere: uniform
    shift = max(0.0, floor - float(fine.min()))
    # Every Bernstein polynomial has the integral 1/(degree + 1).
    return shift, floor, max(float(coefficients.mean()) + shift, floor)
