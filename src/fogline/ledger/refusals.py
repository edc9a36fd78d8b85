"""How a ledger says no."""

from __future__ import annotations

from fogline.mechanisms.failures import ReleaseFailed

__all__ = ["BudgetExceeded", "LedgerRefused", "ReleaseFailed"]


class LedgerRefused(RuntimeError):
    """The ledger will not do this, and nothing was charged for asking.

    Parameters
    ----------
    check : str
        Which check failed: "chain", "sums", "payload", "high-water", "schema", "dataset", ...
    message : str

    Examples
    --------
    >>> raise LedgerRefused("dataset", "there is no data set 'patients'")
    Traceback (most recent call last):
    fogline.ledger.refusals.LedgerRefused: there is no data set 'patients' (check: dataset)
    """

    def __init__(self, check: str, message: str) -> None:
        super().__init__(check, message)
        self.check = check
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (check: {self.check})"


class BudgetExceeded(LedgerRefused):
    """A release would cost more than is left. Nothing was charged, and no data were touched.

    Examples
    --------
    >>> BudgetExceeded("the budget of 'patients' is spent").check
    'budget'
    """

    def __init__(self, message: str, check: str = "budget") -> None:
        super().__init__(check, message)

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, str]]:
        return BudgetExceeded, (self.message, self.check)
