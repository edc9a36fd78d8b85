"""The papers' algorithms as printed, to reproduce and compare. Nothing here is certified.

Each function returns a frozen result whose ``guarantee.certified`` is False, with the reason. None of them
spends from a ledger.
"""

from fogline_research.as_published._checks import NotPrivate
from fogline_research.as_published.dp_grams import DPGramsResult, dp_grams
from fogline_research.as_published.dp_grams import DPGramsCResult, dp_grams_c
from fogline_research.as_published.mean_shift import dp_pms
from fogline_research.as_published.hellinger import HellingerResult
from fogline_research.as_published.mbde import MBDEResult, mbde
from fogline_research.as_published.mean_shift import MeanShiftResult, mean_shift
from fogline_research.as_published.mean_shift import PartialMeanShiftResult, partial_mean_shift
from fogline_research.as_published.hellinger import pgd
from fogline_research.as_published.hellinger import pnr

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
