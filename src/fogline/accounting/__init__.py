"""What a release costs and what it promises.

`events` say what happened, `costs` what that costs, `zcdp` and `analytic_gaussian` what the cost means, `budget` what
may be spent and `guarantee` what is promised in the end, also for draws that protect everyone at once; `risk` says what
that means for a person, `cautions` where it is little. `divergences` has budgets in other divergences, `proofs` the
place of every proof.
"""

from typing import TYPE_CHECKING

from fogline._lazy import lazy_names

if TYPE_CHECKING:
    from fogline.accounting.budget import Budget, GaussianBudget, Share, Shares
    from fogline.accounting.cautions import PrivacyWarning
    from fogline.accounting.costs import Cost, GaussianCost, PureCost, UnsupportedEvent, cost, gaussian_cost, pure_cost
    from fogline.accounting.divergences import HellingerBudget, PowerBudget
    from fogline.accounting.events import (
        AboveThresholdEvent,
        ComposedEvent,
        Event,
        ExponentialEvent,
        GaussianEvent,
        IntegralDrawEvent,
        LaplaceEvent,
        ParallelEvent,
        StableHistogramEvent,
    )
    from fogline.accounting.guarantee import Guarantee, IntegralBudget, IntegralGuarantee
    from fogline.accounting.risk import Risk

__all__ = [
    "AboveThresholdEvent",
    "Budget",
    "ComposedEvent",
    "Cost",
    "Event",
    "ExponentialEvent",
    "GaussianBudget",
    "GaussianCost",
    "GaussianEvent",
    "Guarantee",
    "HellingerBudget",
    "IntegralBudget",
    "IntegralDrawEvent",
    "IntegralGuarantee",
    "LaplaceEvent",
    "ParallelEvent",
    "PowerBudget",
    "PrivacyWarning",
    "PureCost",
    "Risk",
    "Share",
    "Shares",
    "StableHistogramEvent",
    "UnsupportedEvent",
    "cost",
    "gaussian_cost",
    "pure_cost",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AboveThresholdEvent": "events",
        "Budget": "budget",
        "ComposedEvent": "events",
        "Cost": "costs",
        "Event": "events",
        "ExponentialEvent": "events",
        "GaussianBudget": "budget",
        "GaussianCost": "costs",
        "GaussianEvent": "events",
        "Guarantee": "guarantee",
        "HellingerBudget": "divergences",
        "IntegralBudget": "guarantee",
        "IntegralDrawEvent": "events",
        "IntegralGuarantee": "guarantee",
        "LaplaceEvent": "events",
        "ParallelEvent": "events",
        "PowerBudget": "divergences",
        "PrivacyWarning": "cautions",
        "PureCost": "costs",
        "Risk": "risk",
        "Share": "budget",
        "Shares": "budget",
        "StableHistogramEvent": "events",
        "UnsupportedEvent": "costs",
        "cost": "costs",
        "gaussian_cost": "costs",
        "pure_cost": "costs",
    },
)
