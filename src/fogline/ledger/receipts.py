"""What a ledger hands out: answers and their receipts, entries, what is left, and what something would cost."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from fogline.ledger.caps import Charge
from fogline.ledger.question import Question

if TYPE_CHECKING:
    from fogline.ledger.ledger import Ledger

__all__ = ["Answer", "Entry", "PaidAnswer", "Plan", "Receipt", "Remaining"]


_LATER = frozenset({"mechanism", "code_version", "unit", "max_contributions", "enforced"})
"""Fields that receipts of earlier versions do not have."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Where an answer stands in its ledger. Public, and small enough to go with every artefact.

    Parameters
    ----------
    ledger : str
        Identity of the ledger.
    dataset, version : str
    question : str
        Fingerprint of the question, and of the part of the data set it was asked of.
    reserve, commit : int
        Sequence numbers of the reservation and of the answer.
    hash : str
        Chain hash of the answer's entry: it stands for everything the ledger held up to there.
    payload : str
        SHA-256 of the answer.
    currency : str
        "zcdp" (rho), "gaussian" (half of mu squared), "pure" (epsilon), "approximate" or "integral".
    amount, delta : int
        What was charged, in units of 1e-12 and 1e-18; of Gaussian noise the total variation in place of delta.
    mechanism, code_version : str or None
        What answered, and which edition of it; None in receipts of earlier versions.
    unit : str or None
        What was protected as a whole: "record", or a column; None where that is not known, or whatever it is.
    max_contributions : int or None
        The most records of a unit.
    enforced : bool or None
        Whether that number was imposed on the data, or only declared.

    Examples
    --------
    >>> receipt = Receipt(ledger="a" * 32, dataset="patients", version="1", question="b" * 64, reserve=2, commit=3,
    ...                   hash="c" * 64, payload="d" * 64, currency="zcdp", amount=5, delta=0)
    >>> Receipt.from_dict(receipt.to_dict()) == receipt
    True
    >>> receipt.covers(b"another answer")
    False
    """

    ledger: str
    dataset: str
    version: str
    question: str
    reserve: int
    commit: int
    hash: str
    payload: str
    currency: str
    amount: int
    delta: int
    mechanism: str | None = None
    code_version: str | None = None
    unit: str | None = None
    max_contributions: int | None = None
    enforced: bool | None = None

    def covers(self, payload: bytes) -> bool:
        """Say whether `payload` is the answer that this is the receipt of."""
        return hashlib.sha256(payload).hexdigest() == self.payload

    def verify(self, ledger: Ledger) -> bool:
        """Say whether `ledger` holds exactly this."""
        return ledger._holds(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt in terms of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Receipt:
        """Return the receipt that `to_dict` described; refuse missing or unknown fields."""
        names = {field.name for field in fields(cls)}
        # receipts of earlier versions lack the later fields, and no others
        if not names - _LATER <= set(values) <= names:
            raise ValueError("these are not the fields of a receipt")
        return cls(**values)

    def agrees(self, stored: Receipt) -> bool:
        """Say whether this is the receipt that a ledger holds; early receipts say less of the same."""
        said = asdict(stored)
        mine = {name: value for name, value in asdict(self).items() if value is not None or name not in _LATER}
        return all(said[name] == value for name, value in mine.items())


@dataclass(frozen=True)
class Answer:
    """What the ledger holds for a question.

    Parameters
    ----------
    payload : bytes
    receipt : Receipt
    cached : bool
        Whether it was there before and cost nothing now.
    """

    payload: bytes
    receipt: Receipt
    cached: bool

    def __repr__(self) -> str:
        state = "cached" if self.cached else "new"
        return f"Answer({len(self.payload)} bytes, {state}, entry {self.receipt.commit})"


@dataclass(frozen=True)
class PaidAnswer:
    """An answer that is in the ledger, without its payload: see `Ledger.answers`.

    Parameters
    ----------
    question : Question
        What was asked, and by ``code_version`` which edition of the mechanism answered.
    partition : (name, part) or None
    receipt : Receipt
    """

    question: Question
    partition: tuple[str, str] | None
    receipt: Receipt


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger.

    Parameters
    ----------
    seq : int
    kind : str
        "genesis", "dataset", "version", "partition", "analyst", "cap", "reserve", "commit", "adopt" or "marks".
    time : str
        For information only: the clock when it was written, or the time of the entry before if that was later.
    content : mapping
        All that the entry says.
    hash : str
        Chain hash up to and including this entry.
    """

    seq: int
    kind: str
    time: str
    content: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """What is left, rounded down.

    Parameters
    ----------
    rho : float
        zCDP that may still be spent, or half of mu squared where the lane is Gaussian.
    delta : float
        Probability that mechanisms with a delta of their own may still spend. Spending it lessens `rho`, unless it was
        set aside when the cap was made. In the Gaussian lane: the total variation that may still be spent.
    epsilon : float
        What `rho` amounts to at the delta that is left: a single release of about (epsilon, delta) fits. Where the cap
        has a delta of 0 it is `pure`.
    approximate : (epsilon, delta) or None
        For mechanisms known only by epsilon and delta; None if there is no cap for them.
    integral : float or None
        For integrally private draws.
    pure : float
        Pure epsilon that may still be spent, from the same cap as `rho`: spending one lessens the other.
    mu : float or None
        The mu of Gaussian differential privacy that is left, where the lane is Gaussian.
    """

    rho: float
    delta: float
    epsilon: float
    approximate: tuple[float, float] | None
    integral: float | None
    pure: float = 0.0
    mu: float | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What something would cost. Making a plan is free.

    Parameters
    ----------
    charge : Charge
        In whole units, rounded up.
    fits : bool
        Whether it can be afforded.
    times : int
        How often it can be afforded, counted up to a million.
    before, after : Remaining or None
        What is left now, and would be left; `after` is None if it does not fit.
    """

    charge: Charge
    fits: bool
    times: int
    before: Remaining
    after: Remaining | None
