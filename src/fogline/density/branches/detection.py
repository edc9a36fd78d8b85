r"""Threads: peaks at neighbouring places linked into branches, and local polynomial fits along them.

Links are made nearest first, and never so that a branch would have two peaks at one place: where two branches cross,
one goes on and the other ends.

How much of a branch noise alone would raise, anywhere along x.

A branch is judged as a whole: by its *strength*, the sum over its places of what their prominence exceeds a threshold t
by, so that a long faint branch counts as much as a short clear one. Excursions of Gaussian noise by u above t are as
long as :math:`\sqrt u` in each axis of x, so that the strength of noise, to the power :math:`1/(1 + d_x/2)`, has
exponential tails. Privacy noise and sampling noise are simulated together for responses that are flat in y, and the
quantile of an exponential law, fitted to the upper half of the largest strengths, is what a branch must reach.

References
----------
.. [1] K. Friston, K. Worsley, R. Frackowiak, J. Mazziotta, A. Evans, "Assessing the significance of focal activations
   using their spatial extent", Human Brain Mapping 1, 1994.

Conditional modes on a grid of x: which peaks of the profiles there are, and how branches grow from the clear ones.

A peak's standardised prominence is its prominence over the local deviation of the noise, privacy and sampling together.
Branches that noise alone would hardly raise are kept, and grown: at the places next to them the profile is read along
the branch's slope, and a peak where the branch would go on is taken in at a lower prominence, since it is not looked
for everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.branches.profiles import Profiles, mirror_basis
from fogline.density.counted_records import nothing_counted
from fogline.density.modes.peaks import find_peaks
from fogline.density.shortfall import NOTHING, Shortfall

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = [
    "DETECTION",
    "BranchLinks",
    "BranchPoints",
    "DetectionTuning",
    "Fit",
    "by_length",
    "find_branch_points",
    "link",
    "local_fit",
    "needed_strength",
    "strengths",
]


@dataclass(frozen=True)
class DetectionTuning:
    """What is tuned of the detection of branches and their growth.

    Attributes
    ----------
    shrinkage : float
        Ridge of a local fit, relative to its weights: a branch of few places gets a slope of zero.
    least_standardised_prominence : float
        Peaks of less standardised prominence do not count towards a branch's strength: the threshold t.
    link_reach : float
        Peaks at neighbouring places within this many bandwidths of y may be one branch.
    simulations : mapping by dimension
        Simulated fields, by the number of axes of x.
    caution : float
        The quantile is taken at the level over this: measured on even responses, faint releases let through
        about twice as many branches as the simulation says.
    y_per_bandwidth : float
        Grid points per bandwidth of y.
    least_prominence, least_height : float
        A peak that may start a branch: its prominence over its height, its height over the highest at x.
    growing_standardised_prominence, growing_height, growing_reach : float
        A peak that continues a branch: its standardised prominence, its height over that of the branch nearby, and its
        distance from where the branch leads, in bandwidths of y.
    turns : mapping by dimension
        Turns of a branch that are tried as it grows, in bandwidths of y a bandwidth of x, by the number of axes
        of x.
    same : float
        Peaks at one place within this many bandwidths of y are one: two kernels closer than this have a single
        top.
    shortest : float
        Branches are at least this many bandwidths of x long.
    most_help : float
        Where a branch would have to stand out this many times more, it is not said what would help beyond that.
    fit_width : float
        Branches are continued by local fits with a window of this many bandwidths.
    """

    shrinkage: float = 1e-3
    least_standardised_prominence: float = 3.0
    link_reach: float = 1.5
    simulations: Mapping[int, int] = field(default_factory=lambda: {1: 120, 2: 24})
    caution: float = 2.5
    y_per_bandwidth: float = 5.0
    least_prominence: float = 0.1
    least_height: float = 0.2
    growing_standardised_prominence: float = 0.3
    growing_height: float = 0.45
    growing_reach: float = 1.4
    turns: Mapping[int, tuple[float, ...]] = field(default_factory=lambda: {1: (-0.75, 0.0, 0.75), 2: (0.0,)})
    same: float = 2.0
    shortest: float = 1.0
    most_help: float = 20.0
    fit_width: float = 1.2


DETECTION = DetectionTuning()


@dataclass(frozen=True)
class BranchLinks:
    """Which branch each peak belongs to."""

    member: IntArray
    count: int

    def only(self, kept: BoolArray) -> BranchLinks:
        """Branches of some of the peaks."""
        names, member = np.unique(self.member[kept], return_inverse=True)
        return BranchLinks(member.astype(np.int64), len(names))

    def groups(self) -> list[IntArray]:
        """Peaks of each branch."""
        return [np.flatnonzero(self.member == k) for k in range(self.count)]

    def renumbered(self, kept: BoolArray) -> IntArray:
        """Numbers of the branches by how many of their peaks are kept, the longest first."""
        return by_length(self.member, kept)


def by_length(branch: IntArray, kept: BoolArray | None = None) -> IntArray:
    """Numbers of branches by how many places they have (of those that are kept), the longest first."""
    size = np.bincount(branch, kept)
    rank = np.empty(len(size), dtype=np.int64)
    rank[np.argsort(-size, kind="stable")] = np.arange(len(size))
    return np.asarray(rank[branch])


def link(shape: tuple[int, ...], place: IntArray, position: FloatArray, reach: float) -> BranchLinks:
    """Link peaks at neighbouring places of a grid of x whose positions differ by at most `reach`."""
    at: dict[tuple[int, ...], list[int]] = {}
    for i, index in enumerate(zip(*np.unravel_index(place, shape), strict=True)):
        at.setdefault(tuple(map(int, index)), []).append(i)
    steps = [s for s in product((0, 1), repeat=len(shape)) if any(s)]
    pairs = []
    for index, here in at.items():
        for step in steps:
            there = at.get(tuple(a + b for a, b in zip(index, step, strict=True)), ())
            pairs += [(abs(position[i] - position[j]), i, j) for i, j in product(here, there)]
    owner = list(range(len(place)))
    members = [{i} for i in range(len(place))]
    taken = [{int(p)} for p in place]
    # Closest pairs first, so that where branches cross each goes on along its own line.
    for distance, i, j in sorted(pairs):
        a, b = owner[i], owner[j]
        # A branch has one response at each place: two that share a place are two branches.
        if distance <= reach and a != b and not taken[a] & taken[b]:
            for k in members[b]:
                owner[k] = a
            members[a] |= members[b]
            taken[a] |= taken[b]
    names, member = np.unique(owner, return_inverse=True)
    return BranchLinks(member.astype(np.int64), len(names))


@dataclass(frozen=True)
class Fit:
    """A local polynomial fit: values, slopes, and the matrix that makes the values from the data."""

    values: FloatArray
    slopes: FloatArray
    weights: FloatArray


def local_fit(
    x: FloatArray,
    y: FloatArray,
    width: FloatArray,
    degree: int,
    *,
    at: FloatArray | None = None,
    errors: FloatArray | None = None,
) -> Fit:
    """Fit a polynomial of degree 0, 1 or 2 to y over places x of shape (P, dx), with Gaussian weights.

    A fit is made around each of the places `at`, by default those of the data; `errors` are standard errors of y.
    """
    away = (x[None, :, :] - (x if at is None else at)[:, None, :]) / width
    # Far away all weights vanish; a trace of them keeps the equations solvable.
    kernel = np.exp(-0.5 * np.sum(away**2, axis=2)) + 1e-12
    if errors is not None:
        kernel = kernel * (np.median(errors) / errors) ** 2
    axes = range(x.shape[1])
    columns = [np.ones(kernel.shape)]
    if degree >= 1:
        columns += [away[:, :, j] for j in axes]
    if degree == 2:
        columns += [away[:, :, j] ** 2 for j in axes]
        columns += [away[:, :, i] * away[:, :, j] for i, j in combinations(axes, 2)]
    design = np.stack(columns, axis=2)
    weighted = design * kernel[:, :, None]
    ridge = (
        DETECTION.shrinkage * kernel.sum(axis=1)[:, None, None] * np.diag(np.append(0.0, np.ones(design.shape[2] - 1)))
    )
    solved = np.linalg.solve(np.einsum("pqi,pqj->pij", weighted, design) + ridge, weighted.transpose(0, 2, 1))
    slopes = (
        np.einsum("piq,q->pi", solved[:, 1 : 1 + x.shape[1]], y) / width
        if degree
        else np.zeros((len(away), x.shape[1]))
    )
    return Fit(solved[:, 0] @ y, slopes, solved[:, 0])


SEED = 1618033988
"""Simulations only calibrate a threshold: a fixed seed makes reading a release repeatable."""


def strengths(standardised_prominence: FloatArray, branch_links: BranchLinks) -> FloatArray:
    """Strength of each branch, from the standardised prominence of its nodes."""
    # Only what exceeds the threshold adds up, so that length alone makes no branch strong.
    excess = np.maximum(standardised_prominence - DETECTION.least_standardised_prominence, 0.0)
    return np.bincount(branch_links.member, weights=excess, minlength=branch_links.count).astype(np.float64)


def needed_strength(
    density: PrivateDensity,
    profiles: Profiles,
    shape: tuple[int, ...],
    places: FloatArray,
    level: float,
    per_bandwidth: float,
) -> float:
    """Strength that some branch of noise reaches with probability `level`."""
    spec = density.spec
    rng = np.random.default_rng(SEED)
    fields = DETECTION.simulations[spec.d - 1]
    size = (fields, len(spec.frequencies))
    # A sum over n records of exp(i w x) has parts of variance n/2, beside the privacy noise.
    deviation = np.sqrt((density.noise_scale**2 / density.weights) + density.count / 2)
    sums = deviation * (rng.standard_normal(size) + 1j * rng.standard_normal(size))
    y = profiles.y_axis(per_bandwidth)
    values = (profiles.simulated(sums, places) @ mirror_basis(profiles, y)).real
    # On flat responses the deviation does not depend on y, so averaging over it steadies the estimate.
    standard = values / values.std(axis=0, ddof=1).mean(axis=0)
    peaks = find_peaks(standard.reshape(-1, standard.shape[2]))
    counted = peaks.interior & (peaks.prominence >= DETECTION.least_standardised_prominence)
    field, place = np.divmod(peaks.field[counted], len(places))
    standardised_prominence, position = peaks.prominence[counted], y[peaks.cell[counted]]
    # A strength is an area or a volume; a power of it has a tail that is about exponential.
    power = 1 / (1 + (spec.d - 1) / 2)
    largest = np.zeros(fields)
    for k in range(fields):
        own = field == k
        branch_links = link(shape, place[own], position[own], DETECTION.link_reach * profiles.y_bandwidth)
        largest[k] = strengths(standardised_prominence[own], branch_links).max(initial=0.0) ** power
    # Many fields have no branch at all, so only the upper half is fitted: an exponential law above the median.
    middle = float(np.median(largest))
    excess = float(np.mean(np.maximum(largest - middle, 0.0))) / max(float(np.mean(largest > middle)), 1 / fields)
    quantile = middle + excess * max(np.log(0.5 * DETECTION.caution / level), 0.0)
    return float(quantile ** (1 / power))


@dataclass(frozen=True)
class BranchPoints:
    """Peaks of the profiles: place in the grid of x, position in y, height, prominence, and prominence over the noise.

    Heights and prominences are of the joint density, heights as they would be without walls of x.
    """

    place: IntArray
    position: FloatArray
    height: FloatArray
    prominence: FloatArray
    standardised_prominence: FloatArray

    def only(self, kept: BoolArray | IntArray) -> BranchPoints:
        """Some of the peaks."""
        return BranchPoints(*(column[kept] for column in vars(self).values()))

    def joined(self, other: BranchPoints) -> BranchPoints:
        """These and others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return BranchPoints(*(np.concatenate(pair) for pair in pairs))


def find_branch_points(
    density: PrivateDensity, profiles: Profiles, shape: tuple[int, ...], places: FloatArray, level: float
) -> tuple[BranchPoints, BranchLinks, str]:
    """Nodes of all branches that stand above the fog, how they hang together, and what would help if there are none."""
    needed = needed_strength(density, profiles, shape, places, level, DETECTION.y_per_bandwidth)
    # First along level lines: no slope is known yet.
    seen = _peaks(density, profiles, places, None, DETECTION.least_standardised_prominence)
    branch_links = link(shape, seen.place, seen.position, DETECTION.link_reach * profiles.y_bandwidth)
    kept = (strengths(seen.standardised_prominence, branch_links) >= needed)[branch_links.member]
    if not kept.any():
        return (
            seen.only(kept),
            branch_links.only(kept),
            _shortfall_message(density, profiles, places, seen, branch_links, needed),
        )
    branch_points = seen.only(kept)
    branch_links = branch_links.only(kept)
    for _ in range(max(shape)):
        grown = _grown(density, profiles, shape, places, branch_points, branch_links)
        if not len(grown.place):
            break
        branch_points = branch_points.joined(grown)
        branch_links = link(
            shape, branch_points.place, branch_points.position, DETECTION.link_reach * profiles.y_bandwidth
        )
    lasting = _extents(places, branch_points, branch_links) >= DETECTION.shortest * profiles.x_bandwidth.max()
    if lasting.any():  # a kernel makes anything real as long as itself: what is shorter was left over as branches grew
        kept = lasting[branch_links.member]
        branch_points, branch_links = branch_points.only(kept), branch_links.only(kept)
    return branch_points, branch_links, ""


def _extents(places: FloatArray, branch_points: BranchPoints, branch_links: BranchLinks) -> FloatArray:
    """How far each branch reaches along the axis of x on which it is longest."""
    return np.array([float(np.ptp(places[branch_points.place[own]], axis=0).max()) for own in branch_links.groups()])


def _peaks(
    density: PrivateDensity, profiles: Profiles, x: FloatArray, slopes: FloatArray | None, least: float
) -> BranchPoints:
    """Peaks of the profiles at places x; their `place` counts these."""
    y = profiles.y_axis(DETECTION.y_per_bandwidth)
    values, privacy = profiles.lines(x, slopes).on(mirror_basis(profiles, y))
    peaks = find_peaks(values)
    height = values[peaks.field, peaks.cell]
    sampling = profiles.kernel_energy * np.maximum(height, 0.0) / density.count
    standardised_prominence = peaks.prominence / np.sqrt(privacy[peaks.field, peaks.cell] + sampling)
    kept = (
        peaks.interior
        & (standardised_prominence >= least)
        & (peaks.prominence >= DETECTION.least_prominence * height)
        & (height >= DETECTION.least_height * values.max(axis=1)[peaks.field])
    )
    field, cell = peaks.field[kept], peaks.cell[kept]
    before, here, after = (values[field, cell + step] for step in (-1, 0, 1))
    # A parabola through three points places the top between grid points.
    bend = np.maximum(2 * here - before - after, 1e-300)
    top = y[cell] + (y[1] - y[0]) * np.clip((after - before) / (2 * bend), -0.5, 0.5)
    return BranchPoints(
        field, top, height[kept] / profiles.inside(x)[field], peaks.prominence[kept], standardised_prominence[kept]
    )


def _grown(
    density: PrivateDensity,
    profiles: Profiles,
    shape: tuple[int, ...],
    places: FloatArray,
    branch_points: BranchPoints,
    branch_links: BranchLinks,
) -> BranchPoints:
    """Nodes next to the branches where they go on; none if they do not."""
    fronts, leads, slopes, heights = [], [], [], []
    for members in branch_links.groups():
        front = _frontier(shape, branch_points.place[members])
        width = DETECTION.fit_width * profiles.x_bandwidth
        x = places[branch_points.place[members]]
        ahead = local_fit(x, branch_points.position[members], width, 1, at=places[front])
        fronts.append(front)
        leads.append(ahead.values)
        slopes.append(ahead.slopes)
        heights.append(local_fit(x, branch_points.height[members], 2 * width, 0, at=places[front]).values)
    front, lead, slope = np.concatenate(fronts), np.concatenate(leads), np.concatenate(slopes)
    if not len(front):
        return branch_points.only(front)
    height = np.concatenate(heights)
    turns = np.array(DETECTION.turns[len(shape)])
    # A branch may turn: each front is read along a few slopes around the one so far.
    fan = slope[:, None, :] + turns[None, :, None] * profiles.y_bandwidth / profiles.x_bandwidth
    every = np.repeat(front, len(turns))
    found = _peaks(
        density, profiles, places[every], fan.reshape(len(every), -1), DETECTION.growing_standardised_prominence
    )
    found = replace(found, place=found.place // len(turns))
    away = np.abs(found.position - lead[found.place]) / profiles.y_bandwidth
    chosen: list[int] = []
    # Strongest first, and not where another branch already has a node.
    taken = {int(p): branch_points.position[branch_points.place == p].tolist() for p in front}
    for k in np.argsort(-found.standardised_prominence, kind="stable").tolist():
        there = taken[int(front[found.place[k]])]
        same = any(abs(found.position[k] - other) <= DETECTION.same * profiles.y_bandwidth for other in there)
        if (
            away[k] <= DETECTION.growing_reach
            and not same
            and found.height[k] >= DETECTION.growing_height * height[found.place[k]]
        ):
            chosen.append(k)
            there.append(float(found.position[k]))
    kept = found.only(np.array(chosen, dtype=np.int64))
    return replace(kept, place=front[kept.place])


def _frontier(shape: tuple[int, ...], place: IntArray) -> IntArray:
    """Places of the grid beside those of a branch."""
    own = np.zeros(shape, dtype=bool)
    own.ravel()[place] = True
    beside = np.zeros(shape, dtype=bool)
    for axis in range(len(shape)):
        here = [slice(None)] * len(shape)
        there = [slice(None)] * len(shape)
        here[axis], there[axis] = slice(1, None), slice(None, -1)
        beside[tuple(here)] |= own[tuple(there)]
        beside[tuple(there)] |= own[tuple(here)]
    return np.flatnonzero((beside & ~own).ravel())


def _shortfall_message(
    density: PrivateDensity,
    profiles: Profiles,
    places: FloatArray,
    seen: BranchPoints,
    branch_links: BranchLinks,
    needed: float,
) -> str:
    """Say what kept every branch below the fogline; no advice to spend more where nothing was counted."""
    if said := nothing_counted(density):
        return said
    if not branch_links.count:
        return f"{NOTHING}: at no x is any response seen more often than its neighbours"
    # Strength is not proportional to the signal, since peaks below the threshold do not count: so it is tried out.
    factors = np.geomspace(1.0, DETECTION.most_help, 101)
    reached = np.array(
        [strengths(seen.standardised_prominence * factor, branch_links).max() >= needed for factor in factors]
    )
    factor = float(factors[np.argmax(reached)]) if reached.any() else DETECTION.most_help
    lines = profiles.lines(places)
    level = max(float(profiles.marginal(lines)[0].max()), 0.0) / float(profiles.spec.widths[-1])
    privacy = float(lines.noise_sd()[0]) ** 2
    share = privacy / (privacy + profiles.kernel_energy * level / density.count)
    return Shortfall("branch", factor, share).message()
