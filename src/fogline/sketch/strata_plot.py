"""Picture of strata, from released values: densities at one bandwidth, with bands of the privacy noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fogline.sketch.comparison import CLEAR_COUNT
from fogline.sketch.spec import SketchSpec

if TYPE_CHECKING:
    from fogline.sketch.strata import Strata

__all__ = ["common_bandwidth", "plot_strata", "visible_names"]


def visible_names(strata: Strata) -> tuple[str, ...]:
    """Strata whose released count is clear of the noise; all of them if none is."""
    clear = tuple(name for name in strata if strata[name].count >= CLEAR_COUNT * strata[name].count_sd)
    return clear or strata.names


def common_bandwidth(strata: Strata, names: Sequence[str]) -> Any:
    """Half as much again as the largest bandwidth at which any of these would be read: quiet enough to compare."""
    largest = max((strata[name].bandwidth for name in names), key=lambda bandwidth: float(bandwidth[0]))
    return np.minimum(1.5 * largest, strata.spec.readable[1])


def plot_strata(strata: Strata, bandwidth: Any, names: Sequence[str] | None, ax: Any) -> Any:
    """Draw on matplotlib axes, made here if None; limits come from the bounds."""
    if not isinstance(strata.spec, SketchSpec) or strata.spec.d > 2:
        raise ValueError("plot draws one or two columns; with more, draw slices of pdf()")
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'fogline[plot]'") from None
    shown = visible_names(strata) if names is None else tuple(names)
    unknown = [name for name in shown if name not in strata]
    if unknown or not shown:
        raise ValueError(f"names must be strata of {', '.join(strata.names)}")
    h = common_bandwidth(strata, shown) if bandwidth is None else bandwidth
    if strata.spec.d == 1:
        return _lines(strata, shown, h, ax, plt)
    if ax is not None:
        raise ValueError("ax is for one column; two columns have a panel for each stratum")
    return _panels(strata, shown, h, plt)


def _lines(strata: Strata, names: Sequence[str], h: Any, ax: Any, plt: Any) -> Any:
    axes = plt.subplots()[1] if ax is None else ax
    for name in names:
        grid = strata[name].grid(h)
        (line,) = axes.plot(grid.axes[0], grid.values, label=f"{name} (about {strata[name].count:.0f})")
        band = 2 * strata[name].noise_sd(h)
        axes.fill_between(
            grid.axes[0], grid.values - band, grid.values + band, color=line.get_color(), alpha=0.2, linewidth=0
        )
    axes.set_xlim(*strata.spec.bounds[0])
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("x" if strata.columns is None else strata.columns[0])
    axes.set_ylabel("density")
    axes.set_title("bands: two deviations of the privacy noise", fontsize="small", loc="left")
    axes.legend()
    return axes.figure


def _panels(strata: Strata, names: Sequence[str], h: Any, plt: Any) -> Any:
    figure, panels = plt.subplots(1, len(names), sharex=True, sharey=True, squeeze=False, figsize=(4 * len(names), 4))
    grids = [strata[name].grid(h) for name in names]
    top = max(float(grid.values.max()) for grid in grids)
    (left, right), (bottom, upper) = strata.spec.bounds
    for axes, name, grid in zip(panels[0], names, grids, strict=True):
        axes.imshow(
            np.maximum(grid.values.T, 0.0),
            extent=(left, right, bottom, upper),
            origin="lower",
            aspect="auto",
            cmap="Blues",
            vmin=0.0,
            vmax=top if top > 0 else 1.0,
        )
        axes.set_title(f"{name} (about {strata[name].count:.0f})")
        if strata.columns is not None:
            axes.set_xlabel(strata.columns[0])
    if strata.columns is not None:
        panels[0, 0].set_ylabel(strata.columns[1])
    return figure
