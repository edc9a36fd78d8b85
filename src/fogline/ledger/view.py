"""The ledger as one analyst sees one data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from fogline.ledger.charges import AnyCost
from fogline.ledger.question import Question
from fogline.ledger.receipts import Answer, Plan, Remaining

if TYPE_CHECKING:
    from fogline.ledger.ledger import Ledger

__all__ = ["LedgerView"]


class LedgerView:
    """Made by `Ledger.on`; passed as ``ledger=`` to estimators and releases, as a `Ledger` of one data set can be.

    Examples
    --------
    >>> import tempfile
    >>> from fogline.accounting import Cost
    >>> from fogline.ledger import Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
    ...                        high_water=f"{folder.name}/marks")
    >>> ledger.declare_partition("patients", "sex", ["f", "m"])
    >>> for part in ("f", "m"):
    ...     _ = ledger.on("patients", partition=("sex", part)).ask(
    ...         "count", code_version="1", parameters={}, cost=Cost(0.01), neighbours="add-remove", certified=True,
    ...         release=lambda: b"about 45")
    >>> round(ledger.plan(Cost(0.01)).before.rho - ledger.plan(Cost(0.01)).after.rho, 6)
    0.01
    >>> len([entry for entry in ledger.history() if entry.kind == "commit"])
    2
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(
        self, ledger: Ledger, dataset: str, *, analyst: str | None = None, partition: tuple[str, str] | None = None
    ) -> None:
        self.ledger = ledger
        self.dataset = dataset
        self.analyst = analyst
        self.partition = partition

    def __repr__(self) -> str:
        return f"LedgerView({str(self.ledger.path)!r}, {self.dataset!r}, {self.analyst!r}, {self.partition!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def on(
        self, dataset: str | None = None, *, analyst: str | None = None, partition: tuple[str, str] | None = None
    ) -> LedgerView:
        """Return this view with some of it changed, so that a view can stand wherever a ledger can."""
        return LedgerView(
            self.ledger,
            dataset or self.dataset,
            analyst=analyst or self.analyst,
            partition=partition or self.partition,
        )

    def rho_of(self, epsilon: float, delta: float) -> float:
        """Return the rho of a release stated as (epsilon, delta), as `Ledger.rho_of` does."""
        return self.ledger.rho_of(epsilon, delta)

    def ask(
        self,
        mechanism: str,
        *,
        code_version: str,
        parameters: Mapping[str, Any],
        cost: AnyCost,
        neighbours: str,
        certified: bool,
        release: Callable[[], bytes],
        max_payload: int | None = None,
    ) -> Answer:
        """Ask the current version of the data set; everything else is as in `Ledger.spend`."""
        question = Question(self.dataset, self.ledger.version(self.dataset), mechanism, code_version, parameters)
        sized = {} if max_payload is None else {"max_payload": max_payload}
        try:
            return self.ledger.spend(
                question,
                cost=cost,
                neighbours=neighbours,
                certified=certified,
                release=release,
                analyst=self.analyst,
                partition=self.partition,
                **sized,
            )
        finally:
            del release  # an error's traceback must not lead to the data

    def plan(self, cost: AnyCost | Any) -> Plan:
        """Return what a cost or an estimator would come to here. Free."""
        return self.ledger.plan(cost, dataset=self.dataset, analyst=self.analyst, partition=self.partition)

    def remaining(self) -> Remaining:
        """Return what is left here."""
        return self.ledger.remaining(self.dataset, self.analyst)
