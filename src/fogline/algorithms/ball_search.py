"""The search for a ball, which asks several times, and the terms of a release that needs a delta of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from fogline import _validation
from fogline._typing import FloatArray, IntArray
from fogline.accounting import zcdp
from fogline.accounting._rounding import round_down
from fogline.accounting.costs import Cost, whole_units
from fogline.accounting.guarantee import Guarantee
from fogline.density.counted_records import count_words
from fogline.mechanisms.above_threshold import gamma
from fogline.queries.ball_search import (
    AXES,
    BINS,
    AverageQuery,
    Ball,
    BoxQuery,
    CellQuery,
    CountQuery,
    NotSeparable,
    RadiusQuery,
    RingQuery,
    SeclusionQuery,
    TerrificRadiusQuery,
)
from fogline.queries.block_learners import OfferQuery, Offers
from fogline.queries.lattice import DIRECTION_BITS, CentredBallLattice, Thinning, random_directions
from fogline.queries.query import Query
from fogline.releases.curator import Curator
from fogline.releases.terms import PROOF, ReleaseTerms

__all__ = ["BallPlan", "LocatedTerms", "find_ball"]

T = TypeVar("T")

ASIDE = Fraction(1, 8)
"""Part of delta that a stable histogram may use; the rest converts rho into epsilon."""

BALL_SEARCH_SHARES = {
    "count": Fraction(1, 20),
    "radius": Fraction(3, 10),
    "cells": Fraction(1, 5),
    "boxes": Fraction(1, 4),
    "average": Fraction(1, 10),
    "rings": Fraction(1, 10),
}
"""Shares of the budget of a search; a terrific ball takes its check out of that of the rings."""

MOST_PAIRED = 8192
"""Records whose distances are taken, about; of more, a random part."""

FAILURE = 0.05
"""Probability beyond which the noise of a threshold is not reckoned with."""

WIDTH = 1.5
"""Half width of a cluster along a random axis, in units of its radius over the root of the dimension."""

CELL = 3.0
"""Side of a cell in such half widths."""

BALL = 3.0
"""Radius of the ball that bounds the average, in radii."""


@dataclass(frozen=True)
class LocatedTerms(ReleaseTerms):
    """Terms of a release whose stable histograms may fail with a small part of delta."""

    @classmethod
    def located(
        cls,
        epsilon: float | None,
        delta: float | None,
        neighbours: str,
        max_contributions: int,
        unit: str,
    ) -> LocatedTerms:
        """Check a user's wishes."""
        relation = _validation.check_neighbours(neighbours)
        contributions = _validation.check_max_contributions(max_contributions)
        checked_epsilon, checked_delta = _validation.check_epsilon(epsilon), _validation.check_delta(delta)
        return cls(checked_epsilon, checked_delta, relation, contributions, unit)

    @property
    def aside(self) -> float:
        """Delta of the stable histograms."""
        return round_down(ASIDE * Fraction(self.delta))

    @property
    def rho(self) -> float:
        """The zCDP of the release outside that event, in whole units of a ledger."""
        return whole_units(zcdp.rho_of(self.epsilon, round_down(Fraction(self.delta) - Fraction(self.aside))))

    def cost(self) -> Cost:
        """What a ledger is charged."""
        return Cost(self.rho, self.aside)

    def guarantee(self, proof: str = PROOF) -> Guarantee:
        """What a release may claim: epsilon and delta, but no rho, since zCDP holds outside that event only."""
        return replace(super().guarantee(proof), rho=None)


@dataclass(frozen=True, eq=False)
class BallPlan:
    """All that is public about a search.

    Attributes
    ----------
    frame : CentredBallLattice
        The public ball.
    radius_min : float
        Smallest radius that is tried.
    fraction : float or None
        How many records the ball should hold, of all.
    target : int or None
        How many it should hold, where that is given as a number.
    stretch : float or None
        The factor c of a terrific ball; None for any cluster.
    largest : bool
        Whether the largest terrific ball is wanted.
    constants : {"practical", "theory"}
    """

    frame: CentredBallLattice
    radius_min: float
    fraction: float | None = None
    target: int | None = None
    stretch: float | None = None
    largest: bool = False
    constants: str = "practical"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        return {
            "centre": self.frame.centre.tolist(),
            "radius": self.frame.radius,
            "radius_min": self.radius_min,
            "fraction": self.fraction,
            "target": self.target,
            "stretch": self.stretch,
            "largest": self.largest,
            "constants": self.constants,
        }

    def payload(self) -> int:
        """Most bytes that all answers, and what is remembered with them, can take."""
        d = self.frame.d
        cells = 2**16  # keys of frequent cells
        return 8 * (16 * BINS * d + d * (d + AXES + 4) + cells) + 2**16

    @property
    def exponents(self) -> tuple[int, int]:
        """The smallest radius as a power of two of lattice steps, and the number of radii."""
        step = self.frame.radius / self.frame.steps
        # Radii are powers of two of lattice steps: a factor of two is all that the first search has to get right.
        low = max(0, math.floor(math.log2(self.radius_min / step)))
        high = math.ceil(math.log2(2 * self.frame.steps))
        return low, max(1, high - low + 1)

    def half_width(self, radius: float, count: float) -> float:
        """Half the width of a cluster of this radius along a random axis, in lattice steps."""
        d = self.frame.d
        spread = WIDTH if self.constants == "practical" else float(norm.isf(FAILURE / (2 * AXES * max(count, 1.0))))
        return max(1.0, radius / self.frame.radius * self.frame.steps * min(1.0, spread / math.sqrt(d)))


def find_ball(
    curator: Curator, plan: BallPlan, share: Fraction, aside: Fraction, *, offers: Offers | None = None
) -> Ball | NotSeparable:
    """Search for a ball that holds many records, or many of what blocks of records offer.

    Parameters
    ----------
    curator : Curator
        Of terms that set a delta aside.
    plan : BallPlan
    share, aside : Fraction
        Of the whole budget, and of the delta set aside.
    offers : Offers, optional
        What is searched instead of records. A record may then turn one point into another, where else it is one point.
    """
    search = _Search(curator, plan, share, offers)
    count, count_sd = search.count()
    wanted = plan.target if plan.target is not None else int((plan.fraction or 0.5) * count)
    # A noisy count may be next to nothing; a ball of no record would pass everywhere.
    target = max(1, wanted)
    apart, radius = search.radii(count, target)
    if apart is None or radius is None:
        advice = "no radius passed; take more records, a smaller part of them, or a larger radius"
        return _nothing(plan, advice, count, count_sd)
    found = search.heaviest_cell(radius, count, aside)
    if found is None:
        advice = "no cell of the projection stood out; take more records or a larger epsilon"
        return _nothing(plan, advice, count, count_sd)
    centre = search.centre(radius, count, *found)
    if plan.stretch is None:
        return search.rings(centre, radius, target)
    return search.secluded(centre, apart, target)


def _nothing(plan: BallPlan, advice: str, count: float = 1.0, count_sd: float = 0.0) -> NotSeparable:
    """Say that nothing was found; no advice to spend more where nothing was counted."""
    advice = count_words(count, count_sd, columns=plan.frame.d, bounded=False) or advice
    return NotSeparable("one cluster" if plan.stretch is None else "terrific ball", 0, 1, advice)


class _Search:
    """The questions of one search, in turn; everything between two answers is computed from answers alone."""

    def __init__(self, curator: Curator, plan: BallPlan, share: Fraction, offers: Offers | None) -> None:
        self._curator, self._plan, self._share, self._offers = curator, plan, share, offers
        self._name = f"{len(curator.transcript)}"

    def _over(self, query: Query[T]) -> Query[T]:
        """The query over what is searched."""
        return query if self._offers is None else OfferQuery(query, self._offers)

    def _ask(self, name: str, query: Query[T], part: Fraction = Fraction(1)) -> T:
        return self._curator.ask(self._over(query), self._share * BALL_SEARCH_SHARES[name] * part, name)

    def _key(self, purpose: str) -> IntArray:
        """A fresh key."""
        return np.array(self._curator.generator(purpose).integers(0, 2**62))

    def count(self) -> tuple[float, float]:
        """Noisy number of records, at least one, and the deviation of its noise."""
        return self._ask("count", CountQuery())

    def radii(self, count: float, target: int) -> tuple[float | None, float | None]:
        """The radius of the ball that is wanted, and that of the cluster whose centre is taken for it.

        They are one, except where the largest terrific ball is wanted: its radius may be many times that of the records
        in it, and a grid of that width would not tell them from others.
        """
        plan = self._plan
        # All pairs of a large table are too many to look at: a keyed hash thins it, the same for neighbours.
        share = min(1.0, MOST_PAIRED / count)
        drawn = self._curator.remember(f"thinning{self._name}", lambda: {"key": self._key("which records are paired")})
        smallest, size = plan.exponents
        parts = (plan.frame, Thinning(int(drawn["key"]), share), smallest, size, max(1, int(target * share)))
        if plan.stretch is None:
            radius = self._first_above("radius", RadiusQuery(*parts), parts[-1])
            return radius, radius
        secluded = TerrificRadiusQuery(*parts, stretch=plan.stretch, largest=plan.largest)
        if not plan.largest:
            radius = self._first_above("radius", secluded, parts[-1])
            return radius, radius
        apart = self._first_above("radius", secluded, parts[-1], Fraction(1, 2))
        if apart is None:
            return None, None
        return apart, self._first_above("radius", RadiusQuery(*parts), parts[-1], Fraction(1, 2))

    def _first_above(self, name: str, query: Query[T], target: int, part: Fraction = Fraction(1)) -> T:
        """Ask for the first of several counts that is about as large as the target."""
        over, share, terms = self._over(query), self._share * BALL_SEARCH_SHARES[name] * part, self._curator.terms
        epsilon = math.sqrt(2 * float(share) * terms.rho)
        sensitivity = math.ceil(over.sensitivity(terms.neighbours, terms.max_contributions))
        threshold = target - gamma(over.size, FAILURE, sensitivity=sensitivity, epsilon=epsilon)
        if self._plan.constants == "practical":
            # Where noise is large the proved threshold is negative and everything passes; half the target is of more
            # use.
            threshold = max(threshold, (target + 1) // 2)
        return self._curator.first_above(over, share, name, threshold=threshold)

    def heaviest_cell(self, radius: float, count: float, aside: Fraction) -> tuple[CellQuery, IntArray] | None:
        """The heaviest cell of a shifted grid in a random projection."""
        plan = self._plan
        d = plan.frame.d
        axes = min(AXES, d)

        def draw() -> dict[str, NDArray[Any]]:
            generator = self._curator.generator("random projection, shift and basis")
            return {
                "directions": random_directions(generator, axes, d),
                "shift": generator.random(axes),
                "basis": random_directions(generator, d, d),
            }

        self._drawn = self._curator.remember(f"directions{self._name}", draw)
        side = CELL * plan.half_width(radius, count) * 2.0**DIRECTION_BITS
        cells = CellQuery(plan.frame, self._drawn["directions"], self._drawn["shift"], side)
        found = self._curator.frequent(
            self._over(cells), self._share * BALL_SEARCH_SHARES["cells"], "cells", aside=aside
        )
        return None if found is None else (cells, found)

    def centre(self, radius: float, count: float, cells: CellQuery, cell: IntArray) -> FloatArray:
        """Intervals on all axes of the original space, then the average of the records in their ball."""
        plan = self._plan
        frame, basis = plan.frame, self._drawn["basis"]
        unit = 2.0**DIRECTION_BITS
        finest = plan.half_width(radius, count) * unit
        widths = [2.1 * frame.steps * unit / BINS]
        # From the whole range to the width of the cluster, each look with as many bins as the noise is paid for.
        while widths[-1] > finest:
            widths.append(max(finest, 4 * widths[-1] / BINS))
        middle = np.zeros(frame.d)
        margin = 1 / CELL
        for width in widths:
            boxes = BoxQuery(cells, cell, margin, basis, middle - BINS / 2 * width, width)
            middle = self._ask("boxes", boxes, Fraction(1, len(widths)))
        kept = self._curator.remember(f"middle{self._name}", lambda: {"place": frame.places(middle @ basis / unit**2)})
        # Records outside would move the average by more than the noise is made for: they are clipped to this ball.
        around = CentredBallLattice(kept["place"], 2 * BALL * radius)
        return self._ask("average", AverageQuery(cells, cell, margin, around))

    def rings(self, centre: FloatArray, radius: float, target: int) -> Ball:
        """The smallest of a few radii at which enough records are in the ball."""
        # The radius was found by powers of two, around some record: a ball around the average may be smaller.
        radii = radius * 2.0 ** (np.arange(-4, 7) / 2)
        return self._ask("rings", RingQuery(centre, radii, target))

    def secluded(self, centre: FloatArray, radius: float, target: int) -> Ball | NotSeparable:
        """A ball around the centre that passes the test of all three counts."""
        plan = self._plan
        stretch = plan.stretch or 1.0
        radii = (1 + stretch / 10) * radius * 2.0 ** (np.arange(-2, 3) / 2)
        query = SeclusionQuery(centre, radii[::-1] if plan.largest else radii, stretch, target)
        found = self._first_above("rings", query, target)
        if found is None:
            return _nothing(plan, "no ball around the place found is apart from the rest; take a smaller c")
        return found
