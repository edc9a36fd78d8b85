"""What a release costs and what it promises.

`events` say what happened, `costs` what that costs, `zcdp` and `gdp` what the cost means, `budget` what may
be spent and `guarantee` what is promised in the end.
"""

from fogline.accounting.budget import Budget, Share, Shares
from fogline.accounting.costs import Cost, UnsupportedEvent, cost
from fogline.accounting.events import (
    AboveThresholdEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    StableHistogramEvent,
)
from fogline.accounting.guarantee import Guarantee

__all__ = [
    "AboveThresholdEvent",
    "Budget",
    "ComposedEvent",
    "Cost",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "Guarantee",
    "LaplaceEvent",
    "ParallelEvent",
    "Share",
    "Shares",
    "StableHistogramEvent",
    "UnsupportedEvent",
    "cost",
]
