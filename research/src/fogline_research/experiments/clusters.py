"""Rerun the DP-GRAMS supplement's tables of clustering (tables 5 to 8): Iris, Digits, and MNIST where it is at hand.

The certified estimator has public bounds only (Iris: 0 to 8, 5, 8 and 3 cm; Digits: 0 to 16); the number of clusters
is known. The records' own classes are the truth. MNIST's four packed files are read from the folder that FOGLINE_MNIST
names. As in the paper it is projected on 50 principal components of the *raw* records first: whatever follows, that
step is not private.
"""

from __future__ import annotations

import gzip
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from fogline._validation import check_count
from fogline_research.as_published import dp_grams_c, mean_shift
from fogline_research.baselines import dp_kmeans
from fogline_research.experiments._shared import (
    DELTA,
    Progress,
    check_methods,
    fresh_seed,
    mean_and_error,
    printed_rows,
    reported,
)
from fogline_research.metrics import matching_mse

__all__ = [
    "BOUNDS",
    "MAIN_1",
    "METHODS",
    "TABLE_8",
    "ClusterCell",
    "ClusterRow",
    "cluster_cells",
    "has_mnist",
    "load_mnist",
    "printed",
    "printed_cells",
    "reproduce_clusters",
]

FloatArray = NDArray[np.float64]

BOUNDS = {
    "iris": [(0.0, 8.0), (0.0, 5.0), (0.0, 8.0), (0.0, 3.0)],
    "digits": [(0.0, 16.0)] * 64,
    "mnist": [(-2550.0, 2550.0)] * 50,
}
"""Public: from what the columns mean; for components of images, a guess."""

QUADRATIC = 1000
"""Records of MNIST that mean shift and DP-GRAMS-C see: their time grows with the square of the number."""

METHODS = ("certified", "published", "kmeans", "mean_shift", "dp_kmeans")

NAN = math.nan

MAIN_1: dict[tuple[str, str], tuple[float, float, float, float]] = {
    ("iris", "mean_shift"): (0.78, NAN, 0.22, 0.01),
    ("iris", "published"): (0.73, NAN, 0.07, 0.07),
    ("iris", "kmeans"): (0.73, NAN, 0.07, 0.04),
    ("iris", "dp_kmeans"): (0.44, NAN, 5.14, 0.01),
    ("digits", "mean_shift"): (0.71, NAN, 5.11, 2.86),
    ("digits", "published"): (0.71, NAN, 5.06, 3.67),
    ("digits", "kmeans"): (0.67, NAN, 3.92, 0.10),
    ("digits", "dp_kmeans"): (0.00, NAN, 2247.70, 0.35),
    ("mnist", "mean_shift"): (0.45, NAN, 37.63, 453.20),
    ("mnist", "published"): (0.42, NAN, 40.50, 537.73),
    ("mnist", "kmeans"): (0.37, NAN, 39.48, 1.02),
    ("mnist", "dp_kmeans"): (0.24, NAN, 313.22, 0.57),
}
"""ARI, no NMI, error of the centres and seconds of the main paper's table 1, at epsilon 1."""

TABLE_8: dict[tuple[str, str], tuple[float, float, float, float]] = {
    ("iris", "mean_shift"): (0.784, 0.761, 0.222, 0.009),
    ("iris", "published"): (0.702, 0.734, 0.992, 0.025),
    ("iris", "kmeans"): (0.730, 0.758, 0.066, 0.028),
    ("iris", "dp_kmeans"): (0.438, 0.547, 5.138, 0.012),
    ("digits", "mean_shift"): (0.711, 0.785, 5.113, 2.797),
    ("digits", "published"): (0.711, 0.786, 5.065, 1.090),
    ("digits", "kmeans"): (0.669, 0.747, 3.917, 0.084),
    ("digits", "dp_kmeans"): (0.000, 0.006, 2247.698, 0.351),
    ("mnist", "mean_shift"): (0.446, 0.569, 37.631, 467.396),
    ("mnist", "published"): (0.423, 0.545, 40.501, 181.159),
    ("mnist", "kmeans"): (0.366, 0.485, 39.475, 1.153),
    ("mnist", "dp_kmeans"): (0.243, 0.358, 313.218, 0.642),
}
"""ARI, NMI, error of the centres and seconds of the supplement's table 8, at epsilon 1."""

READING: dict[str, dict[str, Any]] = {"iris": {"bandwidth": 1.0, "step_size": 0.02}, "digits": {}, "mnist": {}}
"""Settings of DP-GRAMS-C that come nearest to the printed tables; the paper prints none."""


@lru_cache(maxsize=1)
def _mnist(folder: str) -> tuple[FloatArray, NDArray[np.int64]]:
    images, labels = [], []
    for part in ("train", "t10k"):
        with gzip.open(Path(folder) / f"{part}-images-idx3-ubyte.gz") as file:
            images.append(np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784))
        with gzip.open(Path(folder) / f"{part}-labels-idx1-ubyte.gz") as file:
            labels.append(np.frombuffer(file.read(), np.uint8, offset=8))
    pixels = np.concatenate(images).astype(np.float64)
    return PCA(50, random_state=0).fit_transform(pixels), np.concatenate(labels).astype(np.int64)


def load_mnist(*, return_X_y: bool = True) -> tuple[FloatArray, NDArray[np.int64]]:
    """Images of MNIST in 50 principal components, and their digits, from the folder named by FOGLINE_MNIST."""
    if not has_mnist() or not return_X_y:
        raise FileNotFoundError("name the folder of MNIST's four packed files in FOGLINE_MNIST")
    return _mnist(os.environ["FOGLINE_MNIST"])


def has_mnist() -> bool:
    """Whether MNIST is at hand."""
    return bool(os.environ.get("FOGLINE_MNIST"))


_LOADERS = {"iris": load_iris, "digits": load_digits, "mnist": load_mnist}


@dataclass(frozen=True)
class ClusterCell:
    """One line of the tables: the setting, and what the paper prints for DP-GRAMS-C in its tables by epsilon.

    Main table 1 and table 8 of the supplement, which `table` names, print other numbers for the same setting.
    """

    dataset: str
    epsilon: float
    ari: float
    nmi: float
    mse: float
    seconds: float
    table: str = ""


@dataclass(frozen=True)
class ClusterRow:
    """One method on one data set at one epsilon, over several runs.

    Attributes
    ----------
    dataset, epsilon, method, runs
        What was run; `epsilon` is the cell's, also for k-means, which is not private.
    ari, ari_se : float
        Mean adjusted Rand index against the classes, and its standard error.
    nmi : float
        Mean normalised mutual information.
    mse : float
        Mean of `fogline_research.metrics.matching_mse` of the centres against the classes' means; infinite where a run
        found no cluster.
    median_mse : float
        The same against the classes' medians, which the paper's errors are to.
    clusters : float
        Mean number of clusters found.
    seconds : float
        Mean CPU time of a run.
    paper_ari, paper_nmi, paper_mse, paper_seconds : float
        What the paper prints for the method; for the certified one, for DP-GRAMS-C.
    """

    dataset: str
    epsilon: float
    method: str
    runs: int
    ari: float
    ari_se: float
    nmi: float
    mse: float
    median_mse: float
    clusters: float
    seconds: float
    paper_ari: float
    paper_nmi: float
    paper_mse: float
    paper_seconds: float

    @property
    def ratio(self) -> float:
        """ARI over the paper's: above 1 is better than printed."""
        return self.ari / self.paper_ari


def cluster_cells(which: str = "all") -> list[ClusterCell]:
    """Lines of the tables for Iris and Digits: all 12, or a "small" choice of 3; with MNIST at hand six more.

    Examples
    --------
    >>> len(cluster_cells()), [(cell.dataset, cell.epsilon) for cell in cluster_cells("small")]
    (12, [('iris', 0.5), ('iris', 1.0), ('digits', 1.0)])
    """
    if which not in ("all", "small"):
        raise ValueError(f'cells must be "small", "all" or a list of cells, got {which!r}')
    cells = [cell for cell in printed_cells() if cell.dataset != "mnist" or has_mnist()]
    small = {("iris", 0.5), ("iris", 1.0), ("digits", 1.0)}
    return cells if which == "all" else [cell for cell in cells if (cell.dataset, cell.epsilon) in small]


def printed_cells() -> list[ClusterCell]:
    """Lines that the paper prints for DP-GRAMS-C by epsilon, those of MNIST included whether it is at hand or not.

    Examples
    --------
    >>> len(printed_cells())
    18
    """
    return [_printed_cell(row) for row in printed_rows("clustering") if row["method"] == "dp_grams_c"]


def _printed_cell(row: Mapping[str, str]) -> ClusterCell:
    epsilon, ari, nmi, mse, seconds = (float(row[name]) for name in ("epsilon", "ari", "nmi", "mse", "seconds"))
    return ClusterCell(row["dataset"], epsilon, ari, nmi, mse, seconds)


def reproduce_clusters(
    *,
    runs: int = 5,
    cells: str | Sequence[ClusterCell] = "small",
    methods: Sequence[str] = METHODS,
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[ClusterRow]:
    """Rerun the supplement's tables of clustering.

    Parameters
    ----------
    runs : int
        Runs a cell; the data are the same in all.
    cells : "small", "all" or sequence of ClusterCell
    methods : sequence of str
        Out of "certified" (`PrivateModeClustering`), "published" (DP-GRAMS-C to the letter, not certified), "kmeans"
        and "mean_shift" with its ends merged to the known number (neither is private), and "dp_kmeans" (certified).
    seed : int, optional
        Seed of what is not certified; by default a fresh one.
    progress : callable, optional
        Called with (runs done, runs in all, label) before each run and once at the end.

    Returns
    -------
    list of ClusterRow
        Cell by cell, in the order of `methods`.

    Examples
    --------
    >>> (row,) = reproduce_clusters(runs=1, cells=cluster_cells()[:1], methods=("published",), seed=1)
    >>> row.dataset, row.epsilon, row.clusters, 0.5 < row.ari < 0.9
    ('iris', 0.1, 3.0, True)
    """
    runs = check_count(runs, "runs")
    chosen = cluster_cells(cells) if isinstance(cells, str) else list(cells)
    check_methods(methods, METHODS)
    root = fresh_seed(seed)
    jobs = [(cell, method) for cell in chosen for method in methods]
    labels = [f"{cell.dataset}, epsilon = {cell.epsilon:g}, {method}" for cell, method in jobs for _ in range(runs)]
    found = [_one_run(*jobs[i // runs], [root, i % runs]) for i in reported(labels, progress)]
    return [_row(*job, found[i * runs : (i + 1) * runs]) for i, job in enumerate(jobs)]


def _found(
    X: FloatArray, k: int, cell: ClusterCell, method: str, stream: Sequence[int]
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Centres, and the label of every record by the method's own rule."""
    if method == "certified":
        from fogline.estimators import PrivateModeClustering

        bounds = BOUNDS[cell.dataset]
        estimator = PrivateModeClustering(epsilon=cell.epsilon, delta=DELTA, bounds=bounds, n_clusters=k).fit(X)
        centers = np.asarray(estimator.cluster_centers_)
        return centers, np.asarray(estimator.predict(X) if len(centers) else np.zeros(len(X)), dtype=np.int64)
    if method == "published":
        rng = np.random.default_rng(stream)
        part = X if cell.dataset != "mnist" else rng.permutation(X)[:QUADRATIC]
        result = dp_grams_c(
            part, epsilon=cell.epsilon, delta=DELTA, n_clusters=k, **READING[cell.dataset], random_state=rng
        )
        return result.centers, result.labels if part is X else _nearest(result.centers, X)
    if method == "dp_kmeans":
        options: dict[str, Any] = {"expected_records": len(X), "random_state": np.random.default_rng(stream)}
        private = dp_kmeans(X, n_clusters=k, epsilon=cell.epsilon, bounds=BOUNDS[cell.dataset], **options)
        return private.centers, private.predict(X)
    if method == "mean_shift":
        part = X if cell.dataset != "mnist" else np.random.default_rng(stream).permutation(X)[:QUADRATIC]
        modes = mean_shift(part, n_modes=k).modes
        return modes, _nearest(modes, X)
    model = KMeans(k, n_init=10, random_state=int(np.random.SeedSequence(stream).generate_state(1)[0])).fit(X)
    return np.asarray(model.cluster_centers_), np.asarray(model.labels_, dtype=np.int64)


def _nearest(centers: FloatArray, X: FloatArray) -> NDArray[np.int64]:
    return np.asarray(cKDTree(centers).query(X)[1], dtype=np.int64)


def printed(cell: ClusterCell, method: str) -> tuple[float, float, float, float]:
    """ARI, NMI, error of the centres and seconds that the paper prints for a method.

    Examples
    --------
    >>> printed(cluster_cells()[0], "dp_kmeans")
    (0.4852, 0.5697, 6.737, 0.0085)
    """
    private = "published" if method == "certified" else method
    if cell.table:
        return {"main-1": MAIN_1, "supplement-8": TABLE_8}[cell.table][cell.dataset, private]
    if private == "published":
        return cell.ari, cell.nmi, cell.mse, cell.seconds
    if method != "dp_kmeans":
        return TABLE_8[cell.dataset, method]
    (row,) = (
        row
        for row in printed_rows("clustering")
        if (row["dataset"], row["method"]) == (cell.dataset, method) and float(row["epsilon"]) == cell.epsilon
    )
    ari, nmi, mse, seconds = (float(row[name]) for name in ("ari", "nmi", "mse", "seconds"))
    return ari, nmi, mse, seconds


def _one_run(cell: ClusterCell, method: str, stream: Sequence[int]) -> tuple[float, float, float, float, int, float]:
    X, classes = _LOADERS[cell.dataset](return_X_y=True)
    names = np.unique(classes)
    truth, medians = (np.array([rule(X[classes == name], axis=0) for name in names]) for rule in (np.mean, np.median))
    began = time.process_time()
    centers, labels = _found(X, len(truth), cell, method, stream)
    seconds = time.process_time() - began
    if len(centers) == 0:
        return 0.0, 0.0, math.inf, math.inf, 0, seconds
    scores = adjusted_rand_score(classes, labels), normalized_mutual_info_score(classes, labels)
    return *scores, matching_mse(truth, centers), matching_mse(medians, centers), len(centers), seconds


def _row(cell: ClusterCell, method: str, found: Sequence[tuple[float, float, float, float, int, float]]) -> ClusterRow:
    aris, nmis, errors, to_medians, numbers, seconds = (list(column) for column in zip(*found, strict=True))
    ari, ari_se = mean_and_error(aris)
    paper = printed(cell, method)
    return ClusterRow(
        cell.dataset,
        cell.epsilon,
        method,
        len(found),
        ari=ari,
        ari_se=ari_se,
        nmi=float(np.mean(nmis)),
        mse=float(np.mean(errors)),
        median_mse=float(np.mean(to_medians)),
        clusters=float(np.mean(numbers)),
        seconds=float(np.mean(seconds)),
        paper_ari=paper[0],
        paper_nmi=paper[1],
        paper_mse=paper[2],
        paper_seconds=paper[3],
    )
