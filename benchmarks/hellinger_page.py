"""The part of docs/benchmarks/hellinger.md on Hellinger fits, with its plots, from the CSV files of hellinger.py."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import common
from common import markdown, read_csv

__all__ = ["hellinger_sections"]

Record = dict[str, str]

PARAMETERS = ("mu", "sigma")
ALGORITHMS = ("gradient_descent", "newton")

OPEN_SETTINGS = [
    (
        "kernel, bandwidth",
        "Epanechnikov, half-width 0.9 sigma n^(-1/5) at the true sigma",
        "The means of sigma in the non-private column fix the width: at twice that sigma would be near 2.03 at "
        "n = 200, where 1.952 is printed. A width from the contaminated records would give more bias than is printed.",
    ),
    (
        "integrals",
        "5000 draws from the density estimate, made once",
        "The non-private spread of mu by gradient descent exceeds that of exact integrals by 0.04 to 0.055 in "
        "quadrature from n = 200 to 1000; 5000 draws add 0.057. Fresh draws in each step would average out.",
    ),
    (
        "start, step",
        "(2, 1) and 0.5 for gradient descent, (3, 1) for Newton",
        "Under contamination the printed means of gradient descent fall short of Newton's by what 50 such steps from "
        "below leave; the step also gives the ratio of the two spreads.",
    ),
    (
        "sensitivity",
        "C(theta) sqrt(m) n^(-0.6), C of Proposition 20 at the current iterate",
        "The spread falls faster than n^(-1/2): Theorem 24 with p near 5/3. Its rate holds for all data where the "
        "bandwidth shrinks and does not read them; Proposition 20, with any bandwidth, has 1.9 times that noise at "
        "n = 500. With C fixed sigma has no heavy tails; the printed one has.",
    ),
    (
        "Newton's guard",
        "eigenvalues of the noisy Hessian at least 0.2, in absolute value",
        "As printed, without a guard, two thirds of the runs leave the data at 0.6-HDP and n = 500. With it the "
        "spreads of mu come near, but for the heavy tails at n = 1000; those of sigma, too wide already without noise "
        "(0.076 against our 0.060 at n = 1000), fit with nothing that we tried.",
    ),
    (
        "corrected interval",
        "adds the linearised noise of the last iterate",
        "Not reproduced so. For gradient descent the printed ones cover mu in about 84% and sigma in 94%, as one width "
        "for both parameters would: half of one step's noise variance, `intervals(kappa=0.5)`, comes near.",
    ),
    (
        "contamination",
        "N(9.75, 0.1^2), a fixed share of the records",
        "The mean comes from the columns for maximum likelihood, the spread from the non-private ones.",
    ),
]
"""What the supplement leaves open: the setting, what we took, what its tables say of it."""


PRINTED_RUNS = 6000
"""Runs per printed column: not printed, but what the columns that stand in two tables differ by."""

ACCOUNT = """### Which printed rows contradict each other

1. **One experiment, printed twice.** Table E.1 at 0.2-HDP and table E.4 at 0.2-HDP without contamination are the same
   setting (PNR, 1000 records, no thresholding): 4.868 (1.756) and 4.942 (13.391). A spread that differs 7.6-fold
   between two sets of runs is made by a few runs that left; neither mean nor spread of such a column can be met or
   missed. The other columns of E.4 at 0.2-HDP have spreads of 2.8 to 15.0, in no order of the contamination. These are
   the exception: of the 21 clean HDP columns, each of which stands in two tables, the other 20 agree, in the mean
   within 1.4 errors of 1000 runs and in the spread within 4%. Their differences are those of about 6000 runs per
   column.
2. **Two columns that should agree.** Without privacy both methods minimise the same function. The printed spreads of
   PNR are 0.96 to 0.97 (mu) and 1.31 to 1.34 (sigma) times those of PGD at *every* n, and its means of sigma are lower
   by 0.009 to 0.022. So one of the two had not arrived.
3. **Spread and coverage.** The uncorrected interval has a known width, so that its printed coverage tells the spread of
   the bulk of the estimates. Without privacy it is the printed spread; with privacy it is smaller, {least:.1f} to
   {most:.1f} times for PNR, also from E.9 on, where the tails were left out of the spread:

{spreads}
4. **A start at the truth.** The factor of 0.96 in item 2, the same for every n, would come from five half steps
   (1 - 0.5^5 = 0.97) that begin near mu = 5: from further away they would leave the mean behind. But reflected at 5 the
   clean records have the same law, so that from mu = 5 the private means would be 5 as well. All 14 printed ones are
   below, by up to 0.3. So no fixed start and step have both. With (5, 5), step 0.4, as below, only the columns without
   privacy are met.
5. **The misses.** PGD misses three means, all *without* privacy and with 20 or 30% of contamination, by 0.022 to
   0.025; our mean is below the printed one, on the side of our start. An error here is that of our runs; with that of
   the printed mean (6000 runs, as item 1 suggests) it is {kept_pgd} of 63. PNR misses {missed}; {private} of these are
   private, and in {below} of the private ones the printed mean is *below* ours. Items 1 to 4 do not explain most of
   them: printed means that two tables agree on can be had, with settings that we did not find. On clean data the
   printed means fall with the noise, from 4.95 to 4.70, and under contamination further (by up to 0.82 from the column
   without privacy, at n = 200), as those of runs would that are still on their way from a start below.
"""


def hellinger_sections() -> str:
    """Return the sections; parts that were not measured say so."""
    return "\n".join([_errors(), _contamination(), _families(), _growth(), _published()])


def _f(row: Record, name: str) -> float:
    return float(row[name])


def _three(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _errors() -> str:
    title = "## Hellinger: standard errors and intervals\n\n"
    rows = [row for row in read_csv("hellinger_certified") if row["contamination"] == "0"]
    if not rows:
        return title + "*not measured yet*\n"
    limits = {(row["budget"], row["n"]): row for row in read_csv("hellinger_limits")}
    shown = [
        {
            "budget": row["budget"],
            "n": row["n"],
            "mu: error": _three(_f(row, "mu_sd")),
            "limit": _limit(limits, row, "mu"),
            "over not private": f"{_f(row, 'mu_sd_ratio'):.2f}",
            "covered": f"{100 * _f(row, 'mu_cover'):.1f}%",
            "sigma: error": _three(_f(row, "sigma_sd")),
            "limit ": _limit(limits, row, "sigma"),
            "over not private ": f"{_f(row, 'sigma_sd_ratio'):.2f}",
            "covered ": f"{100 * _f(row, 'sigma_cover'):.1f}%",
            "paper, gradient": _three(_f(row, "paper_gradient_descent_sd")),
            "paper, Newton": _three(_f(row, "paper_newton_sd")),
        }
        for row in rows
    ]
    _plot_errors(rows)
    covers = [100 * _f(row, f"{name}_cover") for row in rows for name in PARAMETERS]
    return (
        f"{title}The records are normal, N(5, 2^2). The mean mu is known to lie in (-5, 15) and the deviation sigma in "
        f"(0.5, 6); there are {rows[0]['runs']} runs per cell. Errors are standard deviations over the runs. Beside "
        "them are the ratio to the minimum Hellinger distance fit without privacy on the same data, and how often the "
        f"95% intervals hold the truth ({min(covers):.1f} to {max(covers):.1f}%; the paper's do so in 60 to 98%). The "
        "paper counts its budget in HDP, Hellinger differential privacy: 0.2-HDP is about (4.3, 1e-5)-DP and 0.6-HDP "
        "about (8.7, 1e-5)-DP. The other two budgets, in epsilon and delta, are far smaller. *limit* is the standard "
        "error of the best linear reading of the released sums, for somebody who knows the truth up to small changes, "
        "but not the number of records. Where this limit is above 1.3 or 1.5 times the error without privacy, the "
        "noise of the release alone explains it. Clean cells have twice the runs of the "
        "others, since the first 500 data sets of 0.2-HDP, n = 1000 were unlucky: there the interval for sigma held "
        "the truth in 91.0%, and the textbook interval without privacy in 92.8%.\n\n"
        f"{_error_goals(rows)}\n\n"
        "![standard errors by number of records, one panel per budget](benchmarks/hellinger_errors.svg)\n\n"
        + markdown(shown)
    )


def _met(good: int, of: int, missed: list[str]) -> str:
    return f"{good} of {of}" + (f" (not: {'; '.join(missed)})" if missed else "")


def _error_goals(rows: list[Record]) -> str:
    """What was asked of errors and intervals, and where it is missed."""
    cells = [(row, name, f"{name} at {row['budget']}, n = {row['n']}") for row in rows for name in PARAMETERS]
    cover = [(100 * _f(row, f"{name}_cover"), told) for row, name, told in cells]
    missed = [f"{told}, {value:.1f}%" for value, told in cover if not 92.95 <= value <= 97.05]
    chance = 100.0 * math.sqrt(0.95 * 0.05 / int(rows[0]["runs"]))
    ratios = []
    for budget in dict.fromkeys(row["budget"] for row in rows):
        own = [(row, name) for row, name, _ in cells if row["budget"] == budget]
        good = sum(_f(row, f"{name}_sd_ratio") <= (1.3 if int(row["n"]) >= 500 else 1.5) for row, name in own)
        ratios.append(f"{good} of {len(own)} at {budget}")
    printed = [
        _f(row, f"paper_{algorithm}_sd") / _f(row, "mu_sd")
        for row in rows
        for algorithm in ALGORITHMS
        if row["budget"] == "0.2-HDP"
    ]
    least = min((value for value in printed if not math.isnan(value)), default=math.nan)
    return (
        "*Goals.* Intervals should hold the truth in 93 to 97% of the runs: they do in "
        f"{_met(len(cover) - len(missed), len(cover), missed)} figures; chance alone moves each of them by "
        f"{chance:.1f} points (one deviation). Errors should be at most 1.3 times those without privacy from n = 500 "
        f"on, and 1.5 times below that: they are in {', '.join(ratios)}. Errors of mu at 0.2-HDP should be at least "
        f"four times below the paper's: where they are nearest, they are {least:.1f} times below."
    )


def _limit(limits: dict[tuple[str, str], Record], row: Record, name: str) -> str:
    found = limits.get((row["budget"], row["n"]))
    return "" if found is None else _three(_f(found, name))


def _contamination() -> str:
    title = "## Hellinger: contamination\n\n"
    rows = [row for row in read_csv("hellinger_certified") if row["contamination"] != "0"]
    if not rows:
        return title + "*not measured yet*\n"
    shown = []
    for row in rows:
        shown.append(
            {
                "budget": row["budget"],
                "n": row["n"],
                "bad": f"{row['contamination']}%",
                "bias of mu": _three(_f(row, "mu") - 5.0),
                "not private, here": _three(_f(row, "mu_plain") - 5.0),
                "not private, paper": _three(_plain_bias(row)),
                "RMSE of mu": _three(_f(row, "mu_rmse")),
                "paper, gradient": _three(_f(row, "paper_gradient_descent_rmse")),
                "paper, Newton": _three(_f(row, "paper_newton_rmse")),
            }
        )
    return (
        f"{title}A share of the records is moved to near 9.75; the configuration is the same as above. The paper's "
        "root mean squared errors are computed from its means and spreads. Below n = 1000 it left out aberrant "
        f"runs.\n\n{_contamination_goals(rows)}\n\n" + markdown(shown)
    )


def _plain_bias(row: Record) -> float:
    """Return the smaller bias of the paper's two non-private columns."""
    printed = [_f(row, f"paper_{name}_plain_bias") for name in ALGORITHMS]
    return min([bias for bias in printed if not math.isnan(bias)], default=math.nan)


def _contamination_goals(rows: list[Record]) -> str:
    """What was asked of contaminated cells, and where it is missed."""
    biases = [
        (abs(_f(row, "mu") - 5.0) / _plain_bias(row), f"{row['budget']}, n = {row['n']}, {row['contamination']}%")
        for row in rows
        if not math.isnan(_plain_bias(row))
    ]
    missed = [f"{told}: {ratio:.2f} times" for ratio, told in biases if ratio > 1.1]
    printed = [(_f(row, "mu_rmse"), _f(row, f"paper_{name}_rmse")) for row in rows for name in ALGORITHMS]
    private = [(ours, paper) for ours, paper in printed if not math.isnan(paper)]
    good = sum(ours < paper for ours, paper in private)
    return (
        "*Goals.* The bias of mu should be at most 1.1 times the paper's without privacy (the smaller of its two): it "
        f"is in {_met(len(biases) - len(missed), len(biases), missed)}. The root mean squared error should be below "
        f"the paper's in its private cells: it is in {good} of {len(private)}."
    )


def _families() -> str:
    rows: list[dict[str, Any]] = []
    for row in read_csv("hellinger_families"):
        for i in "12":
            if row[f"parameter_{i}"]:
                rows.append(
                    {
                        "family": row["family"],
                        "parameter": row[f"parameter_{i}"],
                        "truth": row[f"truth_{i}"],
                        "mean": _three(_f(row, f"mean_{i}")),
                        "error": _three(_f(row, f"sd_{i}")),
                        "stated": _three(_f(row, f"stated_{i}")),
                        "covered": f"{100 * _f(row, f'cover_{i}'):.1f}%",
                    }
                )
    return "## Hellinger: other families\n\nn = 1000, epsilon 1, delta 1e-5.\n\n" + markdown(rows)


def _growth() -> str:
    rows = [
        {
            "n": row["n"],
            "fit, CPU s": _three(_f(row, "fit_seconds")),
            "bincount, CPU s": _three(_f(row, "bincount_seconds")),
        }
        for row in read_csv("hellinger_growth")
    ]
    return "## Hellinger: growth\n\nBest of seven runs. Only the pass over the data grows with n.\n\n" + markdown(rows)


def _published() -> str:
    title = "## Hellinger: the paper's tables, as published\n\n"
    rows = read_csv("hellinger_published")
    if not rows:
        return title + "*not measured yet*\n"
    notes = []
    for algorithm, name in (("gradient_descent", "gradient descent"), ("newton", "Newton")):
        cells = [row for row in rows if row["algorithm"] == algorithm]
        near = sum(abs(_f(row, "mu_z")) <= 3.0 for row in cells)
        alike = sum(0.8 <= _f(row, "mu_sd") / _f(row, "paper_mu_sd") <= 1.25 for row in cells)
        notes.append(f"{near} of {len(cells)} for {name} (spread within a quarter in {alike})")
    shown = [
        {
            "table": row["table"],
            "method": "PGD" if row["algorithm"] == "gradient_descent" else "PNR",
            "n": row["n"],
            "lambda": "HDP" if row["power"] == "-0.5" else row["power"],
            "epsilon": "none" if row["epsilon"] == "inf" else row["epsilon"],
            "bad": f"{row['contamination']}%",
            "mu": f"{_f(row, 'mu'):.3f} ({_f(row, 'mu_sd'):.3f})",
            "paper": f"{_f(row, 'paper_mu'):.3f} ({_f(row, 'paper_mu_sd'):.3f})",
            "sigma": f"{_f(row, 'sigma'):.3f} ({_f(row, 'sigma_sd'):.3f})" if row["paper_sigma"] != "nan" else "",
            "paper ": f"{row['paper_sigma']} ({row['paper_sigma_sd']})" if row["paper_sigma"] != "nan" else "",
            "mu, sigma covered": f"{row['mu_cover']:.4}, {row['sigma_cover']:.4}"
            if row["paper_sigma"] != "nan"
            else "",
            "paper  ": f"{row['paper_mu_cover']}, {row['paper_sigma_cover']}" if row["paper_sigma"] != "nan" else "",
            "kept": f"{100 * _f(row, 'kept'):.0f}%",
        }
        for row in rows
    ]
    _plot_published(rows)
    _plot_paths()
    settings = [{"setting": name, "taken": taken, "what the tables say": said} for name, taken, said in OPEN_SETTINGS]
    return (
        f"{title}**For gradient descent, our reruns give nearly all printed means and spreads of mu. Newton's tables "
        "are not reproduced**, and the intervals of neither method are. The methods are PGD (private gradient "
        "descent) and PNR (private Newton-Raphson) of `fogline_research.as_published`, with "
        f"{rows[0]['runs']} runs per cell; the tables have means with standard deviations in brackets. The means of mu "
        f"that lie within three Monte-Carlo errors of the printed ones are {', '.join(notes)}. From table E.9 on, the "
        "paper leaves out estimates of mu in the tails of the non-private fit; so do we, and the last column says how "
        "many are left. All settings that the paper leaves open were chosen by looking at these same tables, one "
        "choice for all cells of a method. Agreement therefore says that the tables *can* be had in this way, not "
        "that they were. Within a table the columns share noise. For Newton, nothing that we tried gives what is "
        f"printed: take its rows as one reading of the method, not as the paper's. {_likelihood()}What the supplement "
        "leaves open:\n\n"
        f"{markdown(settings)}\n{_account(rows)}\n"
        "![our spread of mu over the printed one, by table](benchmarks/hellinger_published.svg)\n\n"
        "The next figure has paths of both methods at 0.6-HDP and corrected intervals of Newton for mu, with our "
        "settings. The paper's figures E.1 to E.3 show Newton only; `fogline reproduce figures` draws each of them.\n\n"
        "![paths of both methods and intervals of Newton](benchmarks/hellinger_paths.svg)\n\n" + markdown(shown)
    )


def _likelihood() -> str:
    """How near the rows for maximum likelihood come: nothing but the contamination is open there."""
    rows = read_csv("hellinger_likelihood")
    if not rows:
        return ""
    apart = [abs(_f(row, "mu") - _f(row, "paper_mu")) for row in rows]
    errors = [_f(row, "paper_mu_sd") / math.sqrt(_f(row, "runs")) for row in rows]
    near = sum(gap <= 3.0 * error for gap, error in zip(apart, errors, strict=True))
    ratios = [_f(row, "mu_sd") / _f(row, "paper_mu_sd") for row in rows]
    return (
        f"The printed rows for maximum likelihood come out with {near} of {len(rows)} means within three errors of "
        f"{rows[0]['runs']} runs, all within {max(apart):.3f}, and spreads {min(ratios):.2f} to {max(ratios):.2f} "
        "times the printed ones. "
    )


def _account(rows: list[Record]) -> str:
    """Say which printed rows do not go together, and what that leaves of the misses."""
    newton = [row for row in rows if row["algorithm"] == "newton" and abs(_f(row, "mu_z")) > 3.0]
    private = [row for row in newton if row["epsilon"] != "inf"]
    below = sum(_f(row, "paper_mu") < _f(row, "mu") for row in private)
    clean = [row for row in rows if row["paper_sigma"] != "nan"]
    printed = {(row["table"], row["epsilon"]): row for row in hellinger_printed()}
    shown = [
        {
            "table": row["table"],
            "method": "PGD" if row["algorithm"] == "gradient_descent" else "PNR",
            "n": row["n"],
            "epsilon": "none" if row["epsilon"] == "inf" else row["epsilon"],
            "printed spread of mu": row["paper_mu_sd"],
            "that of its uncorrected coverage": f"{implied:.3f}",
            "ratio": f"{_f(row, 'paper_mu_sd') / implied:.2f}",
        }
        for row in clean
        for implied in [implied_spread(printed[row["table"], row["epsilon"]]["cover"], int(row["n"]))]
    ]
    ratios = [float(row["ratio"]) for row in shown if row["method"] == "PNR" and row["epsilon"] != "none"]
    descent = [row for row in rows if row["algorithm"] == "gradient_descent"]
    both = [abs(_f(row, "mu_z")) / math.sqrt(1.0 + _f(row, "runs") / PRINTED_RUNS) for row in descent]
    counted = {"missed": len(newton), "private": len(private), "below": below, "kept_pgd": sum(z <= 3.0 for z in both)}
    return ACCOUNT.format(**counted, least=min(ratios), most=max(ratios), spreads=markdown(shown)) + _readings()


def hellinger_printed() -> list[dict[str, Any]]:
    """Return the printed uncorrected coverage of mu of every clean column."""
    from fogline_research.experiments import hellinger_cells

    cells = [cell for cell in hellinger_cells() if not math.isnan(cell.mu_plain_cover)]
    return [{"table": c.table, "epsilon": f"{c.epsilon:g}", "cover": c.mu_plain_cover} for c in cells]


def implied_spread(cover: float, n: int) -> float:
    """Spread of a normal estimate of mu whose interval of 1.96 sigma/sqrt(n), at sigma = 2, covers so often."""
    return 1.96 * 2.0 / math.sqrt(n) / NormalDist().inv_cdf(0.5 + 0.5 * cover)


def _readings() -> str:
    rows = read_csv("hellinger_readings")
    if not rows:
        return ""
    shown = []
    for name in dict.fromkeys(row["reading"] for row in rows):
        mine = [row for row in rows if row["reading"] == name]
        plain, noisy = ([row for row in mine if (row["epsilon"] == "inf") is quiet] for quiet in (True, False))
        covers = [abs(_f(row, key) - _f(row, f"paper_{key}")) for row in noisy for key in _PLAIN]
        gaps = {
            e: [_f(row, "mu") - _f(row, "paper_mu") for row in noisy if row["epsilon"] == e] for e in ("0.6", "0.2")
        }
        shown.append(
            {
                "reading": name,
                "spread of mu, sigma over the printed, no noise": _mean_ratios(plain),
                "the same with noise": _mean_ratios(noisy),
                "uncorrected coverages within 0.06": f"{sum(c <= 0.06 for c in covers)} of {len(covers)}",
                "mean of mu less the printed, 0.6 and 0.2": ", ".join(f"{sum(g) / len(g):+.2f}" for g in gaps.values()),
            }
        )
    return (
        f"\nReadings of what Newton leaves open, on its clean HDP columns ({rows[0]['runs']} runs each; geometric "
        f"means over n = 200 to 1000):\n\n{markdown(shown)}\n"
        "No reading meets all of it. Half steps from (3, 1) meet the private means, but leave those without privacy "
        "0.05 below full steps on the same records. Steps of 0.7 do not leave them there, and come half of the way to "
        "the means at 0.2-HDP. Half steps from (5, 5) meet most of the coverages. No reading has the printed tails, "
        "and without a floor for the eigenvalues runs leave the data even where there is no noise.\n"
        + _nearest_reading()
    )


def _nearest_reading() -> str:
    """Newton's columns under the reading that was chosen on the clean ones, beside ours."""
    nearest, ours = read_csv("hellinger_newton"), read_csv("hellinger_published")
    if not nearest:
        return ""
    mine = {(row["table"], row["epsilon"], row["contamination"]): row for row in ours}
    shown = []
    for title, chosen in (
        ("without privacy", [row for row in nearest if row["epsilon"] == "inf"]),
        ("private, clean", [row for row in nearest if row["epsilon"] != "inf" and row["paper_sigma"] != "nan"]),
        (
            "private, tables of contamination",
            [r for r in nearest if r["epsilon"] != "inf" and r["paper_sigma"] == "nan"],
        ),
        ("all", nearest),
    ):
        same = [mine[row["table"], row["epsilon"], row["contamination"]] for row in chosen]
        shown.append(
            {
                "columns": title,
                "start (3, 1), step 1 (ours, 500 runs)": _within(same),
                f"{nearest[0]['reading'].removesuffix(', floor 0.2')} ({nearest[0]['runs']} runs)": _within(chosen),
            }
        )
    return (
        "\nOf 22 settings, tried with few runs on the clean columns, "
        f"{nearest[0]['reading']}, has the nearest private means, and was then run on all columns: tables of "
        "contamination were not looked at before (8 of their 40 private columns are clean). "
        "The table has the means of mu within three errors of 500 runs, which "
        "is strict for the second reading, as it had fewer, and in brackets the root mean square of the difference in "
        f"printed spreads:\n\n{markdown(shown)}\n"
        "It is nearer where there is noise, and further where there is none: five such steps stop short of the fit "
        f"when a fifth or more of the records are bad. If columns without privacy are fits that have arrived, as ours "
        f"are, both together meet {_together(nearest, mine)} of {len(nearest)}. The goal of 65 is missed. Ours stays "
        "for the table below.\n"
    )


def _together(nearest: list[Record], ours: dict[tuple[str, str, str], Record]) -> int:
    """Means met by our full steps where there is no privacy, and by the nearest reading where there is."""
    quiet = [ours[row["table"], row["epsilon"], row["contamination"]] for row in nearest if row["epsilon"] == "inf"]
    noisy = [row for row in nearest if row["epsilon"] != "inf"]
    return sum(int(_within(rows).split()[0]) for rows in (quiet, noisy))


def _within(rows: list[Record]) -> str:
    """How many means lie within three errors of 500 runs, and the root mean square of the differences in spreads."""
    apart = [abs(_f(row, "mu") - _f(row, "paper_mu")) / _f(row, "paper_mu_sd") for row in rows]
    square = math.sqrt(sum(value**2 for value in apart) / len(apart))
    return f"{sum(value <= 3.0 / math.sqrt(500) for value in apart)} of {len(apart)} ({square:.2f})"


_PLAIN = ("mu_plain_cover", "sigma_plain_cover")


def _mean_ratios(rows: list[Record]) -> str:
    """Geometric mean over the rows of our spread over the printed one, for both parameters."""
    logs = [[math.log(_f(row, f"{k}_sd") / _f(row, f"paper_{k}_sd")) for row in rows] for k in PARAMETERS]
    return ", ".join(f"{math.exp(sum(part) / len(part)):.2f}" for part in logs)


# -- plots ------------------------------------------------------------------------------------------------------


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "fogline"
    import matplotlib.pyplot as plt

    return plt


def _plot_errors(rows: list[Record]) -> None:
    plt = _pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, budget in zip(axes, ("0.2-HDP", "0.6-HDP"), strict=True):
        cells = [row for row in rows if row["budget"] == budget]
        n = [int(row["n"]) for row in cells]
        series = (
            ("mu_sd", "PrivateHellinger (certified)", "o-", "#1b6a97"),
            ("mu_plain_sd", "not private", "--", "black"),
            ("paper_gradient_descent_sd", "paper, gradient descent", "s-", "#b8600b"),
            ("paper_newton_sd", "paper, Newton", "^-", "#7a7a7a"),
        )
        for name, label, style, colour in series:
            axis.loglog(n, [_f(row, name) for row in cells], style, color=colour, label=label, markersize=5)
        axis.set_title(budget)
        axis.set_xlabel("records")
    axes[0].set_ylabel("standard error of mu")
    axes[1].legend(frameon=False, fontsize=8)
    _save(figure, "hellinger_errors")


def _plot_published(rows: list[Record]) -> None:
    plt = _pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
    for axis, name in zip(axes, ("mu", "sigma"), strict=True):
        for algorithm, label, marker in (("gradient_descent", "PGD", "o"), ("newton", "PNR", "^")):
            cells = [row for row in rows if row["algorithm"] == algorithm and row[f"paper_{name}_sd"] != "nan"]
            printed, ours = ([_f(row, key) for row in cells] for key in (f"paper_{name}_sd", f"{name}_sd"))
            axis.loglog(printed, ours, marker, label=label, alpha=0.7, markersize=5)
        ends = axis.get_xlim()
        axis.plot(ends, ends, color="black", linewidth=0.8)
        axis.set_title(f"spread of {name}")
        axis.set_xlabel("printed")
        axis.set_ylabel("rerun")
    axes[1].legend(frameon=False)
    _save(figure, "hellinger_published")


def _plot_paths() -> None:
    steps, intervals = read_csv("hellinger_paths"), read_csv("hellinger_intervals")
    if not steps or not intervals:
        return
    plt = _pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6))
    for axis, (algorithm, title) in zip(
        axes, (("newton", "Newton"), ("gradient_descent", "gradient descent")), strict=False
    ):
        paths: dict[str, list[Record]] = {}
        for row in steps:
            if row["algorithm"] == algorithm:
                paths.setdefault(row["run"], []).append(row)
        for run, path in paths.items():
            style = (
                {"color": "black", "linewidth": 1.5}
                if run == "0"
                else {"color": "#b8600b", "alpha": 0.5, "linewidth": 0.8}
            )
            axis.plot([_f(row, "mu") for row in path], [_f(row, "sigma") for row in path], **style)
        axis.plot(5.0, 2.0, "*", color="#1b6a97", markersize=10)
        axis.set_xlim(1, 8)
        axis.set_ylim(0, 4)
        axis.set_title(f"{title}, 0.6-HDP (black: no noise)", fontsize=9)
        axis.set_xlabel("mu")
    axes[0].set_ylabel("sigma")
    for row in intervals:
        private = row["private"] == "True"
        colour, at = ("#b8600b", int(row["run"])) if private else ("black", int(row["run"]) + 0.5)
        axes[2].plot([at, at], [_f(row, "low"), _f(row, "high")], color=colour, linewidth=1)
    axes[2].axhline(5.0, color="#1b6a97", linewidth=0.8)
    axes[2].set_title("95% intervals for mu (black: no noise)", fontsize=9)
    axes[2].set_xlabel("run")
    _save(figure, "hellinger_paths")


def _save(figure: Any, name: str) -> None:
    figure.tight_layout()
    figure.savefig(common.RESULTS / f"{name}.svg", metadata={"Date": None})
    _pyplot().close(figure)
