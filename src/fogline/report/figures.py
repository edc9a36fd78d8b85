"""The pictures of the report, as inline SVG: a map (d = 2), a curve (d = 1) or three marginal maps (d = 3).

Axis limits are the public bounds; everything drawn is read from the release.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fogline.report.drawing import canvas, position_marks
from fogline.report.findings import Findings
from fogline.report.plane import Plane, heat, plane_map
from fogline.report.profile import Profile, profile_curve
from fogline.report.svg import Frame, short

__all__ = ["figures"]

FloatArray = NDArray[np.float64]


def figures(findings: Findings) -> list[str]:
    """Draw the density: one picture, or three for three columns."""
    if findings.d == 1:
        return [curve(findings)]
    if findings.d == 2:
        return [density_map(findings)]
    return [marginal_map(findings, i, j) for i, j in ((0, 1), (0, 2), (1, 2))]


# -- two columns ------------------------------------------------------------------------------------------


def density_map(findings: Findings) -> str:
    """Draw filled contours, each basin in the colour of its mode, with modes and their error ellipses."""
    grid = findings.basins.grid
    places, covariances = _places(findings, 0, 1)
    return plane_map(
        Plane(
            names=(findings.columns[0], findings.columns[1]),
            bounds=(findings.bounds[0], findings.bounds[1]),
            axes=(grid.axes[0], grid.axes[1]),
            values=grid.values,
            labels=findings.basins.labels,
            floor=2 * findings.noise_sd,
            places=places,
            covariances=covariances,
        )
    )


def _places(findings: Findings, i: int, j: int) -> tuple[FloatArray, FloatArray]:
    """Modes and their covariances along two columns."""
    return findings.modes[:, [i, j]], findings.covariances[:, [[i], [j]], [i, j]]


# -- three columns ----------------------------------------------------------------------------------------


def marginal_map(findings: Findings, i: int, j: int) -> str:
    """Draw the density of two columns, the third summed over."""
    frame = Frame(56, 8, 286, 262, findings.bounds[i], findings.bounds[j])
    grid = findings.basins.grid
    (other,) = {0, 1, 2} - {i, j}
    spacing = float(grid.axes[other][1] - grid.axes[other][0])
    values = grid.values.sum(axis=other) * spacing
    layers = heat(frame, (grid.axes[i], grid.axes[j]), values, 0.05 * float(values.max()))
    names = (findings.columns[i], findings.columns[j])
    return canvas(
        356,
        318,
        f"Map of the released density of {short(names[0])} and {short(names[1])}",
        frame.border("paper"),
        layers,
        frame.border(),
        frame.axes((short(names[0], 26), short(names[1], 26)), wanted=5),
        position_marks(frame, *_places(findings, i, j)),
        class_="figure",
    )


# -- one column -------------------------------------------------------------------------------------------


def curve(findings: Findings) -> str:
    """Draw the density with its noise, and the fog out of which each peak must rise."""
    grid = findings.basins.grid
    return profile_curve(
        Profile(
            name=findings.columns[0],
            bounds=findings.bounds[0],
            axis=grid.axes[0],
            values=grid.values,
            sd=np.hypot(findings.noise_sd, findings.sampling_sd),
            labels=findings.basins.labels,
            places=findings.modes[:, 0],
            errors=np.sqrt(findings.covariances[:, 0, 0]),
        ),
        fog=(findings.fog_base, findings.fog_base + findings.fog_height),
    )
