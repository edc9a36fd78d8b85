"""The part of docs/benchmarks/hellinger.md on Hellinger fits, with its plots, from the CSV files of hellinger.py."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
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
        "(2, 1) for both; a step of 0.5 for gradient descent, of 1 for Newton",
        "Under contamination the printed means of gradient descent fall short of Newton's by what 50 such steps from "
        "below leave; the step also gives the ratio of the two spreads. Newton's private means fall with the noise, as "
        "those of runs would that are still on their way from there.",
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
        "As printed, without a guard, most runs leave the data at 0.6-HDP and n = 500 from (3, 1) or (4, 2). With it "
        "the spreads of mu come near, but for the heavy tails at n = 1000; those of sigma, too wide already without "
        "noise (0.076 against our 0.057 at n = 1000), fit with nothing that we tried.",
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
   by 0.009 to 0.022. So one of the two had not arrived. But what K steps of Newton with one step size leave of the
   way, (1 - eta)^K near the minimum, is the same for both parameters: it cannot shrink the spread of one and widen that
   of the other. With the printed iteration, from a start near the minimum, the two factors contradict each other.
3. **Spread and coverage.** The uncorrected interval has a known width, so that its printed coverage tells the spread of
   the bulk of the estimates. Without privacy it is the printed spread; with privacy it is smaller, {least:.1f} to
   {most:.1f} times for PNR, also from E.9 on, where the tails were left out of the spread:

{spreads}
4. **A start at the truth.** The factors of item 2, the same for every n, speak for a start near (5, 2): from further
   away the mean would be left behind. But reflected at 5 the clean records have the same law, so that from mu = 5 the
   private means would be 5 as well. All 14 printed ones are below, by up to 0.3. So no fixed start has both. A start
   from below, as ours, has the means, and not the spreads without privacy.
5. **Gradient descent that arrives, and that does not.** {descent}
6. **One kernel for 1000 records.** {widths}
7. **The misses, column by column.** {misses}

{columns}
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
            "uncorrected": f"{row['mu_plain_cover']:.4}, {row['sigma_plain_cover']:.4}"
            if row["mu_plain_cover"]
            else "",
            "paper   ": f"{row['paper_mu_plain_cover']}, {row['paper_sigma_plain_cover']}"
            if row["mu_plain_cover"]
            else "",
            "kept": f"{100 * _f(row, 'kept'):.0f}%",
        }
        for row in rows
    ]
    _plot_published(rows)
    _plot_paths()
    settings = [{"setting": name, "taken": taken, "what the tables say": said} for name, taken, said in OPEN_SETTINGS]
    return (
        f"{title}**Our reruns give nearly all printed means of mu, and for gradient descent the spreads as well. "
        "Newton's spreads and coverage are not reproduced**, and the corrected intervals of neither method are. The "
        "methods are PGD (private gradient "
        "descent) and PNR (private Newton-Raphson) of `fogline_research.as_published`, with "
        f"{rows[0]['runs']} runs per cell; the tables have means with standard deviations in brackets. The means of mu "
        f"that lie within three Monte-Carlo errors of the printed ones are {', '.join(notes)}. From table E.9 on, the "
        "paper leaves out estimates of mu in the tails of the non-private fit; so do we, and the last column says how "
        "many are left. All settings that the paper leaves open were chosen by looking at these same tables, one "
        "choice for all cells of a method. Agreement therefore says that the tables *can* be had in this way, not "
        "that they were. Within a table the columns share noise. For Newton, nothing that we tried gives all that is "
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
    clean = [row for row in rows if row["paper_sigma"] != "nan"]
    printed = {(row["table"], row["epsilon"]): row for row in hellinger_printed()}
    shown = [
        {
            "table": row["table"],
            "method": _method(row),
            "n": row["n"],
            "epsilon": _epsilon(row),
            "printed spread of mu": row["paper_mu_sd"],
            "that of its uncorrected coverage": f"{implied:.3f}",
            "ratio": f"{_f(row, 'paper_mu_sd') / implied:.2f}",
        }
        for row in clean
        for implied in [implied_spread(printed[row["table"], row["epsilon"]]["cover"], int(row["n"]))]
    ]
    ratios = [float(row["ratio"]) for row in shown if row["method"] == "PNR" and row["epsilon"] != "none"]
    return (
        ACCOUNT.format(
            least=min(ratios),
            most=max(ratios),
            spreads=markdown(shown),
            descent=_descents(),
            widths=_widths(),
            misses=_miss_counts(rows),
            columns=markdown(_missed(rows)),
        )
        + _readings()
    )


def _method(row: Record) -> str:
    return "PGD" if row["algorithm"] == "gradient_descent" else "PNR"


def _epsilon(row: Record) -> str:
    return "none" if row["epsilon"] == "inf" else row["epsilon"]


def both_errors(row: Record) -> float:
    """Difference of the means in units of both errors: that of our runs, and that of the printed mean."""
    return abs(_f(row, "mu_z")) / math.sqrt(1.0 + _f(row, "runs") / PRINTED_RUNS)


def _miss_counts(rows: list[Record]) -> str:
    told = []
    for algorithm, name in zip(ALGORITHMS, ("PGD", "PNR"), strict=True):
        own = [row for row in rows if row["algorithm"] == algorithm]
        near = sum(abs(_f(row, "mu_z")) <= 3.0 for row in own)
        kept = sum(both_errors(row) <= 3.0 for row in own)
        missed = [row for row in own if abs(_f(row, "mu_z")) > 3.0]
        plain = sum(row["epsilon"] == "inf" for row in missed)
        told.append(
            f"{name} meets {near} of {len(own)} means of mu by the error of our {own[0]['runs']} runs, and {kept} if "
            f"the error of the printed mean counts as well ({PRINTED_RUNS} runs, as item 1 suggests); of the "
            f"{len(missed)} that it misses, {plain} are columns without privacy."
        )
    return " ".join(told) + " All of them, with how far they are off and what of the above they are part of:"


def _missed(rows: list[Record]) -> list[dict[str, Any]]:
    """Every column whose mean of mu is missed, with the items of the account that speak of it."""
    return [
        {
            "table": row["table"],
            "method": _method(row),
            "n": row["n"],
            "epsilon": _epsilon(row),
            "bad": f"{row['contamination']}%",
            "ours": f"{_f(row, 'mu'):.3f}",
            "printed": f"{_f(row, 'paper_mu'):.3f}",
            "difference": f"{_f(row, 'mu') - _f(row, 'paper_mu'):+.3f}",
            "errors": f"{_f(row, 'mu_z'):+.1f}",
            "with the printed one's": f"{math.copysign(both_errors(row), _f(row, 'mu_z')):+.1f}",
            "items": contradiction(row),
        }
        for row in rows
        if abs(_f(row, "mu_z")) > 3.0
    ]


def contradiction(row: Record) -> str:
    """Items of the account that a column is part of: what else is printed that does not go with it."""
    if row["algorithm"] == "gradient_descent":
        return "5" if row["epsilon"] == "inf" else "none"
    if row["epsilon"] == "inf":
        return "6" if row["table"] == "E.4" else "2"
    if row["table"] in ("E.1", "E.4") and row["epsilon"] == "0.2":
        return "1"
    return "3" if row["paper_sigma"] != "nan" else "none"


def _widths() -> str:
    """Which kernel each column without privacy at n = 1000 asks for."""
    rows = read_csv("hellinger_widths")
    if not rows:
        return "*not measured yet*"
    found: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        if row["contamination"] != "0":
            found.setdefault(row["contamination"], []).append((_f(row, "factor"), _f(row, "mu"), _f(row, "paper_mu")))
    asked = {bad: met_at(points) for bad, points in found.items()}
    clean = [row for row in rows if row["contamination"] == "0"]
    sigmas = ", ".join(f"{_f(row, 'sigma'):.3f} at {_f(row, 'factor'):g}" for row in clean)
    return (
        "The contaminated columns of E.4 without privacy are above what our kernel gives, and a wider kernel raises "
        "them: the narrow heap of bad records is smeared out. But they ask for different ones, "
        + ", ".join(f"{factor:.2f} times ours at {bad}%" for bad, factor in asked.items())
        + f", and the clean columns at n = 1000 for none that is wider: the mean of sigma would be {sigmas} times our "
        f"width, where 1.984 (PGD) and 1.975 (PNR) are printed ({rows[0]['runs']} runs each)."
    )


def met_at(points: list[tuple[float, float, float]]) -> float:
    """Factor at which the mean, linear between measured factors, is the printed one."""
    for (first, low, printed), (second, high, _) in itertools.pairwise(points):
        if low <= printed <= high:
            return first + (second - first) * (printed - low) / (high - low)
    return math.nan


def _descents() -> str:
    """What readings around ours do to the columns that gradient descent misses, and to private ones."""
    rows = read_csv("hellinger_descent")
    if not rows:
        return "*not measured yet*"
    names = list(dict.fromkeys(row["reading"] for row in rows))

    def errors(name: str, private: bool) -> str:
        own = [row for row in rows if row["reading"] == name and (row["epsilon"] != "inf") is private]
        apart = [(_f(r, "mu") - _f(r, "paper_mu")) / _f(r, "paper_mu_sd") * math.sqrt(500) for r in own]
        return ", ".join(f"{value:+.1f}" for value in apart)

    told = "; ".join(
        f"{name.removesuffix(' (ours)')}: {errors(name, False)} and {errors(name, True)}" for name in names
    )
    return (
        "PGD misses three means, all *without* privacy and with 20 or 30% of contamination; ours lie below, on the "
        "side of the start. There a step that is a tenth longer, or a start nearer by 1, would be nearer. With errors "
        "of 500 runs, first E.19 at 20 and 30% and E.11 at 30% without privacy, then E.9 (clean), E.11 and E.19 (30%) "
        f"at 0.2-HDP, {rows[0]['runs']} runs each (so that a difference of four between private ones is chance): "
        f"{told}. Neither was run on all columns. A clean column asks for the opposite: without privacy PGD is printed "
        "0.008 to 0.011 below 5 at every n, where a longer step or a nearer start leaves less of the way than ours, "
        "0.005."
    )


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
        "0.05 below full steps on the same records. Half steps from (5, 5) meet most of the coverages. No reading has "
        "the printed tails, and without a floor for the eigenvalues runs leave the data even where there is no "
        "noise.\n" + _former_readings()
    )


def _former_readings() -> str:
    """All of Newton's columns under our reading and under former ones."""
    former, ours = read_csv("hellinger_newton"), read_csv("hellinger_published")
    if not former:
        return ""
    newton = [row for row in ours if row["algorithm"] == "newton"]
    kinds = {
        "without privacy": lambda row: row["epsilon"] == "inf",
        "private, clean": lambda row: row["epsilon"] != "inf" and row["paper_sigma"] != "nan",
        "private, tables of contamination": lambda row: row["epsilon"] != "inf" and row["paper_sigma"] == "nan",
        "all": lambda row: True,  # noqa: ARG005
    }
    names = list(dict.fromkeys(row["reading"] for row in former))
    shown = []
    for title, wanted in kinds.items():
        line = {"columns": title, f"start (2, 1), step 0.9 (ours, {newton[0]['runs']} runs)": _within(newton, wanted)}
        for name in names:
            own = [row for row in former if row["reading"] == name]
            line[f"{name.removesuffix(', floor 0.2')} ({own[0]['runs']} runs)"] = _within(own, wanted)
        shown.append(line)
    return (
        "\nStart and step were chosen on ten private columns, E.4 at 0.6-HDP, E.12 and E.20, each with 0 and 30% of "
        "contamination: first among 120 settings (ten starts, steps of 0.3 to 1, floors of 0.1, 0.2 and none) with 300 "
        "runs, which gave (2, 1) with a step of 1; on the seeds of the table below that met 53 of 72 columns, and "
        "with 150 runs of other seeds 72 of all 81. Then "
        "some 20 settings around it had 800 runs on the same ten columns. The table has the means of mu within three "
        "errors of 500 runs, which is strict where there are fewer, and in brackets the root mean square of the "
        "difference in printed spreads, beside former readings:\n\n"
        f"{markdown(shown)}\n"
        "The goal was 65. Columns of a table share their noise, so that its misses come together: all five of E.16 at "
        "0.6-HDP are off by 3.1 to 3.5 errors. Spreads of sigma and coverage are not met by this reading either.\n"
    )


def _within(rows: list[Record], wanted: Callable[[Record], bool]) -> str:
    """How many means lie within three errors of 500 runs, and the root mean square of the differences in spreads."""
    apart = [abs(_f(row, "mu") - _f(row, "paper_mu")) / _f(row, "paper_mu_sd") for row in rows if wanted(row)]
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
