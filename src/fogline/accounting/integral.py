r"""Integral privacy: draws that hardly depend on the data at all, so that groups of any size are protected.

A draw is :math:`\varepsilon`-integrally private when

.. math:: P[A(D) \in S] \le e^{\varepsilon}\, P[A(D') \in S] \qquad \text{for all } S, D, D' ,

neighbours or not. It is a statement about *draws*: k of them cost :math:`k\varepsilon`, so that k draws within a budget
of :math:`\varepsilon` are made by a mollifier of :math:`\varepsilon/k` each. The model that they are drawn from is
protected by nothing.

It implies :math:`\varepsilon`-DP for each draw, under any relation of neighbours and for any unit, since neighbours are
a pair of data sets like any other. That is the only conversion there is. What follows from :math:`\varepsilon`-DP, such
as :math:`\varepsilon^2/2` of rho a draw, follows from there (`fogline.accounting.costs`).

References
----------
Husain, Cranko and Nock, Integral privacy for sampling from mollifier densities with approximation guarantees
(Definition 2, Lemma 4, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fogline._validation import Neighbours, check_count, check_epsilon
from fogline.accounting._rounding import round_down, round_up
from fogline.accounting.events import IntegralDrawEvent
from fogline.accounting.guarantee import Guarantee, _factor, _up

__all__ = ["IntegralBudget", "IntegralGuarantee"]


@dataclass(frozen=True)
class IntegralBudget:
    r"""A budget of :math:`\varepsilon`-integral privacy.

    Parameters
    ----------
    epsilon : float
        Finite and above 0.

    Examples
    --------
    >>> budget = IntegralBudget(2.0)
    >>> budget.share(8)
    IntegralBudget(epsilon=0.25)
    >>> budget.share(8).repeated(8) == budget
    True
    >>> budget.group_epsilon(1_000_000)
    2.0
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    @property
    def differential_privacy(self) -> float:
        """The epsilon of pure differential privacy that this implies, for any neighbours: the same number."""
        return self.epsilon

    def compose(self, *others: IntegralBudget) -> IntegralBudget:
        """Return the budget of several draws, each chosen with those before it in view: a sum, rounded up.

        Examples
        --------
        >>> IntegralBudget(0.5).compose(IntegralBudget(0.25), IntegralBudget(0.25))
        IntegralBudget(epsilon=1.0)
        """
        return IntegralBudget(round_up(sum((Fraction(part.epsilon) for part in (self, *others)), Fraction(0))))

    def repeated(self, draws: int) -> IntegralBudget:
        """Return the budget of so many draws, rounded up.

        Examples
        --------
        >>> IntegralBudget(0.5).repeated(6)
        IntegralBudget(epsilon=3.0)
        """
        return IntegralBudget(round_up(check_count(draws, "draws") * Fraction(self.epsilon)))

    def share(self, draws: int) -> IntegralBudget:
        """Return what each of so many draws may cost, rounded down.

        Examples
        --------
        >>> IntegralBudget(1.0).share(4)
        IntegralBudget(epsilon=0.25)
        """
        return IntegralBudget(round_down(Fraction(self.epsilon) / check_count(draws, "draws")))

    def group_epsilon(self, size: int) -> float:
        """Return the bound for data sets that differ in `size` units: that for any two data sets.

        Examples
        --------
        >>> IntegralBudget(0.5).group_epsilon(40)
        0.5
        """
        check_count(size, "size", minimum=0)
        return self.epsilon

    def event(self, draws: int = 1) -> IntegralDrawEvent:
        """Return so many draws as an event.

        Examples
        --------
        >>> IntegralBudget(0.5).event(3)
        IntegralDrawEvent(epsilon=0.5, count=3)
        """
        return IntegralDrawEvent(self.epsilon, draws)


@dataclass(frozen=True, kw_only=True)
class IntegralGuarantee(Guarantee):
    """What draws from a secret model promise: to everyone in the data at once.

    Parameters
    ----------
    draws : int
        The greatest number of draws that will ever be made. `epsilon` is that of all of them together.
    per_draw : float
        The epsilon of each.
    neighbours : {"add-remove", "replace"}
        A formality, kept for ledgers and audits that name one relation: the promise holds for any two data sets.

    Examples
    --------
    >>> print(IntegralGuarantee.of(0.5, draws=4, mechanism="MBDE", proof="mollified-draws"))
    Certified: whatever the data were, any number of records more, fewer or other ones, the probability of a draw
    changes by a factor of at most exp(0.5) = 1.65, and that of all 4 draws together of at most exp(2) = 7.39 (MBDE).
    """

    draws: int
    per_draw: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.draws, "draws")
        if self.epsilon != IntegralBudget(self.per_draw).repeated(self.draws).epsilon or self.delta != 0.0:
            raise ValueError("epsilon must be that of all draws together, and delta 0")

    @classmethod
    def of(
        cls,
        epsilon: float,
        *,
        draws: int,
        mechanism: str,
        proof: str,
        neighbours: Neighbours = "add-remove",
        reason: str = "",
    ) -> IntegralGuarantee:
        """Return the guarantee of so many draws at `epsilon` each; certified unless there is a `reason` against it.

        Examples
        --------
        >>> IntegralGuarantee.of(0.5, draws=3, mechanism="MBDE", proof="a.proof.md", reason="a seed").certified
        False
        """
        return cls(
            epsilon=IntegralBudget(epsilon).repeated(draws).epsilon,
            delta=0.0,
            rho=None,
            neighbours=neighbours,
            unit="record",
            max_contributions=1,
            enforced=True,
            certified=not reason,
            reason=reason,
            mechanism=mechanism,
            proof=proof,
            draws=draws,
            per_draw=epsilon,
        )

    def __str__(self) -> str:
        core = (
            "whatever the data were, any number of records more, fewer or other ones, the probability of a draw "
            f"changes by a factor of at most exp({_up(self.per_draw)}) = {_factor(self.per_draw)}"
        )
        if self.draws > 1:
            total = f"exp({_up(self.epsilon)}) = {_factor(self.epsilon)}"
            core += f", and that of all {self.draws} draws together of at most {total}"
        tail = f" ({self.mechanism})." if self.mechanism else "."
        if self.certified:
            return f"Certified: {core}{tail}"
        return f"Not certified ({self.reason}): it is only claimed that {core}{tail}"

    def explain(self) -> str:
        """Return a paragraph for readers who are not statisticians, such as an ethics board.

        Examples
        --------
        >>> g = IntegralGuarantee.of(0.1, draws=5, mechanism="MBDE", proof="mollified-draws")
        >>> "groups of any size" in g.explain()
        True
        """
        promise = (
            "The published draws would look almost the same had the data been any others, so that not only each person"
            " but groups of any size are protected, a whole hospital or everyone with one disease: whoever sees one"
            " draw can multiply the odds of a guess about any of them by at most"
            f" {_factor(self.per_draw)} (epsilon = {_up(self.per_draw)}), and whoever sees all {self.draws} by at most"
            f" {_factor(self.epsilon)} (epsilon = {_up(self.epsilon)}), without exception."
        )
        limits = (
            "The model that the draws come from is not protected and must never be shown."
            " Further draws or releases from the same data add to the risk."
        )
        return " ".join(filter(None, [self._standing(), promise, self._cautions(), limits]))
