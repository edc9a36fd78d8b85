r"""The critic of a private GAN, with gradients that are exact a record at a time.

A network with two hidden layers and leaky rectifiers,
:math:`f(u) = w_3 \cdot a(W_2\, a(W_1 u + b_1) + b_2) + b_3`. What a record contributes to a noisy sum must be a
function of that record alone; a product of matrices in floating point is not: its last bits depend on the batch. So
inputs, weights, activations and back-propagated slopes are kept as *whole numbers of small steps*, in doubles: every
product of matrices here stays below 2^53 and is exact, in any order. What follows is done an element at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fogline.mechanisms.entropy import IntArray

__all__ = ["LATTICE", "Critic"]

Array = NDArray[np.float64]

HIDDEN = 32
"""Units of each hidden layer."""

STEPS = 1 << 12
"""Steps to the unit, for inputs, weights and activations."""

SLOPE = 4
"""One over the slope of the rectifier below zero."""

LATTICE = 1 << 20
"""Steps of the lattice to the greatest norm of a record's gradient."""


class Critic:
    """Weights of the critic as one vector, between -clip and clip.

    Parameters
    ----------
    d : int
        Columns of a record.
    clip : float
        Bound on every weight, at most 1: the WGAN's way to a bounded slope.
    rng : Generator
        Of the first weights.

    Examples
    --------
    >>> critic = Critic(2, clip=0.5, rng=np.random.default_rng(0))
    >>> critic.size, critic.gradients(np.zeros((3, 2))).shape
    (1185, (3, 1185))
    """

    def __init__(self, d: int, *, clip: float, rng: np.random.Generator) -> None:
        self.d, self.clip = d, clip
        self.shapes = ((d, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN,), (1,))
        self.size = sum(int(np.prod(shape)) for shape in self.shapes)
        self.weights = rng.uniform(-clip, clip, self.size)

    def _parts(self) -> list[Array]:
        """Weights and offsets of the layers, in whole steps."""
        steps = np.rint(np.clip(self.weights, -self.clip, self.clip) * STEPS)
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(steps, ends), self.shapes, strict=True)]

    def _forward(self, unit: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Inputs, first and second sums, and both activations, in steps; the sums in squared steps."""
        w1, b1, w2, b2, _, _ = self._parts()
        u = np.rint(np.clip(unit, -1.0, 1.0) * STEPS)
        z1 = u @ w1 + b1 * STEPS
        a1 = _activated(z1)
        z2 = a1 @ w2 + b2 * STEPS
        return u, z1, a1, z2, _activated(z2)

    def _pieces(self, unit: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Inputs, activations (in steps) and slopes at both layers (in steps / SLOPE): whole numbers."""
        u, z1, a1, z2, a2 = self._forward(unit)
        _, _, w2, _, w3, _ = self._parts()
        slope2 = w3 * _slope(z2)
        slope1 = np.floor(slope2 @ w2.T / (STEPS * SLOPE)) * _slope(z1)
        return u, a1, a2, slope1, slope2

    def gradients(self, unit: Array) -> Array:
        """Derivative of the critic by its weights, one row a record; each row a function of its record alone.

        Parameters
        ----------
        unit : array of shape (m, d)
            Records scaled to [-1, 1]; no missing values.
        """
        return _outer(*self._pieces(unit))

    def clipped(self, unit: Array, bound: float) -> IntArray:
        """Gradients cut to a norm of `bound`, rounded toward zero to the lattice of bound / LATTICE."""
        pieces = self._pieces(unit)
        factor = LATTICE / np.maximum(_norms(*pieces), bound)
        whole = np.trunc(_outer(*pieces) * factor[:, None]).astype(np.int64)
        # The bound is not left to rounding: a row that passes it after all is dropped.
        kept = (whole * whole).sum(axis=1) <= LATTICE**2
        return np.asarray(whole * kept[:, None])

    def input_slopes(self, unit: Array) -> Array:
        """Derivative of the critic by its input, one row a point: what the generator climbs."""
        _, z1, _, z2, _ = self._forward(unit)
        w1, _, w2, _, w3, _ = (part / STEPS for part in self._parts())
        return np.asarray(((w3 * _slope(z2) / SLOPE) @ w2.T * _slope(z1) / SLOPE) @ w1.T)

    def scores(self, unit: Array) -> Array:
        """Values of the critic."""
        *_, a2 = self._forward(unit)
        *_, w3, b3 = self._parts()
        return np.asarray(a2 @ w3 / STEPS**2 + b3 / STEPS)


def _activated(sums: Array) -> Array:
    """Leaky rectifier of sums in squared steps, rounded down to steps."""
    return np.floor(np.where(sums > 0, sums, sums / SLOPE) / STEPS)


def _slope(sums: Array) -> Array:
    return np.where(sums > 0, float(SLOPE), 1.0)


def _outer(u: Array, a1: Array, a2: Array, slope1: Array, slope2: Array) -> Array:
    """Gradients from the pieces: products, an element at a time."""
    m = len(u)
    back1, back2 = slope1 / (STEPS * SLOPE), slope2 / (STEPS * SLOPE)
    return np.concatenate(
        [
            ((u / STEPS)[:, :, None] * back1[:, None, :]).reshape(m, back1.shape[1] * u.shape[1]),
            back1,
            ((a1 / STEPS)[:, :, None] * back2[:, None, :]).reshape(m, HIDDEN * HIDDEN),
            back2,
            a2 / STEPS,
            np.ones((m, 1)),
        ],
        axis=1,
    )


def _norms(u: Array, a1: Array, a2: Array, slope1: Array, slope2: Array) -> Array:
    """Euclidean norms of the gradients, from sums of squares of whole numbers, which are exact."""
    u2, a1_2, a2_2, slope1_2, slope2_2 = ((piece * piece).sum(axis=1) for piece in (u, a1, a2, slope1, slope2))
    first = (u2 / STEPS**2 + 1.0) * (slope1_2 / (STEPS * SLOPE) ** 2)
    second = (a1_2 / STEPS**2 + 1.0) * (slope2_2 / (STEPS * SLOPE) ** 2)
    return np.asarray(np.sqrt(first + second + (a2_2 / STEPS**2 + 1.0)))
