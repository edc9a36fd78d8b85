"""Shares of the records on the slopes that lead up to a wall, with errors that hold where the slopes end.

In one column a slope ends at the lowest point between the wall and what rises next: a mode, another wall, or a hump
that is too faint for a mode. Each draw of the posterior has its own lowest point, so that a flat valley, in which it
may lie anywhere, is a doubt in the error. In several columns the slopes are the area as it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import gaussian_filter1d

from fogline._typing import FloatArray

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = ["WALL_SHARES", "WallShareSettings", "slope_shares"]


@dataclass(frozen=True)
class WallShareSettings:
    """Tuned numbers of the shares.

    Attributes
    ----------
    cells : float
        Cells per bandwidth in which draws are smoothed.
    rise : float
        A hump that is no mode ends the slope of a wall where it rises by so many standard errors from the valley.
    """

    cells: float = 4.0
    rise: float = 1.0


WALL_SHARES = WallShareSettings()


def slope_shares(
    density: PrivateDensity,
    sides: Sequence[str],
    bandwidths: Sequence[float],
    modes: FloatArray,
    settings: WallShareSettings = WALL_SHARES,
) -> tuple[FloatArray, FloatArray]:
    """Shares of the records beside point masses on the slopes of walls of a single column, and standard errors.

    Parameters
    ----------
    density : PrivateDensity
        On leaves.
    sides : sequence of {"low", "high"}
        The walls.
    bandwidths : sequence of float
        At which each wall was seen.
    modes : array of shape (k, 1)
    settings : WallShareSettings, optional
    """
    posterior = density.posterior.without_atoms(0)[0]
    axis, masses = posterior.axes[0], posterior.masses()
    shares, errors = np.zeros(len(sides)), np.zeros(len(sides))
    for k, (side, bandwidth) in enumerate(zip(sides, bandwidths, strict=True)):
        group = max(1, int(bandwidth / axis.width / settings.cells))
        starts = np.arange(0, len(axis.centres), group)
        x = np.add.reduceat(axis.centres, starts) / np.diff(np.append(starts, len(axis.centres)))
        # seen from the wall: the slope begins at the first cell
        turn = 1 if side == "low" else -1
        estimate, draws = (
            np.add.reduceat(part, starts, axis=-1)[..., ::turn] for part in (masses.estimate, masses.draws)
        )
        sigma = bandwidth / axis.width / group
        smooth, drawn = (gaussian_filter1d(part, sigma, axis=-1, mode="reflect") for part in (estimate, draws))
        places = [int(np.argmin(np.abs(x[::turn] - place))) for place in modes[:, 0]]
        if any(other != side for other in sides):
            places.append(len(x) - 1)
        end = min(places, default=_next_hump(smooth, drawn, settings.rise))
        valley = drawn[:, : end + 1].argmin(axis=1) if end else np.full(len(drawn), len(x))
        below = np.concatenate([np.zeros((len(draws), 1)), np.cumsum(draws, axis=1)], axis=1)
        # the lowest cell belongs to both sides by half
        mass = (below[np.arange(len(draws)), valley] + below[np.arange(len(draws)), np.minimum(valley + 1, len(x))]) / 2
        shares[k], errors[k] = float(mass.mean()), float(mass.std())
    return shares, errors


def _next_hump(smooth: FloatArray, drawn: FloatArray, rise: float) -> int:
    """Cell of the hump that rises most from a valley beside the wall; 0 where none surely rises at all.

    Roots of counts have about the same noise wherever they are.
    """
    root = np.sqrt(np.maximum(smooth, 0.0))
    above = np.maximum.accumulate(root[::-1])[::-1]
    valley = int(np.argmax(above - root))
    hump = valley + int(np.argmax(root[valley:]))
    gain = drawn[:, hump] - drawn[:, valley]
    return hump if hump > valley and gain.mean() > rise * gain.std() else 0
