r"""Mixtures by sample and aggregate: any learner on many blocks of the records, and what the blocks agree on.

Each record goes to one of m blocks, a learner without privacy is fitted to each, and every block has a say. In round i
a block offers *one* point: of its means that no centre released so far explains, the one that is farthest along a
random direction. Blocks that see the same mixture offer about the same point, and :func:`find_ball` looks for a ball
that holds half of them. A record changes one block, hence one offer a round, however many of that block's means it
moves: blocks are counted, never means. What the theorem stops at are means and weights; a private pass over the records
next to each released centre then gives weights, means and covariances together. Proof:
``_mixture_aggregate.proof.md``.

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
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from fogline import _validation
from fogline.estimators._gaussian_steps import SCATTER_SHARES, learn_gaussians, settled
from fogline.estimators._located import BallPlan, find_ball
from fogline.estimators._mixture_fit import MixtureFit
from fogline.estimators._mixture_recursive import RecursivePlan, gaussian_fit, held
from fogline.estimators._staged import RecordPasses, Stages
from fogline.locate.answers import Ball
from fogline.locate.frames import Frame, finite, hashed
from fogline.locate.gaussian import RINGS
from fogline.locate.one_cluster import CountQuery
from fogline.locate.partition import Partition, Parts
from fogline.mechanisms.entropy import current_door

__all__ = ["PROOF", "AggregatePlan", "NearestParts", "SpectralLearner", "aggregated_parts", "learn_aggregate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PROOF = "estimators/_mixture_aggregate.proof.md"

SHARES = {"count": Fraction(1, 50), "rounds": Fraction(7, 10), "place": Fraction(3, 100), "shape": Fraction(1, 4)}
"""Shares of the budget; all rounds together have theirs."""

MOST_BLOCKS = 1000
"""More blocks than this take too long; where there are more records the blocks are larger."""

ROWS = 4
"""Records a block should have for each number of a component's place and weight."""

AGREED = Fraction(1, 2)
"""Part of the blocks that should offer about the same point."""

EXPLAINED = 3.0
"""A mean within so many radii of a released ball is explained by it."""

APART = 3.0
"""Two centres count as two where their distance is so many times the sum of their balls' radii."""

SPARE = 1
"""Rounds that may fail: two means may be about as far along a direction, or a cell of the search may cut a cluster."""

PLACE_STEPS = 3


class SpectralLearner:
    """Means by projection to the leading singular directions and clusters by distance.

    Where after the projection any two records of a component are closer than any two of different components, average
    linkage gives the components; that is so for spherical Gaussians about the fourth root of k apart.

    Parameters
    ----------
    n_components : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(m, 1.0, size=(60, 8)) for m in (-5, 5)])
    >>> np.sort(SpectralLearner(2).fit(X).means_.mean(axis=1)).round().tolist()
    [-5.0, 5.0]
    """

    means_: FloatArray
    weights_: FloatArray

    def __init__(self, n_components: int) -> None:
        self.n_components = n_components

    def fit(self, X: FloatArray) -> SpectralLearner:
        """Learn the means."""
        directions = np.linalg.svd(X, full_matrices=False)[2][: self.n_components]
        labels = fcluster(linkage(X @ directions.T, "average"), self.n_components, "maxclust") - 1
        sizes = np.bincount(labels)
        self.means_ = np.stack([X[labels == label].mean(axis=0) for label in range(len(sizes))])
        self.weights_ = sizes / len(X)
        return self


@dataclass(frozen=True, eq=False)
class AggregatePlan:
    """All that is public about a mixture learnt by blocks.

    Attributes
    ----------
    frame : Frame
        The public ball.
    scales : RecursivePlan
        Number, range and least weight of the components.
    learner : object
        Copied for each block.
    named : str
        What distinguishes this learner from another.
    """

    frame: Frame
    scales: RecursivePlan
    learner: Any
    named: str

    @classmethod
    def checked(cls, settings: Any, d: int) -> AggregatePlan:
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
        learner, named = _learner(settings.learner, scales)
        return cls(Frame(scales.frame.centre, radius), scales, learner, named)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.scales.n_components

    def blocks(self, count: float) -> int:
        """Number of blocks for a released number of records."""
        rows = ROWS * self.n_components * max(3, self.frame.d + 1)
        return int(min(max(count / rows, 1.0), MOST_BLOCKS))

    def ball(self, blocks: int) -> BallPlan:
        """The search of one round."""
        return BallPlan(self.frame, self.scales.sigma_min / 4, target=max(1, int(AGREED * blocks)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        return {**self.scales.to_dict(), "radius": self.frame.radius, "learner": self.named}

    def payload(self) -> int:
        """Most bytes that the answers of all stages, and what is kept with them, can take."""
        d, k = self.frame.d, self.n_components
        moments = 1 + d + d * (d + 1) // 2
        last = k * (PLACE_STEPS * (RINGS + d) + len(SCATTER_SHARES) * moments + d * (d + 5) + 4)
        return (k + SPARE) * self.ball(1).payload() + 8 * last + 2**16


def _learner(wished: Any, scales: RecursivePlan) -> tuple[Any, str]:
    """The learner of a block, and what it is called in a question."""
    k = scales.n_components
    if wished is None:
        return GaussianMixture(k, reg_covar=scales.sigma_min**2, max_iter=20, tol=1e-2), "gaussian-mixture"
    if isinstance(wished, str):
        if wished != "spectral":
            raise ValueError(f'learner must be "spectral" or an object with fit and means_, got {wished!r}')
        return SpectralLearner(k), wished
    if isinstance(wished, type) or not callable(getattr(wished, "fit", None)):
        raise TypeError("learner must be an object with a method fit, which sets means_")
    try:
        learner = clone(wished, safe=False)
    except Exception as error:
        raise TypeError("learner must be an object that can be copied, once for each block") from error
    options = wished.get_params() if callable(getattr(wished, "get_params", None)) else vars(wished)
    return learner, f"{type(wished).__module__}.{type(wished).__qualname__} {sorted(options.items())!r}"


@dataclass(frozen=True, eq=False)
class BlockMeans:
    """Blocks of the records and the means that a learner finds in each; secret.

    Parameters
    ----------
    plan : AggregatePlan
    blocks : int
    key, seed : int
        Of the hash that deals the records out, and of the learners.
    """

    plan: AggregatePlan
    blocks: int
    key: int
    seed: int

    def dealt(self, passes: RecordPasses) -> list[FloatArray]:
        """Records of each block, in data units, in an order of their own.

        Equal records are told apart by their rank among themselves, so that copies do not end up in one block: of t
        copies one less is one pair of record and rank less.
        """
        frame = self.plan.frame
        parts = [np.zeros((0, frame.d))]
        passes.each(lambda rows: parts.append(frame.vectors(finite(rows))))
        vectors = np.concatenate(parts)
        vectors = vectors[np.lexsort(vectors.T)]
        places = np.arange(len(vectors))
        first = np.ones(len(vectors), dtype=bool)
        first[1:] = (vectors[1:] != vectors[:-1]).any(axis=1)
        rank = places - np.maximum.accumulate(np.where(first, places, 0))
        hashes = hashed(np.column_stack([vectors, rank]), self.key)
        labels = (hashes * np.uint64(self.blocks)) >> np.uint64(32)
        return [frame.places(vectors[labels == block]) for block in range(self.blocks)]

    def found(self, passes: RecordPasses) -> list[FloatArray]:
        """Means of each block; learnt once, and forgotten with the records."""
        if "means" not in passes.memory:
            passes.memory["means"] = [self._learnt(block, rows) for block, rows in enumerate(self.dealt(passes))]
        means: list[FloatArray] = passes.memory["means"]
        return means

    def _learnt(self, block: int, rows: FloatArray) -> FloatArray:
        """Means in one block: none where the learner fails, and whatever it says while it runs is not heard."""
        nothing = np.zeros((0, self.plan.frame.d))
        try:
            with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()), np.errstate():
                warnings.simplefilter("ignore")
                np.seterr(all="ignore")
                learner = clone(self.plan.learner, safe=False)
                if callable(getattr(learner, "get_params", None)) and "random_state" in learner.get_params():
                    state = np.random.SeedSequence([self.seed, block]).generate_state(1)[0]
                    learner.set_params(random_state=int(state))
                learner.fit(rows)
                means = np.array(learner.means_, dtype=np.float64)
                return finite(means) if means.ndim == 2 and means.shape[1] == nothing.shape[1] else nothing
        except Exception:  # anything may go wrong in a block, and nobody must see that it did
            return nothing


@dataclass(frozen=True, eq=False)
class Offers:
    """One point of each block: what a search is made over, instead of records.

    Parameters
    ----------
    passes : RecordPasses
    means : BlockMeans
    balls : tuple of Ball
        Released so far.
    direction : array of shape (d,)
    """

    passes: RecordPasses
    means: BlockMeans
    balls: tuple[Ball, ...]
    direction: FloatArray

    def each(self, take: Callable[[FloatArray], object]) -> None:
        """Hand over the offers of all blocks that have one."""
        offers = [self.offer(means) for means in self.means.found(self.passes)]
        take(np.concatenate([np.zeros((0, len(self.direction))), *offers]))

    def offer(self, means: FloatArray) -> FloatArray:
        """The farthest along the direction of those that are not explained: one row or none."""
        for ball in self.balls:
            means = means[((means - ball.centre) ** 2).sum(axis=1) > (EXPLAINED * ball.radius) ** 2]
        along = (means * self.direction).sum(axis=1)
        return means[np.argmax(along)][None] if len(means) else means


@dataclass(frozen=True, eq=False)
class NearestParts:
    """Records by the nearest of several released centres, in whole numbers.

    Parameters
    ----------
    frame : Frame
    centres : array of shape (parts, d)

    Examples
    --------
    >>> parts = NearestParts(Frame.around([0.0], 10.0), np.array([[-5.0], [5.0]]))
    >>> parts.labels(np.array([[-1.0], [2.0], [80.0]])).tolist()
    [0, 1, 1]
    """

    frame: Frame
    centres: FloatArray

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.frame.d

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.centres)

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""
        q = self.frame.vectors(rows)
        squares = [((q - centre) ** 2).sum(axis=1) for centre in self.frame.vectors(self.centres)]
        return np.asarray(np.argmin(np.stack(squares), axis=0), dtype=np.int64)


def learn_aggregate(plan: AggregatePlan, stages: Stages, passes: RecordPasses | None) -> MixtureFit:
    """Find the centres that blocks agree on, then learn the Gaussian next to each, as stages of one release."""
    parts, frames, spent = aggregated_parts(plan, stages, passes)
    left = 1 - spent
    place = left * SHARES["place"] / (SHARES["place"] + SHARES["shape"])
    frames, _ = settled(stages, passes, parts, frames, portion=place, steps=PLACE_STEPS, **held(plan.scales))
    learnt = learn_gaussians(stages, passes, parts, frames, left - place)
    return gaussian_fit(learnt, stages, "sample-aggregate", plan.n_components)


def aggregated_parts(
    plan: AggregatePlan, stages: Stages, passes: RecordPasses | None
) -> tuple[Parts, tuple[Frame, ...], Fraction]:
    """Parts of the records around what blocks agree on, where each may be, and what share of the budget that took."""
    values, _ = stages.answer(
        "count",
        lambda: CountQuery().sum(passes),  # type: ignore[arg-type]
        size=1,
        sensitivity=CountQuery().sensitivity(stages.terms.max_contributions),
        portion=SHARES["count"],
    )
    spent = SHARES["count"]
    blocks = plan.blocks(float(values[0]))
    drawn = stages.keep("blocks", _keys)
    means = BlockMeans(plan, blocks, int(drawn["key"]), int(drawn["seed"]))
    balls: tuple[Ball, ...] = ()
    turn, rounds = 0, plan.n_components + SPARE
    while turn < rounds and len(balls) < plan.n_components:
        direction = stages.keep(f"direction{turn}", lambda: _direction(plan.frame.d))["direction"]
        offers = None if passes is None else Offers(passes, means, balls, direction)
        share = SHARES["rounds"] / rounds
        found = find_ball(stages, offers, plan.ball(blocks), share, Fraction(1, rounds), replaced=True)
        spent += share
        turn += 1
        if isinstance(found, Ball) and _apart(found, balls):
            balls = (*balls, found)
    if len(balls) < 2:
        return Partition(plan.frame.d), (plan.frame,), spent
    centres = np.stack([ball.centre for ball in balls])
    reaches = stages.keep("reaches", lambda: {"radii": _reaches(centres, plan)})["radii"]
    frames = tuple(Frame(centre, float(reach)) for centre, reach in zip(centres, reaches, strict=True))
    return NearestParts(plan.frame, centres), frames, spent


def _keys() -> dict[str, NDArray[Any]]:
    """A key for the hash and a seed for the learners."""
    key, seed = current_door().generator("which block a record is in, and where learners start").integers(0, 2**62, 2)
    return {"key": np.array(key), "seed": np.array(seed)}


def _direction(d: int) -> dict[str, NDArray[Any]]:
    return {"direction": current_door().generator("which mean a block offers").standard_normal(d)}


def _apart(found: Ball, balls: tuple[Ball, ...]) -> bool:
    """Whether blocks agree well enough on this centre to tell it from the others."""
    return all(np.linalg.norm(found.centre - ball.centre) >= APART * (found.radius + ball.radius) for ball in balls)


def _reaches(centres: FloatArray, plan: AggregatePlan) -> FloatArray:
    """Radii that the search for the records of each part starts from: all that can be next to it."""
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    np.fill_diagonal(apart, math.inf)
    least = plan.scales.sigma_min * math.sqrt(plan.frame.d)
    return np.clip(2 * apart.min(axis=1), least, 2 * plan.frame.radius)
