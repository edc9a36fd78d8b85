"""Data with known shape: the papers' simulated mixtures, mixtures of our own, and one real table.

These are not private and need not be: they are the inputs of experiments. ``random_state`` is a seed or a
numpy Generator.
"""

from fogline_research.datasets.gaussian_rings import RING, THREE_GAUSSIANS, gaussian_ring, random_gaussians, random_mixture, ring_mixture, three_gaussians
from fogline.datasets.mixtures import Mixture, Sample, mixture_modes
from fogline_research.datasets.regression import RegressionSample, sinusoidal_mixture, three_components
from fogline_research.datasets.separated import SeparatedMixture, separated_mixture
from fogline.datasets.simulated import (
    GAUSSIAN_MIXTURE4,
    OWN_MIXTURES,
    T_MIXTURE5,
    gaussian_mixture4,
    own_mixture,
    t_mixture5,
    uniform_box,
)
from fogline.datasets.tables import Table, load_faithful

__all__ = [
    "GAUSSIAN_MIXTURE4",
    "OWN_MIXTURES",
    "RING",
    "THREE_GAUSSIANS",
    "T_MIXTURE5",
    "Mixture",
    "RegressionSample",
    "Sample",
    "SeparatedMixture",
    "Table",
    "gaussian_mixture4",
    "gaussian_ring",
    "load_faithful",
    "mixture_modes",
    "own_mixture",
    "random_gaussians",
    "random_mixture",
    "ring_mixture",
    "separated_mixture",
    "sinusoidal_mixture",
    "t_mixture5",
    "three_components",
    "three_gaussians",
    "uniform_box",
]
