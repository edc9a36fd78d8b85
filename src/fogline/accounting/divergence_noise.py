r"""Noise and power divergences: how far Gaussian and Laplace noise keep two shifted vectors apart.

The power divergence of Cressie and Read with power :math:`\lambda` is

.. math:: D_\lambda(P, Q) = \frac{1}{\lambda(\lambda + 1)}
          \Bigl[\int p^{\lambda + 1} q^{-\lambda} - 1\Bigr],

with the Kullback-Leibler divergence as its limit at 0 and, the arguments exchanged, at -1. Since
:math:`D_\lambda(P, Q) = D_{-1-\lambda}(Q, P)`, a bound for all pairs of neighbours at :math:`\lambda` is one at
:math:`-1-\lambda`: only :math:`\lambda \ge -1/2` needs to be studied. With :math:`c = \lambda(\lambda + 1)` the
integral (here called the moment) is :math:`1 + c D_\lambda`.

Gaussian noise is described by :math:`\rho = \Delta^2/(2\sigma^2)`, its zCDP, and gives the moment :math:`e^{c\rho}`.
On the integer lattice it is never more for :math:`\lambda \ge 0` and may be slightly less for :math:`\lambda < 0`; what
that costs is derived in ``hellinger_privacy.proof.md``. Every function rounds to the safe side.

References
----------
Cressie and Read (1984), Multinomial goodness-of-fit tests.
Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy.
Deng and Vidyashankar, Private minimum Hellinger distance estimation via Hellinger distance differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from fogline._validation import check_count, check_positive, check_real

__all__ = [
    "check_divergence",
    "check_power",
    "curvature_of",
    "divergence_of",
    "gaussian_divergence",
    "gaussian_rho",
    "laplace_bound",
    "laplace_divergence",
    "laplace_scale",
    "log_moment_of",
]

# Each formula is a dozen operations, each good to one unit in the last place, on well conditioned terms.
_SLACK = 64 * 2.0**-53
_LINEAR = 1e-150
"""A curvature this small is none: what it would change is far below the slack."""


def check_power(power: object, name: str = "power") -> float:
    r"""Return the power :math:`\lambda` of a divergence, in its form of at least -1/2.

    Examples
    --------
    >>> check_power(-2.0), check_power(0.5)
    (1.0, 0.5)
    """
    number = check_real(power, name)
    if abs(number) > 1e6:
        raise ValueError(f"{name} must be between -1e6 and 1e6, got {number!r}")
    return max(number, -1.0 - number)


def check_divergence(power: float, epsilon: object, name: str = "epsilon") -> float:
    r"""Return a divergence that says something: positive, and for :math:`-1 < \lambda < 0` below its largest value.

    Examples
    --------
    >>> check_divergence(-0.5, 4.0)
    Traceback (most recent call last):
    ValueError: epsilon must be below 4: no two distributions differ by more at power -0.5, got 4.0
    """
    number = check_positive(epsilon, name)
    c = curvature_of(power)
    if c < 0.0 and not -c * number < 1.0:
        raise ValueError(
            f"{name} must be below {-1.0 / c:.6g}: no two distributions differ by more at power {power:.6g}, "
            f"got {number!r}"
        )
    return number


def curvature_of(power: float) -> float:
    r"""Return :math:`c = \lambda(\lambda + 1)`, at least -1/4.

    Examples
    --------
    >>> curvature_of(-0.5), curvature_of(1.0)
    (-0.25, 2.0)
    """
    return power * (power + 1.0)


def log_moment_of(power: float, epsilon: float) -> float:
    r"""Return :math:`\log(1 + c\varepsilon)/c`, which adds up under composition; at :math:`c = 0` epsilon itself.

    For Gaussian noise this is its rho.

    Examples
    --------
    >>> log_moment_of(0.0, 0.3)
    0.3
    """
    c = curvature_of(power)
    return epsilon if abs(c) < _LINEAR else math.log1p(c * epsilon) / c


def divergence_of(power: float, log_moment: float) -> float:
    r"""Return :math:`(e^{cm} - 1)/c`, the inverse of `log_moment_of`, rounded up.

    Examples
    --------
    >>> round(divergence_of(-0.5, 4 * 0.6931471805599453), 12)
    2.0
    """
    c = curvature_of(power)
    exponent = c * log_moment
    if exponent > 700.0:
        return math.inf
    value = log_moment if abs(c) < _LINEAR else math.expm1(exponent) / c
    # expm1 turns a relative error of its argument x into one of at most max(1, x + 1) times that.
    value *= 1.0 + _SLACK * (2.0 + max(0.0, exponent))
    return value if c >= 0.0 else min(value, -1.0 / c)


def gaussian_divergence(power: float, rho: float, *, sensitivity: float = 1.0, size: int | None = None) -> float:
    r"""Return the power divergence that Gaussian noise of this rho allows, rounded up.

    Parameters
    ----------
    power : float
    rho : float
        Sensitivity squared over twice the squared scale.
    sensitivity : float
        Euclidean sensitivity in lattice steps; the statement holds for any greater one too. With infinity the noise
        is continuous and there is no lattice.
    size : int, optional
        Number of coordinates; without it the statement holds for any number.

    Returns
    -------
    float
        For :math:`-1 < \lambda < 0` at most :math:`-1/c`, which says nothing.

    Examples
    --------
    >>> round(gaussian_divergence(-0.5, 0.5, sensitivity=float("inf")), 6)
    0.470012
    """
    power, rho = check_power(power), check_positive(rho, "rho")
    c = curvature_of(power)
    if c >= 0.0:
        return divergence_of(power, rho)
    loss = _lattice_loss(rho, _check_sensitivity(sensitivity), size)
    return divergence_of(power, min(rho + loss / -c, rho / (1.0 + power)))


def _lattice_loss(rho: float, sensitivity: float, size: int | None) -> float:
    """Return how far the lattice may lower the logarithm of the moment of a power between -1 and 0."""
    squared = sensitivity * sensitivity
    ripple = 4.0 * math.exp(-(math.pi**2) * squared / rho)
    if ripple == 0.0:
        return 0.0  # below the least float: the slack covers it
    if not ripple < 0.99:  # where rounding could not be told from the rest any more
        return math.inf
    coordinates = squared if size is None else min(float(check_count(size, "size")), squared)
    return -coordinates * math.log1p(-ripple) * (1.0 + 1e-9)


def gaussian_rho(power: float, epsilon: float, *, sensitivity: float = 1.0, size: int | None = None) -> float:
    r"""Return the largest rho at which Gaussian noise keeps the power divergence within epsilon, rounded down.

    Without a lattice this is :math:`\rho = \log(1 + c\varepsilon)/c`, that is
    :math:`\sigma^2 = \Delta^2 c / (2 \log(1 + c\varepsilon))`.

    Parameters
    ----------
    power, epsilon : float
        The guarantee that is wanted.
    sensitivity, size
        As in `gaussian_divergence`.

    Examples
    --------
    >>> round(gaussian_rho(-0.5, 0.4, sensitivity=2.0**22), 6)
    0.421442
    """
    power = check_power(power)
    epsilon = check_divergence(power, epsilon)
    sensitivity = _check_sensitivity(sensitivity)

    def safe(rho: float) -> bool:
        return gaussian_divergence(power, rho, sensitivity=sensitivity, size=size) <= epsilon

    return _largest(safe, log_moment_of(power, epsilon))


def _largest(safe: Callable[[float], bool], ceiling: float) -> float:
    """Return a safe number near the greatest one: near `ceiling` whenever that is nearly safe."""
    margin = _SLACK
    while margin < 1e-11:
        if safe(ceiling * (1.0 - margin)):
            return ceiling * (1.0 - margin)
        margin *= 4.0
    low, high = ceiling * 1e-3, ceiling
    while not safe(low):
        low *= 1e-3
        if low == 0.0:
            raise ValueError("epsilon is too small: no amount of noise that a float can hold reaches it")
    while high > low * (1.0 + 1e-13):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (middle, high) if safe(middle) else (low, middle)
    return low


def laplace_bound(power: float, ratio: float) -> float:
    r"""Return a bound of the power divergence for noise whose log-likelihood ratio is at most `ratio`, rounded up.

    With :math:`t` the ratio (for Laplace noise the L1 sensitivity over its scale) and :math:`\lambda \ge -1/2`,

    .. math:: D_\lambda \le \frac{e^{\lambda t} - 1}{\lambda(\lambda + 1)},

    since the moment is the mean of :math:`(p/q)^\lambda` under p. It holds for continuous and for discrete Laplace
    noise, and any other mechanism of pure :math:`t`-DP.

    Examples
    --------
    >>> round(laplace_bound(-0.5, 1.0), 6)
    1.573877
    """
    power, t = check_power(power), check_positive(ratio, "ratio")
    if power > 0.0 and power * t > 700.0:
        return math.inf
    value = t if abs(power) < _LINEAR else math.expm1(power * t) / curvature_of(power)
    return value * (1.0 + _SLACK * (2.0 + max(0.0, power * t)))


def laplace_divergence(power: float, ratio: float) -> float:
    r"""Return the greatest power divergence of continuous Laplace noise, rounded up.

    With :math:`t` the L1 sensitivity over the scale, a shift of one coordinate gives

    .. math:: D_\lambda = \frac{1}{2\lambda + 1} \int_0^t \bigl(e^{\lambda u} - e^{-(\lambda + 1) u}\bigr)\,du ,

    which is :math:`4 - (4 + 2t)e^{-t/2}` at :math:`\lambda = -1/2` and :math:`t - 1 + e^{-t}` at 0. The logarithm
    of the moment is convex for :math:`\lambda > 0` and concave for :math:`-1 < \lambda < 0`, so that a shift of one
    coordinate alone is the worst of all with the same L1 norm. Discrete Laplace noise can exceed this (a shift by one
    step is randomised response): for the lattice use `laplace_bound`.

    Examples
    --------
    >>> round(laplace_divergence(0.0, 1.0), 6)
    0.367879
    """
    power, t = check_power(power), check_positive(ratio, "ratio")
    if power * t > 700.0:
        return math.inf
    if power == -0.5:
        parts, width = (4.0, -(4.0 + 2.0 * t) * math.exp(-0.5 * t)), 1.0
    else:
        grown = t if abs(power) < _LINEAR else math.expm1(power * t) / power
        parts, width = (grown, math.expm1(-(power + 1.0) * t) / (power + 1.0)), 2.0 * power + 1.0
    error = _SLACK * (2.0 + t * (1.0 + abs(power))) * math.fsum(map(abs, parts))
    return min(laplace_bound(power, t), (math.fsum(parts) + error) / width)


def laplace_scale(power: float, epsilon: float, *, sensitivity: float = 1.0, exact: bool = False) -> float:
    r"""Return the least scale of Laplace noise that keeps the power divergence within epsilon, rounded up.

    Parameters
    ----------
    power, epsilon : float
        The guarantee that is wanted.
    sensitivity : float
        In the L1 norm.
    exact : bool
        Whether to use the exact divergence of *continuous* noise, solved numerically, in place of the bound, which
        also holds on the lattice.

    Examples
    --------
    >>> round(laplace_scale(-0.5, 0.4), 4), round(laplace_scale(-0.5, 0.4, exact=True), 4)
    (4.7456, 0.9402)
    """
    power, sensitivity = check_power(power), check_positive(sensitivity, "sensitivity")
    epsilon = check_divergence(power, epsilon)
    divergence = laplace_divergence if exact else laplace_bound

    def safe(ratio: float) -> bool:
        return divergence(power, ratio) <= epsilon

    ceiling = 1.0
    while safe(ceiling):
        ceiling *= 2.0
    return math.nextafter(sensitivity / _largest(safe, ceiling) * (1.0 + 2.0**-50), math.inf)


def _check_sensitivity(sensitivity: float) -> float:
    """Return a sensitivity in lattice steps: at least one, since below that integers do not move at all."""
    number = math.inf if sensitivity == math.inf else check_positive(sensitivity, "sensitivity")
    if number < 1.0:
        raise ValueError(f"sensitivity must be at least one lattice step, got {number!r}")
    return number
