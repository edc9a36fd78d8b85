"""A learner without privacy on each of many blocks of the records: what every block has to say, still secret.

The proof is in ``block_learners.proof.md`` beside this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from fogline._typing import FloatArray, IntArray
from fogline.queries.ball_search import Ball
from fogline.queries.boosted_density import quiet
from fogline.queries.lattice import CentredBallLattice, drop_nonfinite, keyed_hash
from fogline.queries.query import Query, Records, rows_moved

__all__ = ["BlockMeans", "MeansLearner", "OfferQuery", "Offers", "SpectralLearner", "chosen_learner"]

T = TypeVar("T")

EXPLAINED = 3.0
"""A mean within this many radii of a released ball is explained by it."""


class MeansLearner(Protocol):
    """What is asked of a learner: scikit-learn's mixtures have it, and so may a class of the user's."""

    def fit(self, X: FloatArray, /) -> object:
        """Learn from the rows of one block, and set ``means_``, one row per component."""


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


def chosen_learner(wished: object, k: int, sigma_min: float) -> tuple[MeansLearner, str]:
    """The learner of a block, and what distinguishes it from another in a question; errors name the parameter."""
    if wished is None:
        return GaussianMixture(k, reg_covar=sigma_min**2, max_iter=20, tol=1e-2), "gaussian-mixture"
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
    told = getattr(wished, "get_params", None)
    options = told() if callable(told) else getattr(wished, "__dict__", {})
    return learner, f"{type(wished).__module__}.{type(wished).__qualname__} {sorted(options.items())!r}"


@dataclass(frozen=True, eq=False)
class BlockMeans:
    """Blocks of the records and the means that a learner finds in each; secret.

    Parameters
    ----------
    frame : CentredBallLattice
        The public ball.
    learner : object
        Copied for each block.
    blocks : int
        How many.
    key, seed : int
        Of the hash that deals the records out, and of the learners.
    """

    frame: CentredBallLattice
    learner: MeansLearner
    blocks: int
    key: int
    seed: int

    def dealt(self, records: Records) -> list[FloatArray]:
        """Records of each block, in data units, in an order of their own.

        Equal records are told apart by their rank among themselves, so that copies do not end up in one block: of t
        copies one less is one pair of record and rank less.
        """
        frame = self.frame
        parts = [np.zeros((0, frame.d))]
        records.each(lambda rows: parts.append(frame.vectors(drop_nonfinite(rows)) + 0.0))  # no zero has a sign
        vectors = np.concatenate(parts)
        # Sorted, so that a block has its rows in an order that the file does not decide.
        vectors = vectors[np.lexsort(vectors.T)]
        places = np.arange(len(vectors))
        first = np.ones(len(vectors), dtype=bool)
        first[1:] = (vectors[1:] != vectors[:-1]).any(axis=1)
        rank = places - np.maximum.accumulate(np.where(first, places, 0))
        hashes = keyed_hash(np.column_stack([vectors, rank]), self.key)
        labels = ((hashes * np.uint64(self.blocks)) >> np.uint64(32)).astype(np.int64)
        order = np.argsort(labels, kind="stable")
        edges = np.searchsorted(labels[order], np.arange(1, self.blocks))
        return np.split(frame.places(vectors[order]), edges)

    def found(self, records: Records) -> list[FloatArray]:
        """Means of each block; learnt once, and forgotten with the records."""
        if "means" not in records.memory:
            records.memory["means"] = [self._learnt(block, rows) for block, rows in enumerate(self.dealt(records))]
        means: list[FloatArray] = records.memory["means"]
        return means

    def _learnt(self, block: int, rows: FloatArray) -> FloatArray:
        """Means in one block: none where the learner fails, and whatever it says while it runs is not heard."""
        nothing = np.zeros((0, self.frame.d))
        try:
            with quiet():
                learner: Any = clone(self.learner, safe=False)
                options = learner.get_params() if callable(getattr(learner, "get_params", None)) else {}
                states = [name for name in options if name.rpartition("__")[2] == "random_state"]  # of its parts, too
                if states:  # numpy's own generator would tell a block how much the others have drawn
                    seed = int(np.random.SeedSequence([self.seed, block]).generate_state(1)[0])
                    learner.set_params(**dict.fromkeys(states, seed))
                learner.fit(rows.copy())  # a part of a larger array would lead to the other blocks
                means = np.array(learner.means_, dtype=np.float64)
                fits = means.ndim == 2 and means.shape[1] == self.frame.d
                return self.frame.places(self.frame.vectors(drop_nonfinite(means))) if fits else nothing
        except (Exception, SystemExit):  # anything may go wrong in a block, and nobody must see that it did
            return nothing


@dataclass(frozen=True, eq=False)
class Offers:
    """One point of each block: what a search is made over, instead of records.

    Parameters
    ----------
    means : BlockMeans
    balls : tuple of Ball
        Released so far.
    direction : array of shape (d,)
    """

    means: BlockMeans
    balls: tuple[Ball, ...]
    direction: FloatArray

    def offer(self, means: FloatArray) -> FloatArray:
        """The farthest along the direction of those that are not explained: one row or none."""
        for ball in self.balls:
            means = means[((means - ball.centre) ** 2).sum(axis=1) > (EXPLAINED * ball.radius) ** 2]
        along = (means * self.direction).sum(axis=1)
        return means[np.argmax(along)][None] if len(means) else means


@dataclass(frozen=True, eq=False)
class _Offered:
    """Secret: the offers of all blocks, in the place of records."""

    offers: Offers
    records: Records
    memory: dict[str, Any] = field(default_factory=dict)

    def each(self, take: Callable[[FloatArray], object]) -> None:
        """Hand over the offers of all blocks that have one."""
        points = [self.offers.offer(means) for means in self.offers.means.found(self.records)]
        take(np.concatenate([np.zeros((0, len(self.offers.direction))), *points]))


@dataclass(frozen=True, eq=False)
class OfferQuery(Generic[T]):
    """A query over the offers of blocks.

    A record is in one block and changes its offer, if anything: a point comes, goes, or turns into another one. That is
    what the query declares for a replaced row.

    Parameters
    ----------
    query : Query
        Over points.
    offers : Offers
    """

    query: Query[T]
    offers: Offers

    @property
    def size(self) -> int:
        """How many whole numbers it gives."""
        return self.query.size

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far neighbours can be apart: each row that comes or goes turns one point into another."""
        return self.query.sensitivity("replace", rows_moved(neighbours, max_contributions))

    def exact(self, records: Records) -> IntArray:
        """Secret: the numbers of the offers."""
        return self.query.exact(_Offered(self.offers, records))

    def decode(self, values: IntArray, noise_scale: float) -> T:
        """What the query reads."""
        return self.query.decode(values, noise_scale)
