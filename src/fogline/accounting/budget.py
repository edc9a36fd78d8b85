"""What may be spent: a budget, and its division into named shares that sum to it exactly.

One budget in any currency: what a user gives, as the rho of Gaussian noise and as a statement.

A release that adds Gaussian noise can be paid for in (epsilon, delta), in rho, in HDP or in PDP. All four come down
to its rho, since for *this* mechanism they are equivalent; the guarantee then says what was asked for, and what it
means in epsilon and delta.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from fogline._validation import check_delta, check_epsilon, check_positive
from fogline.accounting import zcdp
from fogline.accounting._rounding import round_down
from fogline.accounting.costs import whole_units
from fogline.accounting.divergences import HellingerBudget, PowerBudget
from fogline.accounting.zcdp import rho_of

__all__ = ["STATED_DELTA", "Budget", "GaussianBudget", "Share", "Shares"]

Portion = int | str | Fraction | float


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A privacy budget: either (epsilon, delta), or rho.

    Parameters
    ----------
    epsilon, delta : float
        Stands for the largest rho whose optimal conversion stays within both.
    rho : float
        The zCDP budget itself. It is filled in where epsilon and delta are given.

    Examples
    --------
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> round(budget.rho, 4)
    0.0306
    >>> shares = budget.split(density="4/5", count="1/5")
    >>> sum(share.exact for share in shares.values()) == budget.exact
    True
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float = 0.0

    def __post_init__(self) -> None:
        if self.epsilon is None and self.delta is None:
            if self.rho == 0.0:
                raise TypeError("a budget needs epsilon and delta, or rho")
            object.__setattr__(self, "rho", check_positive(self.rho, "rho"))
            return
        if self.rho != 0.0:
            raise TypeError("a budget is given by epsilon and delta or by rho, not by both")
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        object.__setattr__(self, "rho", check_positive(rho_of(epsilon, delta), "the rho of this budget"))

    @property
    def exact(self) -> Fraction:
        """The rho as a rational number."""
        return Fraction(self.rho)

    def split(self, /, **portions: Portion) -> Shares:
        """Return named shares whose rho sums exactly to this budget's.

        Parameters
        ----------
        **portions : int, Fraction, or str such as "1/3"
            Must sum to exactly 1. A float counts as the decimal it prints as, so 0.1 is one tenth.

        Examples
        --------
        >>> Budget(rho=1.0).split(a="1/3", b="2/3")["b"].portion
        Fraction(2, 3)
        """
        return _split(self.exact, portions)


@dataclass(frozen=True)
class Share:
    """One named part of a budget.

    Parameters
    ----------
    name : str
    portion : Fraction
        Of the budget or share that was split.
    exact : Fraction
        Its rho as a rational number.

    Examples
    --------
    >>> Share("count", Fraction(1, 2), Fraction(1, 8)).rho
    0.125
    """

    name: str
    portion: Fraction
    exact: Fraction

    @property
    def rho(self) -> float:
        """Its rho as a float, rounded down: shares spent as floats never exceed the whole."""
        return round_down(self.exact)

    def split(self, /, **portions: Portion) -> Shares:
        """Return named shares of this share, as `Budget.split` does.

        Examples
        --------
        >>> Share("a", Fraction(1), Fraction(1)).split(b=1)["b"].exact
        Fraction(1, 1)
        """
        return _split(self.exact, portions)


class Shares(Mapping[str, Share]):
    """Named shares of one budget, in the order given; cannot be changed.

    Examples
    --------
    >>> list(Budget(rho=1.0).split(first="1/4", second="3/4"))
    ['first', 'second']
    """

    def __init__(self, shares: Mapping[str, Share]) -> None:
        self._shares = MappingProxyType(dict(shares))

    def __getitem__(self, name: str) -> Share:
        return self._shares[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    def __hash__(self) -> int:
        return hash(tuple(self._shares.values()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={share.portion}" for name, share in self._shares.items())
        return f"Shares({inside})"


def _split(total: Fraction, portions: Mapping[str, Portion]) -> Shares:
    exact = {name: _portion(name, portion) for name, portion in portions.items()}
    whole = sum(exact.values(), Fraction(0))
    # less than 1 would waste budget unseen, more would spend what is not there
    if whole != 1:
        raise ValueError(f"the shares of a budget must sum to exactly 1, these sum to {whole}")
    return Shares({name: Share(name, portion, portion * total) for name, portion in exact.items()})


def _portion(name: str, portion: Portion) -> Fraction:
    """Return a positive rational number; a float as the decimal that it prints as."""
    if isinstance(portion, bool) or not isinstance(portion, int | str | Fraction | float):
        raise TypeError(f'share {name!r} must be an int, a Fraction or a string such as "1/3"')
    try:
        # through its text: 0.1 + 0.9 is exactly 1 as decimals, and not as binary numbers
        exact = Fraction(str(portion)) if isinstance(portion, str | float) else Fraction(portion)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f'share {name!r} must be a number such as "1/3", got {portion!r}') from None
    if exact <= 0:
        raise ValueError(f"share {name!r} must be greater than 0, got {portion!r}")
    return exact


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
            # a tiny epsilon may convert to a rho of 0, for which no noise is large enough
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
        # before epsilon is stated, so that statement and charge are about the same rho
        rho = whole_units(rho)
        return cls(rho=rho, epsilon=zcdp.epsilon_of(rho, delta), delta=delta, statement=statement)


def _pair(pdp: object) -> tuple[float, float]:
    if not isinstance(pdp, tuple | list) or len(pdp) != 2:
        raise TypeError("pdp must be a pair (power, epsilon)")
    return pdp[0], pdp[1]


def _exactly(number: float) -> str:
    """Return a number in as many digits as tell it from all others: fewer could promise what was not asked for."""
    return repr(float(number)).removesuffix(".0")
