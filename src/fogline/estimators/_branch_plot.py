"""Picture of a modal regression, from released values: conditional density, branches, bands of their errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fogline.sketch.branch_map import BranchMap
from fogline.sketch.private_density import PrivateDensity
from fogline.sketch.profiles import Profiles, mirror_basis

__all__ = ["draw_branches"]

WIDTH = 240
"""Columns of the picture."""


def draw_branches(density: PrivateDensity, found: BranchMap, ax: Any, names: Any) -> Any:
    """Draw on matplotlib axes, made here if None; limits come from the bounds."""
    if density.spec.d != 2:
        raise ValueError("plot draws one column of X against y; with two columns use branches() and draw what you need")
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plot needs matplotlib: pip install 'fogline[plot]'") from None
        ax = plt.subplots()[1]
    profiles = Profiles(density, found.bandwidth)
    (low, high), (bottom, top) = density.spec.bounds
    x = np.linspace(low, high, WIDTH)
    lines = profiles.lines(x[:, None])
    marginal, sd = profiles.marginal(lines)
    values = lines.on(mirror_basis(profiles, profiles.y_axis(6.0)))[0] / np.maximum(marginal, 2 * sd)[:, None]
    ax.imshow(
        np.maximum(values.T, 0.0),
        extent=(low, high, bottom, top),
        origin="lower",
        aspect="auto",
        cmap="Blues",
        alpha=0.8,
    )
    for branch in np.unique(found.branch):
        nodes = np.flatnonzero(found.branch == branch)
        nodes = nodes[np.argsort(found.place[nodes])]
        for part in np.split(nodes, np.flatnonzero(np.diff(found.place[nodes]) > 1) + 1):
            place, mode = found.axes[0][found.place[part]], found.positions[part]
            band = 2 * np.hypot(found.privacy_errors[part], found.sampling_errors[part])
            (line,) = ax.plot(place, mode, marker="." if len(part) == 1 else "", color=f"C{1 + int(branch) % 8}")
            ax.fill_between(place, mode - band, mode + band, color=line.get_color(), alpha=0.3, linewidth=0)
    ax.set_xlim(low, high)
    ax.set_ylim(bottom, top)
    ax.set_xlabel("x" if names is None else str(names[0]))
    ax.set_ylabel("y")
    return ax
