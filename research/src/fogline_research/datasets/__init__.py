"""Data of the papers' experiments and benchmarks, with known shape; not private, and not meant to be."""

from fogline_research.datasets.gaussian_rings import (
    RING,
    THREE_GAUSSIANS,
    gaussian_ring,
    random_gaussians,
    random_mixture,
    ring_mixture,
    three_gaussians,
)
from fogline_research.datasets.regression import RegressionSample, sinusoidal_mixture, three_components
from fogline_research.datasets.separated import SeparatedMixture, separated_mixture

__all__ = [
    "RING",
    "THREE_GAUSSIANS",
    "RegressionSample",
    "SeparatedMixture",
    "gaussian_ring",
    "random_gaussians",
    "random_mixture",
    "ring_mixture",
    "separated_mixture",
    "sinusoidal_mixture",
    "three_components",
    "three_gaussians",
]
