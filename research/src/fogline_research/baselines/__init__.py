"""What the papers compare with, and what fogline must beat."""

from fogline_research.baselines.bernstein import BernsteinDensity
from fogline_research.baselines.dp_em import DPEMResult, dp_em
from fogline_research.baselines.dpgan import DPGAN
from fogline_research.baselines.grids import adaptive_grid, uniform_grid
from fogline_research.baselines.hierarchies import hierarchical_histogram
from fogline_research.baselines.leaves import Leaves
from fogline_research.baselines.noisy_histogram import NoisyHistogramResult, noisy_histogram_modes
from fogline_research.baselines.partitions import partition_histogram
from fogline_research.baselines.quantiles import recursive_quantiles

__all__ = [
    "DPGAN",
    "BernsteinDensity",
    "DPEMResult",
    "Leaves",
    "NoisyHistogramResult",
    "adaptive_grid",
    "dp_em",
    "hierarchical_histogram",
    "noisy_histogram_modes",
    "partition_histogram",
    "recursive_quantiles",
    "uniform_grid",
]
