"""The parts of docs/benchmarks/{modes,clusters,regression}.md on many columns, clusters and modal regression."""

from __future__ import annotations

import math
from typing import Any

from common import markdown, number, read_csv, table
from fogline_research.experiments.clusters import MAIN_1, TABLE_8, printed_cells
from fogline_research.experiments.clusters import printed as printed_values

RIGHT = 0.85
"""An error counts as lower only where the number of modes is right so often."""

__all__ = ["clusters", "gallery", "many_axes", "printed", "regression"]


def many_axes() -> str:
    return (
        "## Modes: more than three columns\n\nSpherical components of deviation 1 in a box from -8 to 8, epsilon 1, "
        "the number of modes is not given, level 0.05. The limit is the error of each component's own mean. Errors are "
        "those of one coordinate, over the modes that were found.\n\n"
    ) + table(
        "modes_many_axes",
        {
            "data": "data",
            "d": "columns",
            "n": "n",
            "runs": "runs",
            "right": "right number",
            "too_many": "too many",
            "rmse": "error",
            "limit": "limit of the records",
            "covered": "95% ellipses cover",
            "seconds": "CPU seconds",
        },
    )


def clusters() -> str:
    rows = read_csv("clusters")
    if not rows:
        return "## Clusters\n\n*not measured yet*\n"
    cells: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    fixed: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        if math.isfinite(float(row["epsilon"])):
            cells.setdefault((row["dataset"], row["epsilon"]), {})[row["method"]] = row
        else:
            fixed.setdefault(row["dataset"], {})[row["method"]] = row
    shown: list[dict[str, Any]] = []
    for (dataset, epsilon), methods in cells.items():
        ours, theirs = methods["certified"], methods["diffprivlib"]
        ratio = float(theirs["mse"]) / float(ours["mse"])
        shown.append(
            {
                "data": dataset,
                "epsilon": epsilon,
                "**certified ARI**": f"**{float(ours['ari']):.3f}** ± {number(ours['ari_se'], 2)}",
                "NMI": number(ours["nmi"]),
                "centre MSE": number(ours["mse"]),
                "diffprivlib ARI": number(theirs["ari"]),
                "its MSE over ours": f"{ratio:.3g}",
                "Google LSH ARI": number(ours["google_ari"]),
                "DP-GRAMS-C ARI (leaks)": number(methods["published"]["ari"]),
                "seconds": number(ours["seconds"], 2),
            }
        )
    others = [
        {
            "data": dataset,
            "k-means ARI": number(methods["kmeans"]["ari"]),
            "its MSE": number(methods["kmeans"]["mse"]),
            "mean shift ARI, k not given": number(methods["mean_shift"]["ari"]),
            "no data at all ARI": number(methods["no_data"]["ari"]),
            "its MSE ": number(methods["no_data"]["mse"]),
        }
        for dataset, methods in fixed.items()
    ]
    return (
        "## Clusters\n\nAdjusted Rand index (ARI) and normalised mutual information (NMI) against the true classes; "
        "both "
        "are 1 where all records are put together rightly. The number of clusters is given, the bounds are public, and "
        "delta is 1e-5. There are 20 runs; on MNIST (70 000 records, 784 pixels) there are 5, and fewer of the slow "
        "methods. Squared errors (MSE) of centres are in the units of the data, summed over the columns. diffprivlib "
        "has the same records and bounds. Google's figures were measured apart, on MNIST after a reduction to 50 "
        "components that is not private. DP-GRAMS-C is here in the "
        "[reading](gaps.md#dp-grams-c-private-clustering) that refines on raw records, and not in the one that the "
        "paper's tables speak for ([below](#clusters-the-papers-tables)); so its figure is one of clustering without "
        "privacy. On MNIST it had 4000 records. Defaults such as the shares of the budget "
        "were chosen with Iris and MNIST in sight, so their figures flatter.\n\n"
        "![adjusted Rand index by epsilon, for each data set and method](benchmarks/clusters.svg)\n\n"
        + markdown(shown)
        + "\nWithout privacy, and without data:\n\n"
        + markdown(others)
    )


PRINTED_METHODS = {"published": "DP-GRAMS-C", "dp_kmeans": "DP k-means", "certified": "certified"}
PLAIN_METHODS = {"mean_shift": "mean shift, merged to k", "kmeans": "k-means"}


def printed() -> str:
    """Main table 1 and tables 5 to 8 of the DP-GRAMS papers, beside what they print."""
    rows = read_csv("clusters_printed")
    title = "## Clusters: the paper's tables\n\n"
    if not rows:
        return title + "*not measured yet*\n"
    found: dict[tuple[str, float, str], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault((row["dataset"], float(row["epsilon"]), row["method"]), []).append(row)
    by_epsilon, at_1 = _by_epsilon(found), _at_epsilon_1(found)
    images = "" if any(row["dataset"] == "mnist" for row in rows) else " MNIST was not at hand."
    return (
        f"{title}**DP-GRAMS-C, DP k-means, k-means and mean shift, in the readings of [papers](papers.md), beside the "
        f"printed numbers.** Each cell has ours, then the printed one.{images} Errors of centres are squared distances "
        "to the medians of the classes, which those of Iris are; for images no error that we could think of comes out "
        "([papers](papers.md#dp-grams-main-paper-and-supplement)), so that they are in our units. Seconds are CPU "
        "seconds of one thread, here on a shared machine. DP k-means is our own (Su et al., 2016), under the public "
        "bounds of the certified method. On MNIST (50 components of the raw pixels) mean shift and DP-GRAMS-C see 1000 "
        "of 70 000 images.\n\nSupplement, tables 5 to 7:\n\n"
        + markdown(by_epsilon)
        + "\nMain paper, table 1, and supplement, table 8, at epsilon 1; two printed numbers are those of the two "
        "tables in this order:\n\n" + markdown(at_1)
    )


def _mean(rows: list[dict[str, str]], name: str) -> float:
    return sum(float(row[name]) for row in rows) / len(rows)


def _by_epsilon(found: dict[tuple[str, float, str], list[dict[str, str]]]) -> list[dict[str, Any]]:
    shown = []
    for cell in printed_cells():
        for method, title in list(PRINTED_METHODS.items())[:2]:
            own = found.get((cell.dataset, cell.epsilon, method))
            if own is None:
                continue
            ari, nmi, error, seconds = printed_values(cell, method)
            shown.append(
                {
                    "data": cell.dataset,
                    "epsilon": f"{cell.epsilon:g}",
                    "method": title,
                    "runs": len(own),
                    "ARI": f"{_mean(own, 'ari'):.3f} / {ari:.3f}",
                    "NMI": f"{_mean(own, 'nmi'):.3f} / {nmi:.3f}",
                    "error of centres": f"{_mean(own, 'mse'):.3g} / {error:.3g}",
                    "seconds": f"{_mean(own, 'seconds'):.2g} / {seconds:.2g}",
                }
            )
    return shown


def _at_epsilon_1(found: dict[tuple[str, float, str], list[dict[str, str]]]) -> list[dict[str, Any]]:
    shown = []
    for dataset in dict.fromkeys(dataset for dataset, _, _ in found):
        for method, title in (PLAIN_METHODS | PRINTED_METHODS).items():
            own = found.get((dataset, 1.0, method))
            if own is None:
                continue
            first, second = (TABLE.get((dataset, method)) for TABLE in (MAIN_1, TABLE_8))
            told = {
                name: f"{first[place]:.3g}, {second[place]:.3g}" if first and second else ""
                for name, place in (("ari", 0), ("mse", 2), ("seconds", 3))
            }
            shown.append(
                {
                    "data": dataset,
                    "method": title,
                    "runs": len(own),
                    "ARI": f"{_mean(own, 'ari'):.3f}",
                    "printed": told["ari"],
                    "NMI": f"{_mean(own, 'nmi'):.3f}",
                    "printed ": f"{second[1]:.3f}" if second else "",
                    "error of centres": f"{_mean(own, 'mse'):.3g}",
                    "printed  ": told["mse"],
                    "seconds": f"{_mean(own, 'seconds'):.2g}",
                    "printed   ": told["seconds"],
                }
            )
    return shown


def gallery() -> str:
    times = read_csv("clusters_time")
    text = (
        "## Clusters: shapes\n\nAdjusted Rand index on shapes in the manner of scikit-learn's gallery, n = 10 000, "
        "epsilon 1, mean of ten draws.\n\n"
    ) + table(
        "clusters_gallery",
        {
            "shape": "shape",
            "certified": "certified",
            "certified, k known": "certified, k known",
            "mean shift": "mean shift, not private",
            "k-means": "k-means, not private, k known",
        },
    )
    ratios = read_csv("features_speed")
    if ratios:
        text += "\nRandom features, in CPU time of the bare float64 matrix product, one thread:\n\n" + table(
            "features_speed", {"what": "what", "value": "ratio"}
        )
    if times:
        ours = float(times[0]["seconds"])
        last, before = times[-1], times[-2]
        growth = math.log(float(last["seconds"]) / float(before["seconds"])) / math.log(
            float(last["records"]) / float(before["records"])
        )
        whole = float(last["seconds"]) * (float(times[0]["records"]) / float(last["records"])) ** growth
        text += (
            f"\nTime on MNIST, epsilon 1, one thread: the certified clusters took {ours:.3g} s on all "
            f"{times[0]['records']} records. DP-GRAMS-C took {float(last['seconds']):.3g} s on {last['records']} of "
            f"them (after a reduction to 50 columns that is not counted). Its time grows as the power {growth:.2f} of "
            f"the number of records: it would take about {whole:.3g} s on all, {whole / ours:.0f} times ours.\n\n"
            + table("clusters_time", {n: n for n in times[0]})
        )
    return text


def regression() -> str:
    rows = read_csv("regression")
    if not rows:
        return "## Modal regression\n\n*not measured yet*\n"
    plain = {(row["dataset"], row["n"], row["method"]): row for row in rows if not row["epsilon"]}
    cells: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        if row["epsilon"]:
            cells.setdefault((row["dataset"], row["n"], row["epsilon"]), {})[row["method"]] = row
    shown = []
    for (dataset, n, epsilon), methods in cells.items():
        ours, theirs = methods["certified"], methods["published"]
        shift = plain[dataset, n, "partial_mean_shift"]
        shown.append(
            {
                "data": dataset.replace("_", " "),
                "n": n,
                "epsilon": epsilon,
                "**certified**": f"**{_error(ours)}**",
                "right number": number(ours["right"]),
                "nothing seen": number(ours["nothing"]),
                "DP-PMS (leaks)": _error(theirs),
                "PMS, not private": _error(shift),
                "certified, missed modes charged": number(ours["true_mse"]),
                "DP-PMS to PMS, over the paper's": f"{float(theirs['paper_measure']) / float(theirs['paper_mse']):.2f}",
                "90% sets cover": number(ours["coverage"]),
            }
        )
    better = sum(
        float(m["certified"]["output_mse"]) < float(m["published"]["output_mse"])
        for m in cells.values()
        if float(m["certified"]["right"]) >= RIGHT
    )
    return (
        "## Modal regression\n\nAll cells of the paper's grid. An error is the squared distance of a mode that a "
        "method puts out to the nearest true mode of y at that x. Beside it is the share of the places where the "
        "number of modes is right, since missing a mode must not count as a gain. The last error column charges a "
        "missed mode with its distance to the next one that was found, and finding nothing with the squared range of "
        "y. DP-PMS is good only because it starts from the raw responses ([gaps](gaps.md)); PMS is partial mean "
        "shift, the same method without noise. "
        f"The certified error is below that of DP-PMS, with the right number of modes at {RIGHT:.0%} of the places or "
        f"more, in **{better} of {len(cells)}** cells. Elsewhere it is worse mostly at ends of branches, which it has "
        "to find in the noise, while DP-PMS starts from the raw records. The two error columns stand beside each "
        "other, since a branch that is claimed too short lowers the first one alone.\n\n"
        "![error of certified branches and of DP-PMS, by records and epsilon](benchmarks/regression.svg)\n\n"
        + markdown(shown)
    )


def _error(row: dict[str, str]) -> str:
    return number(row["output_mse"]) or "–"
