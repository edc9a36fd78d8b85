"""One budget in any currency: what a user gives, as the rho of Gaussian noise and as a statement.

A release that adds Gaussian noise can be paid for in (epsilon, delta), in rho, in HDP or in PDP. All four come down
to its rho, since for *this* mechanism they are equivalent; the guarantee then says what was asked for, and what it
means in epsilon and delta.
"""

from __future__ import annotations

from dataclasses import dataclass

from fogline._validation import check_delta, check_epsilon, check_positive
from fogline.accounting import zcdp
from fogline.accounting.costs import whole_units
from fogline.accounting.hellinger_privacy import HellingerBudget
from fogline.accounting.power_divergence import PowerBudget

__all__ = ["STATED_DELTA", "GaussianBudget"]

STATED_DELTA = 1e-5
"""Where a budget names no delta, the guarantee is stated in epsilon at this one; the release does not depend on it."""


@dataclass(frozen=True, kw_only=True)
class GaussianBudget:
    """The rho that a release of discrete Gaussian noise may use, and what it then promises.

    Parameters
    ----------
    rho : float
        In whole units of a ledger, rounded down.
    epsilon, delta : float
        The differential privacy of the release.
    statement : str
        What was asked for where that is HDP or PDP: "0.2-HDP", "(1, 0.4)-PDP", else "". Goes with the name of the
        mechanism in a guarantee.

    Examples
    --------
    >>> budget = GaussianBudget.of(hdp=0.2, sensitivity=2.0**22)
    >>> budget.statement, round(budget.rho, 4), round(budget.epsilon, 1), budget.delta
    ('0.2-HDP', 0.4214, 4.3, 1e-05)
    >>> GaussianBudget.of(epsilon=1.0, delta=1e-6, hdp=0.2)
    Traceback (most recent call last):
    TypeError: a budget is given in one currency: got epsilon and hdp
    """

    rho: float
    epsilon: float
    delta: float
    statement: str = ""

    @classmethod
    def of(
        cls,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        hdp: float | None = None,
        pdp: tuple[float, float] | None = None,
        sensitivity: float = 1.0,
        size: int | None = None,
    ) -> GaussianBudget:
        """Return the budget given in exactly one of epsilon (with delta), rho, hdp and pdp.

        Parameters
        ----------
        epsilon, delta : float
            With any other currency `delta` may be given too: it says at which delta the guarantee is stated.
        rho : float
        hdp : float
            Strictly between 0 and 2.
        pdp : (power, epsilon)
        sensitivity : float
            Euclidean sensitivity of the release in lattice steps, or a lower bound of it: where the noise is no wider
            than a step, the lattice costs a little Hellinger distance.
        size : int, optional
            Number of coordinates.

        Examples
        --------
        >>> GaussianBudget.of(pdp=(0.0, 0.25), delta=1e-6).statement
        '(0, 0.25)-PDP'
        """
        given = {"epsilon": epsilon, "rho": rho, "hdp": hdp, "pdp": pdp}
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise TypeError(f"a budget is given in one currency: got {' and '.join(names)}")
        if not names:
            raise TypeError("a budget must be given: epsilon and delta, or rho, or hdp, or pdp=(power, epsilon)")
        if epsilon is not None:
            epsilon, delta = check_epsilon(epsilon), check_delta(delta)
            rho = check_positive(zcdp.rho_of(epsilon, delta), "the rho of this budget")
            return cls(rho=whole_units(rho), epsilon=epsilon, delta=delta)
        delta = STATED_DELTA if delta is None else check_delta(delta)
        if rho is not None:
            rho, statement = check_positive(rho, "rho"), ""
        elif hdp is not None:
            rho = HellingerBudget(hdp).gaussian_rho(sensitivity=sensitivity, size=size)
            statement = f"{_exactly(hdp)}-HDP"
        else:
            power, level = _pair(pdp)
            rho = PowerBudget(power, level).gaussian_rho(sensitivity=sensitivity, size=size)
            statement = f"({_exactly(power)}, {_exactly(level)})-PDP"
        rho = whole_units(rho)
        return cls(rho=rho, epsilon=zcdp.epsilon_of(rho, delta), delta=delta, statement=statement)


def _pair(pdp: object) -> tuple[float, float]:
    if not isinstance(pdp, tuple | list) or len(pdp) != 2:
        raise TypeError("pdp must be a pair (power, epsilon)")
    return pdp[0], pdp[1]


def _exactly(number: float) -> str:
    """Return a number in as many digits as tell it from all others: fewer could promise what was not asked for."""
    return repr(float(number)).removesuffix(".0")
