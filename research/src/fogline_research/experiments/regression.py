r"""Rerun the DP-GRAMS supplement's tables of modal regression (tables 3 and 4).

The paper measures a private fit against partial mean shift on the same data, record by record: that rewards the
starts at the raw responses, which every record keeps close to. Beside it stands the error against the *true*
conditional modes, at 80 places in the range of x, which no method can lower by missing modes: see `branch_error`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count
from fogline_research.as_published import dp_pms, partial_mean_shift
from fogline_research.datasets.regression import RegressionSample, sinusoidal_mixture, three_components
from fogline_research.experiments._shared import (
    DELTA,
    Progress,
    check_methods,
    fresh_seed,
    mean_and_error,
    printed_rows,
    reported,
)

__all__ = [
    "DATASETS",
    "METHODS",
    "Fit",
    "RegressionCell",
    "RegressionRow",
    "branch_error",
    "fit",
    "regression_cells",
    "reproduce_regression",
]

FloatArray = NDArray[np.float64]

QUERIES = np.linspace(0.01, 0.99, 80)
"""Where the branches are asked for: none is an edge of a component."""


DATASETS = {"three_component": three_components, "sinusoidal": sinusoidal_mixture}
"""How to draw them, by the names of the tables."""


# -- the error ----------------------------------------------------------------------------------------------------


def branch_error(true: Sequence[FloatArray], found: Sequence[FloatArray], *, width: float) -> tuple[float, float]:
    r"""Mean over the queries of a symmetric squared error, and the share with the right number of branches.

    At a query with true modes M and found modes F

    .. math:: \frac12\Bigl(\frac1{|M|} \sum_{m \in M} \min_{f \in F} (m - f)^2
              + \frac1{|F|} \sum_{f \in F} \min_{m \in M} (m - f)^2\Bigr),

    so that a missed mode costs its distance to the next found one and a spurious mode its distance to the next
    true one. Where nothing was found the error is the square of `width`, the public range of y.

    Examples
    --------
    >>> branch_error([np.array([0.0, 2.0])], [np.array([0.0])], width=4.0)
    (1.0, 0.0)
    >>> branch_error([np.array([0.0])], [np.array([])], width=4.0)
    (16.0, 0.0)
    """
    errors = []
    for modes, branches in zip(true, found, strict=True):
        if len(branches) == 0:
            errors.append(width**2)
            continue
        cost = (np.asarray(modes)[:, None] - np.asarray(branches)) ** 2
        errors.append(0.5 * float(cost.min(axis=1).mean() + cost.min(axis=0).mean()))
    right = [len(modes) == len(branches) for modes, branches in zip(true, found, strict=True)]
    return float(np.mean(errors)), float(np.mean(right))


# -- cells, rows, runs --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegressionCell:
    """One cell of the tables: the setting, and the error and its standard deviation that the paper prints."""

    dataset: str
    n: int
    epsilon: float
    dp_pms_mse: float
    dp_pms_mse_sd: float


@dataclass(frozen=True)
class RegressionRow:
    """One method on one cell, over several runs.

    Attributes
    ----------
    dataset, n, epsilon, method, runs
        What was run; `epsilon` is the cell's, also for partial mean shift, which is not private.
    mse, mse_se : float
        The paper's: against partial mean shift, record by record; nan for a method that gives no estimate a record.
    true_mse, true_mse_se : float
        `branch_error` against the true conditional modes.
    pms_mse : float
        `branch_error` against the modes of partial mean shift.
    right : float
        Share of queries with the right number of branches.
    seconds : float
        Mean CPU time of a fit with its answers.
    paper_mse : float
        What the paper prints for DP-PMS, to be compared with `mse`.
    """

    dataset: str
    n: int
    epsilon: float
    method: str
    runs: int
    mse: float
    mse_se: float
    true_mse: float
    true_mse_se: float
    pms_mse: float
    right: float
    seconds: float
    paper_mse: float

    @property
    def ratio(self) -> float:
        """The paper's measure over the paper's figure."""
        return self.mse / self.paper_mse


@dataclass(frozen=True)
class Fit:
    """What one method found on one data set.

    Attributes
    ----------
    modes : list of ndarray
        At each of the queries.
    branches : ndarray or None
        One estimate a record, where the method gives that.
    seconds : float
    estimator : object
        The fitted certified estimator, or None.
    """

    modes: list[FloatArray]
    branches: FloatArray | None
    seconds: float
    estimator: Any = None


METHODS = ("certified", "published", "partial_mean_shift")


def regression_cells(which: str = "all") -> list[RegressionCell]:
    """Cells of tables 3 and 4: all 32, or a "small" choice of 4.

    Examples
    --------
    >>> len(regression_cells()), len(regression_cells("small"))
    (32, 4)
    """
    if which not in ("all", "small"):
        raise ValueError(f'cells must be "small", "all" or a list of cells, got {which!r}')
    cells = [
        RegressionCell(
            row["dataset"],
            int(row["n"]),
            float(row["epsilon"]),
            float(row["dp_pms_mse"]),
            float(row["dp_pms_mse_sd"]),
        )
        for row in printed_rows("modal_regression")
    ]
    return cells if which == "all" else [c for c in cells if c.n in (1000, 1200) and c.epsilon in (0.2, 1.0)]


def fit(method: str, sample: RegressionSample, *, epsilon: float, rng: np.random.Generator) -> Fit:
    """Run one method and ask it for the modes at `QUERIES`.

    Examples
    --------
    >>> sample = sinusoidal_mixture(200, random_state=0)
    >>> found = fit("published", sample, epsilon=1.0, rng=np.random.default_rng(0))
    >>> len(found.modes), found.branches.shape
    (80, (200,))
    """
    began = time.process_time()
    if method == "certified":
        from fogline.estimators import PrivateModalRegression

        estimator = PrivateModalRegression(
            epsilon=epsilon, delta=DELTA, x_bounds=[sample.x_bounds], y_bounds=sample.y_bounds
        )
        modes = estimator.fit(sample.X, sample.y).predict_modes(QUERIES[:, None])
        return Fit([np.asarray(found) for found in modes], None, time.process_time() - began, estimator)
    if method == "published":
        result = dp_pms(sample.X, sample.y, epsilon=epsilon, delta=DELTA, random_state=rng)
    else:
        result = partial_mean_shift(sample.X, sample.y)
    return Fit(result.predict_modes(QUERIES), result.branches, time.process_time() - began)


def reproduce_regression(
    *,
    runs: int = 20,
    cells: str | Sequence[RegressionCell] = "small",
    methods: Sequence[str] = METHODS,
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[RegressionRow]:
    """Rerun the supplement's tables of modal regression.

    Parameters
    ----------
    runs : int
        Fresh data sets a cell.
    cells : "small", "all" or sequence of RegressionCell
    methods : sequence of str
        Out of "certified" (`PrivateModalRegression`), "published" (DP-PMS to the letter, not certified) and
        "partial_mean_shift" (not private).
    seed : int, optional
        Seed of the data and of the published algorithm; by default fresh ones.
    progress : callable, optional
        Called with (runs done, runs in all, label) before each run and once at the end.

    Returns
    -------
    list of RegressionRow
        Cell by cell, in the order of `methods`.

    Examples
    --------
    >>> (row,) = reproduce_regression(runs=1, cells=regression_cells()[:1], methods=("published",), seed=1)
    >>> row.dataset, row.n, row.method
    ('three_component', 300, 'published')
    """
    runs = check_count(runs, "runs")
    chosen = regression_cells(cells) if isinstance(cells, str) else list(cells)
    check_methods(methods, METHODS)
    root = fresh_seed(seed)
    jobs = [(cell, method) for cell in chosen for method in methods]
    labels = [f"{c.dataset}, n = {c.n}, epsilon = {c.epsilon:g}, {method}" for c, method in jobs for _ in range(runs)]
    found = [_one_run(*jobs[i // runs], root, i % runs) for i in reported(labels, progress)]
    return [_row(*job, found[i * runs : (i + 1) * runs]) for i, job in enumerate(jobs)]


def _one_run(cell: RegressionCell, method: str, root: int, run: int) -> tuple[float, float, float, float, float]:
    """Return the paper's error, that against the truth and against PMS, the share of right numbers, and the time."""
    stream = [root, cell.n, list(DATASETS).index(cell.dataset), run]  # the same data at every epsilon
    sample = DATASETS[cell.dataset](cell.n, random_state=np.random.default_rng(stream))
    got = fit(method, sample, epsilon=cell.epsilon, rng=np.random.default_rng([*stream, 1]))
    width = sample.y_bounds[1] - sample.y_bounds[0]
    true_mse, right = branch_error(sample.conditional_modes(QUERIES), got.modes, width=width)
    pms_mse, _ = branch_error(partial_mean_shift(sample.X, sample.y).predict_modes(QUERIES), got.modes, width=width)
    mse = math.nan
    if method == "published" and got.branches is not None:  # against the same weights, as printed, without noise
        plain = partial_mean_shift(sample.X, sample.y, kernel_at="iterates").branches
        mse = float(np.mean((got.branches - plain) ** 2))
    return mse, true_mse, pms_mse, right, got.seconds


def _row(cell: RegressionCell, method: str, found: Sequence[tuple[float, float, float, float, float]]) -> RegressionRow:
    mse, true_mse, pms_mse, right, seconds = (list(column) for column in zip(*found, strict=True))
    mean, error = mean_and_error(mse)
    true_mean, true_error = mean_and_error(true_mse)
    return RegressionRow(
        cell.dataset,
        cell.n,
        cell.epsilon,
        method,
        len(found),
        mse=mean,
        mse_se=error,
        true_mse=true_mean,
        true_mse_se=true_error,
        pms_mse=float(np.mean(pms_mse)),
        right=float(np.mean(right)),
        seconds=float(np.mean(seconds)),
        paper_mse=cell.dp_pms_mse,
    )
