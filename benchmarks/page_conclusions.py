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
    missed = [row["data"] for row in number if float(row["right"]) < 0.5 and row["n"] == "5000"]
    covered = [float(row["covered"]) for row in read_csv("modes_coverage") if not row["data"].startswith("own")]
    near = [float(row["covered"]) for row in read_csv("modes_coverage") if row["data"].startswith("own")]
    return (
        f"On the DP-GRAMS paper's table the certified error is {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}"
        f" times the published one (geometric mean), and smaller in {_share(sum(r < 1 for r in ratios), len(ratios))} "
        f"cells; the cells that are lost have at most {max(lost, default=0):.0f} records times epsilon. In "
        f"{sum(int(row['runs']) for row in number)} runs with an unknown number of modes {false} claimed too many. "
        f"Modes that nearly merge stay hidden at 5000 records and epsilon 1 ({'; '.join(missed)}). 95% ellipses cover "
        f"in {_span(covered)} on the paper's data, and in {_span(near)} where pairs nearly merge."
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
    shown = "; ".join(f"{name} {best[name]:.2f} against {plain[name]:.2f}" for name in plain)
    return (
        f"The adjusted Rand index is above that of diffprivlib's k-means in {_share(library, len(pairs))} cells and "
        f"above that of Google's LSH clustering in {_share(google, len(pairs))}. At its best budget, beside k-means "
        f"without privacy: {shown}. Iris at epsilon 0.1 (150 records) is noise."
    )


def regression() -> str:
    """Cells that are won, and the ones in which nothing is seen."""
    cells = grouped([row for row in read_csv("regression") if row["epsilon"]], "dataset", "n", "epsilon")
    pairs = [{row["method"]: row for row in rows} for rows in cells.values()]
    right = [found for found in pairs if float(found["certified"]["right"]) >= 0.85]
    won = sum(float(f["certified"]["output_mse"]) < float(f["published"]["output_mse"]) for f in right)
    blind = sum(float(found["certified"]["nothing"]) > 0.5 for found in pairs)
    return (
        "The published method (DP-PMS) starts from raw responses, so that its figures are not private ones. The "
        f"certified branches have the right number of modes at 85% of the places in {_share(len(right), len(pairs))} "
        f"cells, and there a smaller error than DP-PMS in {_share(won, len(right))}. In {blind} cells, those with the "
        "fewest records and the smallest budgets, nothing is seen at more than half of the places."
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
        f"On clean data 95% intervals cover in {_span(covers)}. Standard errors are {_span(large, '.2f')} times those "
        f"without privacy at the paper's own, large budgets, and {_span(small, '.2f')} times at an epsilon of 0.5 or "
        f"1. With contaminated records the error is below the paper's in "
        f"{_share(sum(ours < paper for ours, paper in printed), len(printed))} of its private cells. The paper's own "
        "tables come out again for gradient descent, not for Newton's method."
    )


def sampling() -> str:
    """What of the best density is reached, and the paper's claim."""
    rows = [row for row in read_csv("integral_runs") if row["problem"] == "ring" and row["method"] == "certified_cells"]
    shares = [
        sum(float(row["gain"]) for row in part) / sum(float(row["best_gain"]) for row in part)
        for part in grouped(rows, "epsilon").values()
    ]
    return (
        f"Drawn by cells, the sampler reaches {_span(shares, '.0%')} of what any density within its privacy limit "
        "could gain on the ring of eight. The paper's claim, as good as the Bernstein mechanism at a 400 times smaller "
        "epsilon, does not hold here with the right sensitivity: the two epsilons promise different things, and the "
        "comparison is decided by the base."
    )


def mixtures() -> str:
    """Ordinary data, far components, time."""
    ours = grouped(read_csv("mixtures_ordinary"), "n", "d", "k", "epsilon", "method", "separation")
    gaps = {key: median_of(rows, "gap") for key, rows in ours.items() if key[3] == "1.0" and key[4] == "sketch"}
    at = {n: [gap for key, gap in gaps.items() if key[0] == n and int(key[2]) <= 5] for n in ("10000", "100000")}
    times = [float(row["ratio"]) for row in read_csv("mixtures_speed")]
    rows = [row for row in read_csv("mixtures_separated") if row["set"] in ("theorem", "theory", "widths", "shapes")]
    whole = sum(row["found"] == row["k"] and row["missing"] == "0" for row in rows)
    near = sum(float(row["ratio"]) <= 1.5 and row["found"] == row["k"] and row["missing"] == "0" for row in rows)
    return (
        "Held-out log likelihood at epsilon 1 and up to five components lies below scikit-learn's without privacy by "
        f"at most {max(at['10000']):.3f} nats per record at 10 000 records and {max(at['100000']):.4f} at 100 000; a "
        f"fit takes up to {max(times):.1f} times as long. With components as far apart as the theorem asks, "
        f"all are found in {_share(whole, len(rows))} runs, and within 1.5 times the error of the true partition in "
        f"{_share(near, len(rows))}."
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
    said = f"; missed: {'; '.join(missed)}" if missed else ""
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
        f"Of intervals that state 95%, on data that nothing was tuned on, this share holds the population's value: "
        f"{shown}; and the table's own: {table}. "
        + (f"Intervals of {' and '.join(narrow)} are too narrow. " if narrow else "")
        + f"Each figure rests on {rows[0]['releases']} releases, so that chance alone moves it by about {chance:.0%}."
    )


def isolation() -> str:
    """The page's own first sentence says it; here the shorter one."""
    text = {row["what"]: float(row["value"]) for row in read_csv("doors") if row["what"].startswith("CSV")}
    fast = [value for what, value in text.items() if "pass over scan," in what]
    slow = [value for what, value in text.items() if "pass without numba over scan," in what]
    return (
        f"Reading a text file so that each line is read alone takes {_span(fast, '.2f')} times the database's own scan "
        f"with numba, and {_span(slow, '.1f')} times without."
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
