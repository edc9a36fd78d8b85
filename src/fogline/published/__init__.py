"""The papers' algorithms as printed, to reproduce and compare. Nothing here is certified.

Each function returns a frozen result whose ``guarantee.certified`` is False, with the reason. None of them
spends from a ledger.
"""

from fogline.published._checks import NotPrivate
from fogline.published._dp_grams import DPGramsResult, dp_grams
from fogline.published._dp_grams_c import DPGramsCResult, dp_grams_c
from fogline.published._dp_pms import dp_pms
from fogline.published._hellinger_runs import HellingerResult
from fogline.published._mbde import MBDEResult, mbde
from fogline.published._mean_shift import MeanShiftResult, mean_shift
from fogline.published._partial_mean_shift import PartialMeanShiftResult, partial_mean_shift
from fogline.published._pgd import pgd
from fogline.published._pnr import pnr

__all__ = [
    "DPGramsCResult",
    "DPGramsResult",
    "HellingerResult",
    "MBDEResult",
    "MeanShiftResult",
    "NotPrivate",
    "PartialMeanShiftResult",
    "dp_grams",
    "dp_grams_c",
    "dp_pms",
    "mbde",
    "mean_shift",
    "partial_mean_shift",
    "pgd",
    "pnr",
]
