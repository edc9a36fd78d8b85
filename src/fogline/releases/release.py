"""The one way from records to a ledger: reserve the budget, release and store, or read what was stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from fogline._typing import LedgerLike
from fogline.accounting.costs import Cost, PureCost

__all__ = ["Charge", "PaidQuestion", "release"]

T = TypeVar("T")


@dataclass(frozen=True)
class Charge:
    """What a ledger is charged for a release, and whom that protects; as :meth:`fogline.Ledger.spend` takes it.

    Attributes
    ----------
    cost : Cost, PureCost or IntegralCost
    neighbours : {"add-remove", "replace"}
        What the cost is proved for.
    certified : bool
        Whether fogline stands behind the cost for every data set.
    unit : str or None
        What is protected as a whole; None where the promise holds for changes of any number of records.
    max_contributions : int
    enforced : bool, optional
        Whether the records of each unit were cut to so many.
    gain_and_loss : bool
        Whether the cost also covers a record that comes or goes, where records are replaced.
    """

    cost: Cost | PureCost | Any
    neighbours: str
    certified: bool
    unit: str | None = "record"
    max_contributions: int = 1
    enforced: bool | None = None
    gain_and_loss: bool = False


@dataclass(frozen=True)
class PaidQuestion:
    """A question to a ledger, and what its answer costs.

    Attributes
    ----------
    name, code_version, parameters
        Together with data set and version they tell this release from any other.
    charge : Charge
    max_payload : int
        Most bytes that the answer can take.
    also_reads, formerly
        As for :meth:`fogline.Ledger.spend`.
    """

    name: str
    code_version: str
    parameters: Mapping[str, Any]
    charge: Charge
    max_payload: int
    also_reads: Sequence[str] = ()
    formerly: Mapping[str, Any] | None = None


def release(
    make: Callable[[], T],
    ledger: LedgerLike | None,
    question: Callable[[], PaidQuestion],
    *,
    write: Callable[[T], bytes],
    read: Callable[[bytes, dict[str, Any]], T],
) -> T:
    """Release once, paid for by a ledger if there is one; asked before, give the answer that the ledger has.

    Parameters
    ----------
    make : callable
        The release itself, the only step that touches records. Called at most once: with a ledger after the
        reservation is on the disk, and not at all if the ledger knows the answer.
    ledger : Ledger, LedgerView or None
    question : callable
        Returns the question, from public parameters alone; called where there is a ledger.
    write, read : callable
        A release as bytes, and a release from its bytes and the receipt that the ledger gave for it. With a ledger what
        is returned was written and read, whether it is new or not.
    """
    if ledger is None:
        return make()
    # from here on nothing in this frame but `paid` leads to the records
    asked, paid = question(), _written(make, write)
    del make, write
    try:
        answer = ledger.ask(
            asked.name,
            code_version=asked.code_version,
            parameters=asked.parameters,
            release=paid,
            max_payload=asked.max_payload,
            also_reads=asked.also_reads,
            formerly=asked.formerly,
            **{field.name: getattr(asked.charge, field.name) for field in fields(asked.charge)},
        )
    finally:
        del paid  # an error's traceback must not lead to the records
    return read(answer.payload, answer.receipt.to_dict())


def _written(make: Callable[[], T], write: Callable[[T], bytes]) -> Callable[[], bytes]:
    """The release as a ledger takes it."""
    return lambda: write(make())
