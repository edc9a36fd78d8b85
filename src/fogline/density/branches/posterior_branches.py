r"""Branches of a conditional density, read from the leaf masses of a posterior.

At each place of x the slice (:mod:`fogline.density.branches.slices`) is smoothed along y by a fraction of its own
spread, and its maxima are looked at, the walls of y among them: a slice that falls from a wall on has its mode there.

**What stands out.** Between a maximum and a higher one lies a valley. The difference of their heights has a spread over
the draws; a maximum less than `least_z` of it above the valley is merged with its neighbour. Maxima whose basins hold
each other are joined along x into branches, and a branch is reported if it stands out clearly somewhere along it.

**Errors.** In each draw the mode is the maximum inside the basin of the estimate: the spread over the draws holds
privacy, sampling and what the posterior does not know of the shape. What smoothing moves grows like the square of a
width; so it is read off two widths, :math:`w < w'` along x and likewise along y, and taken away,

.. math:: \hat m = m_w + \frac{w^2}{w'^2 - w^2}\,(m_w - m_{w'}) ,

in the estimate and in every draw. Half of what was taken away is added to the error. The widths are those of least
estimated error,

.. math:: \sum_x \mathrm{Var}(\hat m_w) + (\hat m_w - \hat m_{w_0})^2 - \mathrm{Var}(\hat m_w - \hat m_{w_0}) ,

with :math:`w_0` the least width: all variances come from the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.branches.branch_map import BranchMap
from fogline.density.branches.slices import Slices, grid_places
from fogline.density.counted_records import is_nothing
from fogline.density.value_words import cell_words

if TYPE_CHECKING:
    from fogline.density.posterior.posterior import Posterior

__all__ = ["POSTERIOR_BRANCHES", "PosteriorBranchTuning", "read_posterior_branches", "response_of"]


@dataclass(frozen=True)
class PosteriorBranchTuning:
    """What is tuned of branches from a posterior.

    Attributes
    ----------
    widths : tuple of float
        Widths of pooling along x that are tried, as parts of its range.
    sparse_widths : tuple of float
        Larger ones, for places where the records are few.
    smoothing : tuple of float
        Widths of smoothing along y, as parts of the spread of a slice.
    least_z : float
        A maximum belongs to a branch if it stands this many deviations above its valley.
    clear_z : float
        A branch is reported if it stands so many deviations out at one place.
    least_share : float
        Part of a slice that a basin must hold.
    least_nodes : int
        Places that a branch must have.
    end_share : float
        A branch has ended where the nearest records have surely less than this part of its share.
    remainder : float
        Part of the correction for smoothing that is added to the error.
    largest_correction : float
        In spreads of the slice.
    reach : int
        Places to either side over which squared corrections are averaged.
    """

    widths: tuple[float, ...] = (0.02, 0.034, 0.058, 0.098)
    sparse_widths: tuple[float, ...] = (0.167, 0.284)
    smoothing: tuple[float, ...] = (0.15, 0.255, 0.43)
    least_z: float = 2.5
    clear_z: float = 5.0
    least_share: float = 0.02
    least_nodes: int = 2
    end_share: float = 0.5
    remainder: float = 0.5
    largest_correction: float = 1.0
    reach: int = 2


POSTERIOR_BRANCHES = PosteriorBranchTuning()


def response_of(posterior: Posterior, y: str | int | None) -> int:
    """Index of the response among two or three columns; the last if None.

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> response_of(example_posterior(), None)
    Traceback (most recent call last):
    ValueError: y: branches need a release of two or three columns, got one
    """
    if posterior.d < 2:
        raise ValueError("y: branches need a release of two or three columns, got one")
    if y is None:
        return posterior.d - 1
    if isinstance(y, str):
        if y not in posterior.columns:
            raise ValueError(f"y: column {y!r} was not released; there are {', '.join(posterior.columns)}")
        return posterior.columns.index(y)
    if not 0 <= int(y) < posterior.d:
        raise ValueError(f"y must be below {posterior.d}, got {y}")
    return int(y)


# -- one slice ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Peaks:
    """Maxima of one slice: leaf, basin, how clearly it stands out."""

    leaf: IntArray
    first: IntArray
    last: IntArray
    z: FloatArray
    prominence: FloatArray


def _maxima(row: FloatArray) -> IntArray:
    """Leaves higher than their neighbours, walls included; of a plateau its first."""
    padded = np.concatenate([[-np.inf], row, [-np.inf]])
    return np.flatnonzero((padded[1:-1] > padded[:-2]) & (padded[1:-1] >= padded[2:]))


def _standing(row: FloatArray, drawn: FloatArray, least_z: float) -> _Peaks:
    """Merge maxima that do not stand out, the least clear first; the highest is compared with the lowest place."""
    peaks = _maxima(row).tolist()

    def valley(a: int, b: int) -> int:
        return a + int(np.argmin(row[a : b + 1]))

    def clear(top: int, low: int) -> float:
        apart = drawn[:, top] - drawn[:, low]
        return float((row[top] - row[low]) / max(float(apart.std()), 1e-12 * max(float(row.max()), 1e-300), 1e-300))

    def measured() -> list[tuple[float, float]]:
        found = []
        for k, peak in enumerate(peaks):
            sides = [(valley(peaks[k - 1], peak), peaks[k - 1])] if k else []
            sides += [(valley(peak, peaks[k + 1]), peaks[k + 1])] if k + 1 < len(peaks) else []
            # towards a lower neighbour a maximum need not stand out: that one is judged there
            higher = [low for low, other in sides if row[other] >= row[peak]]
            lows = higher if higher else [int(np.argmin(row))]
            found.append(min((clear(peak, low), float(row[peak] - row[low])) for low in lows))
        return found

    while True:
        told = measured()
        if len(peaks) <= 1:
            break
        worst = int(np.argmin([z for z, _ in told]))
        if told[worst][0] >= least_z:
            break
        del peaks[worst]
    cuts = [valley(a, b) for a, b in pairwise(peaks)]
    first, last = np.array([0, *cuts]), np.array([*cuts, len(row) - 1])
    return _Peaks(np.array(peaks), first, last, np.array([z for z, _ in told]), np.array([h for _, h in told]))


def _tops(profiles: FloatArray, first: int, last: int) -> FloatArray:
    """Places of the maxima of rows inside a basin, in leaves; between leaves by a parabola."""
    part = profiles[:, first : last + 1]
    top = first + np.argmax(part, axis=1)
    rows = np.arange(len(profiles))
    inner = (top > 0) & (top < profiles.shape[1] - 1)
    middle = np.clip(top, 1, profiles.shape[1] - 2)
    left, here, right = (profiles[rows, middle + k].astype(np.float64) for k in (-1, 0, 1))
    bend = left - 2 * here + right
    shift = np.where(inner & (bend < 0), 0.5 * (left - right) / np.where(bend < 0, bend, -1.0), 0.0)
    return np.asarray(top + np.clip(shift, -0.5, 0.5))


# -- all slices at one choice of widths ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Profiles:
    """Smoothed slices at all places: conditional densities of the estimate and of the draws, per leaf."""

    estimate: FloatArray
    drawn: FloatArray
    bandwidth: FloatArray


def _profiles(
    slices: Slices, pooled: tuple[FloatArray, FloatArray], smoothing: float, spreads: FloatArray
) -> _Profiles:
    estimate, drawn = pooled
    bandwidth = smoothing * spreads
    smooth, moved = np.empty_like(estimate), np.empty_like(drawn)
    for i, b in enumerate(bandwidth):
        matrix = slices.smoother(float(b))
        smooth[i] = matrix @ estimate[i]
        moved[:, i] = drawn[:, i] @ matrix.T.astype(np.float32)
    smooth /= np.maximum(smooth.sum(axis=1, keepdims=True), 1e-300)
    moved /= np.maximum(moved.sum(axis=2, keepdims=True), 1e-30)
    return _Profiles(smooth, moved, bandwidth)


def _around_highest(profiles: _Profiles) -> tuple[IntArray, IntArray]:
    """First and last leaf of the stretch around the highest mode where a slice is at least half as high, per place."""
    size, margin = profiles.estimate.shape[1], 4
    first, last = [], []
    for row in profiles.estimate:
        top = int(np.argmax(row))
        low, high = np.flatnonzero(row[:top] < 0.5 * row[top]), np.flatnonzero(row[top:] < 0.5 * row[top])
        first.append(max(0, (int(low[-1]) if len(low) else 0) - margin))
        last.append(min(size - 1, (top + int(high[0]) if len(high) else size - 1) + margin))
    return np.array(first), np.array(last)


Positions = tuple[FloatArray, FloatArray]


def _positions(profiles: _Profiles, first: IntArray, last: IntArray) -> Positions:
    """Modes inside a stretch at each place, of the estimate and of the draws, in leaves."""
    ends = list(zip(first.tolist(), last.tolist(), strict=True))
    middle = [_tops(row[None], *pair)[0] for row, pair in zip(profiles.estimate, ends, strict=True)]
    drawn = [_tops(profiles.drawn[:, i], *pair) for i, pair in enumerate(ends)]
    return np.array(middle), np.stack(drawn, axis=1)


def _corrected(
    base: Positions, wider_x: Positions, wider_y: Positions, ratios: tuple[FloatArray, FloatArray], most: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Take away what smoothing moved, by positions at wider widths; also what was taken away.

    Parameters
    ----------
    ratios : two arrays
        Wider width over width, along x and along y.
    most : array
        Largest correction at each place.
    """
    factors = [np.where(r > 1.01, 1 / np.maximum(r**2 - 1, 1e-9), 0.0) for r in ratios]
    moved = []
    for part in (0, 1):
        change = factors[0] * (base[part] - wider_x[part]) + factors[1] * (base[part] - wider_y[part])
        moved.append(np.clip(change, -most, most))
    return base[0] + moved[0], base[1] + moved[1], moved[0]


def _risk(found: list[Positions], known: BoolArray, unit: FloatArray) -> FloatArray:
    """Estimated squared error of each choice relative to the spread of the slices; the first is the least smooth."""
    base, base_drawn = found[0]
    risks = []
    for middle, drawn in found:
        apart = (middle - base) ** 2 - (drawn - base_drawn).var(axis=0)
        risks.append(np.mean(((drawn.var(axis=0) + apart) / unit**2)[known]))
    return np.array(risks)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Slices at the chosen widths, and at the next larger ones along x and along y."""

    profiles: _Profiles
    wider_x: _Profiles
    wider_y: _Profiles
    ratios: tuple[FloatArray, FloatArray]
    known: BoolArray
    width: FloatArray
    spreads: FloatArray
    finest: tuple[FloatArray, FloatArray]


def _choose(slices: Slices, places: FloatArray) -> _Chosen:
    widths, smoothing = POSTERIOR_BRANCHES.widths, POSTERIOR_BRANCHES.smoothing
    candidates = widths + POSTERIOR_BRANCHES.sparse_widths
    own, known = zip(*(slices.known_widths(places, width, candidates) for width in widths), strict=True)
    pooled = [slices.pooled(slices.weights(places, width)) for width in own]
    middle = len(widths) // 2
    spreads = slices.spreads(pooled[middle][0])
    unit, seen = spreads / slices.y.width, known[0]
    j = 1
    along_x = [_profiles(slices, part, smoothing[j], spreads) for part in pooled]
    first, last = _around_highest(along_x[middle])
    at_x = [_positions(part, first, last) for part in along_x]
    one = np.ones(len(places))
    ratios_x = [own[k + 1] / own[k] for k in range(len(widths) - 1)]
    found = [_corrected(at_x[k], at_x[k + 1], at_x[k], (ratios_x[k], one), unit)[:2] for k in range(len(ratios_x))]
    k = int(np.argmin(_risk(found, seen, unit))) if seen.any() else 0
    along_y = [_profiles(slices, pooled[k], amount, spreads) for amount in smoothing]
    at_y = [_positions(part, first, last) for part in along_y]
    ratios_y = [one * smoothing[i + 1] / smoothing[i] for i in range(len(smoothing) - 1)]
    found = [_corrected(at_y[i], at_y[i], at_y[i + 1], (one, ratios_y[i]), unit)[:2] for i in range(len(ratios_y))]
    j = int(np.argmin(_risk(found, seen, unit))) if seen.any() else 0
    wider_x = _profiles(slices, pooled[k + 1], smoothing[j], spreads)
    ratios = (ratios_x[k], ratios_y[j])
    return _Chosen(along_y[j], wider_x, along_y[j + 1], ratios, seen, own[k], spreads, pooled[0])


# -- branches -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Found:
    """All maxima at all places; positions are in leaves, `leaf` is not corrected for smoothing."""

    place: IntArray
    leaf: FloatArray
    first: IntArray
    last: IntArray
    position: FloatArray
    z: FloatArray
    height: FloatArray
    prominence: FloatArray
    sd: FloatArray
    correction: FloatArray
    share: FloatArray
    ended: BoolArray


def _ended(chosen: _Chosen, place: int, first: int, last: int, share: float) -> bool:
    """Whether the records nearest to a place surely have too little in a basin: the branch has ended before it."""
    estimate, drawn = chosen.finest[0][place], chosen.finest[1][:, place]
    own = float(estimate[first : last + 1].sum() / max(float(estimate.sum()), 1e-300))
    shares = drawn[:, first : last + 1].sum(axis=1) / np.maximum(drawn.sum(axis=1), 1e-30)
    return own + 1.64 * float(shares.std()) < POSTERIOR_BRANCHES.end_share * share


def _all_maxima(chosen: _Chosen, leaf_width: float) -> _Found:
    columns: list[list[Any]] = [[] for _ in range(12)]
    scales = (chosen.profiles, chosen.wider_x, chosen.wider_y)
    for i in np.flatnonzero(chosen.known).tolist():
        row, drawn = chosen.profiles.estimate[i], chosen.profiles.drawn[:, i]
        peaks = _standing(row, drawn, POSTERIOR_BRANCHES.least_z)
        most = np.array(POSTERIOR_BRANCHES.largest_correction * chosen.spreads[i] / leaf_width)
        ratios = (chosen.ratios[0][i], chosen.ratios[1][i])
        for k in range(len(peaks.leaf)):
            ends = int(peaks.first[k]), int(peaks.last[k])
            parts = [(_tops(part.estimate[i][None], *ends), _tops(part.drawn[:, i], *ends)) for part in scales]
            middle, moved, correction = _corrected(parts[0], parts[1], parts[2], ratios, most)
            share = float(row[ends[0] : ends[1] + 1].sum())
            values = (
                i, parts[0][0][0], *ends, middle[0], peaks.z[k], row[int(peaks.leaf[k])], peaks.prominence[k],
                np.sqrt(np.mean((moved - middle[0]) ** 2)), correction[0], share,
                _ended(chosen, i, *ends, share),
            )  # fmt: skip
            for column, value in zip(columns, values, strict=True):
                column.append(value)
    arrays: list[Any] = [
        np.array(column, dtype={0: np.int64, 2: np.int64, 3: np.int64, 11: np.bool_}.get(k, np.float64))
        for k, column in enumerate(columns)
    ]
    return _Found(*arrays)


def _neighbours(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs of places next to each other along one axis."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    pairs: list[tuple[int, int]] = []
    for axis in range(len(shape)):
        a, b = np.moveaxis(index, axis, 0)[:-1].ravel(), np.moveaxis(index, axis, 0)[1:].ravel()
        pairs.extend(zip(a.tolist(), b.tolist(), strict=True))
    return pairs


def _joined(found: _Found, shape: tuple[int, ...]) -> IntArray:
    """Number of the branch of each maximum: joined where each lies in the other's basin, nearest first."""
    at: dict[int, list[int]] = {}
    for k, place in enumerate(found.place.tolist()):
        at.setdefault(place, []).append(k)
    links = []
    for a, b in _neighbours(shape):
        for i in at.get(a, []):
            for j in at.get(b, []):
                mutual = (
                    found.first[j] <= found.leaf[i] <= found.last[j]
                    and found.first[i] <= found.leaf[j] <= found.last[i]
                )
                if mutual:
                    links.append((abs(float(found.leaf[i] - found.leaf[j])), i, j))
    branch = list(range(len(found.place)))
    members = {k: {int(found.place[k])} for k in branch}
    for _, i, j in sorted(links):
        a, b = branch[i], branch[j]
        # one branch has one mode at a place
        if a == b or members[a] & members[b]:
            continue
        members[a] |= members.pop(b)
        branch = [a if number == b else number for number in branch]
    return np.array(branch, dtype=np.int64)


def _reported(found: _Found, branch: IntArray) -> BoolArray:
    """Which maxima belong to branches that stand out and are no specks."""
    tuning = POSTERIOR_BRANCHES
    clear = np.zeros(len(branch), dtype=bool)
    for number in np.unique(branch):
        own = branch == number
        if own.sum() >= tuning.least_nodes and found.z[own].max() >= tuning.clear_z:
            clear |= own
    kept = clear & (found.z >= tuning.least_z) & (found.share >= tuning.least_share)
    # some response must be the likeliest: where nothing else is left, a branch goes on
    return np.asarray(kept & (~found.ended | ~np.isin(found.place, found.place[kept & ~found.ended])))


def _remainders(found: _Found, branch: IntArray, grid: FloatArray, widths: FloatArray) -> FloatArray:
    """What may be left of the bias: a part of the corrections, averaged over a few places of the branch."""
    spacing = widths / np.maximum([len(np.unique(grid[:, k])) - 1 for k in range(grid.shape[1])], 1)
    place = grid[found.place] / spacing
    squared = np.empty(len(branch))
    for k in range(len(branch)):
        near = (branch == branch[k]) & (np.abs(place - place[k]).max(axis=1) <= POSTERIOR_BRANCHES.reach + 1e-6)
        squared[k] = np.mean(found.correction[near] ** 2)
    return np.asarray(POSTERIOR_BRANCHES.remainder * np.sqrt(squared))


def _slopes(place: IntArray, branch: IntArray, position: FloatArray, grid: FloatArray) -> FloatArray:
    """Slopes of branches along x by least squares over neighbouring places."""
    x, slopes = grid[place], np.zeros((len(place), grid.shape[1]))
    spacing = np.array([np.diff(np.unique(grid[:, k])).min() for k in range(grid.shape[1])])
    for k in range(len(place)):
        near = (branch == branch[k]) & (np.abs((x - x[k]) / spacing).max(axis=1) <= 2 + 1e-6)
        if near.sum() > grid.shape[1]:
            design = np.column_stack([np.ones(near.sum()), x[near] - x[k]])
            slopes[k] = np.linalg.lstsq(design, position[near], rcond=None)[0][1:]
    return slopes


@np.errstate(all="ignore")
def read_posterior_branches(posterior: Posterior, y: str | int | None = None) -> BranchMap:
    """Branches of one column given the others, with 95% bands; free.

    Parameters
    ----------
    posterior : Posterior
        Of two or three columns.
    y : str or int, optional
        The response; by default the last column.

    Returns
    -------
    BranchMap
        With `low`, `high` and `wall_sides` filled in.
    """
    response = response_of(posterior, y)
    name, side = posterior.columns[response], posterior.bucket_side(response)
    posterior, atoms = posterior.without_atoms(response)  # many records of one value are no mode of the others
    slices = Slices(posterior, response)
    places = grid_places(slices.grid)
    chosen = _choose(slices, places)
    found = _all_maxima(chosen, slices.y.width)
    shape = tuple(len(a) for a in slices.grid)
    branch = _joined(found, shape)
    kept = _reported(found, branch)
    message = _message(posterior, found, kept, chosen, bool(atoms))
    if atoms:
        step = posterior.axes[response].step
        cells = [(cell_words(atom.value, atom.low, atom.high, step), float(atom.share.value)) for atom in atoms[:3]]
        listed = ", ".join(f"{name} {cell} ({share:.0%})" for cell, share in cells)
        words = f"single values hold many records: {listed}; they are point masses, and branches are those of the rest"
        message = "; ".join(filter(None, [message, words]))
    return _branch_map(slices, places, chosen, found, branch, kept, (response, side), message)


def _branch_map(
    slices: Slices,
    places: FloatArray,
    chosen: _Chosen,
    found: _Found,
    branch: IntArray,
    kept: BoolArray,
    of: tuple[int, float],
    message: str,
) -> BranchMap:
    axis, n, (response, side) = slices.y, len(slices.y.centres), of
    rest = _remainders(found, branch, places, slices.widths) if len(branch) else np.zeros(0)
    # the branch with the most places comes first
    numbers, sizes = np.unique(branch[kept], return_counts=True)
    order = np.empty(int(numbers.max(initial=0)) + 1, dtype=np.int64)
    order[numbers[np.argsort(-sizes, kind="stable")]] = np.arange(len(numbers))
    at = np.flatnonzero(kept)
    leaf = found.leaf[at]
    wall = np.where(leaf <= 0, -1, np.where(leaf >= n - 1, 1, 0))
    position = np.interp(found.position[at], np.arange(n), axis.centres)
    position = np.where(wall < 0, axis.bounds[0], np.where(wall > 0, axis.bounds[1], position))
    # Responses that spread no wider than their buckets may be one value, anywhere in them.
    narrow = np.minimum(side / np.maximum(chosen.spreads[found.place[at]], 1e-300), 1.0)
    inside = np.maximum(axis.width**2, side**2 * narrow**4) / 12 * (axis.reach > 0)
    error = axis.width * found.sd[at]
    smoothing = np.sqrt((axis.width * rest[at]) ** 2 + inside)
    reach = 1.96 * np.sqrt(error**2 + smoothing**2)
    sampling = error / np.sqrt(2.0)
    height = found.height[at] / axis.width
    return BranchMap(
        axes=slices.grid,
        place=found.place[at],
        branch=order[branch[at]] if len(at) else np.zeros(0, dtype=np.int64),
        positions=position,
        heights=height,
        prominences=found.prominence[at] / axis.width,
        slopes=_slopes(found.place[at], branch[at], position, places),
        privacy_errors=np.sqrt(error**2 - sampling**2),
        sampling_errors=sampling,
        bandwidth=np.append(
            float(np.median(chosen.width)) * slices.widths, float(np.median(chosen.profiles.bandwidth))
        ),
        message=message,
        smoothing_errors=smoothing,
        low=np.maximum(position - reach, axis.bounds[0]),
        high=np.minimum(position + reach, axis.bounds[1]),
        wall_sides=wall,
        response=response,
    )


def _message(posterior: Posterior, found: _Found, kept: BoolArray, chosen: _Chosen, beside: bool) -> str:
    """What would help where there is no branch."""
    if kept.any():
        return ""
    count = posterior.count
    if is_nothing(float(count.value), float(count.standard_error)):
        return "no branch: hardly a record was counted" + (" beside single values" if beside else "")
    if not chosen.known.any():
        return "no branch: at no x there are records enough; more records or epsilon would help"
    best = float(found.z.max(initial=0.0))
    need = POSTERIOR_BRANCHES.clear_z
    return (
        f"no branch: the clearest maximum stands {best:.1f} deviations above its surroundings, {need:g} are needed; "
        "more records or epsilon would show it, unless the response is spread evenly"
    )
