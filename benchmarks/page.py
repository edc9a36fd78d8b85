"""Write the pages of measurements, one per subject, and their plots from the CSV files in docs/benchmarks.

``docs/benchmarks.md`` lists them with what each concludes. It was one page once: it keeps the anchors of all sections,
so that an old address leads to a line from which the section is one click away.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import page_calibration
import page_clusters
import page_doors
import page_groups
import page_scale
from common import RESULTS, markdown, number, read_csv, table
from hellinger_page import hellinger_sections
from page_conclusions import CONCLUSIONS
from page_integral import integral_sections
from page_mixtures import mixture_sections

__all__ = ["beside", "pages", "write_pages"]

MADE = (
    "Made by `make bench` from the scripts in `benchmarks/`; the figures are in `docs/benchmarks/*.csv`. They were "
    "measured on two shared cores. The data come from fixed seeds, the noise of certified fits does not. One default "
    "configuration serves every setting. The [glossary](glossary.md) explains words, and [papers](papers.md) the names "
    "of published methods."
)
ELSEWHERE = """\
Some measurements stand where they are needed: [how exact a density is](density.md), [numbers to expect for your
records and budget](expect.md), [the studio](studio.md#numbers), [attacks](audit.md), [the ledger under
crashes](ledger-simulator.md).
"""


def subjects() -> dict[str, tuple[str, list[Callable[[], str]]]]:
    """Title and sections of each page, by its name, in the order of the list."""
    return {
        "modes": (
            "Modes",
            [_modes_table, _modes_number, _modes_coverage, _modes_own, _modes_speed, page_clusters.many_axes],
        ),
        "clusters": ("Clusters", [page_clusters.clusters, page_clusters.printed, page_clusters.gallery]),
        "regression": ("Modal regression", [page_clusters.regression]),
        "hellinger": ("Hellinger fits", [hellinger_sections]),
        "sampling": ("Integrally private draws", [integral_sections]),
        "mixtures": ("Gaussian mixtures", [mixture_sections]),
        "groups": ("Groups and private ranges", [page_groups.comparison, page_groups.bounds]),
        "calibration": ("Whether intervals hold the truth", [page_calibration.calibration]),
        "scale": ("From a file to a cluster", [page_scale.scale]),
        "isolation": ("What record isolation costs", [page_doors.doors]),
        "startup": ("Start-up of commands", [_startup]),
    }


def pages() -> dict[Path, str]:
    """Text of every page, by its place; plots are drawn on the way. Parts that were not measured say so."""
    texts, listed = {}, []
    for name, (title, sections) in subjects().items():
        text = beside("\n".join(section() for section in sections))
        short = CONCLUSIONS[name]()
        texts[RESULTS / f"{name}.md"] = (
            f"# {title}: measurements\n\n**In short.** {beside(short)}\n\n"
            f"[All subjects](../benchmarks.md). {beside(MADE)}\n\n{text}"
        )
        links = " · ".join(_old_address(part, name, title) for part in _parts(text))
        listed.append(f"## {title}\n\n{short}\n\n[The page](benchmarks/{name}.md): {links}\n")
    index = f"# Measurements\n\n{MADE} Each subject has a page of its own, with its conclusion first.\n\n{ELSEWHERE}\n"
    return {RESULTS.parent / "benchmarks.md": index + "\n".join(listed), **texts}


def write_pages() -> list[Path]:
    """Write the pages and return their places."""
    texts = pages()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return list(texts)


def beside(text: str) -> str:
    """Links of a section, which begin at ``docs/``, as they are one folder below it.

    Examples
    --------
    >>> beside("![a](benchmarks/a.svg) [b](gaps.md) [c](#d)")
    '![a](a.svg) [b](../gaps.md) [c](#d)'
    """
    text = re.sub(r"(?<=\]\()(?!#|https?:)", "../", text)
    return text.replace("](../benchmarks/", "](")


def _old_address(part: str, page: str, title: str) -> str:
    """Link to a section, with the anchor that it had when all were on one page, unless a heading has it."""
    anchor = _anchor(part)
    own = "" if anchor == _anchor(title) else f'<span id="{anchor}"></span>'
    return f"{own}[{part}](benchmarks/{page}.md#{anchor})"


def _parts(text: str) -> list[str]:
    return re.findall(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)


def _anchor(title: str) -> str:
    """Anchor of a heading, as code hosts and the site make it.

    Examples
    --------
    >>> _anchor("Modes: how many")
    'modes-how-many'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _modes_table() -> str:
    rows = read_csv("modes_table")
    if not rows:
        return "## Modes\n\n*not measured yet*\n"
    by_cell: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        by_cell.setdefault((row["mixture"], row["n"], row["epsilon"]), {})[row["method"]] = row
    shifted = {(row["mixture"], row["n"]): row["mse"] for row in rows if row["method"] == "mean_shift"}
    shown, ratios, beaten = [], [], []
    for (mixture, n, epsilon), methods in by_cell.items():
        ours = methods["certified"]
        ratio = float(ours["ratio_to_paper"])
        successor = float(ours["successor_mse"])
        ratios.append(ratio)
        if not math.isnan(successor):
            beaten.append(float(ours["mse"]) / successor)
        shown.append(
            {
                "mixture": mixture,
                "n": n,
                "epsilon": epsilon,
                "certified": f"{number(ours['mse'])} ± {number(ours['mse_se'], 2)}",
                "nearest mode": number(ours["nearest_mse"]),
                "paper": number(ours["paper_mse"]),
                "**ratio**": f"**{ratio:.2g}**",
                "successor": number(ours["successor_mse"]),
                "DP-GRAMS here": number(methods["published"]["mse"]),
                "noisy histogram": number(methods["noisy_histogram"]["mse"]),
                "mean shift, not private": number(shifted.get((mixture, n), "nan")),
            }
        )
    _plot_table(by_cell)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    worse = sum(b > 1.15 for b in beaten)
    return (
        "## Modes: the paper's table, number of modes known\n\n"
        "Mean squared error after each found mode was matched with a true one, 20 runs per cell, delta 1e-5. The ratio "
        f"of the certified error to the published one has a geometric mean of **{mean:.3f}** and is below 1 in "
        f'**{sum(r < 1 for r in ratios)} of {len(ratios)}** cells. The authors\' later code ("successor") was '
        "measured elsewhere, on one data set per cell. Where n times epsilon is at least 500, the certified error is "
        f"at most 1.15 times its figure in {len(beaten) - worse} of {len(beaten)} cells; the largest ratio is "
        f"{max(beaten):.2f}.\n\n"
        "![error over that of the paper, by records times epsilon](benchmarks/modes_table.svg)\n\n" + markdown(shown)
    )


def _plot_table(by_cell: dict[tuple[str, str, str], dict[str, dict[str, str]]]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "fogline"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    styles = {
        "certified": ("PrivateModes (certified)", "o", "#1b6a97"),
        "published": ("DP-GRAMS as published", "s", "#b8600b"),
        "noisy_histogram": ("noisy histogram", "^", "#7a7a7a"),
    }
    for axis, mixture in zip(axes, ("gaussian4", "t5"), strict=True):
        for method, (label, marker, colour) in styles.items():
            cells = [(m[method], m["certified"]) for (name, _, _), m in by_cell.items() if name == mixture]
            x = [float(r["n"]) * float(r["epsilon"]) for r, _ in cells]
            y = [float(r["mse"]) / float(o["paper_mse"]) for r, o in cells]
            axis.loglog(x, y, marker, color=colour, label=label, alpha=0.8, markersize=5)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_title(mixture)
        axis.set_xlabel("records times epsilon")
    axes[0].set_ylabel("error over the paper's DP-GRAMS")
    axes[1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "modes_table.svg", metadata={"Date": None})


def _modes_number() -> str:
    return (
        "## Modes: how many\n\nThe number of modes is not given; [level](glossary.md#level) 0.05. Uniform data have no "
        "mode.\n\n"
    ) + table(
        "modes_number",
        {
            "data": "data",
            "n": "n",
            "epsilon": "epsilon",
            "runs": "runs",
            "right": "right number",
            "too_few": "too few",
            "too_many": "too many",
        },
    )


def _modes_coverage() -> str:
    return (
        "## Modes: do the 95% ellipses cover\n\nShare of the ellipses around modes that hold the true mode. Our own "
        "mixtures have pairs of modes that nearly merge; where the fog "
        "hides one of a pair, its ellipse is drawn around something else.\n\n"
    ) + table(
        "modes_coverage",
        {"data": "data", "n": "n", "epsilon": "epsilon", "ellipses": "ellipses", "covered": "covered"},
    )


def _modes_own() -> str:
    return (
        "## Modes: mixtures that nothing was tuned on\n\nMean squared distance to the nearest true mode, with the "
        "number "
        "of modes given. Beside it are that of mean shift without privacy on the same data, and the mean squared error "
        "that the released covariances state.\n\n"
    ) + table(
        "modes_own",
        {
            "data": "data",
            "n": "n",
            "epsilon": "epsilon",
            "runs": "runs",
            "private_mse": "PrivateModes",
            "mean_shift_mse": "mean shift",
            "ratio": "ratio",
            "stated_mse": "stated",
        },
    )


def _modes_speed() -> str:
    return "## Modes: speed\n\nCPU time, one thread, best of seven, in one process.\n\n" + table(
        "modes_speed", {"what": "what", "value": "value"}
    )


def _startup() -> str:
    return (
        "## Start-up of commands\n\nCPU seconds of the whole process on tables of 600 records, median of five runs. "
        "The column *before* is of the edition in which every command went through scikit-learn and numba.\n\n"
        + table("startup", {"command": "command", "before": "before", "now": "now", "wanted": "at most"})
    )


if __name__ == "__main__":
    print(*write_pages(), sep="\n")
