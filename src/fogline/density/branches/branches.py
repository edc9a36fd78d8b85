r"""Conditional modes of a released joint density, as branches over x.

At each x the local maxima of the profile :math:`y \mapsto \hat f(x, y)` are conditional modes. Four steps lead from
them to branches, all on released numbers.

1. *Detection* on a grid of x. A peak's standardised prominence is its prominence over the local deviation of the noise,
   privacy and sampling together. Peaks of neighbouring x are linked into branches, and a branch counts if its
   prominence, summed along it, exceeds what noise alone reaches, anywhere, with probability `level`: simulated on
   responses that are flat. Then it grows from place to place, turning as it must.
2. *Slopes* by a local quadratic fit along the branch, then the profiles are read again along these slopes. A ridge is
   then neither blurred across nor pulled aside at the walls of x, where the kernel sees one side only.
3. *Bias*. Smoothing with bandwidth h along a branch of curvature c moves it by :math:`c h^2/2`. The branch m is
   smoothed once more, by the same weights S, and moved back by what that changed: :math:`2m - Sm` has a bias of order
   :math:`h^4` only (twicing [2]_). Then it is smoothed as far as that does not bend it (Mallows' Cp [3]_).
4. *Ends*. Where a branch ends abruptly, its smoothed ridge goes on and fades: it is cut where half its height is left.

With one axis of x, unless there are so many records that a small bandwidth is clear of the noise, steps 2 to 4 are
done at once by a fit of all branches to the released sums: see :mod:`fogline.density.branches.ridge_fit`.

References
----------
.. [1] Y.-C. Chen, C. Genovese, R. Tibshirani, L. Wasserman, "Nonparametric modal regression", Annals of Statistics 44,
   2016.
.. [2] W. Stuetzle, Y. Mittal, "Some comments on the asymptotic behavior of robust smoothers", 1979 (twicing).
.. [3] C. Mallows, "Some comments on Cp", Technometrics 15, 1973.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.branches.branch_map import BranchMap
from fogline.density.branches.detection import BranchLinks, BranchPoints, find_branch_points, local_fit
from fogline.density.branches.profiles import Lines, Profiles, mirror_basis
from fogline.density.branches.ridge_fit import fitted_branches

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = ["BRANCHES", "BranchTuning", "choose_bandwidth", "grid_places", "read_branches", "x_grid"]


@dataclass(frozen=True)
class BranchTuning:
    """What is tuned of branches: bandwidths, slopes and ends.

    Attributes
    ----------
    bandwidths : tuple
        Bandwidths of x and of y that are tried, in widths of the box.
    allowance : float
        Errors are this much larger than the noise by itself makes them: slopes and bandwidths are estimated
        too.
    fitted_from : float
        Branches are fitted where the noise asks for so large a bandwidth of x, in widths of its range.
    clear : float
        The smallest bandwidth is taken at which the highest peak stands this many noise deviations high at most
        x.
    x_places_per_bandwidth : mapping by dimension
        Places of the grid of x per bandwidth, by the number of axes of x.
    slope_width : float
        Slopes are fitted with a window of this many bandwidths.
    final_slope_width : float
        The slopes that are reported, once the bias is gone.
    steepest : float
        Slopes beyond this many bandwidths of y per bandwidth of x are cut.
    smoothers : tuple
        Windows (in bandwidths) and degrees of the local fits that may smooth a branch further.
    faintest, least_share : float
        A node is kept where the density is this many noise deviations high, and this part of the height of the highest
        branch at its place.
    end_height, end_reach, end_quantile : float or tuple
        A branch is cut where it has less than this part of the height that most of it has between this many bandwidths
        off: half of the 94 percent that a kernel sees 1.5 bandwidths inside of an end. Not the highest of it, which
        noise would raise.
    """

    bandwidths: tuple[tuple[float, float], ...] = (
        (0.03, 0.035),
        (0.04, 0.045),
        (0.055, 0.05),
        (0.075, 0.06),
        (0.1, 0.07),
    )
    allowance: float = 1.35
    fitted_from: float = 0.05
    clear: float = 18.0
    x_places_per_bandwidth: Mapping[int, float] = field(default_factory=lambda: {1: 6.0, 2: 1.5})
    slope_width: float = 1.2
    final_slope_width: float = 0.5
    steepest: float = 4.0
    smoothers: tuple[tuple[float, int], ...] = ((1.0, 2), (1.5, 2), (2.5, 2), (5.0, 2), (3.0, 1), (10.0, 1))
    faintest: float = 3.0
    least_share: float = 0.2
    end_height: float = 0.53
    end_reach: tuple[float, float] = (1.0, 2.5)
    end_quantile: float = 0.7


BRANCHES = BranchTuning()


def x_grid(density: PrivateDensity, bandwidth: FloatArray) -> tuple[FloatArray, ...]:
    """Grid of x over its box, walls included."""
    dx = density.spec.d - 1
    return tuple(
        np.linspace(low, high, int(np.ceil((high - low) / h * BRANCHES.x_places_per_bandwidth[dx])) + 1)
        for (low, high), h in zip(density.spec.bounds[:dx], bandwidth[:dx], strict=True)
    )


def grid_places(axes: tuple[FloatArray, ...]) -> FloatArray:
    """All places of a grid, shape (P, dx)."""
    return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)


def choose_bandwidth(density: PrivateDensity, clear: float = BRANCHES.clear) -> FloatArray:
    """Smallest of the bandwidths tried at which the highest peak is `clear` of the noise at four of five x."""
    low, high = density.spec.readable
    dx = density.spec.d - 1
    bandwidths = [
        np.clip(np.append(np.full(dx, a), b) * density.spec.widths, low, high) for a, b in BRANCHES.bandwidths
    ]
    # Two axes of x leave too few records per place for the finer bandwidths.
    if dx > 1:
        bandwidths = bandwidths[-1:]
    for bandwidth in bandwidths:
        profiles = Profiles(density, bandwidth)
        y = profiles.y_axis(2.0)
        # Half as many places as branches are read at: this look only compares bandwidths.
        values, variance = profiles.lines(grid_places(x_grid(density, 2 * bandwidth))).on(mirror_basis(profiles, y))
        clearest = np.max(values / np.sqrt(variance), axis=1)
        # Four of five: where hardly anyone is, no bandwidth is clear.
        if np.quantile(clearest, 0.2) >= clear:
            return np.asarray(bandwidth)
    return np.asarray(bandwidths[-1])


def read_branches(density: PrivateDensity, level: float, bandwidth: FloatArray | None = None) -> BranchMap:
    """Find, judge and locate the branches of a density of (x, y)."""
    h = choose_bandwidth(density) if bandwidth is None else bandwidth
    profiles = Profiles(density, h)
    axes = x_grid(density, h)
    shape = tuple(len(a) for a in axes)
    branch_points, branch_links, message = find_branch_points(density, profiles, shape, grid_places(axes), level)
    fitted = None
    if (
        density.spec.d == 2
        # A bandwidth that the user fixed is taken at its word: the branches of that smoothing, without a fit behind it.
        and bandwidth is None
        and h[0] >= BRANCHES.fitted_from * density.spec.widths[0]
        and len(branch_points.place)
    ):
        fitted = fitted_branches(density, profiles, axes[0], branch_points, branch_links)
    return _located(density, profiles, axes, branch_points, branch_links, message) if fitted is None else fitted


# -- location ------------------------------------------------------------------------------------------------


def _located(
    density: PrivateDensity,
    profiles: Profiles,
    axes: tuple[FloatArray, ...],
    seen: BranchPoints,
    branch_links: BranchLinks,
    message: str,
) -> BranchMap:
    places = grid_places(axes)
    x = places[seen.place]
    position, slopes, lines = _along_slopes(profiles, x, seen.position, branch_links)
    inside = profiles.inside(x)
    height = lines.at(position)
    privacy, sampling = _errors(density, profiles, lines, position, inside)
    kept = np.ones(len(x), dtype=bool)
    rough = profiles.roughness()
    for branch_points in branch_links.groups():
        away = x[branch_points][:, None] - x[branch_points][None]
        apart = np.sqrt(np.sum((away / profiles.x_bandwidth) ** 2, axis=2))
        # Correlations of the errors along the branch: exact for sampling on level ground, matched for privacy.
        parts = [
            (privacy, np.exp(-0.5 * np.sum((away * rough) ** 2, axis=2))),
            (sampling, np.exp(-0.25 * apart**2)),
        ]
        covariance = sum(np.outer(part[branch_points], part[branch_points]) * shared for part, shared in parts)
        weights = _weights(x[branch_points], position[branch_points], np.asarray(covariance), profiles.x_bandwidth)
        position[branch_points] = weights @ position[branch_points]
        slopes[branch_points] = local_fit(
            x[branch_points], position[branch_points], BRANCHES.final_slope_width * profiles.x_bandwidth, 2
        ).slopes
        # The weights mix errors along the branch, so the correlated sum is what is left of each part.
        for part, shared in parts:
            scaled = weights * part[branch_points]
            part[branch_points] = np.sqrt(np.einsum("ij,ij->i", scaled @ shared, scaled))
        kept[branch_points] = _within_ends(height[branch_points] / inside[branch_points], apart)
    bandwidth = np.append(profiles.x_bandwidth, profiles.y_bandwidth)
    # An end is cut by heights, which are noisy: no place may lose its last branch by that.
    kept = _never_none(kept, seen.place, height)
    low, high = profiles.spec.bounds[-1]
    kept &= (position >= low) & (position <= high)
    kept &= _standing(density, bandwidth, np.column_stack([x, position]), seen.place)
    normal = profiles.normal(lines)
    order = np.flatnonzero(kept)
    return BranchMap(
        axes=axes,
        place=seen.place[order],
        branch=branch_links.renumbered(kept)[order],
        positions=position[order],
        heights=(np.maximum(height, 0.0) * normal)[order],
        prominences=(seen.prominence * normal)[order],
        slopes=slopes[order],
        privacy_errors=privacy[order],
        sampling_errors=sampling[order],
        bandwidth=bandwidth,
        message=message,
    )


def _along_slopes(
    profiles: Profiles, x: FloatArray, position: FloatArray, branch_links: BranchLinks
) -> tuple[FloatArray, FloatArray, Lines]:
    """Positions read along the slopes of their branches, these slopes, and the profiles."""
    # Slopes need positions and positions need slopes: two rounds, from level lines.
    slopes = np.zeros_like(x)
    lines = profiles.lines(x)
    for _ in range(2):
        for branch_points in branch_links.groups():
            slopes[branch_points] = local_fit(
                x[branch_points], position[branch_points], BRANCHES.slope_width * profiles.x_bandwidth, 2
            ).slopes
        # Along a steeper line the kernel would reach across the whole of y.
        steepest = BRANCHES.steepest * profiles.y_bandwidth / profiles.x_bandwidth
        slopes = np.clip(slopes, -steepest, steepest)
        lines = profiles.lines(x, slopes)
        position = _climb(profiles, lines, position)
    return position, slopes, lines


def _climb(profiles: Profiles, lines: Lines, position: FloatArray) -> FloatArray:
    """Guarded Newton steps to the top of each profile."""
    b = profiles.y_bandwidth
    for _ in range(12):
        # The curvature of a Gaussian six times as wide as the kernel is the least that is believed.
        bend = np.maximum(np.abs(lines.at(position, 2)), np.maximum(lines.at(position), 1e-300) / (6 * b**2))
        position = position + np.clip(lines.at(position, 1) / bend, -b / 2, b / 2)
    return position


def _errors(
    density: PrivateDensity, profiles: Profiles, lines: Lines, position: FloatArray, inside: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Standard errors of positions: deviation of the derivative's noise over the curvature.

    For sampling the ridge is taken to be Gaussian across, of variance :math:`\tau^2` read off the curvature.
    """
    b = profiles.y_bandwidth
    height = np.maximum(lines.at(position), 1e-300)
    bend = np.maximum(np.abs(lines.at(position, 2)), height / (6 * b**2))
    # A noisy curvature may suggest a ridge narrower than nothing, or endlessly wide.
    spread = np.clip(height / bend - b**2, 0.1 * b**2, 5 * b**2)
    mass = height * np.sqrt(spread + b**2)
    across = spread * b**2 / 2 / (spread + b**2 / 2)
    derivative = mass * across / np.sqrt(spread + b**2 / 2) / b**4 * profiles.kernel_energy / np.maximum(inside, 0.5)
    # At a wall of x the kernel sees one side: what the slope is wrong by moves the position as well.
    sides = BRANCHES.allowance**2 * (1 + ((1 - inside) / 0.5 * 0.8) ** 2)
    return lines.noise_sd(1) / bend * np.sqrt(sides), np.sqrt(derivative / density.count * sides) / bend


def _weights(x: FloatArray, position: FloatArray, covariance: FloatArray, width: FloatArray) -> FloatArray:
    r"""Matrix that corrects the bias of a branch's positions m and smooths them as far as that does not bend them.

    With t the twiced positions and C the covariance of their errors, the smoother S of least
    :math:`|t - S t|^2 + 2\,\mathrm{tr}\,S C` is taken: an unbiased estimate of its risk, up to a constant.
    """
    # Twicing: what smoothing once more takes away is an estimate of what the first smoothing took.
    twice = 2 * np.eye(len(x)) - local_fit(x, position, width, 1).weights
    corrected = twice @ position
    covariance = twice @ covariance @ twice.T
    after = np.sqrt(np.diag(covariance))
    # No further smoothing is one of the candidates, so a branch is never bent for nothing.
    best, chosen = 2 * float(np.trace(covariance)), np.eye(len(x))
    for window, degree in BRANCHES.smoothers:
        smoother = local_fit(x, corrected, window * width, degree, errors=after).weights
        risk = float(np.sum((corrected - smoother @ corrected) ** 2) + 2 * np.trace(smoother @ covariance))
        if risk < best:
            best, chosen = risk, smoother
    return np.asarray(chosen @ twice)


def _never_none(kept: BoolArray, place: IntArray, height: FloatArray) -> BoolArray:
    """Keep the highest node of a place where all lie beyond their ends: some response must be the likeliest."""
    lost = np.flatnonzero(~np.isin(place, place[kept]))
    best: dict[int, int] = {}
    for k in lost[np.argsort(height[lost], kind="stable")].tolist():
        best[int(place[k])] = k
    full = kept.copy()
    full[list(best.values())] = True
    return full


def _standing(density: PrivateDensity, bandwidth: FloatArray, points: FloatArray, place: IntArray) -> BoolArray:
    """Which nodes stand out by themselves: above the noise and not dwarfed by another branch at their place.

    A branch as a whole may be clear and still have been followed beyond its end, into the noise.
    """
    if not len(points):
        return np.zeros(0, dtype=bool)
    reading = density.reading(bandwidth)
    height = reading.value(points)
    highest = np.full(int(place.max()) + 1, -np.inf)
    np.maximum.at(highest, place, height)
    return np.asarray(
        (height >= BRANCHES.faintest * reading.noise_sd) & (height >= BRANCHES.least_share * highest[place])
    )


def _within_ends(height: FloatArray, apart: FloatArray) -> BoolArray:
    """Which nodes of a branch are not the fading tail of an abrupt end."""
    near = (apart >= BRANCHES.end_reach[0]) & (apart <= BRANCHES.end_reach[1])
    # A node without neighbours at this distance has nothing to fade from: it stays.
    highest = np.full(len(height), -np.inf)
    some = near.any(axis=1)
    around = np.where(near[some], height[None, :], np.nan)
    highest[some] = np.nanquantile(around, BRANCHES.end_quantile, axis=1)
    return np.asarray(height >= BRANCHES.end_height * highest)
