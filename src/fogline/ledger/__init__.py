"""The budget on disk: what may still be learnt from a data set, what was, and for whom.

`ledger` is the public face; `protocol` the seven steps of a question; `session` an open file and its writers;
`store` the SQLite file; `accounts` what its entries add up to, with the arithmetic; `shared_cap` how pure epsilon and
rho share a cap; `question` and `units` what may be
asked; `files` the high-water mark, the locks and how a ledger begins; `disk` all that is read and written; `receipts`
what an answer is given with; `view` one analyst's part of it.
"""

import os

if os.name != "posix":  # pragma: no cover
    raise ImportError("fogline.ledger needs the file locks and forced writes of a POSIX system")

from fogline.ledger.caps import ApproximateCost, Caps, Charge, IntegralCost
from fogline.ledger.ledger import Ledger
from fogline.ledger.question import BudgetExceeded, LedgerRefused, Question, ReleaseFailed
from fogline.ledger.receipts import Answer, Entry, PaidAnswer, Plan, Receipt, Remaining
from fogline.ledger.units import ProtectedUnit
from fogline.ledger.view import LedgerView

__all__ = [
    "Answer",
    "ApproximateCost",
    "BudgetExceeded",
    "Caps",
    "Charge",
    "Entry",
    "IntegralCost",
    "Ledger",
    "LedgerRefused",
    "LedgerView",
    "PaidAnswer",
    "Plan",
    "ProtectedUnit",
    "Question",
    "Receipt",
    "ReleaseFailed",
    "Remaining",
]
