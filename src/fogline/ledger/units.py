"""Whom a release protects, and whether that is what its data set is accounted for.

Costs add up only where they are promises to the same unit. A release for one record and one for a person are both
sound, but their sum says nothing about the person, who may have a hundred records.

What may be asked of a data set: its unit, its sources, its parts, who asks. All of it before anything is spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fogline._validation import check_max_contributions, check_name, source_text
from fogline.accounting.guarantee import ROWS
from fogline.ledger.question import LedgerRefused

if TYPE_CHECKING:
    from fogline.ledger.accounts import Accounts, Dataset
    from fogline.ledger.protocol import Request

__all__ = ["AFRESH", "ProtectedUnit", "check_asker", "check_new", "check_unit", "checked_sources", "source_of"]

RECORD = "record"


@dataclass(frozen=True)
class ProtectedUnit:
    """What is protected as a whole.

    Parameters
    ----------
    name : str
        "record" for a row of the source, else the column that says whose record a row is.
    max_contributions : int or None
        The most records of a unit; None in a data set that sets no limit to releases that enforce one.
    enforced : bool or None
        Whether a release cut the records of each unit to that number, or its owner only declared it; None for the
        unit of a data set.

    Examples
    --------
    >>> print(ProtectedUnit("patient", 3, True))
    patient (at most 3 records, enforced)
    >>> print(ProtectedUnit("line of the file", 1, True))
    record
    """

    name: str
    max_contributions: int | None = None
    enforced: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", RECORD if self.name in ROWS else check_name(self.name, "unit"))
        if self.max_contributions is not None:
            check_max_contributions(self.max_contributions)
        elif self.name == RECORD:
            object.__setattr__(self, "max_contributions", 1)

    def __str__(self) -> str:
        most = self.max_contributions
        if self.name == RECORD:
            return RECORD if most == 1 else f"person of at most {most} records, as declared"
        if most is None:
            return self.name
        how = "" if self.enforced is None else ", enforced" if self.enforced else ", as declared"
        return f"{self.name} (at most {most} record{'' if most == 1 else 's'}{how})"

    @classmethod
    def declared(cls, unit: str | None, max_contributions: int | None) -> ProtectedUnit | None:
        """Return the unit that a data set declares; None where it declares none, and its first release fixes it."""
        if unit is None and max_contributions is None:
            return None
        return cls(RECORD if unit is None else unit, max_contributions)

    @classmethod
    def of_release(cls, unit: str | None, max_contributions: int, enforced: bool | None) -> ProtectedUnit | None:
        """Return the unit of a release; None for what holds whatever the unit is, as integral privacy does."""
        if unit is None:
            return None
        made = cls(unit, check_max_contributions(max_contributions), bool(enforced))
        # one row of one row: there is nothing to enforce
        trivial = made.name == RECORD and made.max_contributions == 1
        return cls(made.name, made.max_contributions, trivial or (made.name != RECORD and bool(enforced)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> ProtectedUnit | None:
        """Return the unit that `to_dict` described; None for None."""
        return None if values is None else cls(values["name"], values["max_contributions"], values["enforced"])

    def to_dict(self) -> dict[str, Any]:
        """Return the unit in terms of JSON.

        Examples
        --------
        >>> ProtectedUnit("record").to_dict()["max_contributions"]
        1
        """
        return {"name": self.name, "max_contributions": self.max_contributions, "enforced": self.enforced}

    def fixes(self) -> ProtectedUnit:
        """Return the unit of a data set whose first release was for this one: who enforces a number may vary it."""
        # an enforced number is in the cost of each release; a declared one is a fact about the data, and stays
        bound = self.name == RECORD or not self.enforced
        return ProtectedUnit(self.name, self.max_contributions if bound else None)


def check_unit(dataset: str, unit: ProtectedUnit | None, asked: ProtectedUnit | None) -> None:
    """Refuse a release for another unit than its data set's, or for more records of it.

    Examples
    --------
    >>> check_unit("visits", ProtectedUnit("patient", 3), ProtectedUnit("patient", 2, True))
    >>> check_unit("visits", ProtectedUnit("patient", 3), ProtectedUnit("record", 1, True))
    Traceback (most recent call last):
    fogline.ledger.question.LedgerRefused: data set 'visits' is accounted for one patient (at most 3 records), ...
    """
    if unit is None or asked is None:
        return
    most, wanted = unit.max_contributions, asked.max_contributions
    if unit.name == asked.name and (most is None or wanted is None or most == wanted):
        return
    # fewer records of an enforced unit: its cost holds for everybody whom the data set allows for
    if unit.name == asked.name and asked.enforced and unit.name != RECORD and wanted <= most:  # type: ignore[operator]
        return
    if unit.name == RECORD:
        ask = f"ask without a unit and with max_contributions={most} (--max-contributions {most})"
    else:
        number = "" if most is None else f" and max_contributions of at most {most}"
        ask = f"read it with unit={unit.name!r} (--unit {unit.name}){number}"
    raise LedgerRefused(
        "unit",
        f"data set {dataset!r} is accounted for one {unit}, this release is for one {asked}: their costs do not add up."
        f" {ask[0].upper()}{ask[1:]}, or declare a data set of its own for the other unit",
    )


AFRESH = "asked afresh"
"""Parameter of a question that is asked as if it had never been asked before."""


def source_of(parameters: Mapping[str, Any]) -> str | None:
    """Return where a question's records come from, as it was given; None for arrays and frames.

    Examples
    --------
    >>> source_of({"epsilon": 1.0, "source": "visits.csv"})
    'visits.csv'
    """
    source = parameters.get("source")
    return source if isinstance(source, str) else None


def checked_sources(sources: Sequence[str] | None) -> list[str] | None:
    """Return declared sources as they are compared.

    Examples
    --------
    >>> checked_sources(["./visits.csv"])
    ['visits.csv']
    """
    if sources is None:
        return None
    if isinstance(sources, str) or not sources:
        raise TypeError("sources must be a list of one or more paths or addresses")
    return [source_text(source) for source in sources]


def check_asker(accounts: Accounts, request: Request) -> Dataset:
    """Check who asks what of whom, also where the answer is known already; return the data set."""
    question = request.question
    dataset = accounts.dataset(question.dataset)
    if request.analyst is not None:
        accounts.analyst(request.analyst)
    # else their caps could be passed by asking as nobody
    elif accounts.analysts:
        names = ", ".join(map(repr, accounts.analysts))
        raise LedgerRefused("analyst", f"say who asks, by analyst= or --analyst: this ledger has analysts ({names})")
    if request.neighbours != dataset.neighbours:
        message = f"data set {question.dataset!r} is accounted under {dataset.neighbours!r}, not {request.neighbours!r}"
        raise LedgerRefused("neighbours", message)
    if question.version not in dataset.versions:
        raise LedgerRefused("version", f"data set {question.dataset!r} has no version {question.version!r}")
    if request.partition is not None and request.partition[1] not in dataset.partitions.get(request.partition[0], ()):
        raise LedgerRefused("partition", f"no partition {request.partition[0]!r} with that part was declared")
    return dataset


def check_new(dataset: Dataset, request: Request) -> None:
    """Check what only matters where something is to be spent."""
    question = request.question
    if question.version != dataset.versions[-1]:
        raise LedgerRefused("version", f"version {question.version!r} was replaced by {dataset.versions[-1]!r}")
    # answers of another unit that were paid for stay readable: only new ones are refused
    check_unit(question.dataset, dataset.unit, request.unit)
    _check_source(dataset, request)
    if request.partition is not None and dataset.neighbours == "replace" and not request.gain_and_loss:
        raise LedgerRefused(
            "partition",
            "a record that is replaced may leave one part and enter another, and this release is not proved for the"
            " gain and the loss of a record (it takes the number of records for public): ask it of the whole data set",
        )


def _check_source(dataset: Dataset, request: Request) -> None:
    """Refuse records from elsewhere, unless the one who asks says that they are others."""
    question = request.question
    name, source = question.dataset, source_of(question.parameters)
    if dataset.sources is not None and source not in dataset.sources:
        told = "records in memory" if source is None else repr(source)
        known = ", ".join(map(repr, dataset.sources))
        raise LedgerRefused("source", f"data set {name!r} is declared to come from elsewhere, not from {told}: {known}")
    known_place = dataset.source if dataset.sources is None and AFRESH not in question.parameters else None
    if known_place is not None and source is not None and source != known_place:
        raise LedgerRefused(
            "source",
            f"version {question.version!r} of data set {name!r} came from another source: if the data have changed,"
            " declare it (Ledger.new_version, fogline ledger new-version); if these are other records of the same"
            " people, ask afresh (ledger.on(...).afresh(), --afresh). It came from"
            f" {known_place!r}, this is {source!r}",
        )
