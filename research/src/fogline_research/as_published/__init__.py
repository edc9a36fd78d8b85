"""The papers' algorithms as printed, to reproduce and compare. Nothing here is certified.

Each function returns a frozen result whose ``guarantee.certified`` is False, with the reason. None of them
spends from a ledger.
"""

from fogline_research.as_published._checks import NotPrivate
from fogline_research.as_published.dp_grams import DPGramsCResult, DPGramsResult, dp_grams, dp_grams_c
from fogline_research.as_published.hellinger import HellingerResult, pgd, pnr
from fogline_research.as_published.mbde import MBDEResult, mbde
from fogline_research.as_published.mean_shift import (
    MeanShiftResult,
    PartialMeanShiftResult,
    dp_pms,
    mean_shift,
    partial_mean_shift,
)

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
