"""The papers' own algorithms in forms that are private for every data set, each with its proof beside it."""

from fogline_research.certified.gradient_ascent import AscentResult, gradient_ascent_modes
from fogline_research.certified.separated_mixtures import pegme, pgme

__all__ = ["AscentResult", "gradient_ascent_modes", "pegme", "pgme"]
