"""The budget on disk: what may still be learnt from a data set, what was, and for whom.

`ledger` is the public face; `protocol` the seven steps of a question; `session` an open file and its writers;
`store` the SQLite file; `books` what its entries add up to; `charges` and `tallies` the arithmetic; `admission` and
`units` what may be asked; `high_water` the mark kept elsewhere; `disk` all that is read and written; `locks` one
question at a time; `founding` how a ledger begins. `stress` tries to break it.
"""

import os

if os.name != "posix":  # pragma: no cover
    raise ImportError("fogline.ledger needs the file locks and forced writes of a POSIX system")

from fogline.ledger.accounts import ApproximateCost, Caps, Charge, IntegralCost
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
