r"""Mixtures of separated Gaussians by recursive partitioning: cut what falls apart, then learn one Gaussian per part.

At each level every part of the records is looked at, all of them in the same releases. A part's place and radius are
brought up to date, its second moment gives the directions in which it spreads most, and its profiles along these show
whether it falls apart; if so it is cut there. Parts shrink from level to level, and noise with them: scales a factor of
thousands apart come to light one after the other. When there are as many parts as components, or nothing falls apart
any more, the rest of the budget learns the Gaussian of each part.

A record is in one part at a time, so that all parts of a level together cost what one of them costs. Where the paper
searches for a terrific ball among all pairs of records, here intervals of one-dimensional projections are searched, in
linear time. Proof: ``mixture_recursive.proof.md``.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019, Algorithms 3 and 4.

The Gaussian learner, which asks several times, for one part of the records or for many at once.

What every method of a private Gaussian mixture comes back with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline import _validation
from fogline._typing import FloatArray
from fogline.accounting import zcdp
from fogline.density.private_density import PrivateDensity
from fogline.queries.ball_search import NotSeparable
from fogline.queries.gaussian import RINGS, Gaussian, PlaceQuery, ScatterQuery
from fogline.queries.lattice import DIRECTION_BITS, CentredBallLattice, integer_directions
from fogline.queries.partition import (
    BINS,
    Partition,
    Parts,
    Profiles,
    Reassigned,
    Slabs,
    SlabsQuery,
    Valley,
    valleys,
    whitening_of,
)
from fogline.releases.curator import Curator

__all__ = [
    "PROOF",
    "RECURSIVE",
    "BlockLearner",
    "MixtureFit",
    "MixtureSettings",
    "RecursivePlan",
    "RecursiveTuning",
    "ball_constraints",
    "composed_costs",
    "gaussian_fit",
    "learn_gaussians",
    "learn_recursive",
    "partition_recursively",
    "refine_balls",
]


@dataclass(frozen=True)
class RecursiveTuning:
    """What is tuned of mixtures by recursive partitioning.

    Attributes
    ----------
    kept : float
        Part of the records that the radius of a part is made to hold.
    margin : float
        Widening of that radius.
    directions : int
        Directions along which a part is looked at.
    shrunk : float
        A part that became narrower than this, in radii before, is looked at again although it was not cut.
    """

    kept: float = 0.97
    margin: float = 1.1
    directions: int = 3
    shrunk: float = 0.5


RECURSIVE = RecursiveTuning()


SCATTER_SHARES = (Fraction(1, 20), Fraction(1, 10), Fraction(3, 20), Fraction(7, 10))
"""Of the budget of the shape: steps that look for it, one that measures it."""


def refine_balls(
    curator: Curator,
    partition: Parts,
    frames: tuple[CentredBallLattice, ...],
    *,
    share: Fraction,
    steps: int,
    kept: float = RECURSIVE.kept,
    least: float = 0.0,
) -> tuple[tuple[CentredBallLattice, ...], list[float]]:
    """Bring each part's frame to its records, and count them.

    Parameters
    ----------
    curator, partition
    frames : tuple of CentredBallLattice
        Where the search starts, one for each part.
    share : Fraction
        Of the whole budget, for all steps.
    steps : int
        At least one.
    kept : float
        Part of the records that a frame should hold.
    least : float
        Radius below which no frame goes.
    """
    counts: list[float] = []
    for _ in range(steps):
        found = curator.ask(PlaceQuery(partition, frames, kept), share / steps, "place")
        frames = tuple(CentredBallLattice(frame.centre, max(frame.radius, least)) for frame, _ in found)
        counts = [count for _, count in found]
    return frames, counts


def learn_gaussians(
    curator: Curator, partition: Parts, frames: tuple[CentredBallLattice, ...], share: Fraction
) -> list[Gaussian]:
    """Mean and covariance of each part, from frames that hold most of its records."""
    d = partition.d
    whitenings = []
    for frame in frames:
        # A ball of radius R around a Gaussian has deviations of about R over the root of d.
        scale = RECURSIVE.margin * frame.radius / math.sqrt(d)
        whitenings.append(whitening_of(frame.centre, scale * np.eye(d), math.sqrt(d)))
    for part in SCATTER_SHARES[:-1]:
        found = curator.ask(ScatterQuery(partition, tuple(whitenings)), share * part, "shape")
        whitenings = [scatter.next_whitening() for scatter in found]
    # Parts were cut by planes; the last look assigns each record to the Gaussian that it fits best.
    last = ScatterQuery(Reassigned(partition, tuple(whitenings)), tuple(whitenings))
    found = curator.ask(last, share * SCATTER_SHARES[-1], "shape")
    return [scatter.unclipped().gaussian() for scatter in found]


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A mixture in data units, with its errors; released values only.

    Attributes
    ----------
    weights : array of shape (k,)
        Sum to one.
    means : array of shape (k, d)
    covariances : array of shape (k, d, d)
    counts : array of shape (k,)
        Noisy number of records of each component.
    count_sd : float
        Noise of those numbers.
    mean_sd : array of shape (k, d)
        Standard error of each coordinate of a mean: privacy noise and the draw of the records.
    verdict : NotSeparable or None
        What could not be told apart, where that is so; the mixture is then what can be stood behind.
    composition : dict
        The cost of all releases by zCDP, and what advanced composition would have charged, where they were compared.
    density : PrivateDensity or None
        The released density, where there is one.
    components, centre : arrays of shapes (r, d) and (d,), or None
        Orthonormal directions of that density and the point they start from; its coordinates are in radii.
    criteria : dict
        Criterion of each number of components that was tried on it.
    whole : (float, float) or None
        Released number of all records and its noise, where it is known better than by the sum over components.
    portions : dict of Fraction
        Portion of the budget that each release had, by its name, where these are chosen as a whole.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    counts: FloatArray
    count_sd: float
    mean_sd: FloatArray
    verdict: NotSeparable | None = None
    composition: dict[str, Any] = field(default_factory=dict)
    density: PrivateDensity | None = None
    components: FloatArray | None = None
    centre: FloatArray | None = None
    criteria: dict[int, float] = field(default_factory=dict)
    whole: tuple[float, float] | None = None
    portions: dict[str, Fraction] = field(default_factory=dict)

    @property
    def total(self) -> tuple[float, float]:
        """Released number of all records, at least 1, and its noise."""
        if self.whole is not None:
            return self.whole
        return max(float(self.counts.sum()), 1.0), self.count_sd * math.sqrt(len(self.counts))


PROOF = "mixture-recursive"

SPLITTING = Fraction(1, 2)
"""Most of the budget that all levels together may take."""

LEAST_LEVELS = 5
"""A level takes at most one of this many parts of that."""

PLACE, SHAPE, PROFILE = Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)
"""Shares of a level."""


LAST_PLACE = Fraction(3, 20)
"""Share of what is left that finds the places of the final parts."""

LAST_STEPS = 6

MOST_COMPONENTS = 64

MOST_COLUMNS = 512

VALLEYS = {"practical": Valley(clear=0.5, depth=0.03), "theory": Valley(clear=0.01, depth=0.01, stretch=4.0)}
"""What separates two components; in theory a slab's c-fold is empty, c = 5, as for a terrific ball."""

PATIENCE = 2
"""Levels in a row without a cut or a narrower part, each along other directions, before it is given up."""


BlockLearner = object
"""What is fitted to a block of records, as a copy: an object whose ``fit`` sets ``means_``, or "spectral"."""


class MixtureSettings(Protocol):
    """Parameters of an estimator that the plan of a mixture is made from, by whichever method."""

    n_components: int | None
    epsilon: float | None
    delta: float | None
    radius: float | None
    center: ArrayLike | None
    sigma_min: float | None
    sigma_max: float | None
    weight_min: float | None
    method: str
    shares: Mapping[str, Any] | None
    steps: int
    constants: str
    learner: BlockLearner | None
    neighbours: str
    max_contributions: int
    expect_records: int | None
    ledger: Any


@dataclass(frozen=True, eq=False)
class RecursivePlan:
    """All that is public about a mixture learnt by its parts.

    Attributes
    ----------
    frame : CentredBallLattice
        The public ball, widened for components that reach out of it.
    n_components : int
    sigma_min, sigma_max : float
    weight_min : float
    constants : {"practical", "theory"}
    """

    frame: CentredBallLattice
    n_components: int
    sigma_min: float
    sigma_max: float
    weight_min: float
    constants: str

    @classmethod
    def checked(
        cls,
        *,
        d: int,
        n_components: int | None,
        radius: float | None,
        sigma_min: float | None,
        sigma_max: float | None,
        weight_min: float | None = None,
        center: ArrayLike | None = None,
        constants: str = "practical",
    ) -> RecursivePlan:
        """Check the public parameters; every error names its parameter."""
        k = _validation.check_count(n_components, "n_components")
        if k > MOST_COMPONENTS:
            raise ValueError(f"n_components must be at most {MOST_COMPONENTS}, got {k}")
        if d > MOST_COLUMNS:
            raise ValueError(f"X has {d} columns: this method takes up to {MOST_COLUMNS}")
        middle = np.zeros(d) if center is None else np.asarray(center, dtype=np.float64)
        if middle.shape != (d,):
            raise ValueError(f"center must have one number for each of the {d} columns, got shape {middle.shape}")
        low = _validation.check_positive(sigma_min, "sigma_min")
        high = _validation.check_positive(sigma_max, "sigma_max")
        if low > high:
            raise ValueError(f"sigma_min must not exceed sigma_max, got {low} and {high}")
        least = 0.5 / k if weight_min is None else _validation.check_positive(weight_min, "weight_min")
        if least > 1 / k:
            raise ValueError(f"weight_min must be at most 1/n_components = {1 / k:.4g}, got {least}")
        if constants not in VALLEYS:
            raise ValueError(f"constants must be one of {', '.join(VALLEYS)}, got {constants!r}")
        public = CentredBallLattice.around(middle, radius)
        # A component centred at the edge of the ball reaches out of it by its own width.
        reach = public.radius + high * (math.sqrt(d) + 4.0)
        return cls(CentredBallLattice(public.centre, reach), k, low, high, least, constants)

    @property
    def levels(self) -> int:
        """Most levels: each but the last must cut at least one part, or show that one is narrower than believed."""
        return max(self.n_components - 1, LEAST_LEVELS) if self.n_components > 1 else 0

    @property
    def level_share(self) -> Fraction:
        """Part of the whole budget that a level takes."""
        return SPLITTING / max(self.levels, 1)

    @property
    def axes(self) -> int:
        """Directions along which a part is looked at."""
        return min(self.frame.d, RECURSIVE.directions)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        return {
            "centre": self.frame.centre.tolist(),
            "reach": self.frame.radius,
            "n_components": self.n_components,
            "sigmas": [self.sigma_min, self.sigma_max],
            "weight_min": self.weight_min,
            "constants": self.constants,
        }

    def payload(self) -> int:
        """Most bytes that all answers, and what is remembered with them, can take."""
        d, k = self.frame.d, self.n_components
        moments = 1 + d + d * (d + 1) // 2
        level = k * (2 * (RINGS + d) + moments + self.axes * (BINS + d) + 2 * BINS + d)
        last = k * (LAST_STEPS * (RINGS + d) + len(SCATTER_SHARES) * moments + d * (d + 3) + 4)
        return 8 * (self.levels * level + last) + 2**16


def learn_recursive(plan: RecursivePlan, curator: Curator) -> MixtureFit:
    """Cut the records into parts and learn the Gaussian of each."""
    partition, frames, spent = partition_recursively(plan, curator)
    left = 1 - spent
    frames, _ = refine_balls(
        curator, partition, frames, share=left * LAST_PLACE, steps=LAST_STEPS, **ball_constraints(plan)
    )
    learnt = learn_gaussians(curator, partition, frames, left * (1 - LAST_PLACE))
    return gaussian_fit(learnt, curator, "recursive", plan.n_components)


def ball_constraints(plan: RecursivePlan) -> dict[str, float]:
    """What a frame should hold (all but a part of the lightest component) and how narrow it may be."""
    return {"kept": 1 - min(0.03, plan.weight_min / 4), "least": plan.sigma_min * math.sqrt(plan.frame.d)}


def partition_recursively(
    plan: RecursivePlan, curator: Curator
) -> tuple[Partition, tuple[CentredBallLattice, ...], Fraction]:
    """The parts, where each may be, and what share of the budget it took to find them."""
    partition = Partition(plan.frame.d)
    frames: tuple[CentredBallLattice, ...] = (plan.frame,)
    spent, fruitless = Fraction(0), 0
    for level in range(plan.levels):
        share = plan.level_share
        before = [frame.radius for frame in frames]
        frames, counts = refine_balls(
            curator, partition, frames, share=share * PLACE, steps=2, **ball_constraints(plan)
        )
        # Half: a cut may take some of the lightest component's records, and the count is noisy.
        least = 0.5 * plan.weight_min * sum(counts)
        leading = _leading(plan, curator, partition, frames, share * SHAPE)
        directions = curator.remember(f"directions{level}", partial(_turned, leading, fruitless))["whole"]
        query = SlabsQuery(partition, frames, directions)
        profiles = curator.ask(query, share * PROFILE, "profiles")
        spent += share
        parts = partition.parts
        partition, frames = _cut(plan, curator, query, profiles, least, level)
        shrunk = any(frame.radius < RECURSIVE.shrunk * old for frame, old in zip(frames, before, strict=False))
        fruitless = 0 if partition.parts > parts or shrunk else fruitless + 1
        if partition.parts >= plan.n_components or fruitless > PATIENCE:
            break
    return partition, frames, spent


def _leading(
    plan: RecursivePlan, curator: Curator, partition: Partition, frames: tuple[CentredBallLattice, ...], share: Fraction
) -> list[FloatArray]:
    """Leading directions of each part, in rows."""
    d = plan.frame.d
    if d <= plan.axes:  # nothing to choose: all axes, and no need to pay for it
        return [np.eye(d)] * partition.parts
    scale = RECURSIVE.margin / math.sqrt(d)
    maps = tuple(whitening_of(frame.centre, scale * frame.radius * np.eye(d), math.sqrt(d)) for frame in frames)
    found = curator.ask(ScatterQuery(partition, maps), share, "moments")
    return [np.linalg.eigh(scatter.covariance)[1][:, ::-1][:, : plan.axes].T for scatter in found]


def _turned(leading: list[FloatArray], turn: int) -> dict[str, NDArray[Any]]:
    """The directions of all parts, turned within their span where they were of no use before, in whole numbers."""
    axes = len(leading[0])
    # Two components may hide behind each other along every axis so far; a random turn shows them.
    basis = np.eye(axes) if turn == 0 else np.linalg.qr(np.random.default_rng(turn).standard_normal((axes, axes)))[0]
    return {"whole": np.stack([integer_directions(basis.T @ rows) for rows in leading])}


def _cut(
    plan: RecursivePlan, curator: Curator, query: SlabsQuery, profiles: Profiles, least: float, level: int
) -> tuple[Partition, tuple[CentredBallLattice, ...]]:
    """Cut every part where it falls apart, while there are fewer parts than components."""
    kind = VALLEYS[plan.constants]
    partition, frames = query.partition, list(query.frames)
    unit = 2.0**DIRECTION_BITS
    for part, frame in enumerate(query.frames):
        slabs = [valleys(profile, profiles.noise, least, kind) for profile in profiles.counts[part]]
        spare = plan.n_components - partition.parts

        def chosen(slabs: list[Slabs] = slabs, spare: int = spare) -> dict[str, NDArray[Any]]:
            # Most cuts first, then the clearest ones.
            axis = max(range(len(slabs)), key=lambda index: (len(slabs[index].edges), float(slabs[index].scores.sum())))
            return {"axis": np.array(axis), "edges": slabs[axis].best(spare)}

        kept = curator.remember(f"cut{level}.{part}", chosen)
        axis, edges = int(kept["axis"]), kept["edges"]
        if not len(edges):
            continue
        direction = query.directions[part, axis]
        moved = []
        for low, high in zip([0.0, *edges], [*edges, float(BINS)], strict=True):
            offset = float(query.products(np.array(slabs[axis].middle(low, high)))) / unit
            # The radius of the whole still holds each part; the next level brings it down.
            moved.append(CentredBallLattice(frame.places(direction / unit * offset), frame.radius))
        frames[part] = moved[0]
        frames.extend(moved[1:])
        partition = partition.divided(part, frame, direction, query.products(edges))
    return partition, tuple(frames)


def gaussian_fit(learnt: list[Gaussian], curator: Curator, method: str, wanted: int) -> MixtureFit:
    """The mixture of learnt Gaussians, and whether it has all the components that were asked for."""

    def numbers() -> dict[str, NDArray[Any]]:
        counts = np.array([found.count for found in learnt])
        return {
            "weights": counts / counts.sum(),
            "means": np.stack([found.mean for found in learnt]),
            "covariances": np.stack([found.covariance for found in learnt]),
            "counts": counts,
            "count_sd": np.array(learnt[0].count_sd),
            "mean_sd": np.stack([found.mean_sd for found in learnt]),
        }

    kept = curator.remember("mixture", numbers)
    verdict = None
    if len(learnt) < wanted:
        advice = "take more records, a larger epsilon, fewer components, or method 'sketch' if they overlap"
        verdict = NotSeparable(method, len(learnt), wanted, advice)
    return MixtureFit(
        kept["weights"],
        kept["means"],
        kept["covariances"],
        kept["counts"],
        float(kept["count_sd"]),
        kept["mean_sd"],
        verdict,
        composed_costs(curator),
    )


def composed_costs(curator: Curator) -> dict[str, Any]:
    r"""Cost of all answers as it is charged, and what advanced composition of the same releases would give.

    Advanced composition takes each release at :math:`(\varepsilon_i, \delta/2T)` and says
    :math:`\sqrt{2\log(2/\delta)\sum\varepsilon_i^2} + \sum\varepsilon_i(e^{\varepsilon_i} - 1)`.
    """
    terms = curator.terms
    releases = len(curator.transcript)
    each = terms.delta / (2 * releases)
    epsilons = [zcdp.epsilon_of(rho, each) for rho in curator.spent]
    advanced = math.sqrt(2 * math.log(2 / terms.delta) * sum(e**2 for e in epsilons))
    advanced += sum(e * math.expm1(e) for e in epsilons)
    return {
        "releases": releases,
        "rho": float(sum(curator.spent)),
        "epsilon": terms.epsilon,
        "delta": terms.delta,
        "epsilon_by_advanced_composition": advanced,
    }
