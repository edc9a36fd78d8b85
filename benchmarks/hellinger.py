"""Private minimum Hellinger fits measured: the paper's tables as published, and PrivateHellinger beside them.

Run ``python benchmarks/hellinger.py`` (about an hour on two cores), or name parts: ``published newton descent
widths likelihood readings certified limits families growth paths``. ``--quick`` takes few runs and writes to
out/benchmarks; ``--runs=N`` takes N. Each cell is written as it ends, and a run that was stopped goes on where it was;
``--again`` starts anew. Data are seeded, certified noise is not. One configuration serves every cell.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from typing import Any

import numpy as np

import common
from fogline.families import Exponential, Gamma, Logistic, Lognormal, Normal, StudentT, Weibull
from fogline.families.family import UnivariateFamily
from fogline_research.as_published import pgd, pnr
from fogline_research.as_published.hellinger import aberrant
from fogline_research.experiments import HellingerCell, hellinger_cells, reproduce_hellinger
from fogline_research.experiments.hellinger import DRAWS, FLOOR, NEWTON_STEP, PARAMETER_BOUNDS, START, bandwidth, sample

RUNS = 500
QUICK_RUNS = 6
CLEAN = 2
"""Clean cells have so many times the runs: where sampling rules, coverage is as lucky as the draw of the data. On the
first 500 data sets of 0.2-HDP, n = 1000, even the textbook interval of sigma, without privacy, covers in 92.8%."""
SEED = 20261116
SIZES = (200, 300, 500, 1000)
BUDGETS: dict[str, dict[str, Any]] = {
    "0.2-HDP": {"hdp": 0.2},
    "0.6-HDP": {"hdp": 0.6},
    "(0.5, 1e-5)": {"epsilon": 0.5, "delta": 1e-5},
    "(1, 1e-5)": {"epsilon": 1.0, "delta": 1e-5},
}
TRUTH = {"mu": 5.0, "sigma": 2.0}

Row = dict[str, Any]


def resumed(name: str, jobs: Sequence[Any], work: Callable[[Any], Row]) -> None:
    """Do the jobs that NAME.csv lacks, on all cores; write the file after each. A job's first fields are its key."""
    done = {row["job"]: row for row in common.read_csv(name)}
    keys = [repr(job) for job in jobs]
    wanted = [(key, job) for key, job in zip(keys, jobs, strict=True) if key not in done]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        running = {pool.submit(work, job): key for key, job in wanted}
        for i, future in enumerate(as_completed(running), 1):
            done[running[future]] = {"job": running[future], **future.result()}
            common.write_csv(name, [done[key] for key in keys if key in done])
            if sys.stderr.isatty():
                print(
                    f"\r{name}: {i} of {len(wanted)}", end="" if i < len(wanted) else "\n", file=sys.stderr, flush=True
                )


# -- the paper's tables, as published ---------------------------------------------------------------------------


def as_published(runs: int) -> None:
    """Every column of tables E.1 to E.20 with PGD or PNR, Monte-Carlo integrals and all."""
    cells = hellinger_cells()
    resumed("hellinger_published", [(c.table, c.epsilon, c.contamination, runs) for c in cells], _published)


def _published(job: tuple[str, float, int, int]) -> Row:
    *setting, runs = job
    (cell,) = [c for c in hellinger_cells() if [c.table, c.epsilon, c.contamination] == setting]
    (row,) = reproduce_hellinger(runs=runs, cells=[cell], methods=("published",), seed=SEED)
    found: Row = asdict(row)
    return {**found, "mu_error": row.mu_sd / math.sqrt(runs * row.kept), "mu_z": _difference(cell, row.mu, runs)}


def _difference(cell: HellingerCell, mu: float, runs: int) -> float:
    """Return how many standard errors our mean is from the printed one, by the *paper's* spread."""
    return (mu - cell.mu) * math.sqrt(runs) / cell.mu_sd


READINGS: dict[str, dict[str, Any]] = {
    "start (2, 1), step 0.9, floor 0.2 (ours)": {"start": (2.0, 1.0), "step": 0.9, "floor": 0.2},
    "start (2, 1), step 1, floor 0.2": {"start": (2.0, 1.0), "step": 1.0, "floor": 0.2},
    "start (3, 1), step 1, floor 0.2": {"start": (3.0, 1.0), "step": 1.0, "floor": 0.2},
    "start (3, 1), step 0.7, floor 0.2": {"start": (3.0, 1.0), "step": 0.7, "floor": 0.2},
    "start (3, 1), step 0.5, floor 0.2": {"start": (3.0, 1.0), "step": 0.5, "floor": 0.2},
    "start (2, 1), step 0.7, floor 0.2": {"start": (2.0, 1.0), "step": 0.7, "floor": 0.2},
    "start (4, 2), step 0.5, floor 0.1": {"start": (4.0, 2.0), "step": 0.5, "floor": 0.1},
    "start (5, 5), step 0.5, floor 0.1": {"start": (5.0, 5.0), "step": 0.5, "floor": 0.1},
    "start (5, 5), step 0.4, floor 0.1": {"start": (5.0, 5.0), "step": 0.4, "floor": 0.1},
    "start (5, 5), step 0.4, no floor": {"start": (5.0, 5.0), "step": 0.4, "floor": None},
}
"""Readings of Newton's open settings; the paper prints none of the three."""

FORMER = {"start (3, 1), step 1, floor 0.2": 500, "start (2, 1), step 0.7, floor 0.2": 150}
"""Readings that were ours, or nearest, before: all of Newton's columns, with so many runs at most."""

DESCENTS: dict[str, dict[str, Any]] = {
    "start (2, 1), step 0.5 (ours)": {"start": (2.0, 1.0), "step": 0.5},
    "start (2, 1), step 0.55": {"start": (2.0, 1.0), "step": 0.55},
    "start (3, 1), step 0.5": {"start": (3.0, 1.0), "step": 0.5},
}
"""Readings of gradient descent around ours, for the columns that it misses."""

WIDTHS = (1.0, 1.15, 1.3)
"""Of the kernel, over our width."""

DESCENT_COLUMNS = (
    ("E.19", math.inf, 20),
    ("E.19", math.inf, 30),
    ("E.11", math.inf, 30),
    ("E.9", 0.2, 0),
    ("E.11", 0.2, 30),
    ("E.19", 0.2, 30),
)
"""Those three, and three private ones that a start further up or a longer step moves the wrong way."""


def readings(runs: int) -> None:
    """Newton's clean HDP columns under several readings, with the uncorrected coverage that the paper prints."""
    cells = [c for c in hellinger_cells() if c.algorithm == "newton" and c.power == -0.5 and not math.isnan(c.sigma)]
    rows = [_reading(c, name, min(runs, 100), pnr, options) for name, options in READINGS.items() for c in cells]
    common.write_csv("hellinger_readings", rows)


def newton(runs: int) -> None:
    """All of Newton's columns under the former readings, beside ours."""
    cells = [c for c in hellinger_cells() if c.algorithm == "newton"]
    jobs = [
        (c.table, c.epsilon, c.contamination, name, min(runs, most)) for name, most in FORMER.items() for c in cells
    ]
    resumed("hellinger_newton", jobs, _former)


def descent(runs: int) -> None:
    """A few columns of gradient descent under readings around ours."""
    rows = []
    for name, options in DESCENTS.items():
        for setting in DESCENT_COLUMNS:
            (cell,) = [c for c in hellinger_cells() if (c.table, c.epsilon, c.contamination) == setting]
            rows.append(
                {"table": cell.table, "contamination": cell.contamination}
                | _reading(cell, name, min(runs, 200), pgd, options)
            )
    common.write_csv("hellinger_descent", rows)


def widths(runs: int) -> None:
    """What wider kernels do at n = 1000, without privacy: mu under contamination, sigma on clean records."""
    rows = []
    for factor in WIDTHS:
        for bad, table in ((0, "E.1"), (10, "E.4"), (20, "E.4"), (30, "E.4")):
            (cell,) = [c for c in hellinger_cells() if (c.table, c.epsilon, c.contamination) == (table, math.inf, bad)]
            found = [_widened(bad, factor, run) for run in range(min(runs, 200))]
            mu, sigma = np.mean(found, axis=0).tolist()
            rows.append(
                {
                    "factor": factor,
                    "contamination": bad,
                    "runs": len(found),
                    "mu": float(f"{mu:.5g}"),
                    "sigma": float(f"{sigma:.5g}"),
                    "paper_mu": cell.mu,
                    "paper_sigma": cell.sigma,
                }
            )
    common.write_csv("hellinger_widths", rows)


def _widened(bad: int, factor: float, run: int) -> list[float]:
    x = sample(1000, bad, np.random.default_rng([SEED, 21, run]))
    options: dict[str, Any] = {"step": NEWTON_STEP, "floor": FLOOR, "n_iterations": 10}
    return list(pnr(x, start=START, bandwidth=factor * bandwidth(1000), **options).params.values())


def likelihood(runs: int) -> None:
    """The rows for maximum likelihood in the tables of contamination; a run takes next to no time."""
    cells = [c for c in hellinger_cells() if not math.isnan(c.mle_mu) and math.isinf(c.epsilon)]
    found = reproduce_hellinger(runs=2 * runs, cells=cells, methods=("mle",), seed=SEED)
    names = ("table", "n", "contamination", "runs", "mu", "mu_sd", "paper_mu", "paper_mu_sd")
    common.write_csv("hellinger_likelihood", [{name: getattr(row, name) for name in names} for row in found])


def _former(job: tuple[str, float, int, str, int]) -> Row:
    *setting, name, runs = job
    (cell,) = [c for c in hellinger_cells() if [c.table, c.epsilon, c.contamination] == setting]
    where = {"table": cell.table, "contamination": cell.contamination, "power": cell.power}
    return where | _reading(cell, name, runs, pnr, READINGS[name])


def _reading(cell: HellingerCell, name: str, runs: int, method: Callable[..., Any], options: dict[str, Any]) -> Row:
    hits, found = [], []
    for run in range(runs):
        x = sample(cell.n, cell.contamination, np.random.default_rng([SEED, 19, cell.n, run]))
        fit = method(
            x,
            bandwidth=bandwidth(cell.n),
            draws=DRAWS,
            random_state=np.random.default_rng([SEED, 20, run]),
            **options,
            **cell.privacy,
        )
        if not (cell.thresholded and aberrant(fit.params["mu"], x.mean(), x.std())):
            found.append(list(fit.params.values()))
        plain = fit.intervals(corrected=False).values()
        hits.append([low <= truth <= high for truth, (low, high) in zip(TRUTH.values(), plain, strict=True)])
    means, spreads, covered = np.mean(found, axis=0), np.std(found, axis=0), np.mean(hits, axis=0)
    printed = (cell.mu, cell.mu_sd, cell.sigma, cell.sigma_sd, cell.mu_plain_cover, cell.sigma_plain_cover)
    ours = (means[0], spreads[0], means[1], spreads[1], *covered)
    names = ("mu", "mu_sd", "sigma", "sigma_sd", "mu_plain_cover", "sigma_plain_cover")
    row = {"reading": name, "n": cell.n, "epsilon": cell.epsilon, "runs": runs, "kept": len(found) / runs}
    row |= {key: float(f"{value:.5g}") for key, value in zip(names, ours, strict=True)}
    return row | {f"paper_{key}": value for key, value in zip(names, printed, strict=True)}


# -- PrivateHellinger -------------------------------------------------------------------------------------------


def certified(runs: int) -> None:
    """Standard errors, coverage and contamination at four budgets, beside the non-private fits on the same data."""
    clean = [(budget, n, 0, CLEAN * runs) for budget in BUDGETS for n in SIZES]
    jobs = clean + [(budget, n, bad, runs) for bad in (5, 10, 20, 30) for budget in BUDGETS for n in SIZES]
    resumed("hellinger_certified", jobs, _certified)


def _certified(job: tuple[str, int, int, int]) -> Row:
    from fogline import PrivateHellinger

    budget, n, bad, runs = job
    private, errors, hits, robust = [], [], [], []
    for run in range(runs):
        x = sample(n, bad, np.random.default_rng([SEED, list(BUDGETS).index(budget), n, bad, run]))
        model = PrivateHellinger(family="normal", parameter_bounds=PARAMETER_BOUNDS, **BUDGETS[budget])
        fitted = model.fit(x)
        private.append([fitted.params_[name] for name in TRUTH])
        errors.append(np.sqrt(np.diag(fitted.covariance_)))
        pairs = ((truth, fitted.confidence_intervals_[name]) for name, truth in TRUTH.items())
        hits.append([low <= truth <= high for truth, (low, high) in pairs])
        robust.append(_minimum_hellinger(x))
    ours, theirs = np.array(private), np.array(robust)
    paper = {cell.algorithm: cell for cell in _paper_cells(BUDGETS[budget].get("hdp"), n, bad)}
    plain = {cell.algorithm: cell for cell in _paper_cells(math.inf, n, bad)}
    row: Row = {"budget": budget, "n": n, "contamination": bad, "runs": runs}
    for i, (name, truth) in enumerate(TRUTH.items()):
        row |= {
            f"{name}": ours[:, i].mean(),
            f"{name}_sd": ours[:, i].std(ddof=1),
            f"{name}_rmse": math.sqrt(np.mean((ours[:, i] - truth) ** 2)),
            f"{name}_stated": float(np.median(np.array(errors)[:, i])),
            f"{name}_cover": float(np.mean(np.array(hits)[:, i])),
            f"{name}_plain": theirs[:, i].mean(),
            f"{name}_plain_sd": theirs[:, i].std(ddof=1),
            f"{name}_sd_ratio": ours[:, i].std(ddof=1) / theirs[:, i].std(ddof=1),
        }
    for algorithm in ("gradient_descent", "newton"):
        cell, free = paper.get(algorithm), plain.get(algorithm)
        rmse = math.hypot(cell.mu - TRUTH["mu"], cell.mu_sd) if cell else math.nan
        row |= {
            f"paper_{algorithm}_sd": cell.mu_sd if cell else math.nan,
            f"paper_{algorithm}_rmse": rmse,
            f"paper_{algorithm}_plain_bias": free.mu - TRUTH["mu"] if free else math.nan,
        }
    return row


def _paper_cells(epsilon: float | None, n: int, bad: int) -> list[HellingerCell]:
    """Return the paper's columns of HDP in this setting; clean ones are printed twice: the better figure last."""
    same = [c for c in hellinger_cells() if c.power == -0.5 and c.epsilon == epsilon and c.n == n]
    return sorted((c for c in same if c.contamination == bad), key=lambda c: -c.mu_sd)


def _minimum_hellinger(x: Any) -> list[float]:
    """Non-private minimum Hellinger distance, from the median and its median deviation."""
    middle = float(np.median(x))
    start = [middle, 1.4826 * float(np.median(np.abs(x - middle)))]
    return list(pgd(x, start=start, step=1.0, n_iterations=40, bandwidth=bandwidth(len(x))).params.values())


# -- what a release holds ---------------------------------------------------------------------------------------


def limits(runs: int) -> None:  # noqa: ARG001
    """Standard errors of the best linear reading of the released sums, the number of records being unknown."""
    rows = []
    for budget, n in itertools.product(BUDGETS, SIZES):
        errors = _best_reading(budget, n)
        rows.append({"budget": budget, "n": n, "mu": errors[0], "sigma": errors[1]})
    common.write_csv("hellinger_limits", rows)


def _best_reading(budget: str, n: int) -> Any:
    """Generalised least squares at the truth: the sums have the noise's covariance and that of the records."""
    from fogline import PrivateHellinger

    model = PrivateHellinger(family="normal", parameter_bounds=PARAMETER_BOUNDS, **BUDGETS[budget])
    density = model.fit(np.zeros((0, 1))).density_
    assert density is not None
    spec = density.spec
    edges = spec.lower[0] + spec.cell_widths[0] * np.arange(spec.cells[0] + 1)
    phases = np.outer(spec.angular[:, 0], edges[:-1] - edges[0])
    roots = np.sqrt(density.weights)[:, None]
    features = np.concatenate([roots * np.cos(phases), (roots * np.sin(phases))[1:]])

    def masses(mu: float, sigma: float) -> Any:
        return np.diff(Normal().cdf([mu, sigma], edges))

    (mu, sigma), step = TRUTH.values(), 1e-3
    slopes = [
        n * (masses(mu + step, sigma) - masses(mu - step, sigma)) / (2 * step),
        n * (masses(mu, sigma + step) - masses(mu, sigma - step)) / (2 * step),
        masses(mu, sigma),
    ]
    jacobian = features @ np.stack(slopes, axis=1)
    covariance = density.noise_scale**2 * np.eye(len(features)) + n * (features * masses(mu, sigma)) @ features.T
    return np.sqrt(np.diag(np.linalg.inv(jacobian.T @ np.linalg.solve(covariance, jacobian))))


# -- other families ---------------------------------------------------------------------------------------------

FAMILIES: dict[str, tuple[UnivariateFamily, dict[str, float], dict[str, tuple[float, float]]]] = {
    "lognormal": (Lognormal(), {"mu": 1.0, "sigma": 0.5}, {"mu": (0.0, 2.0), "sigma": (0.25, 1.0)}),
    "gamma": (Gamma(), {"shape": 3.0, "scale": 1.0}, {"shape": (1.0, 8.0), "scale": (0.3, 3.0)}),
    "weibull": (Weibull(), {"shape": 2.0, "scale": 3.0}, {"shape": (1.0, 5.0), "scale": (1.0, 8.0)}),
    "logistic": (Logistic(), {"location": 5.0, "scale": 1.0}, {"location": (-5.0, 15.0), "scale": (0.3, 3.0)}),
    "t4": (StudentT(4), {"location": 5.0, "scale": 1.5}, {"location": (-5.0, 15.0), "scale": (0.4, 4.0)}),
    "exponential": (Exponential(), {"scale": 2.0}, {"scale": (0.5, 8.0)}),
}


def families(runs: int) -> None:
    """Coverage of 95% intervals at n = 1000, epsilon 1, delta 1e-5."""
    resumed("hellinger_families", [(name, 1000, 1.0, runs) for name in FAMILIES], _family)


def _family(job: tuple[str, int, float, int]) -> Row:
    from fogline import PrivateHellinger

    name, n, epsilon, runs = job
    family, truth, box = FAMILIES[name]
    theta = [truth[parameter] for parameter in family.parameters]
    found, hits, stated = [], [], []
    for run in range(runs):
        x = family.quantile(theta, np.random.default_rng([SEED, list(FAMILIES).index(name), run]).uniform(size=n))
        fitted = PrivateHellinger(family=family, parameter_bounds=box, epsilon=epsilon, delta=1e-5).fit(x)
        found.append([fitted.params_[parameter] for parameter in truth])
        stated.append(np.sqrt(np.diag(fitted.covariance_)))
        pairs = ((value, fitted.confidence_intervals_[parameter]) for parameter, value in truth.items())
        hits.append([low <= value <= high for value, (low, high) in pairs])
    values, errors, covered = np.array(found), np.array(stated), np.array(hits)
    row: Row = {"family": name, "n": n, "epsilon": epsilon, "runs": runs}
    for i in range(2):
        there = i < len(truth)
        row |= {
            f"parameter_{i + 1}": family.parameters[i] if there else "",
            f"truth_{i + 1}": theta[i] if there else math.nan,
            f"mean_{i + 1}": values[:, i].mean() if there else math.nan,
            f"sd_{i + 1}": values[:, i].std(ddof=1) if there else math.nan,
            f"stated_{i + 1}": float(np.median(errors[:, i])) if there else math.nan,
            f"cover_{i + 1}": covered[:, i].mean() if there else math.nan,
        }
    return row


# -- growth -----------------------------------------------------------------------------------------------------


def growth(runs: int) -> None:
    """CPU seconds of a fit against n, and of the bare pass that puts the records on a grid."""
    from fogline import PrivateHellinger

    rows = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        x = sample(n, 0, np.random.default_rng([SEED, n]))
        fits, passes = [], []
        for _ in range(min(runs, 7)):
            began = time.process_time()
            PrivateHellinger(family="normal", parameter_bounds=PARAMETER_BOUNDS, epsilon=1.0, delta=1e-5).fit(x)
            middle = time.process_time()
            np.bincount(np.clip((x + 30.0) * 16.0, 0, 1023).astype(np.intp), minlength=1024)
            fits.append(middle - began)
            passes.append(time.process_time() - middle)
        rows.append({"n": n, "fit_seconds": min(fits), "bincount_seconds": min(passes)})
    common.write_csv("hellinger_growth", rows)


# -- figures E.1 to E.3 -----------------------------------------------------------------------------------------


def paths(runs: int) -> None:
    """Iterates of PNR (figure E.1) and of PGD, with and without noise, and intervals of PNR (figure E.3)."""
    x = sample(1000, 0, np.random.default_rng([SEED, 0]))
    rows: list[Row] = []
    for algorithm, method in (("newton", pnr), ("gradient_descent", pgd)):
        for run in range(min(runs, 10)):
            guard: dict[str, Any] = {"step": NEWTON_STEP, "floor": FLOOR} if method is pnr else {}
            found = method(x, start=START, hdp=0.6 if run else None, **guard, random_state=run)
            rows += [
                {"algorithm": algorithm, "run": run, "private": bool(run), "iteration": k, "mu": mu, "sigma": sigma}
                for k, (mu, sigma) in enumerate(found.iterates)
            ]
    common.write_csv("hellinger_paths", rows)
    intervals: list[Row] = []
    for run in range(min(runs, 50)):
        x = sample(1000, 0, np.random.default_rng([SEED, 5, run]))
        for hdp in (None, 0.6):
            found = pnr(x, start=START, step=NEWTON_STEP, hdp=hdp, draws=DRAWS, floor=FLOOR, random_state=run)
            low, high = found.intervals()["mu"]
            intervals.append(
                {"run": run, "private": hdp is not None, "mu": found.params["mu"], "low": low, "high": high}
            )
    common.write_csv("hellinger_intervals", intervals)


PARTS: dict[str, Callable[[int], None]] = {
    "published": as_published,
    "newton": newton,
    "descent": descent,
    "widths": widths,
    "likelihood": likelihood,
    "readings": readings,
    "certified": certified,
    "limits": limits,
    "families": families,
    "growth": growth,
    "paths": paths,
}

if __name__ == "__main__":
    words = sys.argv[1:]
    runs = RUNS
    if "--quick" in words:
        common.RESULTS = common.RESULTS.parent.parent / "out" / "benchmarks"
        runs = QUICK_RUNS
    for word in words:
        if word.startswith("--runs="):
            runs = int(word.removeprefix("--runs="))
    parts = [word for word in words if not word.startswith("--")] or list(PARTS)
    if "--again" in words:
        for part in parts:
            (common.RESULTS / f"hellinger_{part}.csv").unlink(missing_ok=True)
    for part in parts:
        began = time.monotonic()
        PARTS[part](runs)
        print(f"{part}: {time.monotonic() - began:.0f} s, results in {common.RESULTS.name}/", file=sys.stderr)
