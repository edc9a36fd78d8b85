"""What may be spent: a budget, and its division into named shares that sum to it exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from fogline._validation import check_delta, check_epsilon, check_positive
from fogline.accounting._rounding import round_down
from fogline.accounting.zcdp import rho_of

__all__ = ["Budget", "Share", "Shares"]

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
    if whole != 1:
        raise ValueError(f"the shares of a budget must sum to exactly 1, these sum to {whole}")
    return Shares({name: Share(name, portion, portion * total) for name, portion in exact.items()})


def _portion(name: str, portion: Portion) -> Fraction:
    """Return a positive rational number; a float as the decimal that it prints as."""
    if isinstance(portion, bool) or not isinstance(portion, int | str | Fraction | float):
        raise TypeError(f'share {name!r} must be an int, a Fraction or a string such as "1/3"')
    try:
        exact = Fraction(str(portion)) if isinstance(portion, str | float) else Fraction(portion)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f'share {name!r} must be a number such as "1/3", got {portion!r}') from None
    if exact <= 0:
        raise ValueError(f"share {name!r} must be greater than 0, got {portion!r}")
    return exact
