"""Timings in CPU seconds, each against something measured in the same process."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

import fogline.queries.fourier_sums as histogram
from fogline import DensitySketch, PrivateModes
from fogline.datasets.simulated import gaussian_mixture4
from fogline.density.random_spec import plan_spec
from fogline.density.spec import SketchSpec
from fogline.queries import random_feature_sums as random_features
from fogline_research.as_published import dp_grams

__all__ = ["feature_ratios", "fit_seconds", "start_seconds", "update_ratios"]

BOX = [(-10.0, 10.0), (-10.0, 10.0)]


def best_of(action: Callable[[], Any], repeats: int = 7) -> float:
    """Least CPU time of some repetitions."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        action()
        times.append(time.process_time() - began)
    return min(times)


def fit_seconds() -> list[dict[str, Any]]:
    """A whole fit less the pass over the data, and DP-GRAMS beside it."""
    PrivateModes(epsilon=1.0, delta=1e-5, bounds=BOX).fit(np.zeros((10, 2)))  # libraries load on first use
    rows = []
    for n in (5000, 50_000):
        X = gaussian_mixture4(n, random_state=0).X
        whole = best_of(lambda X=X: PrivateModes(epsilon=1.0, delta=1e-5, bounds=BOX).fit(X))  # type: ignore[misc]
        reading = best_of(lambda X=X: DensitySketch(BOX).update(X))  # type: ignore[misc]
        rows.append({"what": f"PrivateModes.fit beyond the pass, n = {n}, seconds", "value": whole - reading})
    X = gaussian_mixture4(5000, random_state=0).X
    published_time = best_of(lambda: dp_grams(X, epsilon=1.0, delta=1e-5, n_modes=4, random_state=0))
    return [*rows, {"what": "as_published.dp_grams, n = 5000, seconds", "value": published_time}]


def update_ratios() -> list[dict[str, Any]]:
    """``update`` of ten million rows against ``numpy.bincount`` of their cells, made beforehand."""
    X = np.random.default_rng(0).normal(0, 3, (10**7, 2))
    spec = SketchSpec.plan(BOX)
    keys = np.concatenate([histogram.cell_keys(X[i : i + 2**16], spec) for i in range(0, len(X), 2**16)])
    bare = best_of(lambda: np.bincount(keys, minlength=int(np.prod(spec.cells)) + 1))
    DensitySketch(BOX).update(X[:10])
    fast = best_of(lambda: DensitySketch(BOX).update(X))
    compiled, histogram._counter = histogram._counter, None
    plain = best_of(lambda: DensitySketch(BOX).update(X))
    histogram._counter = compiled
    return [
        {"what": "update of 10^7 rows with the fast extra, times a bare bincount", "value": fast / bare},
        {"what": "update of 10^7 rows without it, times a bare bincount", "value": plain / bare},
    ]


def feature_ratios() -> list[dict[str, Any]]:
    """Random features of 70000 records of 50 columns, 4096 frequencies, against the bare matrix product."""
    X = np.random.default_rng(0).uniform(size=(70_000, 50))
    box = [(0.0, 1.0)] * 50
    frequencies = plan_spec(box, features=4096).frequencies.T.astype(np.float64, order="C")
    phases = np.empty((len(X), 4096))
    DensitySketch(box, features=4096).update(X[:10])
    bare = best_of(lambda: np.matmul(X, frequencies, out=phases), repeats=3)
    fast = best_of(lambda: DensitySketch(box, features=4096).update(X), repeats=3)
    with patch.object(random_features, "_fast_adder", lambda: None):
        plain = best_of(lambda: DensitySketch(box, features=4096).update(X), repeats=3)
    return [
        {"what": "features of 70000 x 50, 4096 frequencies, fast extra, times a bare product", "value": fast / bare},
        {"what": "the same without the fast extra", "value": plain / bare},
    ]


def start_seconds() -> list[dict[str, Any]]:
    """CPU time of importing fogline and of asking its command line for help."""
    commands = {
        "import fogline, seconds": [sys.executable, "-c", "import fogline"],
        "import fogline and PrivateModes, seconds": [sys.executable, "-c", "from fogline import PrivateModes"],
        "fogline --help, seconds": [sys.executable, "-m", "fogline.cli", "--help"],
    }
    return [{"what": what, "value": min(_child_seconds(c) for _ in range(3))} for what, c in commands.items()]


def _child_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
