r"""What smoothing does to the position of a mode, judged from its positions at several bandwidths.

A kernel of bandwidth :math:`h_q` moves a mode toward the heavier of its sides: by :math:`O(h^2)` for small bandwidths,
at most to the mean of its surroundings for large ones. With the width :math:`\tau` of the peak and
:math:`u_q = h_q^2/(h_q^2 + \tau^2)`,

.. math:: x_q = x_0 + \tau\,(c_1 u_q + c_2 u_q^2 + c_3 u_q^3) + \text{error}.

Either all c are zero (a symmetric peak), or they are normal with known deviations (a skewed one: :math:`x_0` is what is
left as the bandwidth shrinks), or the density has an edge or a kink at its top (a least price, a minimum wage), which a
kernel moves by :math:`O(h)`: then there is a term :math:`\tau c_0 \sqrt{u_q}`, too. All three are fitted by generalised
least squares with the covariance of the errors over the bandwidths, and averaged by their evidence. The covariance of
the average is that within the fits and between them, so that what smoothing may have moved is in the error, also where
too few data tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fogline._typing import FloatArray

__all__ = [
    "SMOOTHING_BIAS",
    "BiasTuning",
    "LinearFit",
    "combine_fits",
    "common_shift",
    "edge_probability",
    "edge_shift",
    "fit_position",
    "positive_part",
    "skewed_shift",
    "symmetric_at_walls",
    "wall_shift",
]


@dataclass(frozen=True)
class BiasTuning:
    """What is tuned of the bias; chosen on releases by leaves of the half of the kinds that is tuned on.

    Attributes
    ----------
    shift, remainder, edge : float
        Deviations of the first two c, of the third, and of that of an edge: how far smoothing moves a mode, in widths
        of its peak.
    one_sided, soft : float
        Where the densities a width of the peak on either side differ by this part of the height of the top, an edge is
        as likely as none, and it is surely one or none this far beyond or below.
    inflation : float
        The variance of a skewed mode is this many times that of the first order: at small bandwidths noise counts more.
    symmetric, doubtful : float
        Probability, before anything is seen, that a peak is symmetric: for the position, and for its error.
    temper : float
        Power of the evidence by which the error weighs the two: they are not all that a peak can be.
    wall : float
        How far a wall moves a mode that is less than a bandwidth away, in widths of its peak; fades like a normal law.
    floor : float
        Least error of a position, as a part of the bandwidth: what the expansion leaves out.
    """

    shift: float = 0.8
    remainder: float = 0.5
    edge: float = 1.0
    one_sided: float = 0.45
    soft: float = 0.05
    inflation: float = 1.5
    symmetric: float = 0.8
    doubtful: float = 0.7
    temper: float = 0.75
    wall: float = 1.5
    floor: float = 0.01


SMOOTHING_BIAS = BiasTuning()


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A position by least squares: its value and covariance, the matrix that makes it, and the log evidence."""

    mean: FloatArray
    covariance: FloatArray
    gain: FloatArray
    evidence: float


def fit_position(positions: FloatArray, covariance: FloatArray) -> LinearFit:
    """Fit one position to those at several bandwidths by generalised least squares.

    Parameters
    ----------
    positions : array of shape (Q, d)
    covariance : array of shape (Q * d, Q * d)
        Of their errors; rows run over bandwidths and then axes.

    Examples
    --------
    >>> fit = fit_position(np.array([[1.0], [3.0]]), np.diag([1.0, 3.0]))
    >>> float(fit.mean[0]), round(float(fit.covariance[0, 0]), 6)
    (1.5, 0.75)
    """
    size, d = positions.shape
    y = positions.ravel()
    design = np.asarray(np.kron(np.ones((size, 1)), np.eye(d)), dtype=np.float64)
    root = np.linalg.cholesky(covariance)
    x, z = np.linalg.solve(root, design), np.linalg.solve(root, y)
    precision = x.T @ x
    inverse = np.linalg.inv(precision)
    gain = inverse @ np.linalg.solve(root.T, x).T
    mean = gain @ y
    rest = z - x @ mean
    evidence = (
        -float(np.log(np.diag(root)).sum()) - 0.5 * float(np.linalg.slogdet(precision)[1]) - 0.5 * float(rest @ rest)
    )
    return LinearFit(mean, inverse, gain, evidence)


def common_shift(moved: FloatArray) -> FloatArray:
    """Covariance of a shift of unknown size and known course over the bandwidths, of shape (Q, d)."""
    size, d = moved.shape
    total = np.zeros((size, d, size, d))
    for axis in range(d):
        total[:, axis, :, axis] = np.outer(moved[:, axis], moved[:, axis])
    return total.reshape(size * d, size * d)


def skewed_shift(scales: FloatArray, width: FloatArray) -> FloatArray:
    """Covariance that smoothing adds to positions at several bandwidths if the peak is skewed.

    Parameters
    ----------
    scales : array of shape (Q,)
    width : array of shape (d,)
        Of the peak along each axis, in the same units.
    """
    u = scales[:, None] ** 2 / (scales[:, None] ** 2 + width**2)
    shift, rest = SMOOTHING_BIAS.shift * width, SMOOTHING_BIAS.remainder * width
    return np.asarray(common_shift(shift * u) + common_shift(shift * u**2) + common_shift(rest * u**3))


def edge_shift(scales: FloatArray, width: FloatArray) -> FloatArray:
    """Covariance that smoothing adds to positions at several bandwidths if the peak has an edge; as `skewed_shift`."""
    root = scales[:, None] / np.hypot(scales[:, None], width)
    return np.asarray(skewed_shift(scales, width) + common_shift(SMOOTHING_BIAS.edge * width * root))


def edge_probability(contrast: float) -> float:
    """How likely a peak has an edge, from how much its sides differ at a width, as a part of its height.

    Examples
    --------
    >>> [round(edge_probability(contrast), 2) for contrast in (0.1, 0.45, 0.8)]
    [0.0, 0.5, 1.0]
    """
    return float(1 / (1 + np.exp(-(contrast - SMOOTHING_BIAS.one_sided) / SMOOTHING_BIAS.soft)))


def combine_fits(
    fits: Sequence[LinearFit], evidence: FloatArray, symmetric: float, sharp: float = 0.0
) -> tuple[FloatArray, ...]:
    """Average the fits of a symmetric peak, a skewed one and one with an edge.

    Parameters
    ----------
    fits : sequence of LinearFit
        In this order; the last, or the last two, may be missing.
    evidence : array
        Of each, as a logarithm.
    symmetric : float
        How likely walls leave a peak symmetric.
    sharp : float
        How likely it has an edge.

    Returns
    -------
    mean, gain, covariance : array
    skewness : array of shape ()
        Probability that the peak is not symmetric, for its error.
    """
    weight = _weights(evidence, symmetric * SMOOTHING_BIAS.symmetric, sharp)
    mean = sum(w * fit.mean for w, fit in zip(weight, fits, strict=True))
    gain = sum(w * fit.gain for w, fit in zip(weight, fits, strict=True))
    weight = _weights(SMOOTHING_BIAS.temper * evidence, symmetric * SMOOTHING_BIAS.doubtful, sharp)
    inflated = [fits[0].covariance, *(SMOOTHING_BIAS.inflation * fit.covariance for fit in fits[1:])]
    within = sum(w * own for w, own in zip(weight, inflated, strict=True))
    between = sum(w * np.outer(fit.mean - mean, fit.mean - mean) for w, fit in zip(weight, fits, strict=True))
    return np.asarray(mean), np.asarray(gain), np.asarray(within + between), np.asarray(weight[1:].sum())


def wall_shift(near: FloatArray, scales: FloatArray | float, width: FloatArray) -> FloatArray:
    """How far walls may move a mode, by its distance from them, the bandwidth and the width of its peak."""
    return np.asarray(SMOOTHING_BIAS.wall * width * np.exp(-((near / scales) ** 2)))


def symmetric_at_walls(near: FloatArray, width: FloatArray) -> float:
    """How likely walls leave a peak symmetric, by its distance from them and its width along each axis."""
    return float(1 - np.exp(-((near / width) ** 2) / 4).max())


def positive_part(matrix: FloatArray) -> FloatArray:
    """Nearest covariance: what rounding made negative is nothing."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _weights(evidence: FloatArray, symmetric: float, sharp: float) -> FloatArray:
    """Weights of the fits by their evidence and by the probabilities of having an edge, and else of being symmetric."""
    prior = np.array([symmetric * (1 - sharp), (1 - symmetric) * (1 - sharp), sharp])[: len(evidence)]
    weight = prior * np.exp(evidence - evidence.max())
    return np.asarray(weight / weight.sum())
