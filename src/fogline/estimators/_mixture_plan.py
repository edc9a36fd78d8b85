"""What is public about a private Gaussian mixture: checked before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fogline import _validation
from fogline.accounting.budget import Budget
from fogline.estimators._clustering_plan import FREQUENCIES
from fogline.locate.ball import BallLattice

__all__ = ["SHARES", "MixturePlan", "plan_mixture"]

SHARES = {"scale": "1/50", "moments": "1/10", "density": "9/50", "steps": "7/10"}
"""Default shares of the budget."""

MOST_COMPONENTS = 64

MOST_COLUMNS = 64
"""Most columns of the steps: their integer products stay exact up to here."""

MOST_DIRECTIONS = 10
"""Directions of the density where the number of components is open."""

AUTO_COMPONENTS = 12
"""Most components that are tried where their number is open."""

STEPS = 5
"""Steps of expectation-maximisation."""

MOST_STEPS = 48


@dataclass(frozen=True, eq=False)
class MixturePlan:
    """All that is public about a mixture in stages.

    Attributes
    ----------
    lattice : BallLattice
    n_components : int or None
    variance_range : (float, float)
        Smallest and largest variance of a component along a direction, in units of the radius.
    least_weight : float
    portions : dict of Fraction
        Of the whole budget, by name; they sum to one.
    steps : int
    """

    lattice: BallLattice
    n_components: int | None
    variance_range: tuple[float, float]
    least_weight: float
    portions: dict[str, Fraction]
    steps: int

    @property
    def most_components(self) -> int:
        """Most components that may be found."""
        return AUTO_COMPONENTS if self.n_components is None else self.n_components

    @property
    def most_directions(self) -> int:
        """Most directions of the density."""
        return min(self.lattice.d, MOST_DIRECTIONS if self.n_components is None else max(self.n_components, 1))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        return {
            "bounds": [list(pair) for pair in self.lattice.bounds],
            "n_components": self.n_components,
            "variance_range": list(self.variance_range),
            "least_weight": self.least_weight,
            "portions": {name: str(portion) for name, portion in self.portions.items()},
            "steps": self.steps,
        }

    def payload(self) -> int:
        """Most bytes that the answers of all stages, and what is kept with them, can take."""
        d, k = self.lattice.d, self.most_components
        step = k * (1 + d + d * (d + 1) // 2)
        kept = self.most_directions * (d + 1) + k * (3 + d + d * d) + 2 * AUTO_COMPONENTS
        return 8 * (2 * d + 2 + d * (d + 1) // 2 + 2 * FREQUENCIES + 1 + self.steps * step + kept) + 2**16


def plan_mixture(settings: Any, d: int) -> MixturePlan:
    """Check an estimator's parameters for the method of sketches.

    Parameters
    ----------
    settings : PrivateGaussianMixture
        Its constructor's parameters are read, nothing else.
    d : int
        Number of columns.
    """
    if d > MOST_COLUMNS:
        raise ValueError(f"X has {d} columns: method 'sketch' takes up to {MOST_COLUMNS}; take method 'recursive'")
    k = checked_components(settings.n_components, MOST_COMPONENTS)
    centre = np.zeros(d) if settings.center is None else np.asarray(settings.center, dtype=np.float64)
    if centre.shape != (d,):
        raise ValueError(f"center must have one number for each of the {d} columns, got shape {centre.shape}")
    lattice = BallLattice.around(centre, settings.radius)
    least = checked_weight(settings.weight_min, k)
    portions = _portions(settings.shares)
    steps = _validation.check_count(settings.steps, "steps", minimum=0)
    if steps > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS}, got {steps}")
    if (steps == 0) != (portions["steps"] == 0):
        raise ValueError("steps: none are made exactly where their share of the budget is 0")
    return MixturePlan(lattice, k, variance_range(settings), least, portions, steps)


def checked_components(n_components: Any, most: int) -> int | None:
    """Return the wanted number of components, None where it is to be found."""
    if n_components is None:
        return None
    wanted = _validation.check_count(n_components, "n_components")
    if wanted > most:
        raise ValueError(f"n_components must be at most {most}, got {wanted}")
    return wanted


def checked_weight(weight_min: Any, k: int | None) -> float:
    """Smallest weight that is believed: a fifth of an even share where none is given."""
    even = 1 / (k or AUTO_COMPONENTS)
    if weight_min is None:
        return even / 5
    least = _validation.check_positive(weight_min, "weight_min")
    if least > even:
        raise ValueError(f"weight_min must be at most 1/n_components = {even:.4g}, got {least}")
    return least


def variance_range(settings: Any) -> tuple[float, float]:
    """Smallest and largest variance of a component, in units of the radius."""
    radius = _validation.check_positive(settings.radius, "radius")
    low = radius / 1000 if settings.sigma_min is None else _validation.check_positive(settings.sigma_min, "sigma_min")
    high = radius if settings.sigma_max is None else _validation.check_positive(settings.sigma_max, "sigma_max")
    if low > high:
        raise ValueError(f"sigma_min must not exceed sigma_max, got {low} and {high}")
    return (low / radius) ** 2, (high / radius) ** 2


def _portions(shares: Any) -> dict[str, Fraction]:
    """Portions of the budget by name."""
    if shares is None:
        return {name: Fraction(share) for name, share in SHARES.items()}
    if not isinstance(shares, Mapping) or not {"scale", "moments", "density"} <= set(shares) <= set(SHARES):
        raise ValueError("shares must name scale, moments, density and, where steps are made, steps")
    try:
        split = Budget(rho=1.0).split(**shares)
    except (TypeError, ValueError) as error:
        raise ValueError(f"shares: {error}") from None
    return {"steps": Fraction(0), **{name: share.portion for name, share in split.items()}}
