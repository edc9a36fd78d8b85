r"""What a parametric family must be able to say, and what follows from it.

Shapes are the same everywhere: a parameter vector `theta` has m entries, in the order of `parameters`; points `x` are n
numbers (or n rows of d numbers). A density is (n,), a score (n, m), a Hessian (n, m, m). The score is
:math:`u_\theta(x) = \nabla_\theta \log f_\theta(x)`, and the Hessian of the density follows from that of its logarithm,

.. math:: \nabla^2 f = f\,(u u^\top + \nabla^2 \log f).

Outside the support all of them are 0, but for the logarithm of the density, which is minus infinity.

A density smoothed by a Gaussian kernel, from its distribution function.

The masses of cells of width :math:`w` are samples of the density convolved with a box, whose transform is
:math:`\hat f(s)\,\mathrm{sinc}(sw/2)`. Dividing by the sinc and multiplying by the kernel's transform gives

.. math:: \widehat{f * \varphi_h}(s) = \hat f(s)\,e^{-h^2 s^2/2}

without ever evaluating the density, which may be infinite at the end of its support.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import FloatArray
from fogline._validation import check_bounds, check_level, check_positive

__all__ = ["Family", "FloatArray", "UnivariateFamily", "check_theta", "parameter_box", "smoothed"]

AT_LIMIT = 1e-6
"""How far inside its limits a parameter with two of them stays, as a part of the distance between them."""


@dataclass(frozen=True)
class ConvolutionTuning:
    """How finely a distribution function is convolved with a kernel.

    Parameters
    ----------
    cells_per_bandwidth : int
        Cells per bandwidth.
    reach : float
        Bandwidths beyond the grid, where a Gaussian kernel is below 1e-17 of its peak.
    most_cells : int
        Most cells, whatever the bandwidth.
    """

    cells_per_bandwidth: int = 32
    reach: float = 9.0
    most_cells: int = 2**16


TUNING = ConvolutionTuning()


def smoothed(cdf: Callable[[FloatArray], FloatArray], grid: ArrayLike, bandwidth: ArrayLike) -> FloatArray:
    """Return the density of this distribution function, smoothed by a Gaussian kernel, at the points.

    Parameters
    ----------
    cdf : callable
    grid : array-like of shape (n,)
    bandwidth : float
        Below about 1/2000 of the range of the grid the accuracy falls.

    Notes
    -----
    For the families here good to about 1e-5; where the density is infinite at the end of its support, to a few
    thousandths close to it.

    Examples
    --------
    >>> from scipy.special import ndtr
    >>> float(smoothed(ndtr, [0.0], 1.0)[0]).__round__(6)  # the density of N(0, 2)
    0.282095
    """
    from scipy.fft import irfft, next_fast_len, rfft, rfftfreq
    from scipy.interpolate import CubicSpline

    points = np.asarray(grid, dtype=np.float64)
    h = check_positive(float(np.asarray(bandwidth, dtype=np.float64).reshape(-1)[0]), "bandwidth")
    if points.ndim != 1:
        raise ValueError(f"grid must have one dimension, got {points.ndim}")
    if points.size == 0:
        return np.empty(0)
    # Beyond nine bandwidths the kernel is below 1e-17: what lies there, or comes round the circle, is not seen.
    low, high = float(points.min()) - TUNING.reach * h, float(points.max()) + TUNING.reach * h
    width = max(h / TUNING.cells_per_bandwidth, (high - low) / TUNING.most_cells)
    cells = int(next_fast_len(math.ceil((high - low) / width) + 1, real=True))
    edges = np.asarray(low + width * np.arange(cells + 1), dtype=np.float64)
    masses = np.diff(cdf(edges)) / width
    frequency = 2.0 * math.pi * rfftfreq(cells, width)
    # Differences of the distribution function are averages over a cell: the sinc takes that averaging out again.
    transfer = np.exp(-0.5 * (frequency * h) ** 2) / np.sinc(frequency * width / (2.0 * math.pi))
    density = irfft(rfft(masses) * transfer, n=cells)
    values = CubicSpline(edges[:-1] + 0.5 * width, density)(points)
    # A spline may dip a little below zero between cells.
    return np.maximum(np.asarray(values, dtype=np.float64), 0.0)


@runtime_checkable
class Family(Protocol):
    """A parametric family of densities in one or more dimensions.

    Attributes
    ----------
    name : str
    dimension : int
    parameters : tuple of str
        Names of the parameters.
    limits : tuple of (low, high)
        Open interval in which each parameter makes sense.
    support : (low, high)
        Where the density may be positive, on each axis.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> isinstance(Normal(), Family)
    True
    """

    name: str
    dimension: int
    parameters: tuple[str, ...]
    limits: tuple[tuple[float, float], ...]
    support: tuple[float, float]

    @abstractmethod
    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the logarithm of the density at the points, shape (n,)."""

    @abstractmethod
    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density in the parameters, shape (n, m)."""

    @abstractmethod
    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the matrix of second derivatives of the log density in the parameters, shape (n, m, m)."""

    @abstractmethod
    def convolved(self, theta: ArrayLike, grid: ArrayLike, bandwidth: ArrayLike) -> FloatArray:
        """Return the density after smoothing by a Gaussian kernel of this bandwidth, shape (n,)."""

    @abstractmethod
    def data_bounds(self, box: ArrayLike, tail: float = 0.0005) -> FloatArray:
        """Return a public range of the data, shape (d, 2): quantiles `tail` and 1 - `tail` over all of the box."""

    def pdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the density at the points, shape (n,)."""
        return np.exp(self.logpdf(theta, x))

    def hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the matrix of second derivatives of the density in the parameters, shape (n, m, m)."""
        density, score = self.pdf(theta, x), self.score(theta, x)
        # Far out a derivative may overflow where the density is 0.
        with np.errstate(invalid="ignore", over="ignore"):
            product = density[:, None, None] * (score[:, :, None] * score[:, None, :] + self.log_hessian(theta, x))
        return np.where(density[:, None, None] > 0.0, product, 0.0)

    def start(self, box: ArrayLike) -> FloatArray:
        """Return a public starting point: the middle of the bounds, for positive parameters the geometric one."""
        bounds = np.asarray(box, dtype=np.float64)
        positive = np.array([low == 0.0 for low, _ in self.limits])
        low, high = bounds[:, 0], bounds[:, 1]
        geometric = np.sqrt(np.where(positive, low * high, 1.0))
        return np.where(positive, geometric, 0.5 * (low + high))

    def moment_start(self, mean: ArrayLike, variance: ArrayLike, box: ArrayLike) -> FloatArray:
        """Return the parameters with these *released* moments, moved into the bounds.

        Parameters
        ----------
        mean, variance : array-like
            Post-processed from a release, never from records. In d dimensions a vector and a covariance matrix. Where
            no parameters have such moments the public starting point is returned.
        box : array-like of shape (m, 2)
        """
        bounds = np.asarray(box, dtype=np.float64)
        with np.errstate(all="ignore"):
            theta = self.from_moments(np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64))
        theta = np.where(np.isfinite(theta), theta, self.start(bounds))
        return np.clip(theta, bounds[:, 0], bounds[:, 1])

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the parameters with this mean and variance; not a number where there are none or nobody knows."""
        del mean, variance  # a family need not know its moments
        return np.full(len(self.parameters), np.nan)


class UnivariateFamily(Family, Protocol):
    r"""A family on the line; subclass it to fit your own.

    Required are `logpdf`, `score`, `log_hessian`, `cdf` and `quantile`, and the attributes of `Family` but for
    `dimension`. The rest follows. `data_bounds` takes quantiles at the corners of the box: they should be monotone in
    each parameter.

    Examples
    --------
    >>> import numpy as np
    >>> class Rayleigh(UnivariateFamily):
    ...     name, parameters, limits, support = "rayleigh", ("scale",), ((0.0, np.inf),), (0.0, np.inf)
    ...
    ...     def logpdf(self, theta, x):
    ...         (scale,), x = theta, np.asarray(x, dtype=float)
    ...         inside = np.where(x > 0, x, 1.0)
    ...         return np.where(x > 0, np.log(inside) - 2 * np.log(scale) - inside**2 / (2 * scale**2), -np.inf)
    ...
    ...     def score(self, theta, x):
    ...         (scale,), x = theta, np.asarray(x, dtype=float)
    ...         return np.where(x > 0, x**2 / scale**3 - 2 / scale, 0.0)[:, None]
    ...
    ...     def log_hessian(self, theta, x):
    ...         (scale,), x = theta, np.asarray(x, dtype=float)
    ...         return np.where(x > 0, 2 / scale**2 - 3 * x**2 / scale**4, 0.0)[:, None, None]
    ...
    ...     def cdf(self, theta, x):
    ...         return -np.expm1(-(np.maximum(x, 0.0) ** 2) / (2 * theta[0] ** 2))
    ...
    ...     def quantile(self, theta, probability):
    ...         return theta[0] * np.sqrt(-2 * np.log1p(-np.asarray(probability)))
    >>> family = Rayleigh()
    >>> box = parameter_box(family, {"scale": (0.5, 2.0)})
    >>> family.start(box), family.data_bounds(box).round(2)
    (array([1.]), array([[0.02, 7.8 ]]))
    >>> family.convolved([1.0], [0.0, 1.0, 2.0], bandwidth=0.1).round(3)
    array([0.039, 0.601, 0.272])
    """

    dimension: int = 1

    @abstractmethod
    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function at the points, shape (n,)."""

    @abstractmethod
    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""

    def convolved(self, theta: ArrayLike, grid: ArrayLike, bandwidth: ArrayLike) -> FloatArray:
        """Return the density after smoothing by a Gaussian kernel, computed from masses of small cells."""
        return smoothed(lambda x: self.cdf(theta, x), grid, bandwidth)

    def data_bounds(self, box: ArrayLike, tail: float = 0.0005) -> FloatArray:
        """Return a public range of the data: the least and greatest quantile over the corners of the box."""
        tail = check_level(tail, "tail")
        corners = itertools.product(*np.asarray(box, dtype=np.float64))
        ends = np.array([self.quantile(np.array(corner), [tail, 1.0 - tail]) for corner in corners])
        return np.array([[ends[:, 0].min(), ends[:, 1].max()]])


def parameter_box(family: Family, bounds: object, name: str = "parameter_bounds") -> FloatArray:
    """Return public bounds of the parameters as an array of shape (m, 2), in the order of the family.

    Parameters
    ----------
    family : Family
    bounds : mapping from parameter name to (low, high), or a sequence of pairs
    name : str
        How the caller's user knows the bounds. Ends at both limits of a share (0 and 1) are moved inward by a
        millionth.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> parameter_box(Normal(), {"sigma": (1, 5), "mu": (0, 10)})
    array([[ 0., 10.], [ 1.,  5.]])
    >>> from fogline.families import family_named
    >>> zeros = family_named("zero-inflated gamma")
    >>> parameter_box(zeros, {"zero": (0, 1), "shape": (1, 9), "scale": (1, 9)})[0].tolist()
    [1e-06, 0.999999]
    >>> parameter_box(Normal(), {"mu": (0, 10), "sigma": (0, 5)})
    Traceback (most recent call last):
    ValueError: parameter_bounds of sigma must lie strictly between 0.0 and inf, got (0.0, 5.0)
    """
    wanted = f"{name} must be one (low, high) for each of {', '.join(family.parameters)}"
    if bounds is None:
        raise TypeError(f"{wanted}: there is no default")
    if isinstance(bounds, Mapping):
        if set(bounds) != set(family.parameters):
            raise ValueError(f"{wanted}, got {', '.join(map(str, bounds)) or 'none'}")
        bounds = [bounds[parameter] for parameter in family.parameters]
    try:
        listed = list(bounds)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(wanted) from None
    if len(listed) != len(family.parameters):
        raise ValueError(f"{wanted}, got {len(listed)} of them")
    rows = []
    for parameter, limit, pair in zip(family.parameters, family.limits, listed, strict=True):
        (row,) = check_bounds([pair], name=f"{name} of {parameter}:")
        low, high = map(float, row)
        if math.isfinite(limit[0]) and math.isfinite(limit[1]):  # a share from 0 to 1 is meant without its ends
            margin = AT_LIMIT * (limit[1] - limit[0])
            low = limit[0] + margin if low == limit[0] else low
            high = limit[1] - margin if high == limit[1] else high
        if not (limit[0] < low and high < limit[1]):
            raise ValueError(
                f"{name} of {parameter} must lie strictly between {limit[0]} and {limit[1]}, got ({low}, {high})"
            )
        rows.append((low, high))
    return np.array(rows)


def check_theta(family: Family, theta: ArrayLike) -> list[float]:
    """Return the parameters as floats; refuse a wrong number of them, or one outside its limits.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> check_theta(Normal(), [0.0, -1.0])
    Traceback (most recent call last):
    ValueError: sigma must lie strictly between 0.0 and inf, got -1.0
    """
    values = np.asarray(theta, dtype=np.float64)
    if values.shape != (len(family.parameters),):
        raise ValueError(f"theta must hold {', '.join(family.parameters)}, got shape {values.shape}")
    for parameter, (low, high), value in zip(family.parameters, family.limits, values, strict=True):
        if not low < value < high:
            raise ValueError(f"{parameter} must lie strictly between {low} and {high}, got {value}")
    return [float(value) for value in values]
