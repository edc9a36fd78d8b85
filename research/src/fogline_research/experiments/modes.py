"""Rerun the DP-GRAMS paper's table of modes, with fogline's certified estimator and the published one side by side.

A cell is a mixture, a number of records and an epsilon; delta is 1e-5 and the number of modes is known. Every
method sees the same data in the same run, and is measured against the centres of the components, as the paper
does. A seed fixes the data (and the published algorithms, which are experiments), never the certified noise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count
from fogline.datasets.simulated import Sample, gaussian_mixture4, t_mixture5
from fogline.estimators import PrivateModes
from fogline_research.as_published import dp_grams, mean_shift
from fogline_research.baselines import noisy_histogram_modes
from fogline_research.certified import gradient_ascent_modes
from fogline_research.experiments._shared import (
    DELTA,
    Progress,
    check_methods,
    fresh_seed,
    mean_and_error,
    printed_rows,
)
from fogline_research.metrics import matching_mse, nearest_mode_mse

__all__ = ["METHODS", "Cell", "Row", "geometric_mean_ratio", "paper_cells", "reproduce_modes"]

FloatArray = NDArray[np.float64]

MIXTURES = {"gaussian4": (gaussian_mixture4, 4, 10.0), "t5": (t_mixture5, 5, 12.0)}
"""By name: how to draw, the number of modes, half the width of the public box."""

HISTOGRAM_BANDWIDTH = 1 / 15
"""Bandwidth of the noisy histogram, as a part of the box: between the two that `PrivateModes` plans for."""


@dataclass(frozen=True)
class Cell:
    """One cell of the paper's tables: the setting, and what the paper reports for it."""

    mixture: str
    n: int
    epsilon: float
    dp_grams_mse: float
    dp_grams_mse_se: float
    mean_shift_mse: float
    mean_shift_mse_se: float
    dp_grams_seconds: float
    mean_shift_seconds: float


@dataclass(frozen=True)
class Row:
    """One method on one cell, over several runs.

    Attributes
    ----------
    mixture, n, epsilon, method, runs
        What was run; `epsilon` is the cell's, also for mean shift, which is not private.
    mse, mse_se : float
        Mean of `fogline_research.metrics.matching_mse` against the components' centres, and its standard error.
    nearest_mse, nearest_mse_se : float
        The same of `fogline_research.metrics.nearest_mode_mse`.
    seconds : float
        Mean CPU time of a run.
    paper_mse : float
        The paper's DP-GRAMS figure; for "mean_shift" its mean shift figure.
    """

    mixture: str
    n: int
    epsilon: float
    method: str
    runs: int
    mse: float
    mse_se: float
    nearest_mse: float
    nearest_mse_se: float
    seconds: float
    paper_mse: float

    @property
    def ratio(self) -> float:
        """Error over the paper's: below 1 is better than printed."""
        return self.mse / self.paper_mse


@dataclass(frozen=True)
class _Run:
    mse: float
    nearest: float
    seconds: float


def paper_cells(which: str = "all") -> list[Cell]:
    """Cells of the paper's tables: all 40, or a "small" choice of 8.

    Examples
    --------
    >>> len(paper_cells()), len(paper_cells("small"))
    (40, 8)
    """
    if which not in ("all", "small"):
        raise ValueError(f'cells must be "small", "all" or a list of cells, got {which!r}')
    names = list(Cell.__dataclass_fields__)[3:]
    cells = [
        Cell(row["mixture"], int(row["n"]), float(row["epsilon"]), *(float(row[name]) for name in names))
        for row in printed_rows("modes")
    ]
    return cells if which == "all" else [c for c in cells if c.n in (1000, 5000) and c.epsilon in (0.5, 1.0)]


def reproduce_modes(
    *,
    runs: int = 20,
    cells: str | Sequence[Cell] = "small",
    methods: Sequence[str] = ("certified",),
    one_data_set: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Rerun the paper's table of modes.

    Parameters
    ----------
    runs : int
        Runs a cell.
    cells : "small", "all" or sequence of Cell
    methods : sequence of str
        Out of ``METHODS``: "certified" (`PrivateModes` with a delta: Fourier sums), "leaves" (`PrivateModes` without
        one: counts on leaves, pure epsilon), "ascent" (`gradient_ascent_modes`: DP-GRAMS in a certified form),
        "published" (DP-GRAMS to the letter, not certified), "mean_shift" (not private), "noisy_histogram" (certified,
        the plain rival).
    one_data_set : bool
        Whether all runs of a mixture and a number of records see one data set, as in the paper; by default each has a
        fresh one. Mean shift then gives the same in every run.
    seed : int, optional
        Seed of the data and of the published algorithms; by default fresh ones.
    progress : callable, optional
        Called with (runs done, runs in all, label) before each run and once at the end.

    Returns
    -------
    list of Row
        Cell by cell, in the order of `methods`.

    Examples
    --------
    >>> rows = reproduce_modes(runs=1, cells=paper_cells()[:1], methods=("certified", "noisy_histogram"), seed=1)
    >>> [(row.mixture, row.n, row.epsilon, row.method) for row in rows]
    [('gaussian4', 700, 0.1, 'certified'), ('gaussian4', 700, 0.1, 'noisy_histogram')]
    """
    runs = check_count(runs, "runs")
    chosen = paper_cells(cells) if isinstance(cells, str) else list(cells)
    check_methods(methods, list(METHODS))
    if "certified" in methods:  # libraries load on first use: not part of a run's time
        _certified(np.empty((0, 2)), epsilon=1.0, k=1, half=1.0, rng=None)
    root = fresh_seed(seed)
    total, done = len(chosen) * len(methods) * runs, 0
    kept: dict[tuple[str, int], list[_Run]] = {}
    rows = []
    for cell in chosen:
        for method in methods:
            found = [] if method != "mean_shift" else kept.setdefault((cell.mixture, cell.n), [])
            for run in range(runs):
                if progress is not None:
                    progress(done, total, f"{cell.mixture}, n = {cell.n}, epsilon = {cell.epsilon:g}, {method}")
                if len(found) <= run:  # mean shift is the same at every epsilon
                    found.append(_one_run(cell, method, root, run, 0 if one_data_set else run))
                done += 1
            rows.append(_row(cell, method, found))
    if progress is not None:
        progress(total, total, "done")
    return rows


def geometric_mean_ratio(rows: Sequence[Row]) -> float:
    """Geometric mean of the ratios to the paper's figures.

    Examples
    --------
    >>> from functools import partial
    >>> row = partial(Row, "t5", 700, 1.0, "certified", 1, mse_se=0.0, nearest_mse=0.0, nearest_mse_se=0.0, seconds=0.0)
    >>> round(geometric_mean_ratio([row(mse=1.0, paper_mse=2.0), row(mse=1.0, paper_mse=8.0)]), 12)
    0.25
    """
    return math.exp(sum(math.log(row.ratio) for row in rows) / len(rows)) if rows else math.nan


def _one_run(cell: Cell, method: str, root: int, run: int, data: int) -> _Run:
    draw, k, half = MIXTURES[cell.mixture]
    stream = [root, cell.n, list(MIXTURES).index(cell.mixture), data]  # the same data at every epsilon
    sample: Sample = draw(cell.n, random_state=np.random.default_rng(stream))
    solve = METHODS[method]
    started = time.process_time()
    modes = solve(sample.X, epsilon=cell.epsilon, k=k, half=half, rng=np.random.default_rng([*stream[:3], run, 1]))
    seconds = time.process_time() - started
    return _Run(matching_mse(sample.centers, modes), nearest_mode_mse(sample.centers, modes), seconds)


def _row(cell: Cell, method: str, found: Sequence[_Run]) -> Row:
    mse, mse_se = mean_and_error([run.mse for run in found])
    nearest, nearest_se = mean_and_error([run.nearest for run in found])
    return Row(
        cell.mixture,
        cell.n,
        cell.epsilon,
        method,
        len(found),
        mse=mse,
        mse_se=mse_se,
        nearest_mse=nearest,
        nearest_mse_se=nearest_se,
        seconds=sum(run.seconds for run in found) / len(found),
        paper_mse=cell.mean_shift_mse if method == "mean_shift" else cell.dp_grams_mse,
    )


# -- methods ----------------------------------------------------------------------------------------------


def _certified(X: FloatArray, *, epsilon: float, k: int, half: float, rng: Any) -> FloatArray:  # noqa: ARG001
    box = [(-half, half)] * X.shape[1]
    return np.asarray(PrivateModes(epsilon=epsilon, delta=DELTA, bounds=box, n_modes=k).fit(X).modes_)


def _leaves(X: FloatArray, *, epsilon: float, k: int, half: float, rng: Any) -> FloatArray:  # noqa: ARG001
    box = [(-half, half)] * X.shape[1]
    return np.asarray(PrivateModes(epsilon=epsilon, bounds=box, n_modes=k).fit(X).modes_)


def _ascent(X: FloatArray, *, epsilon: float, k: int, half: float, rng: Any) -> FloatArray:  # noqa: ARG001
    box = [(-half, half)] * X.shape[1]
    found = gradient_ascent_modes(X, epsilon=epsilon, delta=DELTA, bounds=box, n_modes=k).modes
    # Where nothing stands above the noise the middle of the box is as good a guess as any.
    return found if len(found) else np.zeros((1, X.shape[1]))


def _published(X: FloatArray, *, epsilon: float, k: int, half: float, rng: Any) -> FloatArray:  # noqa: ARG001
    return dp_grams(X, epsilon=epsilon, delta=DELTA, n_modes=k, random_state=rng).modes


def _mean_shift(X: FloatArray, *, epsilon: float, k: int, half: float, rng: Any) -> FloatArray:  # noqa: ARG001
    return mean_shift(X, n_modes=k).modes


def _noisy_histogram(X: FloatArray, *, epsilon: float, k: int, half: float, rng: Any) -> FloatArray:  # noqa: ARG001
    return noisy_histogram_modes(
        X,
        epsilon=epsilon,
        delta=DELTA,
        bounds=[(-half, half)] * X.shape[1],
        bandwidth=2 * half * HISTOGRAM_BANDWIDTH,
        n_modes=k,
    ).modes


METHODS: dict[str, Callable[..., FloatArray]] = {
    "certified": _certified,
    "leaves": _leaves,
    "ascent": _ascent,
    "published": _published,
    "mean_shift": _mean_shift,
    "noisy_histogram": _noisy_histogram,
}
"""The methods by name; each returns its modes."""
