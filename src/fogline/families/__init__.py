"""Parametric families: densities with the derivatives that a fit needs.

A `Family` is a value without data. Everything here is computed from public parameters and public grids; what is
fitted to a release stays post-processing. Write your own by subclassing `UnivariateFamily`.
"""

from fogline.families.bounded_and_counts import Beta, Lomax, NegativeBinomial, Poisson, ZeroInflated
from fogline.families.family import Family, UnivariateFamily, parameter_box
from fogline.families.multivariate_normal import MultivariateNormal
from fogline.families.named import NAMES, family_named
from fogline.families.univariate import Exponential, Gamma, Logistic, Lognormal, Normal, StudentT, Weibull

__all__ = [
    "NAMES",
    "Beta",
    "Exponential",
    "Family",
    "Gamma",
    "Logistic",
    "Lognormal",
    "Lomax",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "StudentT",
    "UnivariateFamily",
    "Weibull",
    "ZeroInflated",
    "family_named",
    "parameter_box",
]
