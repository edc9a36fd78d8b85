"""Integrally private draws measured: against DPB and DPGAN, the best of the mollifier, Metropolis, and the clock.

Run ``python benchmarks/integral.py`` (some 20 minutes of a core), or name parts: ``theory draws curves placed paper
published picture``; ``--quick`` runs one data set at two epsilons. Every run is a row of its own, written as it comes:
what was interrupted goes on where it stopped.
"""

from __future__ import annotations

import csv
import math
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.stats import kstest

from common import RESULTS, read_csv
from fogline_research.experiments.integral import (
    EPSILONS,
    MOST_PLACED,
    PLACED,
    PLACED_EPSILONS,
    density_of,
    measure,
    problem,
)

SEED = 20261116
RUNS = 4
QUICK = "--quick" in sys.argv
FAR_EPSILONS = (20.0, 50.0, 100.0, 200.0, 400.0)
"""Further, for DPB with the original's sensitivity on the ring: the paper compares epsilons 400 times apart."""

PLANE_EPSILONS = (0.5, 2.0, 10.0)
GAN_EPSILONS = (1.0, 10.0)
PAPER_EPSILONS = (1.0, 10.0)
THEORY_EPSILONS = (0.5, 2.0, 10.0)
DRAWS = 100_000


def each(name: str, jobs: Iterable[dict[str, Any]], work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Do the jobs that have no row in docs/benchmarks/NAME.csv yet, and append a row for each."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.csv"
    rows = read_csv(name)
    for job in jobs:
        key = tuple(str(value) for value in job.values())
        if any(tuple(row[column] for column in job) == key for row in rows):
            continue
        values = {**job, **work(job)}
        fresh = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(values), lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) and k not in job else v for k, v in values.items()})
        print(f"{name}: {' '.join(key)}", file=sys.stderr, flush=True)


# -- curves -----------------------------------------------------------------------------------------------------


def curves() -> None:
    """Loss and coverage over epsilon on the three problems, as figures 4, 5, 7 and 8; DPGAN on the ring."""
    ours, theirs = ("certified", "certified_box", "certified_cells"), ("bernstein", "bernstein_sup")
    tasks = [
        ("ring", EPSILONS, ours + theirs),
        ("three", EPSILONS, (ours[0], ours[2], *theirs)),
        (f"random-{PLACED}", EPSILONS, ours[:1] + theirs),
        ("random-2d-8", PLANE_EPSILONS, ours + theirs),
    ]
    jobs = [
        (name, epsilon, method)
        for name, epsilons, methods in tasks
        for epsilon in (epsilons if not QUICK else (2.0, 10.0))
        for method in methods
    ]
    jobs += [("ring", epsilon, "bernstein_sup") for epsilon in FAR_EPSILONS if not QUICK]
    jobs += [("ring", epsilon, "dpgan") for epsilon in (GAN_EPSILONS if not QUICK else (10.0,))]
    each("integral_runs", _with_runs(jobs), _measured)


def placed() -> None:
    """Gaussians placed at random on the line, 1 to 10 of them, as figures 6 and 7."""
    jobs = [
        (f"random-{m}", epsilon, method)
        for m in range(1, 11)
        for epsilon in (0.25, 2.0)
        for method in ("certified", "bernstein")
    ]
    each("integral_placed", _with_runs(jobs if not QUICK else jobs[:2]), _measured)


def paper() -> None:
    """The paper's configuration (network, three rounds, Metropolis) beside the fast learner: loss and time."""
    jobs = [("ring", epsilon, "published") for epsilon in PAPER_EPSILONS]
    each("integral_runs", _with_runs(jobs, runs=1), _measured)


def as_published() -> None:
    """The paper's algorithm on all of its problems, in the small form: a tenth of the draws in each round.

    Outputs are read as log-odds, clamped to log 2 and, on three problems, not clamped; one data set per cell.
    """
    most = range(1, MOST_PLACED + 1)
    placed = [f"{kind}-{m}" for kind in ("random", "random-2d") for m in most]
    jobs = [(name, epsilon, "published_small") for name in ("ring", "three") for epsilon in EPSILONS]
    jobs += [(name, epsilon, "published_small") for name in placed for epsilon in PLACED_EPSILONS]
    free = ("ring", "three", f"random-{PLACED}")
    jobs += [(name, epsilon, "published_small_free") for name in free for epsilon in (0.5, 2.0, 10.0)]
    each("integral_published", _with_runs(jobs, runs=1), _measured)


def _with_runs(jobs: Iterable[tuple[str, float, str]], runs: int = RUNS) -> Iterable[dict[str, Any]]:
    for run in range(1 if QUICK else runs):
        for name, epsilon, method in jobs:
            yield {"problem": name, "epsilon": epsilon, "method": method, "run": run}


def _measured(job: dict[str, Any]) -> dict[str, Any]:
    seed = SEED + job["run"]
    return vars(measure(job["problem"], job["epsilon"], job["method"], seed=seed, places=seed))


# -- theory -----------------------------------------------------------------------------------------------------


def theory() -> None:
    """Gain of MBDE with the paper's schedule beside epsilon/2, Theorem 6 with its factor, and (11) as printed."""
    jobs = [
        {"problem": name, "epsilon": epsilon}
        for name in ("ring", "three", f"random-{PLACED}")
        for epsilon in THEORY_EPSILONS
    ]
    each("integral_theory", jobs, _guaranteed)


def _guaranteed(job: dict[str, Any]) -> dict[str, Any]:
    from fogline.queries.boosted_density import CLAMP, gamma, log_odds
    from fogline_research.as_published import mbde
    from fogline_research.metrics import kl_divergence

    task, epsilon = problem(job["problem"], SEED), job["epsilon"]
    X = task.mixture.sample(10_000, np.random.default_rng(SEED))[0]
    found = mbde(X, epsilon=epsilon, n_samples=100, learner="boosting", clamp=CLAMP, chains=200, random_state=0)
    p, q0, w = task.truth, task.base("normal"), task.rule.weights
    q, edges, promised = q0 / float(w @ q0), [], 0.0
    model: Any = found.log_ratio
    for step, _, classifier in model.rounds:
        # Edges by quadrature, not on the draws that the classifier has seen.
        said = np.clip(log_odds(classifier, model.base.shown(task.rule.nodes)), -CLAMP, CLAMP)
        edge_p, edge_q = float((w * p) @ said) / CLAMP, float((w * q) @ -said) / CLAMP
        high, low = CLAMP * edge_p + gamma(edge_q), CLAMP * (edge_p + edge_q - CLAMP * step / 2)
        promised += step * (high if edge_q >= 1 / 3 else low)
        edges.append((edge_p, edge_q))
        q = q * np.exp(step * said)
        q = q / float(w @ q)
    least_p, least_q = np.min(edges, axis=0).tolist()
    last = model.rounds[-1][0]
    return {
        "gain": kl_divergence(p, q0, w) - kl_divergence(p, q, w),
        "half": epsilon / 2,
        "edge_p": least_p,
        "edge_q": least_q,
        "corrected": promised,
        "printed": epsilon / 2 * (least_p + least_q) / 2 * (1 - last) if least_q >= 1 / 3 else math.nan,
    }


# -- draws ------------------------------------------------------------------------------------------------------


def draws() -> None:
    """Exact draws against the random walk of `published`, one chain as in the paper and many side by side."""
    jobs = [{"what": what} for what in ("exact", "exact, constant time", "walk, one chain", "walk, 1000 chains")]
    each("integral_draws", jobs, _drawn)


def _drawn(job: dict[str, Any]) -> dict[str, Any]:
    from fogline import IntegralSampler
    from fogline.releases import secret_models
    from fogline_research.as_published.mbde import metropolis

    epsilon, size = 2.0, DRAWS // 10 if QUICK else DRAWS
    X = problem("three").mixture.sample(10_000, np.random.default_rng(SEED))[0]
    sampler = IntegralSampler(
        epsilon=epsilon,
        max_samples=2 * DRAWS,
        learner="boosting",
        schedule="full",
        rounds=1,
        drawing="rejection",
        constant_time="constant" in job["what"],
    ).fit(X)
    paid_draws = secret_models.paid_draws_of(sampler)
    assert paid_draws is not None
    assert paid_draws.log_ratio is not None
    made = size
    grid = np.linspace(-7, 7, 28_001)
    law = np.exp(paid_draws.log_ratio(grid[:, None]) - 0.5 * grid**2)
    law = np.concatenate([[0.0], np.cumsum(0.5 * (law[1:] + law[:-1]))])
    began = time.process_time()
    if "walk" not in job["what"]:
        drawn = sampler.sample(size)
    else:
        chains = 1 if "one" in job["what"] else 1000
        made = 400 if chains == 1 else size  # a single chain takes a millisecond a step: measured on fewer, and scaled
        rng = np.random.default_rng(0)
        start = paid_draws.base.draws(rng, chains)
        burn_in = 500 if chains > 1 else 0
        drawn = metropolis(paid_draws.log_ratio, start, made, base=paid_draws.base, burn_in=burn_in, rng=rng)
    seconds = (time.process_time() - began) * (size / made)
    fit = kstest(drawn[:, 0], lambda x: np.interp(x, grid, law / law[-1]))
    return {"draws": size, "seconds": seconds, "ks_distance": float(fit.statistic), "ks_p": float(fit.pvalue)}


# -- a picture ---------------------------------------------------------------------------------------------------


def picture() -> None:
    """Densities of the ring, as the paper's figures 1 and 4: one run each."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    task = problem("ring")
    shown = [("truth", "", 0.0)]
    shown += [(f"MBDE, box, epsilon {e:g}", "certified_box", e) for e in (1.0, 5.0, 10.0)]
    shown += [("MBDE, normal, epsilon 10", "certified", 10.0)]
    shown += [(f"DPB, epsilon {e:g}", "bernstein", e) for e in (0.1, 1.0)]
    shown += [(f"DPB, original, epsilon {e:g}", "bernstein_sup", e) for e in (10.0, 400.0)]
    shown += [("DPGAN, epsilon 10", "dpgan", 10.0)]
    figure, axes = plt.subplots(2, 5, figsize=(10, 4.4))
    for axis, (title, method, epsilon) in zip(axes.ravel(), shown, strict=True):
        values = task.truth if not method else density_of(task.name, epsilon, method, seed=SEED)
        axis.imshow(values.reshape(task.cells, task.cells).T, origin="lower", cmap="magma", vmin=0.0)
        axis.set_title(title, fontsize=8)
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(RESULTS / "integral_ring.png", dpi=90, metadata={"Software": None})
    plt.close(figure)


PARTS = {
    "theory": theory,
    "draws": draws,
    "curves": curves,
    "placed": placed,
    "paper": paper,
    "published": as_published,
    "picture": picture,
}

if __name__ == "__main__":
    for part in [word for word in sys.argv[1:] if word in PARTS] or PARTS:
        began = time.monotonic()
        PARTS[part]()
        print(f"{part}: {time.monotonic() - began:.0f} s, results in {RESULTS.name}/", file=sys.stderr)
