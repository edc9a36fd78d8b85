"""Real tables that come with fogline, with bounds that do not come from the tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fogline._typing import FloatArray

__all__ = ["ExampleTable", "load_faithful"]


@dataclass(frozen=True, eq=False)
class ExampleTable:
    """A small real data set and what is publicly known of its columns.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The values.
    columns : tuple of str
        Names of the columns.
    bounds : tuple of (float, float)
        A range for each column, chosen from knowledge of the subject and not from `X`.
    steps : tuple of float or None
        The step to which a column is rounded, where it is coarse enough to matter; else None.
    path : Path
        The file, for tools that read files.
    """

    X: FloatArray
    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    steps: tuple[float | None, ...]
    path: Path


def load_faithful() -> ExampleTable:
    """Old Faithful: length of 272 eruptions and the wait until the next, in minutes.

    See ``faithful.md`` beside the file for its source.

    References
    ----------
    Azzalini and Bowman (1990), *A look at some data on the Old Faithful geyser*, Applied Statistics 39.

    Examples
    --------
    >>> table = load_faithful()
    >>> table.X.shape, table.columns
    ((272, 2), ('eruptions', 'waiting'))
    >>> table.bounds
    ((0.5, 6.5), (30.0, 110.0))
    """
    path = Path(__file__).with_name("faithful.csv")
    with path.open(encoding="utf-8") as file:
        columns = tuple(file.readline().strip().split(","))
        X = np.loadtxt(file, delimiter=",", dtype=np.float64)
    return ExampleTable(X, columns, ((0.5, 6.5), (30.0, 110.0)), (None, 1.0), path)
