"""What is public about a staged clustering: checked before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fogline import _validation
from fogline.accounting.budget import Budget
from fogline.locate.private_pca import MOST_COLUMNS
from fogline.locate.projection import Projection, RecordLattice
from fogline.sketch.pursuit import MOST_ATOMS

__all__ = ["FREQUENCIES", "MOST_STEPS", "SHARES", "ClusterPlan", "checked_number", "plan_clusters"]

SHARES = {"scale": "1/5", "projection": "3/10", "density": "1/5", "refinement": "3/10"}
"""Default shares of the budget."""

MOST_CLUSTERS = 256

AUTO_COMPONENTS = 20
"""Most directions that are kept by default."""

LEAST_COMPONENTS = 3
"""Fewest directions that are kept by default, or one for each cluster that is asked for where these are fewer."""

MOST_COMPONENTS = 64
"""Most directions that may be asked for."""

RANDOM_COMPONENTS = 8
"""Directions of a random projection."""

FREQUENCIES = 768
"""Random frequencies of the density."""

MOST_STEPS = 12
"""Most steps of refinement by default; four times as many may be asked for."""

PUBLIC_SEED = 20060608
"""Of random projections; it hides nothing."""


@dataclass(frozen=True, eq=False)
class ClusterPlan:
    """All that is public about a staged clustering.

    Attributes
    ----------
    lattice : RecordLattice
    projection : Projection or None
        A public one, or None for a private one.
    components, n_clusters : int or None
    level : float
    bandwidth : "auto", number or array
    portions : dict of Fraction
        Of the whole budget, by name; they sum to one.
    refinement : "auto" or bool
    steps : int or None
        Steps of refinement that were asked for.
    """

    lattice: RecordLattice
    projection: Projection | None
    components: int | None
    n_clusters: int | None
    level: float
    bandwidth: Any
    portions: dict[str, Fraction]
    refinement: Any
    steps: int | None

    @property
    def most(self) -> int:
        """Most directions."""
        if self.projection is not None:
            return self.projection.r
        return min(AUTO_COMPONENTS if self.components is None else self.components, self.lattice.d)

    @property
    def least(self) -> int:
        """Fewest directions of a private projection: few records show few of those in which their clusters differ."""
        return min(LEAST_COMPONENTS, self.n_clusters or 1, self.most)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        public = self.projection
        return {
            "bounds": [list(pair) for pair in self.lattice.bounds],
            "projection": "private" if public is None else public.directions.astype(np.int64).tolist(),
            "components": self.components,
            "n_clusters": self.n_clusters,
            "level": self.level,
            "bandwidth": self.bandwidth if isinstance(self.bandwidth, str) else np.asarray(self.bandwidth).tolist(),
            "portions": {name: str(portion) for name, portion in self.portions.items()},
            "refinement": self.refinement,
            "steps": self.steps,
        }

    def payload(self) -> int:
        """Most bytes that the answers of all stages, and what is kept with them, can take."""
        d, r, k = self.lattice.d, self.most, self.n_clusters or MOST_ATOMS
        moments = d * (d + 3) // 2 if self.projection is None else 0
        steps = (MOST_STEPS if self.steps is None else self.steps) * k * (1 + r + r * (r + 1) // 2)
        kept = r * (d + 1) + k * (2 * r + 5)
        return 8 * (d + 2 + moments + 2 * FREQUENCIES + 1 + steps + kept) + 2**16


def checked_number(n_clusters: Any) -> int | None:
    """Return the wanted number of clusters, None where it is to be found."""
    if n_clusters is None:
        return None
    wanted = _validation.check_count(n_clusters, "n_clusters")
    if wanted > MOST_CLUSTERS:
        raise ValueError(f"n_clusters must be at most {MOST_CLUSTERS}, got {wanted}")
    return wanted


def plan_clusters(settings: Any, bounds: Any, level: float) -> ClusterPlan | None:
    """Check an estimator's parameters; None where the density of up to three columns is read as it is.

    Parameters
    ----------
    settings : PrivateModeClustering
        Its constructor's parameters are read, nothing else.
    bounds : array of shape (d, 2)
    level : float

    Returns
    -------
    ClusterPlan or None
    """
    wanted = checked_number(settings.n_clusters)
    lattice = RecordLattice.of(bounds)
    refinement, steps = _refinement(settings.refinement)
    projected, projection = _projection(settings.projection, settings.components, lattice)
    if not projected:
        return None
    if projection is None and lattice.d > MOST_COLUMNS:
        raise ValueError(
            f"bounds has {lattice.d} columns: beyond {MOST_COLUMNS}, projection must be 'random' or a public matrix"
        )
    components = _components(settings.components, lattice.d) if projection is None else None
    bandwidth = settings.bandwidth
    if isinstance(bandwidth, str) and bandwidth != "auto":
        raise ValueError(f"bandwidth must be 'auto', a number or one value an axis, got {bandwidth!r}")
    if not isinstance(bandwidth, str):
        bandwidth = _fraction(bandwidth)
    portions = _portions(settings.shares, private=projection is None, refined=refinement is not False)
    return ClusterPlan(lattice, projection, components, wanted, level, bandwidth, portions, refinement, steps)


def _fraction(bandwidth: Any) -> float:
    """Check a fixed bandwidth of the projected density: its axes are not known yet, so only a fraction will do."""
    value = _validation.check_positive(bandwidth, "bandwidth")
    if not 0.02 <= value <= 0.7:
        raise ValueError(f"bandwidth must be between 0.02 and 0.7 of each projected axis, got {value}")
    return value


def _refinement(choice: Any) -> tuple[Any, int | None]:
    if isinstance(choice, bool) or (isinstance(choice, str) and choice == "auto"):
        return choice, None
    if isinstance(choice, str):
        raise ValueError(f"refinement must be 'auto', True, False or a number of steps, got {choice!r}")
    steps = _validation.check_count(choice, "refinement")
    if steps > 4 * MOST_STEPS:
        raise ValueError(f"refinement must be at most {4 * MOST_STEPS} steps, got {steps}")
    return True, steps


def _components(components: Any, d: int) -> int | None:
    if components is None:
        return None
    count = _validation.check_count(components, "components")
    most = min(d, MOST_COMPONENTS)
    if count > most:
        raise ValueError(f"components must be at most {most}, got {count}")
    return count


def _projection(choice: Any, components: Any, lattice: RecordLattice) -> tuple[bool, Projection | None]:
    """Whether records are projected, and the projection where it is public."""
    if not isinstance(choice, str):
        public = Projection.public(lattice, choice)
        if public.r > MOST_COMPONENTS:
            raise ValueError(f"projection must have at most {MOST_COMPONENTS} rows, got {public.r}")
        return True, public
    if choice not in ("auto", "identity", "private", "random"):
        raise ValueError(f"projection must be 'auto', 'identity', 'private', 'random' or a matrix, got {choice!r}")
    if lattice.d <= 3 and choice in ("auto", "identity"):
        return False, None
    if choice == "identity":
        if lattice.d > MOST_COMPONENTS:
            raise ValueError(f"projection must not be 'identity' beyond {MOST_COMPONENTS} columns")
        return True, Projection.on(lattice, np.eye(lattice.d))
    if choice == "random":
        r = _components(components, lattice.d) or min(RANDOM_COMPONENTS, lattice.d)
        rows = np.random.default_rng(PUBLIC_SEED).standard_normal((lattice.d, r))
        return True, Projection.on(lattice, np.linalg.qr(rows)[0].T)
    return True, None


def _portions(shares: Any, *, private: bool, refined: bool) -> dict[str, Fraction]:
    """Portions of the budget by name; by default what is not needed goes to the density."""
    names = {"scale", "density"} | ({"projection"} if private else set()) | ({"refinement"} if refined else set())
    if shares is None:
        chosen = {name: Fraction(share) for name, share in SHARES.items() if name in names}
        chosen["density"] += 1 - sum(chosen.values())
        return chosen
    if not isinstance(shares, Mapping) or set(shares) != names:
        raise ValueError(f"shares must name exactly {', '.join(sorted(names))}")
    try:
        split = Budget(rho=1.0).split(**shares)
    except (TypeError, ValueError) as error:
        raise ValueError(f"shares: {error}") from None
    return {name: share.portion for name, share in split.items()}
