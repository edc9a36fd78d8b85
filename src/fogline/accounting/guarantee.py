r"""What is promised: the statement that goes with every published number.

Integral privacy: draws that hardly depend on the data at all, so that groups of any size are protected.

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

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any

from fogline._validation import (
    Neighbours,
    check_count,
    check_epsilon,
    check_max_contributions,
    check_neighbours,
    check_positive,
)
from fogline.accounting._rounding import round_down, round_up, square_root_up
from fogline.accounting.cautions import budget_cautions
from fogline.accounting.events import IntegralDrawEvent
from fogline.accounting.proofs import proof_file, proof_id
from fogline.accounting.risk import BEFORE, ROWS, Risk, risk_of, someone_with
from fogline.accounting.zcdp import epsilon_of

__all__ = ["ROWS", "Guarantee", "IntegralBudget", "IntegralGuarantee"]


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """Who is protected, against what, how much, and whether fogline stands behind it.

    Parameters
    ----------
    epsilon, delta : float
        The differential privacy of the whole release. A `delta` of 0 makes it pure epsilon-DP.
    rho : float or None
        Its zCDP, where that is how it was accounted, or that of Gaussian noise.
    neighbours : {"add-remove", "replace"}
    unit : str
        What is protected as a whole: "record", or for instance "person".
    max_contributions : int
        The greatest number of records of one unit that the statement allows for.
    enforced : bool
        Whether that number was imposed on the data, or only declared by its owner.
    certified : bool
        Whether the statement holds for every data set by the proof named in `proof`.
    reason : str
        Why it is not certified; empty if it is.
    mechanism : str
        In a few words, what was done.
    proof : str
        Id of the proof; :func:`fogline.accounting.proofs.proof_file` says where it is. Paths, which were stored
        formerly, become ids.
    gaussian : bool
        Whether epsilon and delta follow from the analytic Gaussian curve at mu = sqrt(2 rho), and not from zCDP.

    Examples
    --------
    >>> g = Guarantee.certified_release(rho=0.03, delta=1e-6, neighbours="add-remove",
    ...                                 mechanism="discrete Gaussian", proof="gaussian-noise")
    >>> print(g)
    Certified: adding or removing one record changes the probability of anything published by a factor of at
    most exp(1.12) = 3.06, except with probability 1e-06 (discrete Gaussian; rho = 0.03).
    >>> Guarantee.from_dict(g.to_dict()) == g
    True
    >>> print(Guarantee.certified_release(epsilon=1.0, delta=0.0, neighbours="add-remove",
    ...                                   mechanism="discrete Laplace noise", proof="laplace-noise"))
    Certified: adding or removing one record changes the probability of anything published by a factor of at most
    exp(1) = 2.72, without exception: epsilon-DP (pure), by discrete Laplace noise.
    """

    epsilon: float
    delta: float
    rho: float | None
    neighbours: Neighbours
    unit: str
    max_contributions: int
    enforced: bool
    certified: bool
    reason: str
    mechanism: str
    proof: str
    gaussian: bool = False

    def __post_init__(self) -> None:
        if self.epsilon != 0.0:  # a rho near nothing converts to epsilon = 0 at the given delta
            check_epsilon(self.epsilon)
        if not 0.0 <= self.delta < 1.0:
            raise ValueError(f"delta must be at least 0 and below 1, got {self.delta!r}")
        if self.rho is not None:
            check_positive(self.rho, "rho")
        if self.gaussian and self.rho is None:
            raise ValueError("gaussian: a guarantee by the Gaussian curve must have a rho")
        check_neighbours(self.neighbours)
        check_max_contributions(self.max_contributions)
        if not self.unit:
            raise ValueError('unit must say what is protected, such as "record" or "person"')
        # equal means both or neither: certified with a reason against it, or uncertified without any
        if self.certified == bool(self.reason):
            raise ValueError("a certified guarantee has no reason, and one that is not certified must give one")
        if self.certified and not self.proof:
            raise ValueError("a certified guarantee must name its proof")
        # stored guarantees outlive the places of files, so that a path becomes an id when it is read
        object.__setattr__(self, "proof", proof_id(self.proof))

    @classmethod
    def certified_release(
        cls,
        *,
        delta: float,
        neighbours: Neighbours,
        mechanism: str,
        proof: str,
        rho: float | None = None,
        epsilon: float | None = None,
        unit: str = "record",
        max_contributions: int = 1,
        enforced: bool | None = None,
        reason: str = "",
        gaussian: bool = False,
    ) -> Guarantee:
        """Return the guarantee of a mechanism whose proof fogline stands behind.

        Parameters
        ----------
        delta, neighbours, mechanism, proof, rho, epsilon, unit, max_contributions
            As in the class. Where `epsilon` is missing it is the optimal conversion of `rho` at `delta`.
        enforced : bool, optional
            By default true only where there is nothing to enforce: single records.
        reason : str
            What stands in the way after all, such as seeded noise (`fogline.mechanisms.provider_reason()`); when
            it is not empty the guarantee is not certified.
        gaussian : bool
            As in the class; `epsilon` must then be given.

        Examples
        --------
        >>> g = Guarantee.certified_release(epsilon=1.0, delta=0.0, neighbours="replace", mechanism="Laplace",
        ...                                 proof="laplace-noise", reason="seeded noise")
        >>> g.certified
        False
        """
        if epsilon is None:
            if rho is None:
                raise TypeError("one of rho and epsilon must be given")
            if gaussian:
                raise TypeError("epsilon must be given where it follows from the Gaussian curve")
            epsilon = epsilon_of(rho, delta)
        return cls(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbours=neighbours,
            unit=unit,
            max_contributions=max_contributions,
            enforced=_is_trivial(unit, max_contributions) if enforced is None else enforced,
            certified=not reason,
            reason=reason,
            mechanism=mechanism,
            proof=proof,
            gaussian=gaussian,
        )

    @classmethod
    def uncertified(
        cls,
        *,
        epsilon: float,
        delta: float,
        reason: str,
        neighbours: Neighbours = "replace",
        rho: float | None = None,
        unit: str = "record",
        max_contributions: int = 1,
        enforced: bool | None = None,
        mechanism: str = "",
        proof: str = "",
    ) -> Guarantee:
        """Return the claim of a mechanism whose argument has a gap, with the reason.

        Examples
        --------
        >>> print(Guarantee.uncertified(epsilon=1.0, delta=1e-5, reason="it starts from raw records"))
        Not certified (it starts from raw records): it is only claimed that replacing one record changes the
        probability of anything published by a factor of at most exp(1) = 2.72, except with probability 1e-05.
        """
        return cls(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbours=neighbours,
            unit=unit,
            max_contributions=max_contributions,
            enforced=_is_trivial(unit, max_contributions) if enforced is None else enforced,
            certified=False,
            reason=reason,
            mechanism=mechanism,
            proof=proof,
        )

    @property
    def mu(self) -> float | None:
        """The mu of Gaussian differential privacy, rounded up, where that is how it was accounted."""
        return square_root_up(2 * Fraction(self.rho)) if self.gaussian and self.rho is not None else None

    def __str__(self) -> str:
        change = "adding or removing" if self.neighbours == "add-remove" else "replacing"
        core = (
            f"{change} {self._whom()} changes the probability of anything published by a factor of at most "
            f"exp({_up(self.epsilon)}) = {_factor(self.epsilon)}"
        )
        notes = [self.mechanism] if self.mechanism else []
        if self.delta > 0:
            core += f", except with probability {_up(self.delta)}"
        else:
            core += ", without exception: epsilon-DP (pure)" + (f", by {notes.pop()}" if notes else "")
        if self.mu is not None:
            notes.append(f"mu = {_up(self.mu)}")
        elif self.rho is not None:
            notes.append(f"rho = {_up(self.rho)}")
        tail = f" ({'; '.join(notes)})." if notes else "."
        if self.certified:
            return f"Certified: {core}{tail}"
        return f"Not certified ({self.reason}): it is only claimed that {core}{tail}"

    def explain(self) -> str:
        """Return a paragraph for readers who are not statisticians, such as an ethics board.

        Examples
        --------
        >>> g = Guarantee.certified_release(epsilon=1.0, delta=1e-6, neighbours="add-remove", unit="person",
        ...                                 enforced=True, mechanism="Gaussian noise", proof="a.proof.md")
        >>> "is at most 2.72 times as likely as it would be without that person" in g.explain()
        True
        """
        parts = [
            self._standing(),
            self._promise(),
            self._numbers(),
            self._cautions(),
            self._contributions(),
            self._limits(),
        ]
        return " ".join(filter(None, parts))

    def risk(self, before: float = 0.1, *, records: int | None = None) -> Risk:
        """Return what an attacker can reach at most who is right with probability `before` without this release.

        Parameters
        ----------
        before : float
            Strictly between 0 and 1.
        records : int, optional
            Number of records of the person, if that is not what the guarantee allows for.

        Examples
        --------
        >>> g = Guarantee.certified_release(epsilon=1.0, delta=1e-6, rho=0.0283, gaussian=True, neighbours="add-remove",
        ...                                 mechanism="Gaussian noise", proof="gaussian-noise")
        >>> [round(g.risk(p).content, 3) for p in (0.01, 0.1, 0.5)], round(g.risk().advantage, 3)
        ([0.018, 0.148, 0.594], 0.095)
        """
        return risk_of(self, before, records)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold without loss.

        Examples
        --------
        >>> Guarantee.uncertified(epsilon=1.0, delta=0.1, reason="a test").to_dict()["delta"]
        0.1
        """
        told = asdict(self)
        if not self.gaussian:  # as it was written before there was a choice
            del told["gaussian"]
        return told

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Guarantee:
        """Return the guarantee that `to_dict` described; refuse missing or unknown fields.

        Examples
        --------
        >>> Guarantee.from_dict({"epsilon": 1.0})
        Traceback (most recent call last):
        ValueError: a guarantee needs exactly the fields ...
        """
        names = [field.name for field in fields(cls)]
        # `gaussian` may be missing: it was not written before there was a choice
        if {*values, "gaussian"} != set(names):
            raise ValueError(f"a guarantee needs exactly the fields {', '.join(names)}")
        # a 1 in place of true would pass every later test and print as certified
        if not all(isinstance(values.get(name, False), bool) for name in ("certified", "enforced", "gaussian")):
            raise TypeError("certified, enforced and gaussian must be true or false")
        check_count(values["max_contributions"], "max_contributions")
        return cls(**values)

    def _whom(self) -> str:
        if _is_trivial(self.unit, self.max_contributions):
            return f"one {self.unit}" if self.enforced else f"one {self.unit} (as declared, not enforced)"
        if self.unit in ROWS:
            return f"up to {self.max_contributions} records"
        how = "enforced" if self.enforced else "as declared, not enforced"
        plural = "" if self.max_contributions == 1 else "s"
        return f"one {self.unit} (at most {self.max_contributions} record{plural}, {how})"

    def _standing(self) -> str:
        if self.certified:
            return (
                f"This release is certified by a mathematical proof ({proof_file(self.proof)}) that holds for any data."
            )
        return f"This release is NOT certified: {self.reason}. What follows is a claim only, and may not hold."

    def _promise(self) -> str:
        if self.neighbours == "add-remove":
            relation = f"with or without the data of any single {self.unit}"
            other = f"without that {self.unit}"
        else:
            relation = f"if the data of any single {self.unit} were exchanged for other data, the number being public"
            other = f"with other data in the place of that {self.unit}"
        exception = f", plus a probability of {_up(self.delta)}" if self.delta > 0 else ", without exception"
        return (
            f"Whatever is published would look almost the same {relation}: any conclusion that somebody draws from it,"
            f" with any other knowledge and any computer, is at most {_factor(self.epsilon)} times as likely as it"
            f" would be {other} (epsilon = {_up(self.epsilon)}){exception}.{self._odds()}"
        )

    def _odds(self) -> str:
        """Say what pure epsilon does to odds; under add-remove two contents of a record are two steps apart."""
        if self.delta > 0:
            return ""
        if self.neighbours == "add-remove":
            return (
                f" So it changes the odds that a given {self.unit} is in the data by a factor of at most"
                f" {_factor(self.epsilon)}, and the odds between two guesses of what the data of that {self.unit} are"
                f" by at most {_factor(2 * self.epsilon)}."
            )
        return (
            f" So it changes the odds between two guesses of what the data of a {self.unit} are by a factor of at most"
            f" {_factor(self.epsilon)}."
        )

    def steps_of(self, records: int) -> int:
        """Return how many steps of the relation of neighbours apart a person with so many records is.

        Examples
        --------
        >>> g = Guarantee.certified_release(epsilon=1.0, delta=0.0, neighbours="add-remove", max_contributions=2,
        ...                                 mechanism="Laplace noise", proof="laplace-noise")
        >>> g.steps_of(2), g.steps_of(3)
        (1, 2)
        """
        # rounded up
        return -(-records // self.max_contributions)

    def _numbers(self) -> str:
        """Say what an attacker can reach who knows all else, for some chances before."""
        found = [self.risk(before) for before in BEFORE]
        told = ", ".join(
            f"{_percent(each.before)} before is right with at most {_percent(each.content)} after" for each in found
        )
        said = [f"In numbers, whatever else is known: a guess about a {self.unit} that is right with {told}."]
        first = found[0]
        if first.presence is not None and first.advantage is not None:
            said.append(
                f"A test of whether a {self.unit} is in the data that is wrong about {_percent(first.before)} of those"
                f" who are not finds at most {_percent(first.presence)} of those who are; any such test finds at most"
                f" {_percent(first.advantage)} more of those who are than of those who are not (the membership"
                " advantage)."
            )
        more = self.risk(0.1, records=2 * self.max_contributions).content
        said.append(f"For {someone_with(self, 2)}, a guess of 10% is right with at most {_percent(more)} after.")
        return " ".join(said)

    def _cautions(self) -> str:
        """Say in plain words that a large epsilon or delta promises little; empty if neither is large."""
        said = budget_cautions(self.epsilon, self.delta)
        return "" if not said else f"Beware: {'; '.join(said)}."

    def _contributions(self) -> str:
        if _is_trivial(self.unit, self.max_contributions):
            less = f"What is protected is one {self.unit}; a person who appears in several is protected less."
            trust = f" That no {self.unit} stands in for another was declared by the data's owner and not checked."
            return less if self.enforced else less + trust
        single = self.max_contributions == 1
        records = "1 record" if single else f"{self.max_contributions} records"
        if self.enforced:
            return f"At most {records} of one {self.unit} {'counts' if single else 'count'}; any others are left out."
        return (
            f"It is assumed that one {self.unit} has at most {records}, which was declared by the data's owner and not"
            " checked."
        )

    def _limits(self) -> str:
        return (
            "It is not promised that nothing is learnt: what is true of the group as a whole can be learnt,"
            f" and may be used about its members, whether or not a given {self.unit} took part; further"
            " releases from the same data add to the risk."
        )


def _is_trivial(unit: str, max_contributions: int) -> bool:
    """Say whether the unit is one record, so that there is no bound to enforce."""
    return unit in ROWS and max_contributions == 1


def _up(value: float) -> str:
    """Return a number for people, with three digits, rounded up: nothing is understated."""
    if value == 0.0:
        return "0"
    text = f"{value:.3g}"
    # rounding went down; what is within 1e-9 is the error of floats, and does not show
    if float(text) < value * (1.0 - 1e-9):
        text = f"{value + 10.0 ** (math.floor(math.log10(value)) - 2) / 2:.3g}"
    return text


def _percent(share: float) -> str:
    """Return a share for people, rounded up, since it is an upper bound."""
    return f"{_up(round(100.0 * share, 9))}%"


def _factor(epsilon: float) -> str:
    """Return exp(epsilon) for people, rounded up, since it is an upper bound."""
    # exp(30) is 1.07e13: beyond it digits only pretend to tell something
    if epsilon > 30:
        return "more than 10^13"
    factor = math.exp(epsilon)
    digits = max(0, 2 - math.floor(math.log10(factor)))
    # a factor that is a round number up to the error of exp stays one
    return f"{math.ceil(factor * 10**digits - 1e-9) / 10**digits:.{digits}f}"


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
        # both are written, and a reader may look at either: they must not contradict each other
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
            # any number of records of a unit is covered, so that there is nothing to declare
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

    def steps_of(self, records: int) -> int:  # noqa: ARG002
        """Return 1: the promise is to any number of records at once."""
        return 1

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
