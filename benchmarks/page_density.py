"""Pictures of docs/density.md: one release in two stages and its posterior, and errors against the best baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from fogline import DensitySketch
from fogline.testing import seeded_noise

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
RECORDS = 5000
INK, FOG, MARK = "#1d3557", "#a8c5da", "#c1121f"


def stays(n: int) -> Any:
    """Made-up lengths of stay: three in ten leave on the same day, a few stay for weeks."""
    rng = np.random.default_rng(7)
    stay = np.where(rng.random(n) < 0.85, rng.gamma(2.0, 3.0, n), rng.normal(30.0, 2.0, n))
    return np.where(rng.random(n) < 0.3, 0.0, np.clip(stay, 0, 60))


def truth(x: Any) -> Any:
    """Density of the stays beyond the same day."""
    gamma = x * np.exp(-x / 3) / 9
    normal = np.exp(-((x - 30) ** 2) / 8) / np.sqrt(8 * np.pi)
    return 0.7 * (0.85 * gamma + 0.15 * normal)


def draw_posterior(path: Path) -> None:
    """Released buckets, the posterior's density with its band, and the atom at zero as a bar."""
    with seeded_noise(1):
        density = DensitySketch([(0, 60)], features="leaves").update(stays(RECORDS)[:, None]).release(epsilon=1.0)
    leaves, posterior = density.leaves, density.posterior
    assert leaves is not None
    figure, (top, below) = plt.subplots(2, 1, figsize=(8, 6.4), sharex=True, layout="constrained")
    width = leaves.spec.cell_widths[0]
    edges = leaves.counts.boxes[:, 0, :] * width
    heights = leaves.counts.counts / np.diff(edges, axis=1)[:, 0] / RECORDS
    top.bar(edges[:, 0], heights, np.diff(edges, axis=1)[:, 0], align="edge", color=FOG, linewidth=0)
    top.set_title(f"what was released: {len(heights)} noisy counts (epsilon 1, {RECORDS} records)", loc="left")
    band = posterior.band(points=120)
    below.fill_between(band.x, band.low, band.high, color=FOG, linewidth=0, label="95% band of the whole curve")
    below.plot(band.x[1:], band.value[1:], color=INK, label="posterior density")
    below.plot(band.x, truth(band.x), color=MARK, linewidth=1, linestyle="--", label="the density behind the records")
    for atom in posterior.atoms:
        share = atom.share
        label = f"at {atom.value:g}: {100 * float(share.value):.1f} ± {196 * float(share.standard_error):.1f}% of all"
        below.plot([atom.value] * 2, [0, 0.16], color=INK, linewidth=4, label=label)
    below.set_title("what is read from it", loc="left")
    below.legend(frameon=False)
    for axes in (top, below):
        axes.set_ylim(-0.005, 0.17)
        axes.set_ylabel("density")
        axes.spines[["top", "right"]].set_visible(False)
    below.set_xlabel("stay in days")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw_posterior(IMAGES / "density_posterior.svg")
