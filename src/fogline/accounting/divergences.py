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
that costs is derived in ``divergences.proof.md``. Every function rounds to the safe side.

References
----------
Cressie and Read (1984), Multinomial goodness-of-fit tests.
Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy.
Deng and Vidyashankar, Private minimum Hellinger distance estimation via Hellinger distance differential privacy.

Power-divergence privacy: a budget in one divergence of Cressie and Read.

A mechanism is :math:`(\lambda, \varepsilon)`-PDP when :math:`D_\lambda(M(D), M(D')) \le \varepsilon` for all neighbours
(see `fogline.accounting.divergences` for :math:`D_\lambda`). Each divergence is an f-divergence, so whatever is
computed from the output alone has the same budget: post-processing is free.

One power is one Renyi order, no more. From :math:`\lambda > 0` a statement in :math:`(\varepsilon, \delta)` follows;
zCDP and GDP, which bound every order, do *not* follow, and there is no such conversion here. Only for a mechanism that
is known to add Gaussian noise does the budget translate into its rho, and from there into anything.

References
----------
Deng and Vidyashankar, Private minimum Hellinger distance estimation via Hellinger distance differential privacy
(Theorems 6 and 7, Lemmas B.1 to B.3).
Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy (Proposition 12).

Hellinger privacy: a budget in the squared Hellinger distance.

A mechanism is :math:`\varepsilon`-HDP when :math:`HD^2(M(D), M(D')) = \int (\sqrt p - \sqrt q)^2 \le \varepsilon` for
all neighbours. With the affinity :math:`A = \int \sqrt{pq}` that is :math:`2(1 - A) \le \varepsilon`: two distributions
that never overlap are at 2, so a budget lies below 2. It is power-divergence privacy with power -1/2 and twice the
epsilon.

HDP bounds the total variation distance, and nothing beyond: a mechanism that publishes a record with probability p is
2p-HDP. Only for Gaussian noise is it equivalent to GDP,

.. math:: \mu^2 = 2\rho = -8 \log(1 - \varepsilon/2) ,

on the integer lattice up to a correction that is derived in ``divergences.proof.md``, beside this file. In the
language of epsilon and delta it is a weak promise: 0.2-HDP by Gaussian noise is about (4, 1e-5)-DP.

References
----------
Deng and Vidyashankar, Private minimum Hellinger distance estimation via Hellinger distance differential privacy
(Theorems 8 and 11, Corollary 9, Proposition 12).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from fogline._validation import Neighbours, check_count, check_delta, check_neighbours, check_positive, check_real
from fogline.accounting._rounding import round_up, square_root_up

__all__ = [
    "HellingerBudget",
    "PowerBudget",
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
    # between -1 and 0 the divergence is bounded by -1/c, which two disjoint distributions reach
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
    # exp would overflow; infinity promises nothing and is safe
    if exponent > 700.0:
        return math.inf
    value = log_moment if abs(c) < _LINEAR else math.expm1(exponent) / c
    # expm1 turns a relative error of its argument x into one of at most max(1, x + 1) times that.
    value *= 1.0 + _SLACK * (2.0 + max(0.0, exponent))
    # rounding up must not leave the range of the divergence
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
    # the second bound needs no lattice: Renyi divergence grows with the order, and at order 1 it is at most rho
    return divergence_of(power, min(rho + loss / -c, rho / (1.0 + power)))


def _lattice_loss(rho: float, sensitivity: float, size: int | None) -> float:
    """Return how far the lattice may lower the logarithm of the moment of a power between -1 and 0."""
    squared = sensitivity * sensitivity
    ripple = 4.0 * math.exp(-(math.pi**2) * squared / rho)
    if ripple == 0.0:
        return 0.0  # below the least float: the slack covers it
    if not ripple < 0.99:  # where rounding could not be told from the rest any more
        return math.inf
    # a shift of integers moves at most as many coordinates as its squared length
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
    # mostly the ceiling itself is safe but for rounding: a few small steps find that
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
        # halving in the logarithm: low and high may be many powers of ten apart
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
        # the general formula divides by 2 lambda + 1, which is 0 here
        parts, width = (4.0, -(4.0 + 2.0 * t) * math.exp(-0.5 * t)), 1.0
    else:
        grown = t if abs(power) < _LINEAR else math.expm1(power * t) / power
        parts, width = (grown, math.expm1(-(power + 1.0) * t) / (power + 1.0)), 2.0 * power + 1.0
    # the two parts nearly cancel for small t: errors count by their sizes, not by the difference
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

    # the divergence grows with the ratio: double until it is too large
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


@dataclass(frozen=True)
class PowerBudget:
    r"""A budget of :math:`(\lambda, \varepsilon)` power-divergence privacy.

    Parameters
    ----------
    power : float
        The :math:`\lambda`. Powers :math:`\lambda` and :math:`-1-\lambda` are the same privacy, and the one of at least
        -1/2 is kept: -1/2 is the Hellinger distance (twice its square), 0 the Kullback-Leibler divergence, 1 half the
        chi-square divergence.
    epsilon : float
        Positive; for a power between -1 and 0 below :math:`-1/(\lambda(\lambda + 1))`, which every mechanism reaches.

    Examples
    --------
    >>> budget = PowerBudget(1.0, 0.4)
    >>> budget.compose(PowerBudget(1.0, 0.1))  # 0.4 + 0.1 + 2 * 0.4 * 0.1
    PowerBudget(power=1.0, epsilon=0.58...)
    >>> round(budget.epsilon_of(1e-5), 3)
    10.714
    >>> round(budget.gaussian_rho(), 4)
    0.2939
    """

    power: float
    epsilon: float

    def __post_init__(self) -> None:
        power = check_power(self.power)
        object.__setattr__(self, "power", power)
        object.__setattr__(self, "epsilon", check_divergence(power, self.epsilon))

    def compose(self, *others: PowerBudget) -> PowerBudget:
        r"""Return the budget of several mechanisms on the same data, each chosen with the answers before it.

        The moments :math:`1 + \lambda(\lambda + 1)\varepsilon_i` multiply, adaptively or not.

        Examples
        --------
        >>> PowerBudget(0.0, 0.25).compose(PowerBudget(0.0, 0.5))
        PowerBudget(power=0.0, epsilon=0.75...)
        """
        parts = (self, *others)
        _check_same_power(parts)
        # logarithms of moments add up, and only the sum is turned back
        total = math.fsum(log_moment_of(part.power, part.epsilon) for part in parts)
        return PowerBudget(self.power, divergence_of(self.power, total * (1.0 + _SLACK)))

    def repeated(self, count: int) -> PowerBudget:
        r"""Return the budget of `count` mechanisms of this budget: :math:`h_K(\varepsilon)`.

        Examples
        --------
        >>> PowerBudget(-0.5, 1.0).repeated(2)  # 4 * (1 - 0.75**2)
        PowerBudget(power=-0.5, epsilon=1.75...)
        """
        total = check_count(count, "count") * log_moment_of(self.power, self.epsilon)
        return PowerBudget(self.power, divergence_of(self.power, total * (1.0 + _SLACK)))

    def share(self, count: int) -> PowerBudget:
        r"""Return the budget that each of `count` mechanisms may have: :math:`h_K^{-1}(\varepsilon)`, rounded down.

        Examples
        --------
        >>> PowerBudget(-0.5, 1.75).share(2)
        PowerBudget(power=-0.5, epsilon=0.99999...)
        """
        part = log_moment_of(self.power, self.epsilon) / check_count(count, "count")
        margin = 4.0 * _SLACK
        while True:
            # Composition is what counts, whatever either rounds: step down until it holds.
            budget = PowerBudget(self.power, divergence_of(self.power, part) * (1.0 - margin))
            if self._covers(budget, count):
                return budget
            margin *= 2.0

    def _covers(self, part: PowerBudget, count: int) -> bool:
        total = count * log_moment_of(self.power, part.epsilon)
        return divergence_of(self.power, total * (1.0 + _SLACK)) <= self.epsilon

    def parallel(self, *others: PowerBudget, neighbours: Neighbours) -> PowerBudget:
        """Return the budget of mechanisms on disjoint parts of the data, each unit being in one part.

        Under "add-remove" that is the largest. A replaced record may stay in its part, or leave one part and enter
        another, so under "replace" the two largest are composed; each must then hold both for a part in which a record
        is replaced and for one that gains or loses a record. A budget that was computed for a gain or a loss alone is
        too small for a replacement: noise on a sum of values in [-1, 1] moves by 1 in the one and by 2 in the other.

        Examples
        --------
        >>> PowerBudget(0.0, 0.25).parallel(PowerBudget(0.0, 0.5), neighbours="add-remove")
        PowerBudget(power=0.0, epsilon=0.5)
        """
        parts = (self, *others)
        _check_same_power(parts)
        ordered = sorted(parts, key=lambda part: part.epsilon, reverse=True)
        if check_neighbours(neighbours) == "add-remove" or len(ordered) == 1:
            return ordered[0]
        # one part loses the record, another gains it
        return ordered[0].compose(ordered[1])

    @property
    def renyi(self) -> tuple[float, float]:
        r"""Order and epsilon of the Renyi privacy that this is: :math:`(\lambda + 1, \log(1 + c\varepsilon)/\lambda)`.

        Only for powers above 0 (or below -1): an order of at most 1 says little and is refused.
        """
        if not self.power > 0.0:
            raise ValueError(
                f"power must be above 0 or below -1 for a Renyi order above 1, got {self.power!r}: no statement in "
                "epsilon and a small delta follows from it"
            )
        order = self.power + 1.0
        return order, order * log_moment_of(self.power, self.epsilon) * (1.0 + _SLACK)

    def epsilon_of(self, delta: float) -> float:
        r"""Return an epsilon such that this budget implies (epsilon, delta)-DP, rounded up.

        The optimal conversion of one Renyi order :math:`\alpha` with its :math:`r`,

        .. math:: \varepsilon = r + \log(1 - 1/\alpha) + \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}.

        Examples
        --------
        >>> PowerBudget(-0.5, 0.4).epsilon_of(1e-5)
        Traceback (most recent call last):
        ValueError: power must be above 0 ...
        """
        delta = check_delta(delta)
        order, renyi = self.renyi
        # the order less 1, which is what the formula divides by
        t = self.power
        terms = (renyi, -math.log1p(1.0 / t), -math.log(delta) / t, -math.log(order) / t)
        return max(0.0, math.fsum(terms) + _SLACK * math.fsum(map(abs, terms)))

    def gaussian_rho(self, *, sensitivity: float = 1.0, size: int | None = None) -> float:
        """Return the largest zCDP rho of discrete Gaussian noise within this budget, rounded down.

        Parameters
        ----------
        sensitivity : float
            In lattice steps, or a lower bound of it. Matters only for powers between -1 and 0, and there only below a
            few steps. Infinity stands for continuous noise.
        size : int, optional
            Number of coordinates.

        Examples
        --------
        >>> PowerBudget(0.0, 0.3).gaussian_rho() <= 0.3
        True
        """
        return gaussian_rho(self.power, self.epsilon, sensitivity=sensitivity, size=size)

    def laplace_scale(self, *, sensitivity: float = 1.0, exact: bool = False) -> float:
        """Return the least scale of Laplace noise within this budget, rounded up.

        Parameters
        ----------
        sensitivity : float
            In the L1 norm.
        exact : bool
            Use the exact divergence of continuous noise; the bound, which is the default, also holds on the lattice.

        Examples
        --------
        >>> budget = PowerBudget(1.0, 0.4)
        >>> budget.laplace_scale(exact=True) < budget.laplace_scale()
        True
        """
        return laplace_scale(self.power, self.epsilon, sensitivity=sensitivity, exact=exact)


def _check_same_power(parts: tuple[PowerBudget, ...]) -> None:
    if len({part.power for part in parts}) > 1:
        raise ValueError("budgets of different powers do not compose: power must be the same for all")


_HELLINGER = -0.5


@dataclass(frozen=True)
class HellingerBudget:
    r"""A budget of :math:`\varepsilon`-Hellinger differential privacy.

    Parameters
    ----------
    epsilon : float
        Strictly between 0 and 2.

    Examples
    --------
    >>> budget = HellingerBudget(0.2)
    >>> round(budget.affinity, 3), round(budget.gaussian_mu, 3), round(budget.gaussian_rho(sensitivity=2.0**22), 4)
    (0.9, 0.918, 0.4214)
    >>> from fogline.accounting.zcdp import epsilon_of
    >>> round(epsilon_of(budget.gaussian_rho(sensitivity=2.0**22), 1e-5), 1)
    4.3
    """

    epsilon: float

    def __post_init__(self) -> None:
        epsilon = check_positive(self.epsilon, "hdp")
        if not epsilon < 2.0:
            raise ValueError(f"hdp must be below 2, the distance of what never overlaps, got {epsilon!r}")
        object.__setattr__(self, "epsilon", epsilon)

    @classmethod
    def of_gaussian(cls, rho: float, *, sensitivity: float = 1.0, size: int | None = None) -> HellingerBudget:
        """Return the budget of discrete Gaussian noise of this rho, rounded up.

        Parameters
        ----------
        rho : float
        sensitivity : float
            In lattice steps, or a lower bound of it; infinity stands for continuous noise.
        size : int, optional
            Number of coordinates; without it the statement holds for any number.

        Examples
        --------
        >>> round(HellingerBudget.of_gaussian(0.5, sensitivity=100.0).epsilon, 6)
        0.235006
        """
        return cls(gaussian_divergence(_HELLINGER, rho, sensitivity=sensitivity, size=size) / 2.0)

    @classmethod
    def of_gdp(cls, mu: float) -> HellingerBudget:
        r"""Return the budget of any mu-GDP mechanism, :math:`2(1 - e^{-\mu^2/8})`, rounded up.

        Its outputs for two neighbours can be made from draws of N(0, 1) and N(mu, 1), and post-processing is free.

        Examples
        --------
        >>> round(HellingerBudget.of_gdp(1.0).epsilon, 6)
        0.235006
        """
        mu = check_positive(mu, "mu")
        # the factor covers the rounding of the square
        return cls.of_gaussian(mu * mu / 2.0 * (1.0 + 2.0**-50), sensitivity=math.inf)

    @property
    def affinity(self) -> float:
        r"""The least affinity :math:`1 - \varepsilon/2` of two neighbours' outputs."""
        return 1.0 - self.epsilon / 2.0

    @property
    def power(self) -> PowerBudget:
        """The same privacy as a power divergence: power -1/2, twice the epsilon."""
        return PowerBudget(_HELLINGER, 2.0 * self.epsilon)

    @property
    def gaussian_mu(self) -> float:
        """The largest mu of *continuous Gaussian noise* within this budget, rounded down; others have none."""
        return math.sqrt(2.0 * self.gaussian_rho(sensitivity=math.inf)) * (1.0 - 2.0**-50)

    @property
    def total_variation(self) -> float:
        r"""The total variation distance that this allows, :math:`\sqrt{\varepsilon - \varepsilon^2/4}`, rounded up.

        A mechanism of this budget is (0, total_variation)-DP.
        """
        exact = Fraction(self.epsilon)
        return square_root_up(exact - exact**2 / 4)

    def compose(self, *others: HellingerBudget) -> HellingerBudget:
        """Return the budget of several mechanisms on the same data, chosen adaptively: affinities multiply.

        Examples
        --------
        >>> HellingerBudget(0.5).compose(HellingerBudget(1.0))  # 2 * (1 - 0.75 * 0.5)
        HellingerBudget(epsilon=1.25...)
        """
        return _halved(self.power.compose(*(other.power for other in others)))

    def repeated(self, count: int) -> HellingerBudget:
        r"""Return the budget of `count` such mechanisms, :math:`h_K(\varepsilon) = 2 - 2(1 - \varepsilon/2)^K`.

        Examples
        --------
        >>> HellingerBudget(1.0).repeated(2)
        HellingerBudget(epsilon=1.5...)
        """
        return _halved(self.power.repeated(count))

    def share(self, count: int) -> HellingerBudget:
        r"""Return the budget that each of `count` mechanisms may have, :math:`h_K^{-1}(\varepsilon)`, rounded down.

        Examples
        --------
        >>> HellingerBudget(1.5).share(2)
        HellingerBudget(epsilon=0.99999...)
        """
        return _halved(self.power.share(count))

    def parallel(self, *others: HellingerBudget, neighbours: Neighbours) -> HellingerBudget:
        """Return the budget of mechanisms on disjoint parts of the data, as `PowerBudget.parallel` does.

        Examples
        --------
        >>> HellingerBudget(0.5).parallel(HellingerBudget(1.0), neighbours="replace")
        HellingerBudget(epsilon=1.25...)
        """
        return _halved(self.power.parallel(*(other.power for other in others), neighbours=neighbours))

    def group_epsilon(self, size: int) -> float:
        r"""Return the bound :math:`k^2\varepsilon` for data sets that differ in `size` units, at most 2.

        The Hellinger distance obeys the triangle inequality, so distances add up; at 2 nothing is promised.

        Examples
        --------
        >>> HellingerBudget(0.25).group_epsilon(2), HellingerBudget(0.25).group_epsilon(5)
        (1.0, 2.0)
        """
        return min(2.0, round_up(check_count(size, "size") ** 2 * Fraction(self.epsilon)))

    def gaussian_rho(self, *, sensitivity: float = 1.0, size: int | None = None) -> float:
        r"""Return the largest rho of discrete Gaussian noise within this budget: :math:`-4\log(1 - \varepsilon/2)`.

        Rounded down, with the lattice correction; the parameters are those of `of_gaussian`. A release of discrete
        Gaussian noise at this rho is rho-zCDP as well, and can be charged as such.

        Examples
        --------
        >>> budget = HellingerBudget(0.6)
        >>> HellingerBudget.of_gaussian(budget.gaussian_rho()).epsilon <= 0.6
        True
        """
        return self.power.gaussian_rho(sensitivity=sensitivity, size=size)

    def laplace_scale(self, *, sensitivity: float = 1.0, exact: bool = False) -> float:
        """Return the least scale of Laplace noise within this budget, as `PowerBudget.laplace_scale` does.

        Examples
        --------
        >>> round(HellingerBudget(0.2).laplace_scale(), 3)
        4.746
        """
        return self.power.laplace_scale(sensitivity=sensitivity, exact=exact)


def _halved(budget: PowerBudget) -> HellingerBudget:
    return HellingerBudget(budget.epsilon / 2.0)
