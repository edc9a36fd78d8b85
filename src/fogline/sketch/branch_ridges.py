"""From peaks to fitted branches: what ``branch_fit`` and ``branch_ends`` need, and what they give, in data units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.branch_ends import FittedRidges, fit_ridges
from fogline.sketch.branch_fit import KNOTS, TYPICAL, Ridge, Sums
from fogline.sketch.branch_map import BranchMap
from fogline.sketch.branch_nodes import Nodes
from fogline.sketch.branch_threads import Threads, by_length
from fogline.sketch.landscape import find_peaks
from fogline.sketch.profiles import Lines, Profiles, mirror_basis

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["fitted_branches"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ALLOWANCE = 1.1
"""Errors are this much larger than the fit by itself says: ends, widths and bends are estimated too."""

PER_BANDWIDTH = 20
"""Places of the grid of x a bandwidth."""

Y_PER_BANDWIDTH = 5.0
"""Grid points a bandwidth of y on which prominences are read."""


def fitted_branches(
    density: PrivateDensity, profiles: Profiles, x_axis: FloatArray, seen: Nodes, threads: Threads
) -> BranchMap | None:
    """Fit all branches of one axis of x to the released sums at once; None if nothing is left of them."""
    spec = density.spec
    bandwidth = np.append(profiles.x_bandwidth, profiles.y_bandwidth)
    relative = bandwidth / spec.widths
    h = float(relative[0])
    starts = _starts(profiles, (x_axis[seen.place] - spec.lower[0]) / spec.widths[0], seen, threads, relative)
    found = fit_ridges(Sums.of(density), starts, relative)
    if found is None:
        return None
    low, high = spec.bounds[0]
    axis = np.linspace(low, high, int(np.ceil(PER_BANDWIDTH / h)) + 1)
    t = (axis - spec.lower[0]) / spec.widths[0]
    level = profiles.marginal(profiles.lines(axis[:, None]))[0] / profiles.inside(axis[:, None])
    branch, place = np.nonzero(found.within(t, level * spec.widths[0], h))
    columns = _columns(found, branch, t[place])
    within = (columns[0] >= 0) & (columns[0] <= 1)
    branch, place, columns = branch[within], place[within], columns[:, within]
    position = spec.lower[1] + columns[0] * spec.widths[1]
    slopes = (columns[1] * spec.widths[1] / spec.widths[0])[:, None]
    lines = profiles.lines(axis[place][:, None], slopes)
    normal = profiles.normal(lines)
    errors = ALLOWANCE * np.sqrt(columns[2:]) * spec.widths[1]
    return BranchMap(
        axes=(axis,),
        place=place,
        branch=by_length(branch),
        positions=position,
        heights=np.maximum(lines.at(position), 0.0) * normal,
        prominences=_prominences(profiles, lines, position) * normal,
        slopes=slopes,
        privacy_errors=errors[0],
        sampling_errors=errors[1],
        bandwidth=bandwidth,
        message="",
    )


def _starts(profiles: Profiles, x: FloatArray, seen: Nodes, threads: Threads, bandwidth: FloatArray) -> list[Ridge]:
    """Ridges through the peaks, in units of the box, at least a knot long."""
    spec = profiles.spec
    h, b = map(float, bandwidth)
    y = (seen.position - spec.lower[1]) / spec.widths[1]
    mass = seen.height * float(np.prod(spec.widths)) * np.sqrt(2 * np.pi * (1 + TYPICAL**2)) * b
    starts = []
    for nodes in threads.groups():
        longer = max(KNOTS * h - float(np.ptp(x[nodes])), 0.0) / 2
        ends = float(x[nodes].min()) - longer, float(x[nodes].max()) + longer
        starts.append(Ridge.through(x[nodes], y[nodes], mass[nodes], ends, KNOTS * h, TYPICAL * b))
    return starts


def _columns(found: FittedRidges, branch: IntArray, x: FloatArray) -> FloatArray:
    """Position, slope and the two variances, privacy and sampling, of ridges at places x; shape (4, places)."""
    columns = np.zeros((4, len(x)))
    for k, (ridge, own) in enumerate(zip(found.solution.ridges, found.solution.blocks(), strict=True)):
        mine = branch == k
        nearest = np.clip(x[mine], ridge.low, ridge.high)
        basis = ridge.basis(nearest)
        whole, privacy = (
            np.einsum("ki,ij,kj->k", basis, covariance[own, own], basis)
            for covariance in (found.solution.covariance, found.solution.privacy)
        )
        slopes = ridge.basis(nearest, 1) @ ridge.position
        columns[:, mine] = [ridge.positions(x[mine]), slopes, privacy, np.maximum(whole - privacy, 0.0)]
    return columns


def _prominences(profiles: Profiles, lines: Lines, position: FloatArray) -> FloatArray:
    """Prominence of the peak of each profile that is nearest to a position; 0 if none is within a bandwidth."""
    y = profiles.y_axis(Y_PER_BANDWIDTH)
    peaks = find_peaks(lines.on(mirror_basis(profiles, y))[0])
    away = np.abs(y[peaks.cell] - position[peaks.field])
    order = np.argsort(-away, kind="stable")
    near = order[away[order] <= profiles.y_bandwidth]
    found = np.zeros(len(position))
    found[peaks.field[near]] = peaks.prominence[near]  # of several the last stays: the nearest
    return found
