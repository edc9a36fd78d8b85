"""Tables E.1 to E.20 of the private minimum Hellinger paper: `PrivateHellinger` beside PGD and PNR as published.

Records are N(5, 2^2); contaminated ones sit near 9.75. The supplement does not say where: the point comes from its
columns for maximum likelihood, and the small spread from those for the non-private estimate. They also show that the
bandwidth does not follow the contaminated records: it is the rule of thumb at the true sigma.
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
from fogline_research.as_published import pgd, pnr
from fogline_research.as_published.hellinger import aberrant
from fogline_research.experiments._shared import Progress, check_methods, fresh_seed, printed_rows, reported

__all__ = ["METHODS", "PARAMETER_BOUNDS", "HellingerCell", "HellingerRow", "hellinger_cells", "reproduce_hellinger"]

FloatArray = NDArray[np.float64]

TRUTH = (5.0, 2.0)
CONTAMINATION = (9.75, 0.1)
DRAWS = 5000
START = (2.0, 1.0)
NEWTON_STEP = 0.9
"""Where both methods start, and how far Newton goes: what comes nearest to the printed means."""
FLOOR = 0.2
"""A guard on the eigenvalues of Newton's Hessian: our reading of the tables, not in the paper."""
PARAMETER_BOUNDS = {"mu": (-5.0, 15.0), "sigma": (0.5, 6.0)}
"""Public bounds for the certified fit, ten on either side of the truth."""

METHODS = ("certified", "published", "mhde", "mle")


@dataclass(frozen=True)
class HellingerCell:
    """One column of a table: the setting, and what the paper prints.

    Attributes
    ----------
    table : str
    algorithm : {"gradient_descent", "newton"}
    n : int
    power : float
        -0.5 stands for HDP.
    epsilon : float
        In HDP or PDP; infinite for the non-private column, which the paper heads 2.00 in its tables of HDP.
    contamination : int
        Per cent.
    mu, mu_sd, sigma, sigma_sd : float
        Means over the paper's runs and their standard deviations; not a number where there is none.
    mu_cover, sigma_cover : float
        How often the corrected 95% intervals covered.
    mu_plain_cover, sigma_plain_cover : float
        How often the uncorrected ones did.
    mle_mu, mle_mu_sd : float
        What is printed for maximum likelihood on the same contamination.
    """

    table: str
    algorithm: str
    n: int
    power: float
    epsilon: float
    contamination: int = 0
    mu: float = math.nan
    mu_sd: float = math.nan
    sigma: float = math.nan
    sigma_sd: float = math.nan
    mu_cover: float = math.nan
    sigma_cover: float = math.nan
    mu_plain_cover: float = math.nan
    sigma_plain_cover: float = math.nan
    mle_mu: float = math.nan
    mle_mu_sd: float = math.nan

    @property
    def thresholded(self) -> bool:
        """Whether the paper leaves aberrant runs out of this table (all from E.9 on)."""
        return int(self.table.removeprefix("E.")) >= 9

    @property
    def privacy(self) -> dict[str, Any]:
        """The budget as a keyword; empty for the non-private column."""
        if math.isinf(self.epsilon):
            return {}
        return {"hdp": self.epsilon} if self.power == -0.5 else {"pdp": (self.power, self.epsilon)}


@dataclass(frozen=True)
class HellingerRow:
    """One method in one cell, over several runs.

    Attributes
    ----------
    table, algorithm, n, power, epsilon, contamination, method, runs
        What was run; "certified", "mhde" and "mle" do not know the paper's algorithm.
    mu, mu_sd, sigma, sigma_sd : float
        Means and standard deviations over the runs, thresholded where the paper's are.
    mu_rmse : float
        Root mean squared error of mu against 5, thresholded likewise.
    mu_cover, sigma_cover : float
        How often the 95% intervals cover (5, 2), over all runs.
    mu_plain_cover, sigma_plain_cover : float
        The same of intervals that know nothing of the noise, for "published"; else not a number.
    kept : float
        Share of the runs that thresholding leaves.
    seconds : float
        Mean CPU time of a run.
    paper_mu, paper_mu_sd, paper_sigma, paper_sigma_sd, paper_mu_cover, paper_sigma_cover : float
        For maximum likelihood what is printed for it, in tables of contamination; for others what is for PGD or PNR.
    paper_mu_plain_cover, paper_sigma_plain_cover : float
    """

    table: str
    algorithm: str
    n: int
    power: float
    epsilon: float
    contamination: int
    method: str
    runs: int
    mu: float
    mu_sd: float
    mu_rmse: float
    sigma: float
    sigma_sd: float
    mu_cover: float
    sigma_cover: float
    mu_plain_cover: float
    sigma_plain_cover: float
    kept: float
    seconds: float
    paper_mu: float
    paper_mu_sd: float
    paper_sigma: float
    paper_sigma_sd: float
    paper_mu_cover: float
    paper_sigma_cover: float
    paper_mu_plain_cover: float
    paper_sigma_plain_cover: float

    @property
    def ratio(self) -> float:
        """Spread of mu over the paper's: below 1 is better than printed."""
        return self.mu_sd / self.paper_mu_sd


def hellinger_cells(which: str = "all") -> list[HellingerCell]:
    """Columns of tables E.1 to E.20: all of them, or a "small" choice of 4.

    Examples
    --------
    >>> len(hellinger_cells()), [(cell.table, cell.n, cell.epsilon) for cell in hellinger_cells("small")]
    (144, [('E.17', 500, inf), ('E.17', 500, 0.6), ('E.17', 500, 0.2), ('E.19', 500, 0.2)])
    """
    if which not in ("all", "small"):
        raise ValueError(f'cells must be "small", "all" or a list of cells, got {which!r}')
    cells = [*_estimates(), *_contaminated()]
    if which == "all":
        return cells
    wanted = {("E.17", math.inf, 0), ("E.17", 0.6, 0), ("E.17", 0.2, 0), ("E.19", 0.2, 20)}
    return [cell for cell in cells if (cell.table, cell.epsilon, cell.contamination) in wanted]


def _estimates() -> list[HellingerCell]:
    names = {
        ("mu", "mean"): "mu",
        ("mu", "std_error"): "mu_sd",
        ("sigma", "mean"): "sigma",
        ("sigma", "std_error"): "sigma_sd",
        ("mu", "coverage_corrected"): "mu_cover",
        ("sigma", "coverage_corrected"): "sigma_cover",
        ("mu", "coverage_uncorrected"): "mu_plain_cover",
        ("sigma", "coverage_uncorrected"): "sigma_plain_cover",
    }
    found: dict[tuple[str, str, int, float, float], dict[str, float]] = {}
    for row in printed_rows("hellinger_estimates"):
        power = -0.5 if row["lambda"] == "hdp" else float(row["lambda"])
        epsilon = math.inf if row["epsilon"] in ("2.00", "Non-private") else float(row["epsilon"])
        key = (row["table"], row["algorithm"], int(row["n"]), power, epsilon)
        name = names.get((row["parameter"], row["statistic"]))
        if name is not None:
            found.setdefault(key, {})[name] = float(row["value"])
    return [HellingerCell(*key, 0, *(values[name] for name in names.values())) for key, values in found.items()]


def _contaminated() -> list[HellingerCell]:
    likelihood = {
        (row["table"], row["contamination_percent"]): (float(row["mu_mean"]), float(row["mu_std_error"]))
        for row in printed_rows("hellinger_contamination")
        if row["estimator"] == "mle"
    }
    return [
        HellingerCell(
            row["table"],
            row["algorithm"],
            int(row["n"]),
            -0.5,
            math.inf if float(row["epsilon"]) == 2.0 else float(row["epsilon"]),
            int(row["contamination_percent"]),
            mu=float(row["mu_mean"]),
            mu_sd=float(row["mu_std_error"]),
            mle_mu=likelihood[row["table"], row["contamination_percent"]][0],
            mle_mu_sd=likelihood[row["table"], row["contamination_percent"]][1],
        )
        for row in printed_rows("hellinger_contamination")
        if row["estimator"] == "pmhde"
    ]


def reproduce_hellinger(
    *,
    runs: int = 20,
    cells: str | Sequence[HellingerCell] = "small",
    methods: Sequence[str] = METHODS,
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[HellingerRow]:
    """Rerun the supplement's tables.

    Parameters
    ----------
    runs : int
        Fresh data sets a cell, the same for every method and every cell of that n and contamination.
    cells : "small", "all" or sequence of HellingerCell
    methods : sequence of str
        Out of "certified" (`PrivateHellinger`; no line for non-private columns), "published" (PGD or PNR, not
        certified), "mhde" (minimum Hellinger distance, not private) and "mle" (not private).
    seed : int, optional
        Seed of the data and of what is not certified; by default a fresh one.
    progress : callable, optional
        Called with (runs done, runs in all, label) before each run and once at the end.

    Returns
    -------
    list of HellingerRow
        Cell by cell, in the order of `methods`.

    Examples
    --------
    >>> (row,) = reproduce_hellinger(runs=2, cells=hellinger_cells("small")[:1], methods=("published",), seed=1)
    >>> row.table, row.n, 4.5 < row.mu < 5.5
    ('E.17', 500, True)
    """
    runs = check_count(runs, "runs")
    chosen = hellinger_cells(cells) if isinstance(cells, str) else list(cells)
    check_methods(methods, METHODS)
    root = fresh_seed(seed)
    jobs = [(cell, method) for cell in chosen for method in methods if method != "certified" or cell.privacy]
    labels = [f"{cell.table}, epsilon = {cell.epsilon:g}, {method}" for cell, method in jobs for _ in range(runs)]
    found = [_one_run(*jobs[i // runs], [root, i % runs]) for i in reported(labels, progress)]
    return [_row(*job, np.array(found[i * runs : (i + 1) * runs])) for i, job in enumerate(jobs)]


def sample(n: int, contamination: int, rng: np.random.Generator) -> FloatArray:
    """Draw records of N(5, 2^2), a part of them moved to where the paper's contamination sits.

    Examples
    --------
    >>> bool(abs(sample(1000, 100, np.random.default_rng(0)).mean() - 9.75) < 0.1)
    True
    """
    x = rng.normal(*TRUTH, size=n)
    bad = round(n * contamination / 100)
    x[:bad] = rng.normal(*CONTAMINATION, size=bad)
    return x


def bandwidth(n: int) -> float:
    """Half-width of the kernel in the reruns: the rule of thumb at sigma = 2, whatever the records.

    Examples
    --------
    >>> round(bandwidth(1000), 3)
    0.452
    """
    return float(0.9 * TRUTH[1] * n**-0.2)


Intervals = dict[str, tuple[float, float]]


def _fit(
    x: FloatArray, cell: HellingerCell, method: str, stream: Sequence[int]
) -> tuple[dict[str, float], Intervals, Intervals]:
    """Estimates, their intervals, and those without a correction where a method has them."""
    if method == "certified":
        from fogline.estimators import PrivateHellinger

        fitted = PrivateHellinger(family="normal", parameter_bounds=PARAMETER_BOUNDS, **cell.privacy).fit(x)
        return dict(fitted.params_), dict(fitted.confidence_intervals_), {}
    if method == "mle":
        mean, spread = float(x.mean()), float(x.std())
        widths = 1.96 * spread / math.sqrt(len(x)), 1.96 * spread / math.sqrt(2 * len(x))
        bounds = {"mu": (mean - widths[0], mean + widths[0]), "sigma": (spread - widths[1], spread + widths[1])}
        return {"mu": mean, "sigma": spread}, bounds, {}
    if method == "mhde":
        middle = float(np.median(x))
        start = (middle, 1.4826 * float(np.median(np.abs(x - middle))))
        found = pgd(x, start=start, step=1.0, n_iterations=60, bandwidth=bandwidth(len(x)))
    else:
        rng = np.random.default_rng([*stream, int(cell.table[2:])])
        shared: dict[str, Any] = {"bandwidth": bandwidth(len(x)), "draws": DRAWS, "random_state": rng, **cell.privacy}
        newton = cell.algorithm == "newton"
        own: dict[str, Any] = {"step": NEWTON_STEP, "floor": FLOOR} if newton else {}
        found = (pnr if newton else pgd)(x, start=START, **own, **shared)
    return dict(found.params), found.intervals(), found.intervals(corrected=False)


def _one_run(cell: HellingerCell, method: str, stream: Sequence[int]) -> tuple[float, ...]:
    x = sample(cell.n, cell.contamination, np.random.default_rng([*stream, cell.n, cell.contamination]))
    began = time.process_time()
    params, intervals, plain = _fit(x, cell, method, stream)
    seconds = time.process_time() - began
    hits = [low <= truth <= high for truth, (low, high) in zip(TRUTH, intervals.values(), strict=True)]
    plain_hits = [float(low <= truth <= high) for truth, (low, high) in zip(TRUTH, plain.values(), strict=False)]
    left_out = float(aberrant(params["mu"], x.mean(), x.std()))
    return params["mu"], params["sigma"], *map(float, hits), left_out, seconds, *(plain_hits or [math.nan] * 2)


def _row(cell: HellingerCell, method: str, found: FloatArray) -> HellingerRow:
    kept = found[found[:, 4] == 0.0] if cell.thresholded else found
    several = len(kept) > 1
    return HellingerRow(
        cell.table,
        cell.algorithm,
        cell.n,
        cell.power,
        cell.epsilon,
        cell.contamination,
        method,
        len(found),
        mu=float(kept[:, 0].mean()) if len(kept) else math.nan,
        mu_sd=float(kept[:, 0].std(ddof=1)) if several else math.nan,
        mu_rmse=float(np.sqrt(np.mean((kept[:, 0] - TRUTH[0]) ** 2))) if len(kept) else math.nan,
        sigma=float(kept[:, 1].mean()) if len(kept) else math.nan,
        sigma_sd=float(kept[:, 1].std(ddof=1)) if several else math.nan,
        mu_cover=float(found[:, 2].mean()),
        sigma_cover=float(found[:, 3].mean()),
        mu_plain_cover=float(found[:, 6].mean()),
        sigma_plain_cover=float(found[:, 7].mean()),
        kept=len(kept) / len(found),
        seconds=float(found[:, 5].mean()),
        paper_mu=cell.mle_mu if method == "mle" else cell.mu,
        paper_mu_sd=cell.mle_mu_sd if method == "mle" else cell.mu_sd,
        paper_sigma=cell.sigma,
        paper_sigma_sd=cell.sigma_sd,
        paper_mu_cover=cell.mu_cover,
        paper_sigma_cover=cell.sigma_cover,
        paper_mu_plain_cover=cell.mu_plain_cover,
        paper_sigma_plain_cover=cell.sigma_plain_cover,
    )
