"""What the papers compare with, and what fogline must beat."""

from fogline.contenders.noisy_histogram import NoisyHistogramResult, noisy_histogram_modes

__all__ = ["NoisyHistogramResult", "noisy_histogram_modes"]
