"""Level lines of a field on a grid, by marching squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["contour_loops"]

FloatArray = NDArray[np.float64]


def contour_loops(values: FloatArray, level: float) -> list[FloatArray]:
    """Closed polygons around the part of a grid where ``values >= level``.

    Outside the grid the field counts as low, so a region that reaches the edge is closed along it. Filled by
    the even-odd rule, the polygons together are the region, holes included.

    Parameters
    ----------
    values : array of shape (n, m), n and m at least 2
    level : float

    Returns
    -------
    list of arrays of shape (points, 2)
        Fractional indices (row, column), between 0 and n-1 or m-1; the last point joins the first.

    Examples
    --------
    >>> hill = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    >>> [loop] = contour_loops(hill, 1.0)
    >>> sorted(loop.tolist())
    [[0.5, 1.0], [1.0, 0.5], [1.0, 1.5], [1.5, 1.0]]
    >>> contour_loops(hill, 3.0)
    []
    """
    low = min(float(values.min()), level) - float(np.ptp(values)) - abs(level) - 1.0
    field = np.pad(values, 1, constant_values=low)
    links = _links(field, level)
    last = np.array(values.shape) - 1
    loops = []
    while links:
        start = next(iter(links))
        loop, edge = [start], start
        while True:
            onward = links[edge].pop()
            links[onward].remove(edge)
            if not links[edge]:
                del links[edge]
            edge = onward
            if edge == start:
                break
            loop.append(edge)
        links.pop(start, None)
        points = np.array([_crossing(field, level, e) for e in loop])
        loops.append(np.clip(points - 1, 0, last))
    return loops


def _links(field: FloatArray, level: float) -> dict[int, list[int]]:
    """For each grid edge that the level crosses, the two edges its line goes on to."""
    high = field >= level
    columns = field.shape[1]
    number = high[:-1, :-1].astype(int) + high[:-1, 1:] + high[1:, 1:] + high[1:, :-1]
    links: dict[int, list[int]] = {}

    def join(a: int, b: int) -> None:
        links.setdefault(a, []).append(b)
        links.setdefault(b, []).append(a)

    for i, j in np.argwhere((number > 0) & (number < 4)).tolist():
        top, left = 2 * (i * columns + j), 2 * (i * columns + j) + 1
        right, bottom = left + 2, top + 2 * columns
        a, b, c, d = high[i, j], high[i, j + 1], high[i + 1, j + 1], high[i + 1, j]
        if a == c and b == d:  # a saddle: the middle decides which corners hang together
            middle = field[i : i + 2, j : j + 2].mean() >= level
            around_b = bool(a == middle)
            join(top, right if around_b else left)
            join(bottom, left if around_b else right)
        else:
            crossed = [e for e, cut in ((top, a != b), (right, b != c), (bottom, c != d), (left, d != a)) if cut]
            join(crossed[0], crossed[1])
    return links


def _crossing(field: FloatArray, level: float, edge: int) -> tuple[float, float]:
    (i, j), vertical = divmod(edge // 2, field.shape[1]), edge % 2
    first, second = field[i, j], field[i + vertical, j + 1 - vertical]
    part = float((level - first) / (second - first))
    return (i + part, float(j)) if vertical else (float(i), j + part)
