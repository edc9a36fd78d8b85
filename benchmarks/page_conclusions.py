"""What each page of measurements concludes, in sentences made from its CSV files: they change when the numbers do."""

from __future__ import annotations

import math
import re

from common import read_csv
from page_tools import Rows, grouped, median_of

__all__ = ["CONCLUSIONS"]


def _share(good: int, of: int) -> str:
    return f"**{good} of {of}**"


def _span(values: list[float], form: str = ".1%") -> str:
    low, high = (format(edge, form) for edge in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def modes() -> str:
    """The paper's table, false modes, and where modes are missed."""
    ours = [row for row in read_csv("modes_table") if row["method"] == "certified"]
    ratios = [float(row["ratio_to_paper"]) for row in ours]
    lost = [float(row["n"]) * float(row["epsilon"]) for row in ours if float(row["ratio_to_paper"]) >= 1]
    number = read_csv("modes_number")
    false = sum(round(float(row["too_many"]) * int(row["runs"])) for row in number)
    missed = [f'"{row["data"]}"' for row in number if float(row["right"]) < 0.5 and row["n"] == "5000"]
    covered = [float(row["covered"]) for row in read_csv("modes_coverage") if not row["data"].startswith("own")]
    near = [float(row["covered"]) for row in read_csv("modes_coverage") if row["data"].startswith("own")]
    return (
        "On the table of the [DP-GRAMS paper](papers.md), the error of the [certified](glossary.md#certified) modes is "
        f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} times the published one (geometric mean), and it is "
        f"smaller in {_share(sum(r < 1 for r in ratios), len(ratios))} cells; in the others, records times epsilon is "
        f"at most {max(lost, default=0):.0f}. Where the number of modes was not given, {false} of "
        f"{sum(int(row['runs']) for row in number)} runs claimed too many. Modes that nearly merge stay hidden at 5000 "
        f"records and epsilon 1 (data sets {' and '.join(missed)}). Ellipses that state 95% hold the true mode "
        f"in {_span(covered)} of the cases on the paper's data, and in {_span(near)} where pairs nearly merge."
    )


def clusters() -> str:
    """Against the other private methods, cell by cell."""
    cells = grouped([row for row in read_csv("clusters") if math.isfinite(float(row["epsilon"]))], "dataset", "epsilon")
    pairs = [{row["method"]: row for row in rows} for rows in cells.values()]
    library = sum(float(found["certified"]["ari"]) > float(found["diffprivlib"]["ari"]) for found in pairs)
    google = sum(float(found["certified"]["ari"]) > float(found["certified"]["google_ari"]) for found in pairs)
    plain = {row["dataset"]: float(row["ari"]) for row in read_csv("clusters") if row["method"] == "kmeans"}
    best = {name: max(float(f["certified"]["ari"]) for (d, _), f in zip(cells, pairs, strict=True) if d == name)
            for name in plain}  # fmt: skip
    shown = ", ".join(f"{best[name]:.2f} against {plain[name]:.2f} on {name}" for name in plain)
    return (
        "The [adjusted Rand index](glossary.md#adjusted-rand-index-ari) of certified clusters is above that of "
        f"diffprivlib's private k-means in {_share(library, len(pairs))} cells, and above that of Google's private "
        f"clustering (LSH) in {_share(google, len(pairs))}. With its best budget against k-means without privacy, it "
        f"is {shown}. At epsilon 0.1 the 150 records of Iris give nothing but noise."
    )


def regression() -> str:
    """Cells that are won, and the ones in which nothing is seen."""
    cells = grouped([row for row in read_csv("regression") if row["epsilon"]], "dataset", "n", "epsilon")
    pairs = [{row["method"]: row for row in rows} for rows in cells.values()]
    right = [found for found in pairs if float(found["certified"]["right"]) >= 0.85]
    won = sum(float(f["certified"]["output_mse"]) < float(f["published"]["output_mse"]) for f in right)
    blind = sum(float(found["certified"]["nothing"]) > 0.5 for found in pairs)
    return (
        "The published method ([DP-PMS](papers.md)) starts from raw responses, so that its figures are not private "
        "ones. The certified [branches](glossary.md#branch) have the right number of modes at 85% of the places in "
        f"{_share(len(right), len(pairs))} cells; in {_share(won, len(right))} of these their error is smaller than "
        f"that of DP-PMS. In {blind} cells, those with the fewest records and the smallest budgets, nothing is seen at "
        "more than half of the places."
    )


def hellinger() -> str:
    """Coverage, the price of privacy, contamination."""
    rows = read_csv("hellinger_certified")
    clean = [row for row in rows if row["contamination"] == "0"]
    covers = [float(row[f"{name}_cover"]) for row in clean for name in ("mu", "sigma")]
    large = [float(row[f"{name}_sd_ratio"]) for row in clean for name in ("mu", "sigma") if "HDP" in row["budget"]]
    small = [float(row[f"{name}_sd_ratio"]) for row in clean for name in ("mu", "sigma") if "HDP" not in row["budget"]]
    printed = [
        (float(row["mu_rmse"]), float(row[f"paper_{name}_rmse"]))
        for row in rows
        for name in ("gradient_descent", "newton")
        if row["contamination"] != "0" and not math.isnan(float(row[f"paper_{name}_rmse"]))
    ]
    return (
        f"On clean data, intervals that state 95% hold the truth in {_span(covers)} of the runs. Standard errors are "
        f"{_span(large, '.2f')} times those without privacy at the large budgets of the [paper](papers.md), and "
        f"{_span(small, '.2f')} times at an epsilon of 0.5 or 1. With contaminated records the error is below the "
        f"paper's in {_share(sum(ours < paper for ours, paper in printed), len(printed))} of its private cells. Our "
        f"reruns meet {_means_met('gradient_descent')} of the paper's own means by gradient descent and "
        f"{_means_met('newton')} by Newton's method, whose spreads they do not meet."
    )


def _means_met(algorithm: str) -> str:
    """Printed means of mu within three errors of our reruns of the published algorithm."""
    rows = [row for row in read_csv("hellinger_published") if row["algorithm"] == algorithm]
    return _share(sum(abs(float(row["mu_z"])) <= 3.0 for row in rows), len(rows))


def sampling() -> str:
    """What of the best density is reached, and the paper's claim."""
    rows = [row for row in read_csv("integral_runs") if row["problem"] == "ring" and row["method"] == "certified_cells"]
    shares = [
        sum(float(row["gain"]) for row in part) / sum(float(row["best_gain"]) for row in part)
        for part in grouped(rows, "epsilon").values()
    ]
    return (
        f"On a ring of eight Gaussians the sampler, when it draws by cells, reaches {_span(shares, '.0%')} of what any "
        "density within its privacy limit could gain. The [paper](papers.md) claims to be as good as the Bernstein "
        "mechanism at an epsilon that is 400 times smaller. This does not hold here once that mechanism has the right "
        "[sensitivity](glossary.md#sensitivity). The two epsilons promise different things, and the public density "
        "from which the sampler starts decides the comparison."
    )


def mixtures() -> str:
    """Ordinary data, far components, time."""
    ours = grouped(read_csv("mixtures_ordinary"), "n", "d", "k", "epsilon", "method", "separation")
    gaps = {key: median_of(rows, "gap") for key, rows in ours.items() if key[3] == "1.0" and key[4] == "sketch"}
    at = {n: [gap for key, gap in gaps.items() if key[0] == n and int(key[2]) <= 5] for n in ("10000", "100000")}
    times = [float(row["ratio"]) for row in read_csv("mixtures_speed")]
    rows = [row for row in read_csv("mixtures_separated") if row["set"] in ("theorem", "theory", "widths", "shapes")]
    balls = [row for row in read_csv("mixtures_routes") if row["method"] == "terrific"]
    whole = sum(row["found"] == row["k"] and row["missing"] == "0" for row in rows)
    near = sum(float(row["ratio"]) <= 1.5 and row["found"] == row["k"] and row["missing"] == "0" for row in rows)
    return (
        "At epsilon 1 and up to five components, the log likelihood of records that were held out lies below that of "
        f"scikit-learn without privacy by at most {max(at['10000']):.3f} [nats](glossary.md#nat) per record with "
        f"10 000 records and {max(at['100000']):.4f} with 100 000; a fit takes up to {max(times):.1f} times as long. "
        "With components as far apart as the [paper's](papers.md) theorem asks, all of them are found in "
        f"{_share(whole, len(rows))} runs, and in {_share(near, len(rows))} their error is within 1.5 times that of a "
        "fit which knows to which component each record belongs. The paper's own route, terrific balls in a certified "
        f"form, finds all of them in {_share(sum(row['recovered'] == '1' for row in balls), len(balls))} runs."
    )


def groups() -> str:
    """Level, power, and what private ranges hold."""
    rows = read_csv("comparison")
    level = [float(row["told_apart"]) for row in rows if row["first"] == row["second"]]
    power = {n: [float(row["told_apart"]) for row in rows if row["first"] != row["second"] and row["n"] == n]
             for n in ("500", "5000")}  # fmt: skip
    ranges = read_csv("bounds")
    kept = [float(row["median_held"]) for row in ranges if int(row["n"]) >= 1000]
    fewer = min((float(row["median_held"]), row["column"]) for row in ranges if int(row["n"]) < 1000)
    return (
        f"Two groups that are alike are told apart in {_span(level)} of the runs at level 5%. Real differences show in "
        f"{_span(power['500'], '.0%')} with 500 records per group, and in {_span(power['5000'], '.0%')} with 5000. "
        f"Private ranges hold {_span(kept, '.0%')} of the records from 1000 records on (median of the runs), but only "
        f"{fewer[0]:.0%} of 300 records of the column that suits them least ({fewer[1]})."
    )


def scale() -> str:
    """Equality with numpy, and limits that are missed."""
    rows = read_csv("scale")
    equal = [row for row in rows if row["target"] == "True"]
    limits = [(row, re.match(r"(?:at most|below) ([\d.]+)", row["target"])) for row in rows]
    known = [(row["what"], float(row["value"]), float(limit[1])) for row, limit in limits if limit]
    missed = [f"{what} ({value:.3g} instead of {limit:g})" for what, value, limit in known if value > limit]
    queries = read_csv("warehouse")
    said = f". These are missed: {'; '.join(missed)}" if missed else ""
    return (
        f"Every engine gives the same integers as numpy: {_share(sum(r['value'] == 'True' for r in equal), len(equal))}"
        f" passes, and {_share(sum(row['different'] == '0' for row in queries), len(queries))} warehouse engines in "
        f"every cell. Limits of time and memory are kept in {_share(len(known) - len(missed), len(known))} lines{said}."
    )


def calibration() -> str:
    """Coverage on the half that nothing was tuned on."""
    rows: Rows = [
        row
        for row in read_csv("calibration")
        if (row["n"], row["level"], row["kind"], row["half"]) == ("all", "0.95", "all", "judge")
    ]
    at = {(row["target"], row["question"]): float(row["coverage"]) for row in rows}
    words = {"box": "shares of boxes", "quantile": "quantiles", "mean": "means", "variance": "variances"}
    shown, table = (
        ", ".join(f"{word} {at[target, name]:.0%}" for name, word in words.items())
        for target in ("population", "records")
    )
    narrow = [f"{words[name]} of the {target}" for target, name in at if name in words and at[target, name] < 0.93]
    chance = math.sqrt(0.95 * 0.05 / int(rows[0]["releases"]))
    return (
        "On data that nothing was tuned on, intervals that state 95% hold the value of the population in these shares "
        f"of the cases: {shown}. They hold the value of the table itself in these: {table}. "
        + (f"Intervals of {' and '.join(narrow)} are too narrow. " if narrow else "")
        + f"Each figure rests on {rows[0]['releases']} releases, so that chance alone moves it by about {chance:.0%}."
    )


def isolation() -> str:
    """The page's own first sentence says it; here the shorter one."""
    text = {row["what"]: float(row["value"]) for row in read_csv("doors") if row["what"].startswith("CSV")}
    fast = [value for what, value in text.items() if "pass over scan," in what]
    slow = [value for what, value in text.items() if "pass without numba over scan," in what]
    return (
        "A text file is read so that each line is read alone ([record isolation](glossary.md#record-isolation)). With "
        f"numba this takes {_span(fast, '.2f')} times as long as the database's own scan, and without numba "
        f"{_span(slow, '.1f')} times."
    )


def startup() -> str:
    """How many commands keep their limit."""
    rows = [row for row in read_csv("startup") if row["wanted"]]
    kept = sum(float(row["now"]) <= float(row["wanted"]) for row in rows)
    return (
        f"{_share(kept, len(rows))} commands keep their limit. What can be refused without opening the data is refused "
        f"in at most {max(float(row['now']) for row in rows if row['wanted'] == '0.3'):.2f} CPU seconds."
    )


CONCLUSIONS = {
    "modes": modes,
    "clusters": clusters,
    "regression": regression,
    "hellinger": hellinger,
    "sampling": sampling,
    "mixtures": mixtures,
    "groups": groups,
    "scale": scale,
    "calibration": calibration,
    "isolation": isolation,
    "startup": startup,
}
"""By the name of the page."""
