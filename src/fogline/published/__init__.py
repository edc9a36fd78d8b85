"""The papers' algorithms as printed, to reproduce and compare. Nothing here is certified.

Each function returns a frozen result whose ``guarantee.certified`` is False, with the reason. None of them
spends from a ledger.
"""

from fogline.published._checks import NotPrivate
from fogline.published._dp_grams import DPGramsResult, dp_grams
from fogline.published._mean_shift import MeanShiftResult, mean_shift

__all__ = ["DPGramsResult", "MeanShiftResult", "NotPrivate", "dp_grams", "mean_shift"]
