"""Data of the papers' experiments and benchmarks, with known shape; not private, and not meant to be."""

from fogline_research.datasets.columns import COLUMNS, Column, column_named
from fogline_research.datasets.dpbench import HistogramSet, dpbench_sets
from fogline_research.datasets.gaussian_rings import (
    RING,
    THREE_GAUSSIANS,
    gaussian_ring,
    random_gaussians,
    random_mixture,
    ring_mixture,
    three_gaussians,
)
from fogline_research.datasets.joints import JOINTS, Joint
from fogline_research.datasets.regression import RegressionSample, sinusoidal_mixture, three_components
from fogline_research.datasets.separated import SeparatedMixture, separated_mixture

__all__ = [
    "COLUMNS",
    "JOINTS",
    "RING",
    "THREE_GAUSSIANS",
    "Column",
    "HistogramSet",
    "Joint",
    "RegressionSample",
    "SeparatedMixture",
    "column_named",
    "dpbench_sets",
    "gaussian_ring",
    "random_gaussians",
    "random_mixture",
    "ring_mixture",
    "separated_mixture",
    "sinusoidal_mixture",
    "three_components",
    "three_gaussians",
]
