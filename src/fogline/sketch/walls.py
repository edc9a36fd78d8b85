"""Records that gather at a wall of the box: no mode, and worth a word.

A mode has lower ground all around it. Where a column ends (stays cannot be shorter than nothing) the densest place is
often the end itself, or so close to it that its kernel reaches over. The walls are mirrors, so there the density rises
all the way to the wall, nothing stands out, and the largest group of all may be missing from a list of modes. This says
so, from the release alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fogline.sketch import fog
from fogline.sketch.noise_peaks import Ground, fold
from fogline.sketch.tracks import Ladder

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["at_a_wall"]

FloatArray = NDArray[np.float64]

CLEARLY = 6.0
"""Standard deviations by which a wall must be denser than all modes: far beyond what noise does anywhere in a box."""

NEAR = 3.0
"""A mode within so many bandwidths of the place is taken for it."""


def at_a_wall(density: PrivateDensity, ladder: Ladder, modes: FloatArray) -> str:
    """Say where records are denser, at a wall, than at any of the modes; empty if they are not.

    Parameters
    ----------
    density : PrivateDensity
    ladder : Ladder
        Bandwidths at which modes were sought.
    modes : array of shape (k, d)
        Those that are reported; with none of them a wall is compared with the mean of the box.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> sketch = DensitySketch([(0, 10)]).update(np.random.default_rng(0).exponential(1, size=(5000, 1)))
    >>> "records are densest at the low end of column 1" in sketch.release(epsilon=1.0, delta=1e-5).modes().message
    True
    """
    rungs = fog.tested_rungs(ladder)
    null = fog.null_of(density, [ladder.readings[q] for q in rungs])
    for ground in null.grounds[::-1]:  # the broadest view has the least noise
        said = _seen(ground, modes)
        if said:
            return said
    return ""


def _seen(ground: Ground, modes: FloatArray) -> str:
    reading = ground.reading
    field = fold(reading.torus_fields(reading.coefficients[None], ground.shape), reading)[0]
    axes = reading.grid_axes(ground.shape)
    place = np.unravel_index(int(np.argmax(field)), field.shape)
    walls = [j for j, i in enumerate(place) if i in (0, field.shape[j] - 1)]
    where = np.array([axis[i] for axis, i in zip(axes, place, strict=True)])
    if not walls or np.any(np.linalg.norm((modes - where) / reading.bandwidth, axis=1) <= NEAR):
        return ""
    other, error = _elsewhere(ground, field, axes, modes)
    if field[place] - other <= CLEARLY * np.hypot(ground.sd_released[place], error):
        return ""
    ends = " and ".join(f"the {'low' if place[j] == 0 else 'high'} end of column {j + 1}" for j in walls)
    around = ", ".join(f"{value:.3g}" for value in where)
    return (
        f"records are densest at {ends}, around ({around}): what leans on a wall is not counted as a mode; "
        "a shorter range of that column, or its logarithm, may show one"
    )


def _elsewhere(
    ground: Ground, field: FloatArray, axes: tuple[FloatArray, ...], modes: FloatArray
) -> tuple[float, float]:
    """Height of the highest mode and its standard deviation, or of an even density, which has none."""
    if not len(modes):
        return 1 / float(np.prod(ground.reading.spec.widths)), 0.0
    cells = [tuple(int(np.argmin(np.abs(axis - x))) for axis, x in zip(axes, mode, strict=True)) for mode in modes]
    highest = max(cells, key=lambda cell: float(field[cell]))
    return float(field[highest]), float(ground.sd_released[highest])
