"""Private Gaussian mixtures on ordinary data, on components far apart, and the Gaussian learner alone.

Run ``python benchmarks/mixtures.py`` (all parts), ``--only ordinary|learner|separated|routes|phase|speed``,
``--quick``, ``--jobs N`` (processes; all cores by default) or ``--most N`` (no cells of more records). Rows are written
as they come, those that decide a target first; what was stopped goes on where it stopped. ``--fresh`` forgets what is
there.

Ordinary data are mixtures of `fogline_research.experiments.ordinary_mixture`: standard deviations from 0.5 to 1 within
a component, means 3 to 6 of the largest apart. The gap is the mean log-likelihood of 20 000 fresh records under
scikit-learn's GaussianMixture (five starts, not private, the same records) less that under the private mixture.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from common import RESULTS, read_csv
from fogline import PrivateGaussianMixture
from fogline_research.baselines import dp_em
from fogline_research.experiments import ordinary_mixture
from mixtures_routes import routes, routes_groups
from mixtures_separated import (
    DELTA,
    FIRST_SEED,
    learner,
    learner_groups,
    phase,
    phase_groups,
    separated,
    separated_groups,
)

RADIUS = 25.0
HELD_OUT = 20_000
CONTENDERS = ("dp_em", "sample-aggregate")

Row = dict[str, Any]


# -- ordinary data -----------------------------------------------------------------------------------------------


def ordinary_data(d: int, k: int, separation: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Records and fresh ones of a mixture with ordinary overlap."""
    truth = ordinary_mixture(d, k, separation, [seed, d, k, int(10 * separation)])
    X, _ = truth.sample(n, random_state=[seed, 1])
    fresh, _ = truth.sample(HELD_OUT, random_state=[seed, 2])
    return X, fresh


def reference(X: np.ndarray, k: int) -> GaussianMixture:
    """Mixture without privacy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(k, n_init=5, random_state=0).fit(X)


def private(method: str, X: np.ndarray, k: int, epsilon: float, seed: int) -> Any:
    """One private mixture."""
    if method == "dp_em":
        return dp_em(X, n_components=k, epsilon=epsilon, delta=DELTA, radius=RADIUS, random_state=seed)
    model = PrivateGaussianMixture(
        n_components=k,
        epsilon=epsilon,
        delta=DELTA,
        radius=RADIUS,
        sigma_min=0.2,
        sigma_max=3.0,
        method=method,
    )
    return model.fit(X)


def ordinary_groups(quick: bool) -> list[list[Row]]:
    """Numbers of components, dimensions, sizes and budgets; what shares its records is one group."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    sizes = (10_000,) if quick else (10_000, 100_000, 1_000_000)
    for n, d, k, separation in itertools.product(sizes, (2, 5, 10), (3, 5, 10), (3.0, 4.5, 6.0)):
        if n == 1_000_000 and separation != 4.5:
            continue
        seeds = 1 if quick or n == 1_000_000 else 5 if n == 10_000 else 3
        for epsilon, seed in itertools.product((1.0,) if quick else (0.5, 1.0, 3.0), range(seeds)):
            if n > 10_000 and epsilon != 1.0 and (separation != 4.5 or seed):
                continue
            late = n == 10_000 and epsilon != 1.0
            group = groups.setdefault((n == 1_000_000, late, k > 5, n, seed, d, k, separation), [])
            key = {"n": n, "d": d, "k": k, "separation": separation, "epsilon": epsilon}
            for method in ("sketch", *CONTENDERS):
                if method in CONTENDERS and not _contended(n, separation, epsilon, seed):
                    continue
                group.append({**key, "method": method, "seed": FIRST_SEED + seed})
    return [groups[place] for place in sorted(groups)]


def _contended(n: int, separation: float, epsilon: float, seed: int) -> bool:
    """Whether a cell is for the contenders too: fewer of those that take long."""
    if n == 10_000:
        return seed < 2 if epsilon == 1.0 else seed == 0 and separation == 4.5
    return n == 100_000 and epsilon == 1.0 and seed == 0 and separation == 4.5


def ordinary(keys: list[Row]) -> list[Row]:
    """Gaps of the log-likelihood on the same records."""
    n, d, k, separation, seed = (keys[0][name] for name in ("n", "d", "k", "separation", "seed"))
    X, fresh = ordinary_data(d, k, separation, n, seed)
    start = time.process_time()
    score = float(reference(X, k).score(fresh))
    seconds = time.process_time() - start
    rows = []
    for key in keys:
        start = time.process_time()
        model = private(key["method"], X, k, key["epsilon"], seed)
        taken = time.process_time() - start
        gap = score - float(np.mean(model.score_samples(fresh)))
        rows.append({"gap": gap, "seconds": taken, "reference_seconds": seconds})
    return rows


# -- time --------------------------------------------------------------------------------------------------------


def speed_groups(quick: bool) -> list[list[Row]]:
    """The size that has a target."""
    return [[{"n": 100_000, "d": 20, "k": 5, "seed": FIRST_SEED + seed}] for seed in range(1 if quick else 3)]


def speed(keys: list[Row]) -> list[Row]:
    """Time of a fit against scikit-learn's, one start each, in one run."""
    rows = []
    for key in keys:
        X, _ = ordinary_data(key["d"], key["k"], 4.5, key["n"], key["seed"])
        start = time.process_time()
        GaussianMixture(key["k"], random_state=0).fit(X)
        middle = time.process_time()
        private("sketch", X, key["k"], 1.0, key["seed"])
        end = time.process_time()
        rows.append(
            {
                "scikit_learn": middle - start,
                "sketch": end - middle,
                "ratio": (end - middle) / (middle - start),
            }
        )
    return rows


# -- running -----------------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[Callable[[bool], list[list[Row]]], Callable[[list[Row]], list[Row]]]] = {
    "ordinary": (ordinary_groups, ordinary),
    "learner": (learner_groups, learner),
    "separated": (separated_groups, separated),
    "routes": (routes_groups, routes),
    "phase": (phase_groups, phase),
    "speed": (speed_groups, speed),
}
"""Which cells there are, in groups that share their records, and what is measured on a group."""


def run(part: str, *, quick: bool, fresh: bool, jobs: int, most: int | None) -> None:
    """Measure what is not there yet, group by group."""
    name = f"mixtures_{part}"
    path = RESULTS / f"{name}.csv"
    if fresh and not quick:
        path.unlink(missing_ok=True)
    done = [tuple(row.values()) for row in read_csv(name)]
    groups = []
    for group in PARTS[part][0](quick):
        told = [tuple(map(str, key.values())) for key in group]
        known = {row[: len(told[0])] for row in done}
        missing = [key for key, text in zip(group, told, strict=True) if quick or text not in known]
        if missing and (most is None or missing[0]["n"] <= most):
            groups.append(missing)
    for keys, results in _measured(part, groups, jobs):
        rows = [{**key, **_short(result)} for key, result in zip(keys, results, strict=True)]
        for row in rows:
            print(row, flush=True)
        if not quick:
            _append(path, rows)


def _measured(part: str, groups: list[list[Row]], jobs: int) -> Iterator[tuple[list[Row], list[Row]]]:
    """What is measured on each group, as it comes."""
    measure = PARTS[part][1]
    if jobs == 1:
        for group in groups:
            yield group, measure(group)
        return
    with ProcessPoolExecutor(jobs) as pool:
        waiting = {pool.submit(measure, group): group for group in groups}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _short(result: Row) -> Row:
    return {name: f"{value:.5g}" for name, value in result.items()}


def _append(path: Path, rows: list[Row]) -> None:
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="a few small cells, nothing is written")
    parser.add_argument("--fresh", action="store_true", help="measure everything anew")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--most", type=int, help="only cells of at most so many records")
    chosen = parser.parse_args()
    for part in [chosen.only] if chosen.only else PARTS:
        jobs = 1 if part == "speed" else chosen.jobs
        run(part, quick=chosen.quick, fresh=chosen.fresh, jobs=jobs, most=chosen.most)
