"""Tables that come with fogline, a real one and a made one, with bounds that do not come from the tables."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray
from fogline._validation import check_count

__all__ = ["VISITS_COLUMNS", "ExampleTable", "HospitalVisits", "hospital_visits", "load_faithful"]


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


VISITS_COLUMNS = ("person", "sex", "age", "stay", "cost", "score")
"""Columns of the made table of hospital visits."""


@dataclass(frozen=True, eq=False)
class HospitalVisits:
    """A made table of hospital visits, with what is publicly known of its columns.

    Attributes
    ----------
    records : dict of str to ndarray
        Columns by name, one entry per visit.
    bounds : dict of str to (float, float)
        A range for each number, chosen from what the columns mean.
    steps : dict of str to float
        Rounding step of the columns that are whole numbers.
    """

    records: dict[str, NDArray[Any]]
    bounds: dict[str, tuple[float, float]]
    steps: dict[str, float]

    @property
    def X(self) -> FloatArray:  # noqa: N802  -- as everywhere: records
        """Numbers that have a range, one column each."""
        return np.column_stack([self.records[name] for name in self.bounds]).astype(np.float64)

    def to_csv(self, path: str | Path) -> Path:
        """Write the table as a CSV file with a header, and return its path."""
        place = Path(path)
        columns = [self.records[name] for name in VISITS_COLUMNS]
        with place.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(VISITS_COLUMNS)
            writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
        return place


def hospital_visits(n: int = 20_000, *, random_state: int | np.random.Generator = 0) -> HospitalVisits:
    """Visits to a hospital that does not exist: two age groups, stays that pile up at zero, costs with a long tail.

    Children and the old come most. Three in ten visits of the young end on the same day (a stay of 0); a stay is long
    where the patient is old. Costs grow with the stay and are skewed. A score from 0 to 20 is a whole number and piles
    up at its upper wall. A person has one visit or several.

    Parameters
    ----------
    n : int
        Number of visits.
    random_state : int or Generator
        Seed of the draw.

    Examples
    --------
    >>> visits = hospital_visits(1000)
    >>> visits.X.shape, list(visits.bounds)
    ((1000, 4), ['age', 'stay', 'cost', 'score'])
    >>> bool((visits.records["stay"] == 0).mean() > 0.1)
    True
    """
    size = check_count(n, "n", minimum=0)
    rng = np.random.default_rng(random_state)
    young = rng.random(size) < 0.35
    age = np.where(young, rng.gamma(3.0, 2.5, size), rng.normal(70.0, 11.0, size))
    age = np.floor(np.clip(age, 0.0, 109.0))
    same_day = rng.random(size) < np.where(young, 0.3, 0.12)
    stay = rng.gamma(2.0, np.where(young, 1.2, 3.0), size)
    stay = np.where(same_day, 0.0, np.round(np.minimum(stay, 59.9), 2))
    cost = np.round(rng.lognormal(6.0, 0.5, size) + 180.0 * stay * rng.lognormal(0.0, 0.25, size), 2)
    score = np.minimum(np.floor(rng.gamma(9.0, np.where(young, 2.2, 1.4), size)), 20.0)
    person = 1 + np.floor(size * 0.7 * rng.random(size)).astype(np.int64)
    sex = np.where(rng.random(size) < 0.53, "f", "m")
    records = {"person": person, "sex": sex, "age": age.astype(np.int64), "stay": stay, "cost": cost}
    return HospitalVisits(
        {**records, "score": score.astype(np.int64)},
        {"age": (0.0, 110.0), "stay": (0.0, 60.0), "cost": (0.0, 9000.0), "score": (0.0, 20.0)},
        {"age": 1.0, "score": 1.0},
    )
