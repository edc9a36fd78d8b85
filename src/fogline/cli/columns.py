"""A ledger's view that knows which columns are asked about: the same box of other columns is another question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from fogline.ledger import Answer, LedgerView

__all__ = ["ColumnsView"]


class ColumnsView(LedgerView):
    """A view that adds the names of the columns to the parameters of each question."""

    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: LedgerView, columns: Sequence[str]) -> Self:
        """Return `view` with columns."""
        made = cls(view.ledger, view.dataset, analyst=view.analyst, partition=view.partition)
        made.columns = tuple(columns)
        return made

    def ask(self, mechanism: str, *, parameters: Mapping[str, Any], **asked: Any) -> Answer:
        """Ask as a view does, about these columns."""
        try:
            return super().ask(mechanism, parameters={**parameters, "columns": list(self.columns)}, **asked)
        finally:
            asked.clear()  # an error's traceback must not lead to the data
