"""Noise and choice: the mechanisms everything private is made of, and the one door to entropy.

Beside each ``x.py`` stands its proof, ``x.proof.md``.
"""

from fogline.mechanisms.above_threshold import above_threshold
from fogline.mechanisms.discrete_gaussian import NoisyVector, add_gaussian, gaussian_scale
from fogline.mechanisms.discrete_laplace import NoisyCount, NoisyCounts, add_laplace, laplace_scale, private_count
from fogline.mechanisms.exponential import choose
from fogline.mechanisms.mollified_cells import mollified_cells
from fogline.mechanisms.mollified_draws import mollified_draws
from fogline.mechanisms.randomness import (
    Call,
    EntropySource,
    NoiseProvider,
    SystemProvider,
    current_provider,
    provider_reason,
    use_provider,
)
from fogline.mechanisms.stable_histogram import StableHistogram, stable_histogram

__all__ = [
    "Call",
    "EntropySource",
    "NoiseProvider",
    "NoisyCount",
    "NoisyCounts",
    "NoisyVector",
    "StableHistogram",
    "SystemProvider",
    "above_threshold",
    "add_gaussian",
    "add_laplace",
    "choose",
    "current_provider",
    "gaussian_scale",
    "laplace_scale",
    "mollified_cells",
    "mollified_draws",
    "private_count",
    "provider_reason",
    "stable_histogram",
    "use_provider",
]
