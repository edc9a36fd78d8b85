"""What a search for modes returns: modes, modes at a wall, and point masses, each with its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fogline._results import ReadingResults, column_words
from fogline._typing import FloatArray
from fogline.density.spec import places_in_words
from fogline.density.value_words import cell_words

__all__ = ["BoundaryMode", "ModeTable", "PointMass", "no_modes"]


@dataclass(frozen=True)
class BoundaryMode:
    """A place at a wall of the box from which the density falls in every direction that the box leaves open.

    Parameters
    ----------
    ends : tuple of (int, str)
        The column's index and "low" or "high", for each wall that the place touches.
    position : tuple of float
        The place, on the wall.
    height : float
        Density there, smoothed by a kernel that the wall reflects.
    share : float
        Part of the records on the slopes that lead up to it: in one column the mean over draws of the posterior, each
        up to its own lowest point before the next mode, wall or hump; in several that of the area as drawn.
    p_value : float
        Chance that noise alone raises a peak as prominent at some wall.
    share_error : float
        Standard error of the share: privacy noise and sampling; in one column also where the slopes end, so that it is
        large where the valley is flat.

    Examples
    --------
    >>> mode = BoundaryMode(((0, "low"),), (0.0,), 0.4, 0.9, 1e-6, 0.02)
    >>> mode.words(["stay"])
    'the low end of stay'
    """

    ends: tuple[tuple[int, str], ...]
    position: tuple[float, ...]
    height: float
    share: float
    p_value: float
    share_error: float = 0.0

    def words(self, columns: tuple[str, ...] | list[str]) -> str:
        """Name the walls."""
        return " and ".join(f"the {side} end of {columns[axis]}" for axis, side in self.ends)


@dataclass(frozen=True)
class PointMass:
    """One value, or a cell too narrow to look into, that holds a share of the records by itself.

    Parameters
    ----------
    value : tuple of float or None
        The value, or the middle of the cell; at a wall, the wall. None for a column in which any value goes with it.
    low, high : tuple of float
        Ends of the cell per column.
    share : float
        Part of the records that it holds beyond what its neighbours do.
    error : float
        Standard error of the share: privacy noise, the sampling of the records and smoothing: what the density beside
        the value puts into its cell at a wall is known by its neighbours only, and of a value of one of several columns
        wider cells may hold more than is seen.

    Examples
    --------
    >>> PointMass((0.0,), (0.0,), (0.01,), 0.31, 0.003).share
    0.31
    """

    value: tuple[float | None, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    share: float
    error: float

    def words(
        self,
        columns: Sequence[str],
        steps: Sequence[float | None] = (),
        between: tuple[str, str] = (" = ", " = "),
    ) -> str:
        """Name the columns with the value, or with the ends of the cell where no more than that is known.

        Parameters
        ----------
        columns : sequence of str
        steps : sequence of float or None
            Public steps of the columns; none where there are not as many.
        between : two str
            What stands between a column and its value, or the ends of its cell.

        Examples
        --------
        >>> PointMass((50.012207,), (50.0,), (50.024414,), 0.1, 0.003).words(["x"])
        'x = 50 to 50.025'
        """
        known = steps if len(steps) == len(columns) else (None,) * len(columns)
        cells = zip(columns, self.value, self.low, self.high, known, strict=True)
        return ", ".join(
            f"{name}{between[' to ' in told]}{told}"
            for name, value, low, high, step in cells
            if value is not None and (told := cell_words(value, low, high, step))
        )


@dataclass(frozen=True, repr=False)
class ModeTable(ReadingResults):
    """Modes with their uncertainty, highest first.

    Attributes
    ----------
    positions : array of shape (k, d)
    heights : array of shape (k,)
        Density at the mode.
    privacy_covariances, sampling_covariances, covariances : arrays of shape (k, d, d)
        What privacy noise and what the draw of the records contribute to the error of a position, and their sum. What
        smoothing may have moved is in the sampling part.
    p_values : array of shape (k,)
        Chance that noise alone raises a peak as prominent, anywhere in the box, at any scale tried.
    bandwidths : array of shape (k, d)
        Bandwidth at which each mode was located.
    message : str
        What would help, when there are fewer modes than hoped for, or when records gather at a wall; else empty.
    boundary_modes : tuple of BoundaryMode
        Where the density is highest at a wall; no modes, since nobody knows what would come behind the wall.
    point_masses : tuple of PointMass
        Values that hold a share of the records by themselves, the largest first; no modes of a density.
    """

    positions: FloatArray
    heights: FloatArray
    privacy_covariances: FloatArray
    sampling_covariances: FloatArray
    p_values: FloatArray
    bandwidths: FloatArray
    message: str
    boundary_modes: tuple[BoundaryMode, ...] = ()
    point_masses: tuple[PointMass, ...] = ()

    @property
    def covariances(self) -> FloatArray:
        """Privacy part plus sampling part."""
        return self.privacy_covariances + self.sampling_covariances

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of each coordinate, shape (k, d): privacy, sampling and smoothing together."""
        return np.asarray(np.sqrt(np.einsum("kii->ki", self.covariances)))

    def __str__(self) -> str:
        names = column_words(self, self.positions.shape[1])
        lines = [
            f"mode {k + 1}: {place}; density {self.heights[k]:.3g}, p = {self.p_values[k]:.2g}"
            for k, place in enumerate(places_in_words(names, self.positions, self.standard_errors))
        ]
        for wall in self.boundary_modes:
            share = f"{wall.share:.1%} ± {wall.share_error:.1%} of the records"
            lines.append(f"densest at {wall.words(names)}: {share}, p = {wall.p_value:.2g}")
        for heap in self.point_masses:
            where = heap.words(names, () if self.origin is None else self.origin.density.spec.steps)
            lines.append(f"point mass at {where}: {heap.share:.1%} ± {heap.error:.1%} of the records")
        return "\n".join([*lines, *filter(None, [self.message])]) or "no mode"

    __repr__ = __str__


def no_modes(d: int, message: str) -> ModeTable:
    """Give the table without rows."""
    square = np.zeros((0, d, d))
    return ModeTable(np.zeros((0, d)), np.zeros(0), square, square, np.zeros(0), np.zeros((0, d)), message)
