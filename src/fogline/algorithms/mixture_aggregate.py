r"""Mixtures by sample and aggregate: any learner on many blocks of the records, and what the blocks agree on.

Each record goes to one of m blocks, a learner without privacy is fitted to each, and every block has a say. In round i
a block offers *one* point: of its means that no centre released so far explains, the one that is farthest along a
random direction. Blocks that see the same mixture offer about the same point, and :func:`find_ball` looks for a ball
that holds half of them. A record changes one block, hence one offer a round, however many of that block's means it
moves: blocks are counted, never means. What the theorem stops at are means and weights; a private pass over the records
next to each released centre then gives weights, means and covariances together. Proof:
``mixture_aggregate.proof.md``.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019, Theorem 6.1.
.. [2] K. Nissim, S. Raskhodnikova, A. Smith, "Smooth sensitivity and sampling in private data analysis", STOC 2007.
.. [3] S. Vempala, G. Wang, "A spectral algorithm for learning mixture models", Journal of Computer and System Sciences
   68 (2004).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline import _validation
from fogline._typing import FloatArray
from fogline.algorithms.ball_search import BallPlan, find_ball
from fogline.algorithms.mixture_recursive import (
    SCATTER_SHARES,
    MixtureFit,
    MixtureSettings,
    RecursivePlan,
    ball_constraints,
    gaussian_fit,
    learn_gaussians,
    refine_balls,
)
from fogline.queries.ball_search import Ball, CountQuery
from fogline.queries.block_learners import BlockMeans, MeansLearner, Offers, chosen_learner
from fogline.queries.gaussian import RINGS
from fogline.queries.lattice import CentredBallLattice
from fogline.queries.partition import NearestParts, Partition, Parts
from fogline.releases.curator import Curator

__all__ = ["PROOF", "AggregatePlan", "aggregated_parts", "learn_aggregate"]


PROOF = "mixture-aggregate"

AGGREGATE_SHARES = {
    "count": Fraction(1, 50),
    "rounds": Fraction(7, 10),
    "place": Fraction(3, 100),
    "shape": Fraction(1, 4),
}
"""Shares of the budget; all rounds together have theirs."""

USEFUL_BLOCKS = 4000
"""Blocks that are enough at epsilon 1; the noise that they must agree above is inversely proportional to it."""

LEAST_BLOCKS, MOST_BLOCKS = 1000, 16_000
"""Range of the most blocks there are; where there are more records the blocks are larger."""

ROWS = 4
"""Records that a block should have for each number of a component's place and weight."""

AGREED = Fraction(1, 2)
"""Part of the blocks that should offer about the same point."""

APART = 3.0
"""Two centres count as two where their distance is this many times the sum of their balls' radii."""

SPARE = 1
"""Rounds that may fail: two means may be about as far along a direction, or a cell of the search may cut a cluster."""

PLACE_STEPS = 3


@dataclass(frozen=True, eq=False)
class AggregatePlan:
    """All that is public about a mixture learnt by blocks.

    Attributes
    ----------
    frame : CentredBallLattice
        The public ball.
    scales : RecursivePlan
        Number, range and least weight of the components.
    learner : object
        Copied for each block.
    named : str
        What distinguishes this learner from another.
    most : int
        Most blocks.
    """

    frame: CentredBallLattice
    scales: RecursivePlan
    learner: MeansLearner
    named: str
    most: int

    @classmethod
    def checked(cls, settings: MixtureSettings, d: int) -> AggregatePlan:
        """Check the parameters of an estimator; every error names its parameter."""
        if settings.n_components is None:
            raise ValueError(f"n_components must be given for method {settings.method!r}")
        radius = _validation.check_positive(settings.radius, "radius")
        scales = RecursivePlan.checked(
            d=d,
            n_components=settings.n_components,
            radius=radius,
            sigma_min=radius / 1000 if settings.sigma_min is None else settings.sigma_min,
            sigma_max=radius if settings.sigma_max is None else settings.sigma_max,
            weight_min=settings.weight_min,
            center=settings.center,
            constants=settings.constants,
        )
        learner, named = chosen_learner(settings.learner, scales.n_components, scales.sigma_min)
        useful = USEFUL_BLOCKS / _validation.check_epsilon(settings.epsilon)
        most = int(min(max(useful, LEAST_BLOCKS), MOST_BLOCKS))
        return cls(CentredBallLattice(scales.frame.centre, radius), scales, learner, named, most)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.scales.n_components

    @property
    def rounds(self) -> int:
        """Most rounds; one component needs no search."""
        return self.n_components + SPARE if self.n_components > 1 else 0

    def blocks(self, count: float) -> int:
        """Number of blocks for a released number of records."""
        rows = ROWS * self.n_components * max(3, self.frame.d + 1)
        return int(min(max(count / rows, 1.0), self.most))

    def ball(self, blocks: int) -> BallPlan:
        """The search of one round."""
        agreed = max(1, int(AGREED * blocks))
        return BallPlan(self.frame, self.scales.sigma_min / 4, target=agreed, constants=self.scales.constants)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        return {**self.scales.to_dict(), "radius": self.frame.radius, "learner": self.named}

    def payload(self) -> int:
        """Most bytes that all answers, and what is remembered with them, can take."""
        d, k = self.frame.d, self.n_components
        moments = 1 + d + d * (d + 1) // 2
        last = k * (PLACE_STEPS * (RINGS + d) + len(SCATTER_SHARES) * moments + d * (d + 5) + 4)
        return self.rounds * self.ball(1).payload() + 8 * last + 2**16


def learn_aggregate(plan: AggregatePlan, curator: Curator) -> MixtureFit:
    """Find the centres that blocks agree on, then learn the Gaussian next to each."""
    parts, frames, spent = aggregated_parts(plan, curator)
    left = 1 - spent
    place = left * AGGREGATE_SHARES["place"] / (AGGREGATE_SHARES["place"] + AGGREGATE_SHARES["shape"])
    frames, _ = refine_balls(curator, parts, frames, share=place, steps=PLACE_STEPS, **ball_constraints(plan.scales))
    learnt = learn_gaussians(curator, parts, frames, left - place)
    return gaussian_fit(learnt, curator, "sample-aggregate", plan.n_components)


def aggregated_parts(plan: AggregatePlan, curator: Curator) -> tuple[Parts, tuple[CentredBallLattice, ...], Fraction]:
    """Parts of the records around what blocks agree on, where each may be, and what share of the budget that took."""
    count, _ = curator.ask(CountQuery(), AGGREGATE_SHARES["count"], "count")
    spent = AGGREGATE_SHARES["count"]
    blocks = plan.blocks(count)
    drawn = curator.remember("blocks", lambda: _keys(curator))
    means = BlockMeans(plan.frame, plan.learner, blocks, int(drawn["key"]), int(drawn["seed"]))
    balls: tuple[Ball, ...] = ()
    turn, rounds = 0, plan.rounds
    while turn < rounds and len(balls) < plan.n_components:
        direction = curator.remember(f"direction{turn}", lambda: _direction(curator, plan.frame.d))["direction"]
        offers = Offers(means, balls, direction)
        # Every round has the same share: which of them will be needed is not known before.
        share = AGGREGATE_SHARES["rounds"] / rounds
        found = find_ball(curator, plan.ball(blocks), share, Fraction(1, rounds), offers=offers)
        spent += share
        turn += 1
        # Paid for either way: a round that finds a known centre again is one of the spare ones.
        if isinstance(found, Ball) and _apart(found, balls):
            balls = (*balls, found)
    # One centre divides nothing: all records are one part.
    if len(balls) < 2:
        return Partition(plan.frame.d), (plan.frame,), spent
    centres = np.stack([ball.centre for ball in balls])
    reaches = curator.remember("reaches", lambda: {"radii": _reaches(centres, plan)})["radii"]
    frames = tuple(CentredBallLattice(centre, float(reach)) for centre, reach in zip(centres, reaches, strict=True))
    return NearestParts(plan.frame, centres), frames, spent


def _keys(curator: Curator) -> dict[str, NDArray[Any]]:
    """A key for the hash and a seed for the learners."""
    key, seed = curator.generator("which block a record is in, and where learners start").integers(0, 2**62, 2)
    return {"key": np.array(key), "seed": np.array(seed)}


def _direction(curator: Curator, d: int) -> dict[str, NDArray[Any]]:
    return {"direction": curator.generator("which mean a block offers").standard_normal(d)}


def _apart(found: Ball, balls: tuple[Ball, ...]) -> bool:
    """Whether blocks agree well enough on this centre to tell it from the others."""
    return all(math.dist(found.centre, ball.centre) >= APART * (found.radius + ball.radius) for ball in balls)


def _reaches(centres: FloatArray, plan: AggregatePlan) -> FloatArray:
    """Radii that the search for the records of each part starts from: all that can be next to it."""
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    np.fill_diagonal(apart, math.inf)
    least = plan.scales.sigma_min * math.sqrt(plan.frame.d)
    return np.asarray(np.clip(2 * apart.min(axis=1), least, 2 * plan.frame.radius))
