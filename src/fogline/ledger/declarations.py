"""What may be declared in a ledger, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fogline._validation import check_name, check_neighbours
from fogline.ledger.admission import checked_sources
from fogline.ledger.charges import AnyCost, Caps
from fogline.ledger.refusals import LedgerRefused
from fogline.ledger.units import ProtectedUnit

__all__ = ["cost_of", "dataset_declaration"]


def dataset_declaration(
    dataset: str,
    version: str,
    neighbours: str,
    caps: Caps,
    unit: ProtectedUnit | None = None,
    sources: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the entry that declares a data set.

    Examples
    --------
    >>> dataset_declaration("patients", "2024", "replace", Caps(epsilon=1.0, delta=1e-6))["neighbours"]
    'replace'
    """
    return {
        "kind": "dataset",
        "dataset": check_name(dataset, "dataset"),
        "version": check_name(version, "version"),
        "neighbours": check_neighbours(neighbours),
        "caps": caps.to_dict(),
        "unit": None if unit is None else unit.to_dict(),
        "sources": checked_sources(sources),
    }


def cost_of(cost: Any) -> Any:
    """Return a cost, or that of an estimator which has a method `cost()`.

    Examples
    --------
    >>> cost_of("a histogram")
    Traceback (most recent call last):
    fogline.ledger.refusals.LedgerRefused: str has no cost: it cannot be planned or paid for (check: cost)
    """
    if not isinstance(cost, AnyCost):
        method = getattr(cost, "cost", None)
        if not callable(method):
            raise LedgerRefused("cost", f"{type(cost).__name__} has no cost: it cannot be planned or paid for")
        return method()
    return cost
