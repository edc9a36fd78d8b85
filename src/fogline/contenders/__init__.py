"""What the papers compare with, and what fogline must beat."""

from fogline.contenders.bernstein import BernsteinDensity
from fogline.contenders.dp_em import DPEMResult, dp_em
from fogline.contenders.dpgan import DPGAN
from fogline.contenders.noisy_histogram import NoisyHistogramResult, noisy_histogram_modes

__all__ = ["DPGAN", "BernsteinDensity", "DPEMResult", "NoisyHistogramResult", "dp_em", "noisy_histogram_modes"]
