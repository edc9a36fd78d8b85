"""The parts of docs/benchmarks/{modes,clusters,regression}.md on many columns, clusters and modal regression."""

from __future__ import annotations

import math
from typing import Any

from common import markdown, number, read_csv, table

RIGHT = 0.85
"""An error counts as lower only where the number of modes is right so often."""

__all__ = ["clusters", "gallery", "many_axes", "regression"]


def many_axes() -> str:
    return (
        "## Modes: more than three columns\n\nSpherical components of deviation 1 in a box from -8 to 8, epsilon 1, "
        "number unknown, level 0.05. The limit is the error of each component's own mean; errors are a coordinate's, "
        "over the modes that were found.\n\n"
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
            "mean shift ARI": number(methods["mean_shift"]["ari"]),
            "no data at all ARI": number(methods["no_data"]["ari"]),
            "its MSE ": number(methods["no_data"]["mse"]),
        }
        for dataset, methods in fixed.items()
    ]
    return (
        "## Clusters\n\nAdjusted Rand index against the classes, number of clusters known, public bounds only, delta "
        "1e-5; 20 runs, on MNIST (70 000 records, 784 pixels) 5 and fewer of the slow methods. Centres in the units of "
        "the data, summed over the columns. diffprivlib has the same records and bounds; Google's figures were "
        "measured apart, on MNIST after a reduction to 50 components that is not private. DP-GRAMS-C refines on raw "
        "records ([gaps](gaps.md)): its figure is one of plain clustering; on MNIST it had 4000 records. Defaults such "
        "as the shares of the budget were chosen with Iris and MNIST in sight, so their figures flatter.\n\n"
        "![adjusted Rand index](benchmarks/clusters.svg)\n\n"
        + markdown(shown)
        + "\nWithout privacy, and without data:\n\n"
        + markdown(others)
    )


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
            f"\nTime on MNIST, epsilon 1, one thread: certified {ours:.3g} s on all {times[0]['records']} records. "
            f"DP-GRAMS-C took {float(last['seconds']):.3g} s on {last['records']} (after a reduction to 50 columns "
            f"that is not counted) and grows as the power {growth:.2f} of the records: about {whole:.3g} s on all, "
            f"{whole / ours:.0f} times ours.\n\n" + table("clusters_time", {n: n for n in times[0]})
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
        "## Modal regression\n\nThe paper's grid. Errors are squared distances of every mode that a method puts out to "
        "the nearest true conditional mode, beside the share of the places where the number of modes is right, since "
        "missing a mode must not count as a gain; the last error column charges a missed mode with its distance to the "
        "next one found, and finding nothing with the squared range of y. DP-PMS lives on the raw responses it starts "
        "from ([gaps](gaps.md)). "
        f"The certified error is below that of DP-PMS, with the right number of modes at {RIGHT:.0%} of the places or "
        f"more, in **{better} of {len(cells)}** cells. What it loses on the three components it loses at their "
        "ends, which it has to find in the noise, where DP-PMS starts from the raw records. Both counts stand beside "
        "each other, since a branch that is claimed too short lowers the first one alone.\n\n"
        "![error](benchmarks/regression.svg)\n\n" + markdown(shown)
    )


def _error(row: dict[str, str]) -> str:
    return number(row["output_mse"]) or "–"
