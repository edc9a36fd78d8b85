"""The ledger as one analyst sees one data set."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from fogline.ledger.admission import AFRESH
from fogline.ledger.charges import AnyCost
from fogline.ledger.question import Question
from fogline.ledger.receipts import Answer, Plan, Remaining

if TYPE_CHECKING:
    from fogline.ledger.ledger import Ledger

__all__ = ["LedgerView"]


class LedgerView:
    """Made by `Ledger.on`; passed as ``ledger=`` to estimators and releases, as a `Ledger` of one data set can be.

    A question is known by its public parameters, never by the records that a fit is given: asked again with other
    records it has the old answer. Who means other records (a fold of a cross-validation, a sample, a corrected table)
    says so: by `Ledger.new_version`, by a part of a partition, or by `afresh`. ``sklearn.base.clone`` does the last,
    so that each fit of a ``GridSearchCV`` is a question of its own, sees its own fold, and is paid for.

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
        self,
        ledger: Ledger,
        dataset: str | None,
        *,
        analyst: str | None = None,
        partition: tuple[str, str] | None = None,
        mark: str | None = None,
    ) -> None:
        self.ledger = ledger
        self.dataset = dataset
        self.analyst = analyst
        self.partition = partition
        self.mark = mark

    def __repr__(self) -> str:
        shown = f"LedgerView({str(self.ledger.path)!r}, {self.dataset!r}, {self.analyst!r}, {self.partition!r}"
        return f"{shown})" if self.mark is None else f"{shown}, mark={self.mark!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LedgerView:
        return self.afresh()

    def on(
        self, dataset: str | None = None, *, analyst: str | None = None, partition: tuple[str, str] | None = None
    ) -> LedgerView:
        """Return this view with some of it changed, so that a view can stand wherever a ledger can."""
        return LedgerView(
            self.ledger,
            dataset or self.dataset,
            analyst=analyst or self.analyst,
            partition=partition or self.partition,
            mark=self.mark,
        )

    def afresh(self) -> LedgerView:
        """Return this view with a new mark: what is asked through it was never asked before, and is paid for.

        Through the *same* view a question asked again has its answer from the ledger, as always.

        Examples
        --------
        >>> import tempfile
        >>> from fogline.accounting import Cost
        >>> from fogline.ledger import Ledger
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
        ...                        high_water=f"{folder.name}/marks")
        >>> asked = dict(code_version="1", parameters={}, cost=Cost(0.005), neighbours="add-remove", certified=True)
        >>> fold = ledger.on().afresh()
        >>> [view.ask("count", release=lambda: b"about 45", **asked).cached for view in (ledger.on(), fold, fold)]
        [False, False, True]
        >>> ledger.close()
        >>> folder.cleanup()
        """
        return LedgerView(
            self.ledger,
            self.dataset,
            analyst=self.analyst,
            partition=self.partition,
            mark=secrets.token_hex(8),
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
        **options: Any,
    ) -> Answer:
        """Ask the current version of the data set; everything else, and `options`, is as in `Ledger.spend`."""
        dataset = self.dataset or str(self.ledger.on().dataset)
        told = dict(parameters) if self.mark is None else {**parameters, AFRESH: self.mark}
        question = Question(dataset, self.ledger.version(dataset), mechanism, code_version, told)
        try:
            return self.ledger.spend(
                question,
                cost=cost,
                neighbours=neighbours,
                certified=certified,
                release=release,
                analyst=self.analyst,
                partition=self.partition,
                **options,
            )
        finally:
            del release  # an error's traceback must not lead to the data

    def plan(self, cost: AnyCost | Any) -> Plan:
        """Return what a cost or an estimator would come to here. Free."""
        return self.ledger.plan(cost, dataset=self.dataset, analyst=self.analyst, partition=self.partition)

    def remaining(self) -> Remaining:
        """Return what is left here."""
        return self.ledger.remaining(self.dataset, self.analyst)
