"""Clusters of the shapes of scikit-learn's gallery, beside mean shift and k-means without privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MeanShift, estimate_bandwidth
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from common import spread_over_cores, write_csv
from fogline import PrivateModeClustering

__all__ = ["gallery", "shape"]

FloatArray = NDArray[np.float64]
DELTA = 1e-5


def shape(name: str, n: int, rng: np.random.Generator) -> tuple[FloatArray, NDArray[np.int64]]:
    """One of scikit-learn's gallery of shapes, drawn anew."""
    seed = int(rng.integers(2**31))
    if name == "moons":
        X, y = make_moons(n, noise=0.08, random_state=seed)
        return X * 4, y
    centres = [(-6.0, -4.0), (0.0, 5.0), (6.0, -2.0)]
    if name == "unequal":
        X, y = make_blobs([int(0.7 * n), int(0.2 * n), n - int(0.7 * n) - int(0.2 * n)], centers=centres,
                          random_state=seed)  # fmt: skip
        return X, y
    spread = [1.0, 2.5, 0.5] if name == "varied" else 1.0
    X, y = make_blobs(n, centers=centres, cluster_std=spread, random_state=seed)
    return (X @ np.array([[0.6, -0.6], [-0.4, 0.8]]) if name == "anisotropic" else X), y


SHAPES = ("blobs", "moons", "anisotropic", "varied", "unequal")
GALLERY_BOX = [(-12.0, 12.0), (-12.0, 12.0)]


def gallery_run(job: tuple[str, int], n: int = 10_000) -> dict[str, Any]:
    """One shape, one draw: private with and without the number of clusters, mean shift and k-means without privacy."""
    name, run = job
    X, y = shape(name, n, np.random.default_rng([SHAPES.index(name), run]))
    k = len(np.unique(y))
    row: dict[str, Any] = {"shape": name, "run": run}
    for label, wanted in (("certified", None), ("certified, k known", k)):
        model = PrivateModeClustering(epsilon=1.0, delta=DELTA, bounds=GALLERY_BOX, n_clusters=wanted).fit(X)
        row[label] = float(adjusted_rand_score(y, model.predict(X))) if len(model.cluster_centers_) else 0.0
    part = X[np.random.default_rng(run).choice(len(X), 1000, replace=False)]
    shifted = MeanShift(bandwidth=estimate_bandwidth(part, quantile=0.2), bin_seeding=True).fit(X)
    row["mean shift"] = float(adjusted_rand_score(y, shifted.labels_))
    row["k-means"] = float(adjusted_rand_score(y, KMeans(k, n_init=3, random_state=run).fit_predict(X)))
    return row


def gallery(*, quick: bool) -> None:
    """Measure all shapes and write docs/benchmarks/clusters_gallery.csv."""
    jobs = [(name, run) for name in SHAPES for run in range(2 if quick else 10)]
    found = spread_over_cores(gallery_run, jobs, label="gallery")
    methods = ("certified", "certified, k known", "mean shift", "k-means")
    write_csv(
        "clusters_gallery",
        [
            {"shape": name, "runs": len(jobs) // len(SHAPES)}
            | {m: float(np.mean([row[m] for row in found if row["shape"] == name])) for m in methods}
            for name in SHAPES
        ],
    )
