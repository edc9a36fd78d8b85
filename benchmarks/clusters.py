"""Clustering measured on Iris, Digits and MNIST, and on the shapes of scikit-learn's gallery.

    python benchmarks/clusters.py [--mnist FOLDER] [--quick] [--only tables|gallery|time|features|plot]
        [--data iris,digits] [--methods certified]

All methods of a data set run in one process group on the same records, with public bounds: Iris 0 to 8, 5, 8 and 3 cm,
Digits 0 to 16, MNIST 0 to 255 in all 784 pixels. MNIST's four idx files (packed by gzip) are read from FOLDER, or from
the folder named by FOGLINE_MNIST; without it those rows are left out. diffprivlib runs in an environment of its own.
The error of the centres is `fogline_research.metrics.matching_mse` against the classes' means, in the units of the
data; where fewer centres than classes were found, each class counts with its nearest centre, so that missing one is no
gain.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MeanShift, estimate_bandwidth
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from cluster_shapes import gallery
from common import RESULTS, read_csv, spread_over_cores, write_csv
from diffprivlib_kmeans import install
from fogline import PrivateModeClustering
from fogline_research.as_published import dp_grams_c
from fogline_research.experiments.clusters import BOUNDS as SMALL_BOUNDS
from fogline_research.metrics import matching_mse, nearest_mode_mse

FloatArray = NDArray[np.float64]
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
DELTA = 1e-5
RUNS = {"iris": 20, "digits": 20, "mnist": 5}
FEWER = {
    **{(name, "no_data"): 1 for name in RUNS},
    **{(name, "mean_shift"): 2 for name in RUNS},
    ("digits", "published"): 3,  # the same to four digits in every run: there is no noise left
    ("mnist", "published"): 2,
    ("mnist", "kmeans"): 3,
}
"""Runs of what is slow or hardly varies."""

BOUNDS = {**SMALL_BOUNDS, "mnist": [(0.0, 255.0)] * 784}
PUBLISHED_MNIST = 4000
"""DP-GRAMS-C takes time that grows with the square of the records: on MNIST it runs on so many."""

GOOGLE = {
    "iris": (0.06159, 0.06612, 0.1751, 0.3564, 0.5619, 0.482),
    "digits": (0.0143, 0.1137, 0.2278, 0.2908, 0.3395, 0.3734),
    "mnist": (0.2137, 0.2359, 0.2773, 0.2852, 0.3171, 0.325),
}
"""ARI of Google's LSH clustering with public bounds, by epsilon, measured apart (MNIST: 50 non-private components)."""


@lru_cache
def table(name: str) -> tuple[FloatArray, NDArray[np.int64]]:
    """Records and classes."""
    if name == "iris":
        return load_iris(return_X_y=True)  # type: ignore[no-any-return]
    if name == "digits":
        return load_digits(return_X_y=True)  # type: ignore[no-any-return]
    folder = Path(os.environ["FOGLINE_MNIST"])
    images, labels = [], []
    for part in ("train", "t10k"):
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
            images.append(np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784))
        with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
            labels.append(np.frombuffer(file.read(), np.uint8, offset=8))
    return np.concatenate(images).astype(np.float64), np.concatenate(labels).astype(np.int64)


def class_means(X: FloatArray, y: NDArray[np.int64]) -> FloatArray:
    return np.array([X[y == c].mean(axis=0) for c in np.unique(y)])


def nearest(centres: FloatArray, X: FloatArray) -> NDArray[np.int64]:
    """Index of the nearest centre, by one matrix product."""
    return np.asarray(np.argmin((centres**2).sum(axis=1) - 2 * X @ centres.T, axis=1), dtype=np.int64)


def scores(name: str, centres: FloatArray, labels: NDArray[np.int64] | None = None) -> dict[str, float]:
    """ARI, NMI and centre MSE; the label of a record is that of the nearest centre unless labels are given."""
    X, y = table(name)
    if not len(centres):
        return {"ari": 0.0, "nmi": 0.0, "mse": math.inf, "clusters": 0}
    labels = nearest(centres, X) if labels is None else labels
    return {
        "ari": float(adjusted_rand_score(y, labels)),
        "nmi": float(normalized_mutual_info_score(y, labels)),
        "mse": (matching_mse if len(centres) >= len(np.unique(y)) else nearest_mode_mse)(class_means(X, y), centres),
        "clusters": len(centres),
    }


# -- one run of each method ------------------------------------------------------------------------------------------


def certified(name: str, epsilon: float, run: int) -> dict[str, float]:  # noqa: ARG001 - noise is the system's
    X, y = table(name)
    began = time.perf_counter()
    model = PrivateModeClustering(epsilon=epsilon, delta=DELTA, bounds=BOUNDS[name], n_clusters=len(np.unique(y))).fit(
        X
    )
    seconds = time.perf_counter() - began
    found = scores(name, model.cluster_centers_, model.predict(X) if len(model.cluster_centers_) else None)
    return {**found, "seconds": seconds}


def as_published(name: str, epsilon: float, run: int) -> dict[str, float]:
    X, y = table(name)
    k = len(np.unique(y))
    rng = np.random.default_rng([run, int(10 * epsilon)])
    if name != "mnist":
        began = time.perf_counter()
        result = dp_grams_c(X, epsilon=epsilon, delta=DELTA, n_clusters=k, refine_on="records", random_state=rng)
        return {**scores(name, result.centers, result.labels), "seconds": time.perf_counter() - began}
    rows = rng.choice(len(X), PUBLISHED_MNIST, replace=False)
    projection = PCA(50, random_state=0).fit(X[rows])  # the paper reduces the raw records, without privacy
    began = time.perf_counter()
    result = dp_grams_c(
        projection.transform(X[rows]), epsilon=epsilon, delta=DELTA, n_clusters=k, refine_on="records", random_state=rng
    )
    seconds = time.perf_counter() - began
    return {**scores(name, projection.inverse_transform(result.centers)), "seconds": seconds}


def kmeans(name: str, epsilon: float, run: int) -> dict[str, float]:  # noqa: ARG001
    X, y = table(name)
    began = time.perf_counter()
    model = KMeans(len(np.unique(y)), n_init=10 if name != "mnist" else 1, random_state=run).fit(X)
    return {**scores(name, model.cluster_centers_, model.labels_), "seconds": time.perf_counter() - began}


def mean_shift(name: str, epsilon: float, run: int) -> dict[str, float]:  # noqa: ARG001
    """Mean shift without privacy and without the number of clusters; on MNIST on a part of the records."""
    X, _ = table(name)
    rows = np.random.default_rng(run).choice(len(X), min(len(X), 1800), replace=False)
    space = PCA(min(50, X.shape[1]), random_state=0).fit(X[rows]) if name == "mnist" else None
    part = X[rows] if space is None else space.transform(X[rows])
    began = time.perf_counter()
    model = MeanShift(bandwidth=estimate_bandwidth(part, quantile=0.2 if name == "iris" else 0.1)).fit(part)
    centres = model.cluster_centers_ if space is None else space.inverse_transform(model.cluster_centers_)
    return {**scores(name, centres), "seconds": time.perf_counter() - began}


def no_data(name: str, epsilon: float, run: int) -> dict[str, float]:  # noqa: ARG001
    """Centres spaced equally on the diagonal of the box: what the bounds alone would give."""
    box, k = np.array(BOUNDS[name]), len(np.unique(table(name)[1]))
    steps = (np.arange(k) + 0.5) / k
    return {**scores(name, box[:, 0] + steps[:, None] * (box[:, 1] - box[:, 0])), "seconds": 0.0}


METHODS: dict[str, Callable[[str, float, int], dict[str, float]]] = {
    "certified": certified,
    "published": as_published,
    "kmeans": kmeans,
    "mean_shift": mean_shift,
    "no_data": no_data,
}
PRIVATE = ("certified", "published", "diffprivlib")


def one(job: tuple[str, str, float, int]) -> dict[str, Any]:
    name, method, epsilon, run = job
    found = METHODS[method](name, epsilon, run)
    return {"dataset": name, "method": method, "epsilon": epsilon, "run": run, **found}


def diffprivlib_runs(name: str, epsilon: float, runs: int) -> list[dict[str, Any]]:
    """Run diffprivlib's k-means in its own environment, on the same records and bounds."""
    X, y = table(name)
    low, high = np.array(BOUNDS[name]).T
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        request = {
            "data": [str(Path(folder) / "X.npy")],
            "runs": runs,
            "epsilon": epsilon,
            "bounds": [low.tolist(), high.tolist()],
            "n_clusters": len(np.unique(y)),
        }
        script = Path(__file__).with_name("diffprivlib_kmeans.py")
        done = subprocess.run(
            [str(install()), "-W", "ignore", str(script)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=True,
        )
    answer = json.loads(done.stdout)
    return [
        {
            "dataset": name,
            "method": "diffprivlib",
            "epsilon": epsilon,
            "run": run,
            **scores(name, np.array(output["centres"])),
            "seconds": answer["seconds"] / runs,
        }
        for run, output in enumerate(answer["outputs"][0])
    ]


# -- the tables ------------------------------------------------------------------------------------------------------


def tables(names: list[str], methods: list[str], *, quick: bool) -> None:
    """Measure methods at every epsilon; docs/benchmarks/clusters.csv has the rows of each as soon as it is done."""
    for name in names:
        runs = 2 if quick else RUNS[name]
        for method in methods:
            if method == "diffprivlib":
                few = min(runs, 2) if name == "mnist" else runs
                each = [diffprivlib_runs(name, e, few) for e in _tracked(EPSILONS, f"{name}, {method}")]
                _put([row for part in each for row in part])
                continue
            jobs = [
                (name, method, epsilon, run)
                for epsilon in (EPSILONS if method in PRIVATE else (math.inf,))
                for run in range(min(runs, FEWER.get((name, method), runs)))
            ]
            if name == "mnist":  # one at a time: the records fill the memory of several processes
                _put([one(job) for job in _tracked(jobs, f"{name}, {method}")])
            else:
                _put(spread_over_cores(one, jobs, label=f"{name}, {method}"))


def _put(found: list[dict[str, Any]]) -> None:
    """Write summaries in the place of those that stand for the same cells."""
    groups = dict.fromkeys((row["dataset"], row["method"], row["epsilon"]) for row in found)
    new = {
        key: _summary([row for row in found if (row["dataset"], row["method"], row["epsilon"]) == key])
        for key in groups
    }
    old: dict[Any, Any] = {(row["dataset"], row["method"], float(row["epsilon"])): row for row in read_csv("clusters")}
    rows = {**old, **new}
    order = [*METHODS, "diffprivlib"]
    write_csv(
        "clusters", [rows[key] for key in sorted(rows, key=lambda k: (list(RUNS).index(k[0]), order.index(k[1])))]
    )


def _tracked(jobs: Any, label: str) -> Any:
    from rich.progress import track

    return track(list(jobs), description=label)


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    column = {name: np.array([row[name] for row in rows], dtype=float) for name in ("ari", "nmi", "mse", "seconds")}
    first = rows[0]
    google = math.nan
    if first["epsilon"] in EPSILONS:
        google = GOOGLE[first["dataset"]][EPSILONS.index(first["epsilon"])]
    return {
        "dataset": first["dataset"],
        "epsilon": first["epsilon"],
        "method": first["method"],
        "runs": len(rows),
        "ari": float(column["ari"].mean()),
        "ari_se": float(column["ari"].std(ddof=1) / math.sqrt(len(rows))) if len(rows) > 1 else math.nan,
        "nmi": float(column["nmi"].mean()),
        "mse": float(column["mse"].mean()),
        "clusters": float(np.mean([row["clusters"] for row in rows])),
        "seconds": float(np.median(column["seconds"])),
        "google_ari": google,
    }


# -- time ------------------------------------------------------------------------------------------------------------


SPELL = 300.0
"""Parts of the records are doubled as long as the next would be done within so many seconds."""


def times() -> None:
    """MNIST at epsilon 1: the certified estimator on all records, DP-GRAMS-C on growing parts of them."""
    X, _ = table("mnist")
    began = time.process_time()
    PrivateModeClustering(epsilon=1.0, delta=DELTA, bounds=BOUNDS["mnist"], n_clusters=10).fit(X)
    rows = [{"method": "certified", "records": len(X), "seconds": time.process_time() - began}]
    projected = PCA(50, random_state=0).fit_transform(X[:20_000])
    n, spent, last = 500, 0.0, 0.0
    while n <= len(projected) and spent + 5 * last < SPELL:
        began = time.process_time()
        dp_grams_c(projected[:n], epsilon=1.0, delta=DELTA, n_clusters=10, random_state=0)
        last = time.process_time() - began
        rows.append({"method": "published", "records": n, "seconds": last})
        write_csv("clusters_time", rows)
        n, spent = 2 * n, spent + last


def features() -> None:
    """Random features against the bare matrix product."""
    from speed import feature_ratios

    write_csv("features_speed", feature_ratios())


# -- figures ---------------------------------------------------------------------------------------------------------


def plot() -> None:
    """ARI over epsilon, a panel for each data set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = read_csv("clusters")
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    if not names:
        return
    figure, axes = pyplot.subplots(1, len(names), figsize=(4 * len(names), 3.4), squeeze=False, sharey=True)
    styles = {"certified": "C0o-", "published": "C3s--", "diffprivlib": "C1^-"}
    for axis, name in zip(axes[0], names, strict=True):
        here = [row for row in rows if row["dataset"] == name]
        for method, style in styles.items():
            own = [row for row in here if row["method"] == method]
            label = "DP-GRAMS-C (leaks)" if method == "published" else method
            axis.semilogx([float(r["epsilon"]) for r in own], [float(r["ari"]) for r in own], style, label=label)
        axis.semilogx(EPSILONS, GOOGLE[name], "C2v-", label="Google LSH")
        for method, colour in (("kmeans", "0.3"), ("no_data", "0.7")):
            for row in (row for row in here if row["method"] == method):
                axis.axhline(float(row["ari"]), color=colour, linestyle=":", label=method.replace("_", " "))
        axis.set_title(name)
        axis.set_xlabel("epsilon")
    axes[0, 0].set_ylabel("adjusted Rand index")
    axes[0, -1].legend(fontsize=7, loc="upper right")
    figure.tight_layout()
    figure.savefig(RESULTS / "clusters.svg", metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mnist", help="folder of MNIST's idx files")
    parser.add_argument("--quick", action="store_true", help="two runs of each")
    parser.add_argument("--only", choices=("tables", "gallery", "time", "features", "plot"), help="one part")
    parser.add_argument("--data", help="data sets of the tables, separated by commas")
    parser.add_argument("--methods", default=",".join([*METHODS, "diffprivlib"]), help="methods of the tables")
    options = parser.parse_args()
    if options.mnist:
        os.environ["FOGLINE_MNIST"] = options.mnist
    mnist = "FOGLINE_MNIST" in os.environ
    names = options.data.split(",") if options.data else ["iris", "digits", *(["mnist"] if mnist else [])]
    parts: dict[str, Callable[[], None]] = {
        "tables": partial(tables, names, options.methods.split(","), quick=options.quick),
        "gallery": partial(gallery, quick=options.quick),
        "time": times if mnist else lambda: None,
        "features": features,
        "plot": plot,
    }
    for name, part in parts.items():
        if options.only in (None, name):
            part()


if __name__ == "__main__":
    main()
