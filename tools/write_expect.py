"""Write ``docs/expect.md``: which error to expect at which n and epsilon, from the measurements in ``docs/benchmarks``.

python tools/write_expect.py             writes the page
python tools/write_expect.py --check     writes nothing, and fails if the page is stale
"""

from __future__ import annotations

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "expect.md"
Row = dict[str, str]

HEAD = """# Numbers to expect

Made by `python tools/write_expect.py` from the files that each table names. Do not edit.

How good will an answer be? That depends on three things: how many records there are (n), how large the budget is ([epsilon](glossary.md#epsilon)), and what
shape the data have. Each table below is one reading on data with a known answer; some are easy. Take it for an order of magnitude. For your own columns, `fogline plan` gives expected
errors from a public guess, at no cost ([how](results.md#before-spending)).

A rule of thumb: noise matters through the product of n and epsilon. Twice the records with half of the epsilon leave the noise about as it was; below a product of some
hundreds, expect coarse answers or none.
"""


def rows(name: str, **equal: str) -> list[Row]:
    """Rows of a file of measurements whose columns have these values."""
    with (ROOT / "docs" / "benchmarks" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if all(row[key] == value for key, value in equal.items())]


def two(value: float) -> str:
    """Return a number in two digits, without an exponent."""
    digits = 1 - math.floor(math.log10(abs(value))) if value else 2
    return f"{value:.{max(0, digits)}f}"


def percent(value: float) -> str:
    """Return a number of percents in two digits."""
    return f"{two(value)}%"


def pivot(
    found: Iterable[Row],
    across: str,
    down: str,
    value: Callable[[Row], float],
    word: str,
    show: Callable[[float], str] = two,
) -> str:
    """One table: a row per value of `down`, a column per value of `across`, means where several rows meet."""
    cells: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in found:
        cells[row[down], row[across]].append(value(row))
    names = sorted({name for _, name in cells}, key=float)
    lines = [
        f"| {word} | {' | '.join(f'epsilon {float(name):g}' for name in names)} |",
        f"| --- |{' ---: |' * len(names)}",
    ]
    for left in dict.fromkeys(name for name, _ in cells):
        values = (cells[left, name] for name in names)
        shown = (show(sum(each) / len(each)) if each else "not measured" for each in values)
        lines.append(f"| {left} | {' | '.join(shown)} |")
    return "\n".join(lines)


def source(*names: str) -> str:
    """Where the numbers of a table are from."""
    return "From " + ", ".join(f"[{name}.csv](benchmarks/{name}.csv)" for name in names) + "."


def labelled(found: Iterable[Row], name: str) -> list[Row]:
    """Rows with a label of their set and their n."""
    return [row | {"case": f"{row[name].replace('_', ' ')}, n = {row['n']}"} for row in found]


def modes() -> str:
    """Modes: root mean squared errors."""
    found = labelled(rows("modes_table", method="certified"), "mixture")
    table = pivot(found, "epsilon", "case", lambda row: math.sqrt(float(row["mse"])), "n")
    leaves = rows("modes_leaves")
    worse = sum(float(row["mse"]) > float(row["fourier_mse"]) for row in leaves)
    return f"""## Modes: how far off is a typical value?

These are the two data sets of the [DP-GRAMS paper](papers.md), both in full: gaussian4 is four normal groups of width 1 at (±3, ±3), and t5 is five groups with heavy tails and very different scales, which is harder. The number of [modes](glossary.md#mode) is given, delta = 1e-5. The table has the root of the mean squared error of 20 runs. A
value above 1 means that a mode is missed now and then. {source("modes_table")}

{table}

These are fits by `PrivateModes` alone. Modes that are read from a release without delta, which answers all other questions too, have a larger mean squared error in {worse} of
{len(leaves)} cells of the same grid (5 runs each). {source("modes_leaves")}
"""


def clusters() -> str:
    """Clusters: adjusted Rand indices."""
    lines = ["| data | n | epsilon | true number | numbers found, 3 releases | ARI | ARI, number given |"]
    lines.append("| --- | ---: | ---: | ---: | --- | ---: | ---: |")
    for row in rows("readings_clusters", half="judge"):
        facts = (row["kind"], row["n"], row["epsilon"], row["groups"], row["found"])
        lines.append(f"| {' | '.join(facts)} | {float(row['ari']):.2f} | {float(row['ari_k']):.2f} |")
    table = pivot(rows("clusters", method="certified"), "epsilon", "dataset", lambda row: float(row["ari"]), "data")
    return f"""## Clusters: are records put together rightly?

The [adjusted Rand index](glossary.md#adjusted-rand-index-ari) (ARI) is 1 for perfect groups and 0 for chance. Iris has 150 records, digits 1797, MNIST 70 000; the number of clusters is given, delta = 1e-5. Defaults were
chosen with Iris and MNIST in sight, so their numbers flatter. {source("clusters")}

{table}

**If the number is not given**, it is read from the release. On made data of 2000 records that mostly works; on small real tables it often finds too few groups. The table has all sets of the half
that was kept for judging. {source("readings_clusters")}

{chr(10).join(lines)}
"""


def regression() -> str:
    """Branches: errors, and how often there is no answer."""
    found = labelled(rows("regression", method="certified"), "dataset")
    missing = pivot(
        found, "epsilon", "case", lambda row: 100 * float(row["nothing"]), "n", lambda value: f"{value:.0f}%"
    )
    errors = pivot(found, "epsilon", "case", lambda row: math.sqrt(float(row["true_mse"])), "n")
    return f"""## Branches: how far off is a typical y at an x?

These are both sets of the paper's grid, in full, with 5 runs. The first table has the share of places without an answer, where everything stays in the [fog](glossary.md#fog-fogline). The second has the root mean squared error, in which a place
without an answer counts as the whole range of y, so that large numbers mean missing answers. {source("regression")}

{missing}

{errors}
"""


def fits() -> str:
    """Fits: errors of parameters, stated ones, coverage."""
    lines = [
        "| family | parameter | truth | error | stated error | 95% intervals that hold it |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows("hellinger_families"):
        for k in ("1", "2"):
            if row[f"parameter_{k}"]:
                error, stated = two(float(row[f"sd_{k}"])), two(float(row[f"stated_{k}"]))
                cover = f"{100 * float(row[f'cover_{k}']):.0f}%"
                lines.append(
                    f"| {row['family']} | {row[f'parameter_{k}']} | {row[f'truth_{k}']} | {error} | {stated} | {cover} |"
                )
    found = [
        row | {"epsilon": row["budget"][1:].split(",")[0]} for row in rows("hellinger_certified", contamination="0")
    ]
    normal = [row for row in found if row["budget"].startswith("(")]
    table = pivot(normal, "epsilon", "n", lambda row: float(row["mu_rmse"]), "n")
    return f"""## Fits: how far off is a parameter?

What is fitted is the mean of a normal [law](glossary.md#law) with standard deviation 2, delta = 1e-5. The table has the root mean squared error of 1000 runs on records without contamination (the file has contaminated ones). {source("hellinger_certified")}

{table}

Other families at n = 1000 and epsilon = 1; standard deviation over 500 runs. {source("hellinger_families")}

{chr(10).join(lines)}
"""


def mixtures() -> str:
    """Mixtures: what a record's likelihood loses."""
    found = rows("mixtures_ordinary", method="sketch", separation="3.0", epsilon="1.0")
    named = [row | {"case": f"{row['d']} columns, {row['k']} components"} for row in found]
    cells: defaultdict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in named:
        cells[row["case"]][row["n"]].append(float(row["gap"]))
    sizes = sorted({row["n"] for row in named}, key=int)
    lines = [f"| data | {' | '.join(f'n = {int(size)}' for size in sizes)} |", f"| --- |{' ---: |' * len(sizes)}"]
    for case, found_at in cells.items():
        means = (sum(found_at[size]) / len(found_at[size]) if found_at[size] else math.nan for size in sizes)
        lines.append(
            f"| {case} | {' | '.join('not measured' if math.isnan(mean) else f'{mean + 0.0:.4f}'.replace('-0.0000', '0.0000') for mean in means)} |"
        )
    return f"""## Mixtures: how much is lost against a fit without privacy?

The table has the loss of log likelihood per record on fresh records, in [nats](glossary.md#nat), against scikit-learn without privacy. Components overlap (separation 3; the file has 4.5 and 6 too), and epsilon is 1. Zero means as good as
without privacy; a negative number is luck. {source("mixtures_ordinary")}

{chr(10).join(lines)}
"""


def intervals() -> str:
    """Whether intervals hold what they should."""
    lines = ["| question | n = 1000 | n = 10 000 |", "| --- | ---: | ---: |"]
    names = {
        "box": "share in a range",
        "quantile": "quantile",
        "mean": "mean",
        "variance": "variance",
        "pdf band": "whole band",
    }
    for question, name in names.items():
        covered = []
        for n in ("1000", "10000"):
            at = {"half": "judge", "kind": "all", "n": n, "epsilon": "1", "target": "population", "level": "0.95"}
            (row,) = rows("calibration", question=question, **at)
            covered.append(f"{100 * float(row['coverage']):.0f}% of {row['intervals']}")
        lines.append(f"| {name} | {' | '.join(covered)} |")
    ranks = {row["measure"]: float(row["value"]) for row in rows("profile", kind="all", study="errors")}
    cells = rows("expect_column")
    quartiles = pivot(cells, "epsilon", "n", lambda row: 100 * float(row["quartiles"]), "n", percent)
    means = pivot(cells, "epsilon", "n", lambda row: 100 * float(row["mean"]), "n", percent)
    return f"""## Numbers of one column: how far off, and do the intervals hold?

How far off is a quartile? The error is the distance in rank from the quartile of the table itself, in percent of the records: at 1%, the median that was told is exceeded by 49% to 51% of them.
The table has the median over {cells[0]["columns"]} columns that nothing was tuned on and {cells[0]["runs"]} runs each; some columns are harder. {source("expect_column")}

{quartiles}

The mean, in percent of the standard deviation of the records, by the same releases:

{means}

Share of 95% intervals that held the truth, for made columns that nothing was tuned on, epsilon = 1. {source("calibration")}

{chr(10).join(lines)}

Quartiles of 100 columns at once, n = 10 000, epsilon = 1 for all of them together: the median error is {100 * ranks["median rank error"]:.1f}% of the records in rank, the mean
{100 * ranks["mean rank error"]:.1f}%. {source("profile")} [Densities](density.md#figures) compares with other methods.
"""


def bounds() -> str:
    """Ranges that were found privately."""
    found = [row | {"epsilon": row["n"]} for row in rows("bounds")]
    table = pivot(
        found, "epsilon", "column", lambda row: 100 * float(row["median_held"]), "column", lambda value: f"{value:.1f}%"
    )
    return f"""## Ranges: are the records inside?

Share of the records inside a range that was found privately, epsilon = 1, delta = 1e-6; median of 50 runs. {source("bounds")}

{table.replace("epsilon", "n =")}
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, modes(), clusters(), regression(), fits(), mixtures(), intervals(), bounds()])


def main(arguments: list[str]) -> int:
    """Write the page, or compare."""
    text = page()
    if "--check" in arguments:
        return 0 if PAGE.read_text(encoding="utf-8") == text else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
