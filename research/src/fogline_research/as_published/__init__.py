"""The papers' algorithms as printed, to reproduce and compare. Nothing here is certified.

Each function returns a frozen result whose ``guarantee.certified`` is False, with the reason. None of them
spends from a ledger.
"""

from fogline_research.as_published._checks import NotPrivate
from fogline_research.as_published.dp_grams import DPGramsCResult, DPGramsResult, dp_grams, dp_grams_c
from fogline_research.as_published.dpb import dpb
from fogline_research.as_published.hellinger import HellingerResult, pgd, pnr
from fogline_research.as_published.mbde import MBDEResult, mbde
from fogline_research.as_published.mean_shift import (
    MeanShiftResult,
    PartialMeanShiftResult,
    dp_pms,
    mean_shift,
    partial_mean_shift,
)
from fogline_research.as_published.mixture_parts import BallResult, SphericalResult, pgloc, psge, terrific_ball
from fogline_research.as_published.mixtures import (
    MixtureResult,
    PartitionResult,
    pegme,
    pgme,
    rpgmp,
    sample_and_aggregate,
)

__all__ = [
    "BallResult",
    "DPGramsCResult",
    "DPGramsResult",
    "HellingerResult",
    "MBDEResult",
    "MeanShiftResult",
    "MixtureResult",
    "NotPrivate",
    "PartialMeanShiftResult",
    "PartitionResult",
    "SphericalResult",
    "dp_grams",
    "dp_grams_c",
    "dp_pms",
    "dpb",
    "mbde",
    "mean_shift",
    "partial_mean_shift",
    "pegme",
    "pgd",
    "pgloc",
    "pgme",
    "pnr",
    "psge",
    "rpgmp",
    "sample_and_aggregate",
    "terrific_ball",
]
