r"""Hellinger privacy: a budget in the squared Hellinger distance.

A mechanism is :math:`\varepsilon`-HDP when :math:`HD^2(M(D), M(D')) = \int (\sqrt p - \sqrt q)^2 \le \varepsilon` for
all neighbours. With the affinity :math:`A = \int \sqrt{pq}` that is :math:`2(1 - A) \le \varepsilon`: two distributions
that never overlap are at 2, so a budget lies below 2. It is power-divergence privacy with power -1/2 and twice the
epsilon.

HDP bounds the total variation distance, and nothing beyond: a mechanism that publishes a record with probability p is
2p-HDP. Only for Gaussian noise is it equivalent to GDP,

.. math:: \mu^2 = 2\rho = -8 \log(1 - \varepsilon/2) ,

on the integer lattice up to a correction that is derived in ``hellinger_privacy.proof.md``, beside this file. In the
language of epsilon and delta it is a weak promise: 0.2-HDP by Gaussian noise is about (4, 1e-5)-DP.

References
----------
Deng and Vidyashankar, Private minimum Hellinger distance estimation via Hellinger distance differential privacy
(Theorems 8 and 11, Corollary 9, Proposition 12).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from fogline._validation import Neighbours, check_count, check_positive
from fogline.accounting import divergence_noise as noise
from fogline.accounting._rounding import round_up, square_root_up
from fogline.accounting.power_divergence import PowerBudget

__all__ = ["HellingerBudget"]

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
        return cls(noise.gaussian_divergence(_HELLINGER, rho, sensitivity=sensitivity, size=size) / 2.0)

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
