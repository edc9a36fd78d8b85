r"""Mixtures of separated Gaussians by the paper's own routes, in certified forms: terrific balls, and halves Y and Z.

`pgme` is Algorithms 3 and 4: the widest part of the records is searched for a terrific ball, first in all columns
(step 3), then, where there is none, along the part's leading directions (steps 5 and 6); what is in the ball and what
is beyond its c-fold become two parts, and what lies between is left out (steps 4 and 7). `pegme` is Algorithm 1: one
half of the records, Y, gives the directions, the other, Z, is searched along them for one ball after another, and every
ball gives one sphere.

What the paper's argument lacks is mended: sums are taken about released places, parts are disjoint, a record's half
depends on itself, no raw count or emptiness decides, and the price is that of the releases that are made. Proof:
``separated_mixtures.proof.md``, beside this file.

References
----------
G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of separated
Gaussians", NeurIPS 2019, Algorithms 1, 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline import _validation
from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.accounting.guarantee import Guarantee
from fogline.algorithms.ball_search import CELL, BallPlan, LocatedTerms, _Search
from fogline.algorithms.mixture_recursive import (
    MixtureFit,
    RecursivePlan,
    ball_constraints,
    gaussian_fit,
    learn_gaussians,
    refine_balls,
)
from fogline.queries.ball_search import AXES, Ball, NotSeparable, SeclusionQuery
from fogline.queries.gaussian import Gaussian, ScatterQuery, SphericalQuery
from fogline.queries.lattice import (
    DIRECTION_BITS,
    CentredBallLattice,
    Thinning,
    drop_nonfinite,
    integer_directions,
    keyed_hash,
    random_directions,
)
from fogline.queries.partition import Parts, whitening_of
from fogline.queries.query import Query, Records
from fogline.releases.curator import Curator
from fogline.sources.passes import as_source, public_width, unit_of

__all__ = ["BallCut", "BallParts", "FirstBall", "Halves", "Projected", "ViewQuery", "pegme", "pgme"]

T = TypeVar("T")

CODE_VERSION = "separated-mixtures-1"

SPLITTING = Fraction(3, 4)
"""Part of the budget that all searches together may take."""

PLACE = Fraction(1, 5)
"""Part of a search that brings the parts' balls up to date or, along directions, finds these."""

SPARE = 2
"""Searches beyond one per cut: that no part is cut along all columns, say, or that a single component is looked at."""

LAST_PLACE, LAST_STEPS = Fraction(3, 20), 6
"""Of what the searches left: finds the places of the final parts, in so many steps."""

GROWN = 4.0
"""A ball with half of a component's records, grown by this, holds nearly all of them."""


# -- what a search looks at ------------------------------------------------------------------------------------------


class View(Protocol):
    """A map of records, one at a time: some are left out, the others become rows of their own."""

    def rows(self, rows: FloatArray, /) -> FloatArray:
        """The image of these finite rows."""


@dataclass(frozen=True, eq=False)
class _Seen:
    """Secret: records through a view."""

    batches: list[FloatArray]
    memory: dict[str, Any] = field(default_factory=dict)

    def each(self, take: Callable[[FloatArray], object]) -> None:
        """Hand over the images, batch by batch."""
        for images in self.batches:
            take(images)


def _seen(view: View, records: Records) -> _Seen:
    """Secret: the images of all records, kept with these from one query to the next as long as the view is the same."""
    kept = records.memory.get("view")
    if kept is None or kept[0] is not view:
        batches: list[FloatArray] = []
        records.each(lambda rows: batches.append(view.rows(drop_nonfinite(rows))))
        kept = records.memory["view"] = (view, batches)
    return _Seen(kept[1])


@dataclass(frozen=True, eq=False)
class ViewQuery(Generic[T]):
    """A query over the images of the records: a record is one row of it, or none, so that neighbours stay neighbours.

    Parameters
    ----------
    query : Query
    view : View
    """

    query: Query[T]
    view: View

    @property
    def size(self) -> int:
        """How many whole numbers it gives."""
        return self.query.size

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """As far as neighbours can be apart in the query itself."""
        return self.query.sensitivity(neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the numbers of the images."""
        return self.query.exact(_seen(self.view, records))

    def decode(self, values: IntArray, noise_scale: float) -> T:
        """What the query reads."""
        return self.query.decode(values, noise_scale)


class _Viewing:
    """A curator whose queries are over images of the records."""

    def __init__(self, curator: Curator, view: View) -> None:
        self._curator, self._view = curator, view
        self.terms, self.transcript = curator.terms, curator.transcript
        self.remember, self.generator = curator.remember, curator.generator

    def ask(self, query: Query[T], share: Fraction, name: str) -> T:
        return self._curator.ask(ViewQuery(query, self._view), share, name)

    def first_above(self, query: Query[T], share: Fraction, name: str, *, threshold: int) -> T:
        return self._curator.first_above(ViewQuery(query, self._view), share, name, threshold=threshold)

    def frequent(self, query: Query[T], share: Fraction, name: str, *, aside: Fraction) -> T:
        return self._curator.frequent(ViewQuery(query, self._view), share, name, aside=aside)


@dataclass(frozen=True, eq=False)
class Projected:
    """Coordinates along a few directions, from a released centre, in data units.

    Parameters
    ----------
    frame : CentredBallLattice
    directions : array of shape (p, d)
        In whole numbers.

    Examples
    --------
    >>> along = Projected(CentredBallLattice.around([0.0, 0.0], 8.0), integer_directions(np.array([[0.0, 1.0]])))
    >>> along.rows(np.array([[3.0, 4.0]])).tolist(), along.lifted(np.array([4.0])).tolist()
    ([[4.0]], [0.0, 4.0])
    """

    frame: CentredBallLattice
    directions: FloatArray

    def rows(self, rows: FloatArray) -> FloatArray:
        """Coordinates of these finite rows: products of whole numbers, exact, then one factor."""
        unit = self.frame.radius / self.frame.steps / 2.0**DIRECTION_BITS
        return np.asarray(self.frame.vectors(rows) @ self.directions.T * unit)

    def lifted(self, place: FloatArray) -> FloatArray:
        """The point of the original space that has these coordinates."""
        return np.asarray(self.frame.centre + place @ self.directions / 2.0**DIRECTION_BITS)

    @property
    def ball(self) -> CentredBallLattice:
        """A ball around all images."""
        return CentredBallLattice(np.zeros(len(self.directions)), 1.01 * self.frame.radius)


def _within(ball: Ball, rows: FloatArray, stretch: float = 1.0) -> tuple[BoolArray, BoolArray]:
    """Which rows are in a released ball, and which in its multiple, by whole numbers."""
    frame = CentredBallLattice(ball.centre, 2.0 * stretch * ball.radius)
    reach = float(2 * frame.steps)  # squares of what is cut there still add up exactly, and lie outside both balls
    q = rows - frame.centre
    with np.errstate(over="ignore"):
        q /= frame.radius
        q *= float(frame.steps)
    np.clip(np.rint(q, out=q), -reach, reach, out=q)
    squared = np.einsum("ij,ij->i", q, q)
    inner, outer = ((size * ball.radius / frame.radius * frame.steps) ** 2 for size in (1.0, stretch))
    return squared <= inner, squared <= outer


# -- the search ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellRadiusQuery:
    """Number of records in the heaviest cell of a shifted grid in a projection, for cells of doubling size.

    Parameters
    ----------
    frame : CentredBallLattice
    directions : array of shape (p, d)
        In whole numbers.
    shift : array of shape (p,)
        Of the grid, in units of a cell.
    sides : array
        Of the cells, growing, in the units of the products of lattice vectors and directions.
    radii : array
        What a clustering of that width is said to have, in data units.
    """

    frame: CentredBallLattice
    directions: FloatArray
    shift: FloatArray
    sides: FloatArray
    radii: FloatArray

    @property
    def size(self) -> int:
        """Number of sizes."""
        return len(self.sides)

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:  # noqa: ARG002
        """How far one of the numbers can move: a record moves no cell by more than one."""
        return float(max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the heaviest cell of each size."""
        keys: list[list[NDArray[np.uint64]]] = [[np.zeros(0, dtype=np.uint64)] for _ in self.sides]

        def take(rows: FloatArray) -> None:
            products = self.frame.vectors(drop_nonfinite(rows)) @ self.directions.T
            for kept, side in zip(keys, self.sides, strict=True):
                kept.append(keyed_hash(np.floor(products / side + self.shift) + 0.0, 0))

        records.each(take)
        counts = [np.unique(np.concatenate(kept), return_counts=True)[1] for kept in keys]
        return np.array([count.max(initial=0) for count in counts], dtype=np.int64)

    def decode(self, values: IntArray, noise_scale: float) -> float | None:  # noqa: ARG002
        """The radius at the index that was told; None where no cell was heavy enough."""
        return None if values[0] < 0 else float(self.radii[int(values[0])])


class _LinearSearch(_Search):
    """The search for a terrific ball with all records, in linear time: its radius by the heaviest cell."""

    def radii(self, count: float, target: int) -> tuple[float | None, float | None]:
        """The radius of the cluster whose centre is taken; how far apart it is will be seen around that centre."""
        plan = self._plan
        d, axes = plan.frame.d, min(AXES, plan.frame.d)
        smallest, size = plan.exponents
        radii = 2.0 ** (smallest + np.arange(size)) * plan.frame.radius / plan.frame.steps

        def draw() -> dict[str, NDArray[Any]]:
            generator = self._curator.generator("random projection and shift for the radius")
            return {"directions": random_directions(generator, axes, d), "shift": generator.random(axes)}

        drawn = self._curator.remember(f"cells{self._name}", draw)
        sides = np.array([CELL * plan.half_width(float(radius), count) * 2.0**DIRECTION_BITS for radius in radii])
        query = CellRadiusQuery(plan.frame, drawn["directions"], drawn["shift"], sides, radii)
        radius = self._first_above("radius", query, target)
        return radius, radius

    def secluded(self, centre: FloatArray, radius: float, target: int) -> Ball | NotSeparable:
        """The smallest ball around the centre that passes the test of all three counts."""
        plan = self._plan
        stretch = plan.stretch or 1.0
        radii = radius * 2.0 ** (np.arange(0, 9) / 2)
        query = SeclusionQuery(centre, radii[::-1] if plan.largest else radii, stretch, target)
        found = self._first_above("rings", query, target)
        if found is None:
            return NotSeparable("terrific ball", 0, 1, "no ball around the place found is apart from the rest")
        return found

    def run(self, count: float, target: int, aside: Fraction) -> Ball | None:
        """Search; the number of records is known from earlier answers."""
        _, radius = self.radii(count, target)
        found = None if radius is None else self.heaviest_cell(radius, count, aside)
        if radius is None or found is None:
            return None
        centre = self.centre(radius, count, *found)
        if self._plan.stretch is None:
            return self.rings(centre, radius, target)
        ball = self.secluded(centre, radius, target)
        return ball if isinstance(ball, Ball) else None


# -- parts by terrific balls -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BallCut:
    """One part cut by a terrific ball: what is inside stays, what is beyond the c-fold becomes a part of its own.

    Attributes
    ----------
    part, outside : int
    ball : Ball
    along : Projected or None
        Where the ball lives.
    """

    part: int
    outside: int
    ball: Ball
    along: Projected | None


@dataclass(frozen=True, eq=False)
class BallParts:
    """Parts of the records by terrific balls; a record between a ball and its c-fold is in none, -1.

    Examples
    --------
    >>> whole = BallParts(1)
    >>> cut = whole.divided(0, Ball(np.array([5.0]), 1.0, 0.0, 0.0, stretch=3.0), None)
    >>> cut.parts, cut.labels(np.array([[5.5], [7.0], [-9.0]])).tolist()
    (2, [0, -1, 1])
    """

    d: int
    cuts: tuple[BallCut, ...] = ()

    @property
    def parts(self) -> int:
        """Number of parts."""
        return 1 + len(self.cuts)

    def divided(self, part: int, ball: Ball, along: Projected | None) -> BallParts:
        """The parts with one cut further."""
        return BallParts(self.d, (*self.cuts, BallCut(part, self.parts, ball, along)))

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows, or -1."""
        labels = np.zeros(len(rows), dtype=np.int64)
        for cut in self.cuts:
            here = np.flatnonzero(labels == cut.part)
            seen = rows[here] if cut.along is None else cut.along.rows(rows[here])
            inside, within = _within(cut.ball, seen, cut.ball.stretch)
            labels[here] = np.where(inside, cut.part, np.where(within, -1, cut.outside))
        return labels


@dataclass(frozen=True, eq=False)
class _PartView:
    """The records of one part, as they are or along directions."""

    base: Parts
    part: int
    along: Projected | None

    def rows(self, rows: FloatArray) -> FloatArray:
        """The image of these finite rows."""
        kept = rows[self.base.labels(rows) == self.part]
        return kept if self.along is None else self.along.rows(kept)


def pgme(
    X: Any,
    *,
    n_components: int,
    epsilon: float,
    delta: float,
    radius: float,
    sigma_min: float,
    sigma_max: float,
    weight_min: float | None = None,
    center: ArrayLike | None = None,
    stretch: float = 5.0,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
) -> tuple[MixtureFit, Guarantee]:
    """Mixture of separated components by terrific balls (Algorithms 3 and 4), private for every data set.

    Parameters
    ----------
    X : array, frame, path or engine table
    n_components : int
        k.
    epsilon, delta : float
        Privacy of the whole.
    radius, center : float, array
        A public ball that holds the means.
    sigma_min, sigma_max, weight_min : float
        Public bounds, as for ``PrivateGaussianMixture(method="recursive")``.
    stretch : float
        The factor c of a terrific ball.
    neighbours, max_contributions
        As for every estimator of fogline.

    Returns
    -------
    fit, guarantee

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(place, 1.0, size=(4000, 5)) for place in (-40.0, 40.0)])
    >>> fit, guarantee = pgme(X, n_components=2, epsilon=4.0, delta=1e-6, radius=200.0, sigma_min=0.5, sigma_max=2.0)
    >>> np.sort(fit.means.mean(axis=1)).round().tolist(), guarantee.certified
    ([-40.0, 40.0], True)
    """
    source = as_source(X)
    wishes = (epsilon, delta, neighbours, max_contributions, unit_of(source))
    terms = LocatedTerms.located(*wishes)
    if not _validation.check_positive(stretch, "stretch") > 1.0:
        raise ValueError(f"stretch must be greater than 1, got {stretch}")
    d = public_width(source, None if center is None else int(np.size(center)))
    bounds: dict[str, Any] = {
        "radius": radius,
        "sigma_min": sigma_min,
        "sigma_max": sigma_max,
        "weight_min": weight_min,
    }
    plan = RecursivePlan.checked(d=d, n_components=n_components, center=center, **bounds)
    curator = Curator(source, terms, width=d)
    del X, source
    return _released(
        curator,
        lambda curator: _learn_terrific(plan, float(stretch), curator),
        by="terrific",
        on="terrific balls and their parts",
        parameters={**plan.to_dict(), "stretch": float(stretch)},
    )


def _released(
    curator: Curator, learn: Callable[[Curator], MixtureFit], *, by: str, on: str, parameters: dict[str, Any]
) -> tuple[MixtureFit, Guarantee]:
    """Release what is learnt, in the words of the one proof of both algorithms."""
    fit, guarantee, _ = curator.release(
        learn,
        mechanism=f"above threshold, stable histogram and discrete Gaussian noise on {on}",
        proof="separated-mixtures",
        name=f"separated-mixtures-{by}",
        code_version=CODE_VERSION,
        parameters=parameters,
        max_payload=2**26,
    )
    return fit, guarantee


def _learn_terrific(plan: RecursivePlan, stretch: float, curator: Curator) -> MixtureFit:
    """Cut by terrific balls, then learn the Gaussian of each part."""
    parts, frames, spent = _terrific_parts(plan, stretch, curator)
    left = 1 - spent
    frames, _ = refine_balls(
        curator, parts, frames, share=left * LAST_PLACE, steps=LAST_STEPS, **ball_constraints(plan)
    )
    learnt = learn_gaussians(curator, parts, frames, left * (1 - LAST_PLACE))
    return gaussian_fit(learnt, curator, "terrific balls", plan.n_components)


def _terrific_parts(
    plan: RecursivePlan, stretch: float, curator: Curator
) -> tuple[BallParts, tuple[CentredBallLattice, ...], Fraction]:
    """The parts, where each may be, and what share of the budget it took to find them."""
    k, d = plan.n_components, plan.frame.d
    looks = k - 1 + SPARE if k > 1 else 0
    share = SPLITTING / max(looks, 1)
    parts, spent = BallParts(d), Fraction(0)
    frames: tuple[CentredBallLattice, ...] = (plan.frame,)
    failed: dict[int, int] = {}
    for _ in range(looks):
        frames, counts = refine_balls(curator, parts, frames, share=share * PLACE, steps=2, **ball_constraints(plan))
        spent += share
        open_parts = [part for part in range(parts.parts) if failed.get(part, 0) < 2]
        if not open_parts:
            break
        part = max(open_parts, key=lambda index: frames[index].radius)
        target = max(1, int(plan.weight_min * sum(counts) / 2))  # step 3's t, from noisy counts
        turn = failed.get(part, 0)
        found, along = _search(plan, stretch, curator, parts, frames, part, turn, counts[part], target, share)
        if found is None:
            failed[part] = turn + 1  # step 8, after both
            continue
        inside = found.centre if along is None else along.lifted(found.centre)
        parts = parts.divided(part, found, along)  # steps 4 and 7
        frames = tuple(
            CentredBallLattice(inside, frame.radius) if index == part else frame for index, frame in enumerate(frames)
        )
        frames = (*frames, CentredBallLattice(plan.frame.centre, plan.frame.radius))
        failed.pop(part, None)
        if parts.parts >= k:
            break
    return parts, frames, spent


def _search(
    plan: RecursivePlan,
    stretch: float,
    curator: Curator,
    parts: BallParts,
    frames: tuple[CentredBallLattice, ...],
    part: int,
    turn: int,
    count: float,
    target: int,
    share: Fraction,
) -> tuple[Ball | None, Projected | None]:
    """Steps 3, or 5 and 6, for one part: a terrific ball, and where it lives."""
    d, k, left = plan.frame.d, plan.n_components, share * (1 - PLACE)
    aside = Fraction(1, k - 1 + SPARE)
    frame, along = frames[part], None
    if turn:
        along = _along(curator, parts, frames, part, min(k, d), left * PLACE)
        left *= 1 - PLACE
    width = d if along is None else len(along.directions)
    search = BallPlan(
        frame if along is None else along.ball,
        0.5 * math.sqrt(width) * plan.sigma_min,
        target=target,
        stretch=stretch,
        largest=along is not None,
    )
    viewing = cast("Curator", _Viewing(curator, _PartView(parts, part, along)))
    return _LinearSearch(viewing, search, left, None).run(count, target, aside), along


def _along(
    curator: Curator, parts: Parts, frames: tuple[CentredBallLattice, ...], part: int, number: int, share: Fraction
) -> Projected:
    """Step 5: the leading directions of a part, about its released place; all parts are asked, at the price of one."""
    d = parts.d
    maps = tuple(whitening_of(frame.centre, frame.radius / math.sqrt(d) * np.eye(d), math.sqrt(d)) for frame in frames)
    found = curator.ask(ScatterQuery(parts, maps), share, "moments")

    def leading() -> dict[str, NDArray[Any]]:
        vectors = np.linalg.eigh(found[part].covariance)[1][:, ::-1][:, :number]
        return {"directions": integer_directions(vectors.T)}

    name = f"along{len(curator.transcript)}"
    return Projected(frames[part], curator.remember(name, leading)["directions"])


# -- halves ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Halves:
    """The records of Y, part 0: half of all, by a keyed hash of each; the others are in no part.

    Parameters
    ----------
    frame : CentredBallLattice
        The public ball.
    key : int
    second : bool
        Whether the other half, Z, is meant.

    Examples
    --------
    >>> frame, rows = CentredBallLattice.around([0.0], 8.0), np.arange(8.0)[:, None]
    >>> Y, Z = Halves(frame, 3).labels(rows), Halves(frame, 3, second=True).labels(rows)
    >>> sorted(set((Y + Z).tolist()))
    [-1]
    """

    frame: CentredBallLattice
    key: int
    second: bool = False

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.frame.d

    @property
    def parts(self) -> int:
        """Number of parts."""
        return 1

    def labels(self, rows: FloatArray) -> IntArray:
        """Zero for a row of this half, else -1."""
        first = Thinning(self.key, 0.5).kept(self.frame.vectors(rows) + 0.0)  # no zero has a sign
        return np.where(first != self.second, 0, -1)


@dataclass(frozen=True, eq=False)
class FirstBall:
    """Parts of Z by the first of some balls that a record's image is in; no ball, no part.

    Parameters
    ----------
    half : Halves
    along : Projected
    balls : tuple of Ball
    """

    half: Halves
    along: Projected
    balls: tuple[Ball, ...]

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.half.d

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.balls)

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows, or -1."""
        images = self.along.rows(rows)
        labels = np.full(len(rows), -1, dtype=np.int64)
        for number, ball in enumerate(self.balls):
            labels = np.where((labels < 0) & _within(ball, images)[0], number, labels)
        return np.where(self.half.labels(rows) == 0, labels, -1)

    def rows(self, rows: FloatArray) -> FloatArray:
        """Images of the records of Z that no ball has yet."""
        mine = rows[self.half.labels(rows) == 0]
        return self.along.rows(mine[self.labels(mine) < 0])


class _HalvedCurator(Curator):
    """A curator with one budget for each half: a record is in one of them, and pays in that one alone."""

    def use(self, half: str) -> None:
        """Let what follows be paid from the budget of this half; its queries must look at that half only."""
        purses = self.__dict__.setdefault("_purses", {})
        if "_half" in self.__dict__:
            purses[self.__dict__["_half"]] = self._left, self._aside
        self._left, self._aside = purses.get(half, (self._budget, self._set_aside))
        self.__dict__["_half"] = half


def pegme(
    X: Any,
    *,
    n_components: int,
    epsilon: float,
    delta: float,
    radius: float,
    sigma_min: float,
    sigma_max: float,
    center: ArrayLike | None = None,
) -> tuple[MixtureFit, Guarantee]:
    """Mixture of spheres of about equal weight by halves Y and Z (Algorithm 1), private for every data set.

    Parameters
    ----------
    X, n_components, epsilon, delta, radius, sigma_min, sigma_max, center
        As for `pgme`; neighbours add or remove one record.

    Returns
    -------
    fit, guarantee

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(place, 1.0, size=(6000, 5)) for place in (-40.0, 40.0)])
    >>> fit, guarantee = pegme(X, n_components=2, epsilon=4.0, delta=1e-6, radius=200.0, sigma_min=0.5, sigma_max=2.0)
    >>> np.sort(fit.means.mean(axis=1)).round().tolist(), guarantee.certified
    ([-40.0, 40.0], True)
    """
    source = as_source(X)
    terms = LocatedTerms.located(epsilon, delta, "add-remove", 1, unit_of(source))
    d = public_width(source, None if center is None else int(np.size(center)))
    bounds: dict[str, Any] = {"radius": radius, "sigma_min": sigma_min, "sigma_max": sigma_max}
    plan = RecursivePlan.checked(d=d, n_components=n_components, center=center, **bounds)
    curator = _HalvedCurator(source, terms, width=d)
    del X, source
    return _released(
        curator,
        lambda curator: _learn_halves(plan, cast("_HalvedCurator", curator)),
        by="halves",
        on="halves of the records",
        parameters=plan.to_dict(),
    )


def _learn_halves(plan: RecursivePlan, curator: _HalvedCurator) -> MixtureFit:
    """Directions from Y with all of its budget, balls and spheres from Z with all of its own."""
    k, d = plan.n_components, plan.frame.d
    drawn = curator.remember(
        "halves", lambda: {"key": np.array(curator.generator("which half a record is in").integers(0, 2**62))}
    )
    Y, Z = (Halves(plan.frame, int(drawn["key"]), second) for second in (False, True))
    curator.use("Y")
    frames, counts = refine_balls(curator, Y, (plan.frame,), share=PLACE, steps=2, **ball_constraints(plan))
    along = _along(curator, Y, frames, 0, min(k, d), 1 - PLACE)
    curator.use("Z")
    looks = k + SPARE
    balls: tuple[Ball, ...] = ()
    target = max(1, int(counts[0] / (2 * k)))  # half of a component, as Algorithm 1 has it; Z is about as large as Y
    search = BallPlan(along.ball, 0.25 * math.sqrt(len(along.directions)) * plan.sigma_min, target=target)
    for _ in range(looks):
        viewing = cast("Curator", _Viewing(curator, FirstBall(Z, along, balls)))
        found = _LinearSearch(viewing, search, SPLITTING / looks, None).run(counts[0], target, Fraction(1, looks))
        if found is not None:
            balls = (*balls, replace(found, radius=GROWN * found.radius))
        if len(balls) >= k:
            break
    if not balls:  # nothing was found: all of Z is one part
        balls = (Ball(np.zeros(len(along.directions)), along.ball.radius, counts[0], 0.0),)
    return _spheres(plan, curator, FirstBall(Z, along, balls))


def _spheres(plan: RecursivePlan, curator: Curator, parts: FirstBall) -> MixtureFit:
    """Number, mean and variance of the records of Z in each ball."""
    d, p = plan.frame.d, len(parts.along.directions)
    frames = tuple(
        CentredBallLattice(
            parts.along.lifted(ball.centre),
            min(plan.frame.radius, ball.radius * math.sqrt(d / p) + plan.sigma_max * (math.sqrt(d) + 4.0)),
        )
        for ball in parts.balls
    )
    left = 1 - SPLITTING
    frames, _ = refine_balls(curator, parts, frames, share=left * PLACE, steps=LAST_STEPS, **ball_constraints(plan))
    spheres = curator.ask(SphericalQuery(cast("Any", parts), frames, plan.sigma_min), left * (1 - PLACE), "sphere")
    learnt = []
    for sphere in spheres:
        variance = min(sphere.sigma, plan.sigma_max) ** 2
        error = math.sqrt(variance / max(sphere.count, 1.0) + sphere.mean_sd**2)
        learnt.append(Gaussian(sphere.mean, variance * np.eye(d), sphere.count, sphere.count_sd, np.full(d, error)))
    fit = gaussian_fit(learnt, curator, "halves", plan.n_components)
    return replace(fit, composition={})  # it adds up what was asked of both halves, and no record paid for both
