"""What may be asked of a data set: its unit, its sources, its parts, who asks. All of it before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fogline._validation import source_text
from fogline.ledger.refusals import LedgerRefused
from fogline.ledger.units import check_unit

if TYPE_CHECKING:
    from fogline.ledger.books import Books, Dataset
    from fogline.ledger.protocol import Request

__all__ = ["AFRESH", "check_asker", "check_new", "checked_sources", "source_of"]

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


def check_asker(books: Books, request: Request) -> Dataset:
    """Check who asks what of whom, also where the answer is known already; return the data set."""
    question = request.question
    dataset = books.dataset(question.dataset)
    if request.analyst is not None:
        books.analyst(request.analyst)
    elif books.analysts:
        names = ", ".join(map(repr, books.analysts))
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
