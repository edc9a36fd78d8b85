r"""Power-divergence privacy: a budget in one divergence of Cressie and Read.

A mechanism is :math:`(\lambda, \varepsilon)`-PDP when :math:`D_\lambda(M(D), M(D')) \le \varepsilon` for all neighbours
(see `fogline.accounting.divergence_noise` for :math:`D_\lambda`). Each divergence is an f-divergence, so whatever is
computed from the output alone has the same budget: post-processing is free.

One power is one Renyi order, no more. From :math:`\lambda > 0` a statement in :math:`(\varepsilon, \delta)` follows;
zCDP and GDP, which bound every order, do *not* follow, and there is no such conversion here. Only for a mechanism that
is known to add Gaussian noise does the budget translate into its rho, and from there into anything.

References
----------
Deng and Vidyashankar, Private minimum Hellinger distance estimation via Hellinger distance differential privacy
(Theorems 6 and 7, Lemmas B.1 to B.3).
Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy (Proposition 12).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fogline._validation import Neighbours, check_count, check_delta, check_neighbours
from fogline.accounting import divergence_noise as noise

__all__ = ["PowerBudget"]

_SLACK = 64 * 2.0**-53


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
        power = noise.check_power(self.power)
        object.__setattr__(self, "power", power)
        object.__setattr__(self, "epsilon", noise.check_divergence(power, self.epsilon))

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
        total = math.fsum(noise.log_moment_of(part.power, part.epsilon) for part in parts)
        return PowerBudget(self.power, noise.divergence_of(self.power, total * (1.0 + _SLACK)))

    def repeated(self, count: int) -> PowerBudget:
        r"""Return the budget of `count` mechanisms of this budget: :math:`h_K(\varepsilon)`.

        Examples
        --------
        >>> PowerBudget(-0.5, 1.0).repeated(2)  # 4 * (1 - 0.75**2)
        PowerBudget(power=-0.5, epsilon=1.75...)
        """
        total = check_count(count, "count") * noise.log_moment_of(self.power, self.epsilon)
        return PowerBudget(self.power, noise.divergence_of(self.power, total * (1.0 + _SLACK)))

    def share(self, count: int) -> PowerBudget:
        r"""Return the budget that each of `count` mechanisms may have: :math:`h_K^{-1}(\varepsilon)`, rounded down.

        Examples
        --------
        >>> PowerBudget(-0.5, 1.75).share(2)
        PowerBudget(power=-0.5, epsilon=0.99999...)
        """
        part = noise.log_moment_of(self.power, self.epsilon) / check_count(count, "count")
        margin = 4.0 * _SLACK
        while True:
            # Composition is what counts, whatever either rounds: step down until it holds.
            budget = PowerBudget(self.power, noise.divergence_of(self.power, part) * (1.0 - margin))
            if self._covers(budget, count):
                return budget
            margin *= 2.0

    def _covers(self, part: PowerBudget, count: int) -> bool:
        total = count * noise.log_moment_of(self.power, part.epsilon)
        return noise.divergence_of(self.power, total * (1.0 + _SLACK)) <= self.epsilon

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
        return order, order * noise.log_moment_of(self.power, self.epsilon) * (1.0 + _SLACK)

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
        return noise.gaussian_rho(self.power, self.epsilon, sensitivity=sensitivity, size=size)

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
        return noise.laplace_scale(self.power, self.epsilon, sensitivity=sensitivity, exact=exact)


def _check_same_power(parts: tuple[PowerBudget, ...]) -> None:
    if len({part.power for part in parts}) > 1:
        raise ValueError("budgets of different powers do not compose: power must be the same for all")
