"""Checks of privacy claims by experiment, for fogline's own algorithms and for anybody's.

- `replay` records a fit on one data set and plays it back on a neighbour: what carries a claim.
- `noise_fit` compares draws with the exact law they should have.
- `attack`, `vector_attack`, `sketch_attack` and `stage_attack` bound from below the epsilon that an algorithm really
  has; `visible_probability` says how rare a leak may be and still be seen by this many runs.
- `canary_pairs` is a library of neighbours that show leaks.

``python -m fogline.audit`` (``make audit``) runs the long version.
"""

from fogline.audit.attack import (
    AttackReport,
    DistinguishingEvent,
    attack,
    likelihood_ratio,
    sketch_attack,
    stage_attack,
    vector_attack,
)
from fogline.audit.binomial_bounds import epsilon_lower_bound, proportion_lower, proportion_upper, visible_probability
from fogline.audit.neighbour_pairs import Pair, canary_pairs, random_pairs
from fogline.audit.noise_fit import NoiseFit, noise_fit
from fogline.audit.replay import PairReport, RecordingProvider, ReplayingProvider, ReplayReport, replay

__all__ = [
    "AttackReport",
    "DistinguishingEvent",
    "NoiseFit",
    "Pair",
    "PairReport",
    "RecordingProvider",
    "ReplayReport",
    "ReplayingProvider",
    "attack",
    "canary_pairs",
    "epsilon_lower_bound",
    "likelihood_ratio",
    "noise_fit",
    "proportion_lower",
    "proportion_upper",
    "random_pairs",
    "replay",
    "sketch_attack",
    "stage_attack",
    "vector_attack",
    "visible_probability",
]
