"""What the papers compare with, and what fogline must beat."""

from fogline_research.baselines.bernstein import BernsteinDensity
from fogline_research.baselines.dp_em import DPEMResult, dp_em
from fogline_research.baselines.dp_kmeans import DPKMeansResult, dp_kmeans
from fogline_research.baselines.dpgan import DPGAN
from fogline_research.baselines.noisy_histogram import NoisyHistogramResult, noisy_histogram_modes

__all__ = [
    "DPGAN",
    "BernsteinDensity",
    "DPEMResult",
    "DPKMeansResult",
    "NoisyHistogramResult",
    "dp_em",
    "dp_kmeans",
    "noisy_histogram_modes",
]
