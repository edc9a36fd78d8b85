"""Pictures of docs/density.md: one release in two stages and its posterior, and errors against the best baselines.

    python benchmarks/page_density.py            both pictures, and the figures of the page as text

The second one is read from docs/benchmarks/density.csv, which benchmarks/density.py writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from density import EPSILONS, SIZES, baseline_table
from density_figures import METRICS, Errors, geometric_mean, ratio_rows, show_ratios
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


SHOWN = (("hellinger", "Hellinger"), ("w1", "W1"), ("boxes", "random boxes"))
COLUMNS = {1: "one column", 2: "two columns", 3: "three columns"}
CELL, ROW, HEAD, SIDE = 46, 26, 62, 92
STYLE = """
  .ground { fill: #ffffff; } text { fill: #1f2933; font: 13px system-ui, sans-serif; }
  .title { font-weight: 600; } .faint { fill: #52606d; font-size: 12px; } .cell { text-anchor: middle; }
  .a { fill: #7fb3d5; } .b { fill: #b3d4e8; } .c { fill: #e3eef5; } .d { fill: #fbe8d3; } .e { fill: #f3b27a; }
  .none { fill: none; stroke: #cbd2d9; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #14191f; } text { fill: #e4e7eb; } .faint { fill: #9aa5b1; }
    .a { fill: #1c5d85; } .b { fill: #234a63; } .c { fill: #273845; } .d { fill: #4d3820; } .e { fill: #8a4b12; }
    .none { stroke: #3e4c59; }
  }
"""
SHADES = ((0.75, "a", "at most .75"), (0.9, "b", ".90"), (1.0, "c", "1"), (1.05, "d", "1.05"), (np.inf, "e", "more"))


def judged(dim: int) -> list[dict[str, Any]]:
    """Ratios of fogline's stored errors to the baselines, half *judge*."""
    table = baseline_table(dim)
    own = [
        Errors(
            "judge", row["set"], row["n"], row["epsilon"], "fogline", {m: row[m] for m in METRICS if row[m] == row[m]}
        )
        for row in table
        if row["family"] == "fogline" and row["half"] == "judge"
    ]
    return ratio_rows(own, [row for row in table if row["half"] == "judge"])


def shade(ratio: float) -> str:
    """Class of a ratio: blue below the best baseline, orange above it."""
    return next(name for most, name, _ in SHADES if ratio <= most + 1e-9)


def heat(rows: list[dict[str, Any]], metric: str, left: float, top: float) -> list[str]:
    """One table of ratios: numbers of records downward, epsilon to the right."""
    parts = [
        f'<text class="faint cell" x="{left + (j + 0.5) * CELL}" y="{top - 6}">{epsilon:g}</text>'
        for j, epsilon in enumerate(EPSILONS)
    ]
    for i, n in enumerate(SIZES):
        for j, epsilon in enumerate(EPSILONS):
            own = [r["fixed"] for r in rows if (r["n"], r["epsilon"], r["metric"]) == (n, epsilon, metric)]
            x, y = left + j * CELL, top + i * ROW
            box = f'x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{ROW - 2}" rx="3"'
            if not own:
                parts.append(f'<rect class="none" {box}/>')
                continue
            ratio = geometric_mean(own)
            text = f"{ratio:.2f}".removeprefix("0")
            parts.append(f'<rect class="{shade(ratio)}" {box}/>')
            parts.append(f'<text class="cell" x="{x + CELL / 2}" y="{y + 18}">{text}</text>')
    return parts


def draw_ratios(path: Path) -> None:
    """Tables of error over that of the best fixed baseline, for one to three columns and three measures."""
    wide, high = len(EPSILONS) * CELL + 22, HEAD + len(SIZES) * ROW
    width, height = SIDE + len(SHOWN) * wide, len(COLUMNS) * high + 52
    parts = [f'<rect class="ground" width="{width}" height="{height}" rx="8"/>']
    for block, (dim, label) in enumerate(COLUMNS.items()):
        rows, top = judged(dim), block * high + HEAD
        sets = len({row["set"] for row in rows})
        parts.append(f'<text class="title" x="14" y="{top - 38}">{label}, {sets} sets</text>')
        parts.append(f'<text class="faint" x="14" y="{top - 6}">n, epsilon</text>')
        parts += [f'<text class="faint" x="14" y="{top + i * ROW + 18}">{n}</text>' for i, n in enumerate(SIZES)]
        for place, (metric, name) in enumerate(SHOWN):
            left = SIDE + place * wide
            parts.append(f'<text x="{left}" y="{top - 22}">{name}</text>')
            parts += heat(rows, metric, left, top)
    y = len(COLUMNS) * high + 16
    parts.append(f'<text class="faint" x="14" y="{y + 16}">ratio</text>')
    for place, (_, name, label) in enumerate(SHADES):
        x = SIDE + place * 110
        parts.append(f'<rect class="{name}" x="{x}" y="{y + 2}" width="24" height="18" rx="3"/>')
        parts.append(f'<text class="faint" x="{x + 32}" y="{y + 16}">{label}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    path.write_text("\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw_posterior(IMAGES / "density_posterior.svg")
    draw_ratios(IMAGES / "density_ratios.svg")
    for columns, title in COLUMNS.items():
        print(show_ratios(judged(columns), title, [metric for metric, _ in SHOWN]) + "\n")
