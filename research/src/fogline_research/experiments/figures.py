"""Figures of the papers, drawn from reruns: ours beside what the paper prints, one function for each kind.

Short by default: a few cells and runs, enough to see the shape. The papers' own curves appear where their numbers are
printed; a picture without numbers has ours alone, and its page says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline_research.experiments._shared import DELTA, printed_rows

__all__ = ["FIGURES", "Figure", "draw_figures", "local_regression"]

Array = NDArray[np.float64]

OURS, PAPER, RERUN, PLAIN = "#0b6e4f", "#b23a48", "#3b6fb6", "#8a8a8a"
"""Colours of the certified method, of printed numbers, of the published method rerun, of what is not private."""

MEASURES = {
    "nll": "negative log likelihood",
    "coverage": "mode coverage",
    "ari": "ARI",
    "nmi": "NMI",
    "mse": "squared error of the centres",
}

TITLES = {"gaussian4": "four Gaussians", "t5": "five t laws"}

COLOURS = {"certified": OURS, "published": RERUN, "published_small": RERUN, "bernstein": PLAIN, "dp_kmeans": "#c98a1b"}


@dataclass(frozen=True)
class Figure:
    """One figure of a paper.

    Attributes
    ----------
    shows : str
        Which figure it is, and what is in it.
    draw : callable or None
        Takes (full, seed) and returns a matplotlib figure. None: a drawing without data, which is not redrawn.
    """

    shows: str
    draw: Callable[[bool, int], Any] | None


def _axes(rows: int, columns: int, width: float = 4.0, height: float = 3.2) -> tuple[Any, list[Any]]:
    """A figure without a display, and its panels in a flat list."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(np.ravel(figure.subplots(rows, columns, squeeze=False)))


# -- DP-GRAMS ------------------------------------------------------------------------------------------------


def _mode_curves(full: bool, seed: int) -> Any:
    """Error against epsilon, a curve for each n: printed, and the certified rerun."""
    from fogline_research.experiments.modes import paper_cells, reproduce_modes

    cells = [cell for cell in paper_cells() if full or (cell.n == 1000 and cell.epsilon in (0.2, 1.0, 5.0))]
    methods = ("certified", "published") if full else ("certified",)
    rows = reproduce_modes(runs=20 if full else 2, cells=cells, methods=methods, seed=seed)
    figure, axes = _axes(1, 2)
    for axis, mixture in zip(axes, ("gaussian4", "t5"), strict=True):
        for n in sorted({cell.n for cell in cells}):
            printed = [cell for cell in paper_cells() if (cell.mixture, cell.n) == (mixture, n)]
            _printed_line(axis, [c.epsilon for c in printed], [c.dp_grams_mse for c in printed], f"n = {n}")
            for method, colour in zip(methods, (OURS, RERUN), strict=False):
                found = [r for r in rows if (r.mixture, r.n, r.method) == (mixture, n, method)]
                axis.loglog(
                    [r.epsilon for r in found], [r.mse for r in found], "o-", color=colour, label=f"{method}, n = {n}"
                )
        axis.set(title=TITLES[mixture], xlabel="epsilon", ylabel="squared error of the modes")
        _legend(axis)
    return figure


def _printed_line(axis: Any, x: Sequence[float], y: Sequence[float], name: str) -> None:
    """A curve of printed numbers, dashed, named at its left end."""
    axis.loglog(x, y, "--", color=PAPER, label="printed")
    axis.annotate(name, (x[0], y[0]), fontsize=6, color=PAPER, textcoords="offset points", xytext=(2, 3))


def _legend(axis: Any) -> None:
    """A legend that names each kind of curve once."""
    handles, labels = axis.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    axis.legend(once.values(), once.keys(), fontsize=7)


def _draw_modes(axis: Any, X: Array, truth: Array, marks: dict[str, tuple[str, Array]]) -> None:
    """Records with contours of their kernel density, and modes."""
    from scipy.stats import gaussian_kde

    axis.scatter(X[:, 0], X[:, 1], s=1, color=PLAIN, alpha=0.3)
    x, y = (np.linspace(column.min(), column.max(), 40) for column in X.T)
    height = gaussian_kde(X[:1000].T, bw_method=0.2)(np.array(np.meshgrid(x, y)).reshape(2, -1)).reshape(40, 40)
    axis.contour(x, y, height, levels=6, colors=PLAIN, linewidths=0.5)
    axis.scatter(truth[:, 0], truth[:, 1], marker="*", s=90, color="green", label="true")
    for name, (marker, modes) in marks.items():
        if len(modes):
            axis.scatter(modes[:, 0], modes[:, 1], marker=marker, s=30, label=name)


def _modes_of_runs(mixtures: Sequence[str], runs: int, full: bool, seed: int) -> Any:
    """One data set for each mixture, several runs of the algorithm on it, as in the supplement."""
    from fogline.estimators import PrivateModes
    from fogline_research.as_published import dp_grams, mean_shift
    from fogline_research.experiments.modes import MIXTURES

    number = runs if full else min(runs, 4)
    panels = [(mixture, run) for mixture in mixtures for run in range(number)]
    figure, axes = _axes(math.ceil(len(panels) / 5), min(5, len(panels)), 2.6, 2.6)
    for axis, (mixture, run) in zip(axes, panels, strict=False):
        draw, k, half = MIXTURES[mixture]
        sample = draw(4000 if full else 1000, random_state=seed)
        plain = mean_shift(sample.X, n_modes=k, max_starts=500, random_state=seed).modes
        private = dp_grams(
            sample.X, epsilon=1.0, delta=DELTA, n_modes=k, random_state=np.random.default_rng([seed, run])
        )
        ours = PrivateModes(epsilon=1.0, delta=DELTA, bounds=[(-half, half)] * 2, n_modes=k).fit(sample.X).modes_
        marks = {"mean shift": ("x", plain), "DP-GRAMS": ("o", private.modes), "certified": ("+", np.asarray(ours))}
        _draw_modes(axis, sample.X, sample.modes, marks)
        axis.set_title(f"{TITLES[mixture]}, run {run + 1}" if number > 1 else TITLES[mixture], fontsize=8)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    return figure


def local_regression(x: Array, y: Array, at: Array, share: float = 0.3) -> Array:
    """LOWESS without its robust rounds: a line through the nearest share of the points, with tricube weights.

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)
    >>> local_regression(x, 3.0 * x, np.array([0.5])).round(6).tolist()
    [1.5]
    """
    number = max(3, math.ceil(share * len(x)))
    found = np.empty(len(at))
    for place, point in enumerate(at):
        distance = np.abs(x - point)
        width = np.partition(distance, number - 1)[number - 1] or 1.0
        weight = np.maximum(1.0 - (distance / width) ** 3, 0.0) ** 3
        design = np.column_stack([np.ones(len(x)), x - point]) * np.sqrt(weight)[:, None]
        found[place] = np.linalg.lstsq(design, y * np.sqrt(weight), rcond=None)[0][0]
    return found


def _regression(dataset: str, panels: str, full: bool, seed: int) -> Any:
    """Panels: a, partial mean shift and LOWESS; b, DP-PMS and the certified branches at epsilon 1; c, the curves."""
    from fogline_research.experiments.regression import DATASETS, QUERIES, fit, regression_cells, reproduce_regression

    sample = DATASETS[dataset](2100 if full else 600, random_state=seed)
    figure, axes = _axes(1, len(panels))
    for axis, panel in zip(axes, panels, strict=True):
        if panel == "c":
            cells = [c for c in regression_cells() if c.dataset == dataset]
            for n in sorted({c.n for c in cells}):
                line = [c for c in cells if c.n == n]
                _printed_line(axis, [c.epsilon for c in line], [c.dp_pms_mse for c in line], f"n = {n}")
            chosen = cells if full else [c for c in cells if c.n == min(c.n for c in cells)]
            rows = reproduce_regression(runs=10 if full else 2, cells=chosen, methods=("published",), seed=seed)
            for n in sorted({r.n for r in rows}):
                line_of = [r for r in rows if r.n == n]
                axis.loglog(
                    [r.epsilon for r in line_of], [r.mse for r in line_of], "o-", color=RERUN, label=f"ours, n = {n}"
                )
            axis.set(xlabel="epsilon", ylabel="squared error of DP-PMS")
            _legend(axis)
            continue
        axis.scatter(sample.X, sample.y, s=2, color=PLAIN, alpha=0.4)
        methods = ("partial_mean_shift",) if panel == "a" else ("published", "certified")
        for method, colour in zip(methods, (RERUN, OURS), strict=False):
            modes = fit(method, sample, epsilon=1.0, rng=np.random.default_rng(seed)).modes
            points = [(q, m) for q, found in zip(QUERIES, modes, strict=True) for m in found]
            if points:
                axis.scatter(*np.array(points).T, s=6, color=colour, label=method)
        if panel == "a":
            axis.plot(QUERIES, local_regression(np.ravel(sample.X), sample.y, QUERIES), color="black", label="LOWESS")
        axis.set(title="not private" if panel == "a" else "epsilon 1", xlabel="x", ylabel="y")
        axis.legend(fontsize=7)
    return figure


def _cluster_views(dataset: str, full: bool, seed: int, instead: str | None = None) -> Any:
    """Two principal components of the raw records, by the labels of four methods and of ours."""
    from sklearn.decomposition import PCA

    from fogline_research.experiments.clusters import _LOADERS, _found, cluster_cells, has_mnist

    if dataset == "mnist" and instead is not None and not has_mnist():
        dataset = instead
    X, classes = _LOADERS[dataset](return_X_y=True)
    if dataset == "mnist" and not full:
        rows = np.random.default_rng(seed).permutation(len(X))[:5000]
        X, classes = X[rows], classes[rows]
    cell = next(cell for cell in cluster_cells() if (cell.dataset, cell.epsilon) == (dataset, 1.0))
    seen = PCA(2, random_state=0).fit_transform(X)
    methods = ("mean_shift", "published", "kmeans", "dp_kmeans", "certified")
    figure, axes = _axes(1, len(methods) + 1, 2.8, 2.8)
    for axis, method in zip(axes, ("classes", *methods), strict=True):
        k = len(np.unique(classes))
        labels = classes if method == "classes" else _found(X, k, cell, method, [seed])[1]
        axis.scatter(seen[:, 0], seen[:, 1], c=labels, s=4, cmap="tab10")
        axis.set_title(method, fontsize=9)
    return figure


def _cluster_curves(dataset: str, columns: Sequence[str], full: bool, seed: int) -> Any:
    """ARI, NMI and error of the centres against epsilon."""
    from fogline_research.experiments.clusters import cluster_cells, has_mnist, reproduce_clusters

    rows = []
    if dataset != "mnist" or (full and has_mnist()):
        cells = [c for c in cluster_cells() if c.dataset == dataset and (full or c.epsilon in (0.5, 10.0))]
        rows = reproduce_clusters(
            runs=20 if full else 2, cells=cells, methods=("certified", "published", "dp_kmeans"), seed=seed
        )
    figure, axes = _axes(1, len(columns))
    names = {"ari": "ari", "nmi": "nmi", "mse": "median_mse"}
    for axis, column in zip(axes, columns, strict=True):
        for method, style in (("dp_grams_c", "--"), ("dp_kmeans", ":")):
            line = [r for r in printed_rows("clustering") if (r["dataset"], r["method"]) == (dataset, method)]
            x, y = ([float(r[name]) for r in line] for name in ("epsilon", column))
            axis.plot(x, y, style, color=PAPER, label=f"{method}, printed")
        for method in ("certified", "published", "dp_kmeans"):
            found = [r for r in rows if r.method == method]
            x, y = [r.epsilon for r in found], [getattr(r, names[column]) for r in found]
            if found:
                axis.plot(x, y, "o-", color=COLOURS[method], label=method)
        axis.set(xscale="log", xlabel="epsilon", ylabel=MEASURES[column], title=dataset)
        if column == "mse":
            axis.set_yscale("log")
        axis.legend(fontsize=7)
    return figure


# -- integral privacy ----------------------------------------------------------------------------------------


def _densities(name: str, cells: Sequence[tuple[str, float]], full: bool, seed: int) -> Any:
    """The true density and those of methods, in the plane."""
    from fogline_research.experiments.integral import density_of, problem

    task = problem(name)
    chosen = [(method, epsilon) for method, epsilon in cells if full or method != "dpgan"]
    if not full:
        chosen = [("published_small" if method == "published" else method, epsilon) for method, epsilon in chosen]
    figure, axes = _axes(1, len(chosen) + 1, 2.8, 3.1)
    shown = [("true", task.truth)]
    shown += [(f"{m}, epsilon {e:g}", density_of(name, e, m, seed=seed)) for m, e in chosen]
    for axis, (title, values) in zip(axes, shown, strict=True):
        axis.imshow(values.reshape(task.cells, task.cells).T, origin="lower", extent=np.ravel(task.reach))
        axis.set_title(title, fontsize=9)
    return figure


def _mollifiers(full: bool, seed: int) -> Any:  # noqa: ARG001
    """Densities on [0, 1] whose logarithms stay within epsilon/2, and how any finite density is brought there."""
    x = np.linspace(0.0, 1.0, 400)
    figure, axes = _axes(1, 2)
    for epsilon, colour in ((1.0, PAPER), (0.2, RERUN)):
        axes[0].axhspan(math.exp(-epsilon / 2), math.exp(epsilon / 2), color=colour, alpha=0.15)
        for wave in (1.0, 2.0, 3.0):
            raw = np.exp(0.5 * epsilon * 0.95 * np.sin(2 * math.pi * wave * x))
            axes[0].plot(x, raw / raw.mean(), color=colour)
    axes[0].set(title="mollifiers, epsilon 1 and 0.2", xlabel="x", ylabel="density")
    target = np.exp(-0.5 * ((x - 0.3) / 0.05) ** 2) + 0.6 * np.exp(-0.5 * ((x - 0.7) / 0.1) ** 2) + 0.05
    target /= target.mean()
    low, high = math.exp(-0.5), math.exp(0.5)
    scale = min((high - 1.0) / (target.max() - 1.0), (1.0 - low) / (1.0 - target.min()))
    axes[1].plot(x, target, color=PLAIN, label="finite density")
    axes[1].plot(x, 1.0 + scale * (target - 1.0), color=OURS, label="scaled and shifted, epsilon = 1")
    axes[1].set(title="a density brought into a mollifier", xlabel="x", ylabel="density")
    axes[1].legend(fontsize=7)
    return figure


def _integral_curves(names: Sequence[str], column: str, full: bool, seed: int) -> Any:
    """A measure against epsilon on several problems; nothing of it is printed as numbers."""
    from fogline_research.experiments.integral import measure

    epsilons = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0) if full else (0.5, 5.0)
    methods = ("certified", "published", "bernstein") if full else ("certified", "bernstein")
    names = names if full or len(names) < 3 else [names[0], names[len(names) // 2 - 1]]
    figure, axes = _axes(math.ceil(len(names) / 5), min(5, len(names)))
    for axis, name in zip(axes, names, strict=False):
        for method in methods:
            values = [
                [
                    getattr(measure(name, e, method, seed=seed + run, places=run), column)
                    for run in range(4 if full else 1)
                ]
                for e in epsilons
            ]
            mean, spread = np.mean(values, axis=1), np.std(values, axis=1)
            axis.errorbar(epsilons, mean, spread, color=COLOURS[method], marker="o", label=method)
        axis.set(xscale="log", xlabel="epsilon", ylabel=MEASURES[column], title=name)
        axis.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        axis.minorticks_off()
        if column == "coverage":
            axis.set_ylim(0.0, 1.05)
        axis.legend(fontsize=7)
    return figure


# -- Hellinger -----------------------------------------------------------------------------------------------


def _paths(full: bool, seed: int) -> Any:
    """Iterates of Newton with noise and without."""
    from fogline_research.as_published import pnr
    from fogline_research.experiments.hellinger import FLOOR, NEWTON_STEP, START, sample

    x = sample(1000, 0, np.random.default_rng(seed))
    figure, axes = _axes(1, 2)
    for run in range(10 if full else 4):
        found = pnr(x, start=START, step=NEWTON_STEP, floor=FLOOR, hdp=0.6 if run else None, random_state=run)
        label = None if run > 1 else "0.6-HDP" if run else "without noise"
        for axis, path in zip(axes, np.asarray(found.iterates).T, strict=True):
            axis.plot(path, color=RERUN if run else "black", lw=0.8 if run else 2.0, label=label)
    for axis, title, value in zip(axes, ("mu", "sigma"), (5.0, 2.0), strict=True):
        axis.axhline(value, color="green", ls=":", label="truth")
        axis.set(title=title, xlabel="iteration", ylabel=title)
        axis.legend(fontsize=7)
    return figure


def _trajectories(full: bool, seed: int) -> Any:
    """Iterates of Newton in the plane of both parameters, at the paper's two budgets; without noise in black."""
    from fogline_research.as_published import pnr
    from fogline_research.experiments.hellinger import FLOOR, NEWTON_STEP, START, sample

    x = sample(1000, 0, np.random.default_rng(seed))
    figure, axes = _axes(1, 2)
    for axis, hdp in zip(axes, (0.6, 0.2), strict=True):
        for run in range(10 if full else 4):
            found = pnr(x, start=START, step=NEWTON_STEP, floor=FLOOR, hdp=hdp if run else None, random_state=run)
            label = None if run > 1 else f"{hdp:g}-HDP" if run else "without noise"
            line = {"color": RERUN, "lw": 0.8} if run else {"color": "black", "lw": 2.0, "zorder": 3}
            axis.plot(*np.asarray(found.iterates).T, "o-", ms=3, label=label, **line)
        axis.plot(*START, "s", color=PLAIN, label="start")
        axis.plot(5.0, 2.0, "*", ms=12, color="green", zorder=4, label="truth")
        axis.set(title=f"{hdp:g}-HDP", xlabel="mu", ylabel="sigma")
        axis.legend(fontsize=7)
    return figure


def _interval_panels(full: bool, seed: int) -> Any:
    """Corrected intervals of Newton for mu, with noise and without."""
    from fogline_research.as_published import pnr
    from fogline_research.experiments.hellinger import DRAWS, FLOOR, NEWTON_STEP, START, sample

    figure, axes = _axes(1, 2)
    for axis, hdp in zip(axes, (None, 0.6), strict=True):
        for run in range(50 if full else 10):
            x = sample(1000, 0, np.random.default_rng([seed, run]))
            found = pnr(x, start=START, step=NEWTON_STEP, hdp=hdp, draws=DRAWS, floor=FLOOR, random_state=run)
            low, high = found.intervals()["mu"]
            axis.plot([low, high], [run, run], color=OURS if low <= 5.0 <= high else PAPER)
        axis.axvline(5.0, color="black", lw=0.8)
        axis.set(title="without noise" if hdp is None else "0.6-HDP", xlabel="mu (red: does not hold 5)", ylabel="run")
    return figure


PLACED = tuple(f"random-{number}" for number in range(1, 11))
"""Gaussians placed at random on the line, one to ten of them; short, one and five."""

RING = (("certified", 0.2), ("certified", 1.0), ("certified", 5.0), ("bernstein", 1.0), ("bernstein", 80.0))

FIGURES: dict[str, Figure] = {
    "main-1": Figure("DP-GRAMS, figure 1: error of the modes against epsilon", _mode_curves),
    "main-2": Figure(
        "DP-GRAMS, figure 2: modes of one run (contours, not surfaces)", partial(_modes_of_runs, ("gaussian4", "t5"), 1)
    ),
    "main-3": Figure("DP-GRAMS, figure 3: regression on one data set", partial(_regression, "three_component", "ab")),
    "main-4": Figure("DP-GRAMS, figure 4: its error against epsilon", partial(_regression, "three_component", "c")),
    "main-5": Figure(
        "DP-GRAMS, figure 5: clusters in two components (MNIST, or Digits where it is not at hand)",
        partial(_cluster_views, "mnist", instead="digits"),
    ),
    "main-6": Figure(
        "DP-GRAMS, figure 6: MNIST, printed; ours with --full and FOGLINE_MNIST",
        partial(_cluster_curves, "mnist", ("ari", "mse")),
    ),
    "supplement-1": Figure("supplement, figure 1: 20 runs, Gaussians", partial(_modes_of_runs, ("gaussian4",), 20)),
    "supplement-2": Figure("supplement, figure 2: 20 runs, t mixture", partial(_modes_of_runs, ("t5",), 20)),
    "supplement-3": Figure("supplement, figure 3: three components", partial(_regression, "three_component", "abc")),
    "supplement-4": Figure("supplement, figure 4: two sinusoids", partial(_regression, "sinusoidal", "abc")),
    "supplement-5": Figure("supplement, figure 5: Iris in two components", partial(_cluster_views, "iris")),
    "supplement-6": Figure("supplement, figure 6: Iris", partial(_cluster_curves, "iris", ("ari", "nmi", "mse"))),
    "supplement-7": Figure("supplement, figure 7: Digits in two components", partial(_cluster_views, "digits")),
    "supplement-8": Figure("supplement, figure 8: Digits", partial(_cluster_curves, "digits", ("ari", "nmi", "mse"))),
    "supplement-9": Figure(
        "supplement, figure 9: MNIST in two components; needs FOGLINE_MNIST", partial(_cluster_views, "mnist")
    ),
    "supplement-10": Figure(
        "supplement, figure 10: MNIST, printed; ours with --full and FOGLINE_MNIST",
        partial(_cluster_curves, "mnist", ("ari", "nmi", "mse")),
    ),
    "integral-1": Figure(
        "MBDE, figure 1: ring, methods",
        partial(_densities, "ring", (("certified", 0.2), ("published", 0.2), ("bernstein", 80.0), ("dpgan", 1.0))),
    ),
    "integral-2": Figure("MBDE, figure 2: where privacy sits; a diagram, not redrawn", None),
    "integral-3": Figure("MBDE, figure 3: mollifiers", _mollifiers),
    "integral-4": Figure("MBDE, figure 4: ring by epsilon", partial(_densities, "ring", RING)),
    "integral-5": Figure("MBDE, figure 5: loss on ring and line", partial(_integral_curves, ("ring", "three"), "nll")),
    "integral-6": Figure(
        "MBDE, figure 6: coverage, Gaussians on the line",
        partial(_integral_curves, PLACED, "coverage"),
    ),
    "integral-7": Figure("MBDE, figure 7: loss, Gaussians on the line", partial(_integral_curves, PLACED, "nll")),
    "integral-8": Figure("MBDE, figure 8: Gaussians in the plane", partial(_densities, "random-2d-5", RING)),
    "hellinger-e1": Figure("Hellinger, figure E.1: paths of Newton", _paths),
    "hellinger-e2": Figure("Hellinger, figure E.2: trajectories of Newton, mu and sigma", _trajectories),
    "hellinger-e3": Figure("Hellinger, figure E.3: intervals of Newton", _interval_panels),
}
"""By name, in the order of the papers."""


def draw_figures(
    names: Sequence[str], folder: Path, *, full: bool = False, seed: int = 0, tell: Callable[[str], None] | None = None
) -> Path:
    """Draw figures into a folder, with one page for all that are there, and return the page.

    Parameters
    ----------
    names : sequence of str
        Of `FIGURES`; none: all of them.
    folder : Path
    full : bool
        As many runs and cells as the paper has.
    seed : int
    tell : callable, optional
        Called with each name before it is drawn.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = draw_figures(["integral-3"], Path(folder))
    ...     page.name, (Path(folder) / "integral-3.svg").exists()
    ('index.html', True)
    """
    for name in names:
        if name not in FIGURES:
            raise ValueError(f"names must be among {', '.join(FIGURES)}, got {name!r}")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or FIGURES:
        draw = FIGURES[name].draw
        if draw is None:
            continue
        if tell is not None:
            tell(name)
        try:
            picture = draw(full, seed)
        except FileNotFoundError as error:  # MNIST is no part of any package
            if tell is not None:
                tell(f"{name}: {error}")
            continue
        picture.savefig(folder / f"{name}.svg")
    lines = ["<!doctype html><meta charset='utf-8'><title>Figures of the papers</title><h1>Figures of the papers</h1>"]
    lines.append("<p>Red dashes: printed. Green: certified. Blue: the published algorithm, rerun.</p>")
    for name, figure in FIGURES.items():
        shown = f"<img src='{name}.svg' alt=''>" if (folder / f"{name}.svg").exists() else "<p>(not drawn)</p>"
        lines.append(f"<h2 id='{name}'>{escape(name)}: {escape(figure.shows)}</h2>{shown}")
    page = folder / "index.html"
    page.write_text("\n".join(lines), encoding="utf-8")
    return page
