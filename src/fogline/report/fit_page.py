"""The page of a fitted family."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from fogline.families import MultivariateNormal
from fogline.report.drawing import INK, canvas, line
from fogline.report.fits import FitCurve, FitFindings, privacy_words
from fogline.report.frame import count_content, listed, promise_content
from fogline.report.plane import heat
from fogline.report.svg import HUES, Frame, element, error_ellipse, path, plus_minus, short, significant, tick_label

__all__ = ["fit_content", "fit_curve", "fit_map"]

FloatArray = NDArray[np.float64]

BLUE, ORANGE = HUES[0], HUES[1]
HELD = (0.5, 0.95)
"""Parts of the fitted law that the ellipses of a map hold."""

ROOM = 1.6
"""A law that is infinite somewhere is drawn up to so many times the rest of the picture."""


def fit_content(findings: FitFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator, density = findings.estimator, findings.estimator.density_
    counted = {} if density is None else count_content(density.count, density.count_sd)
    return {
        **promise_content(estimator, estimator.receipt_),
        **counted,
        "currency": privacy_words(estimator),
        "columns": findings.columns,
        "family": findings.family.name,
        "method": estimator.method,
        "released": density is not None,
        "path_length": 0 if estimator.path_ is None else len(estimator.path_) - 1,
        "confidence": f"{100 * estimator.confidence:g}%",
        "rows": [
            {"name": label, "words": row.words, "interval": row.interval_words}
            for label, row in zip(findings.labels, findings.rows, strict=True)
        ],
        "explained": _explained(findings),
        "ellipses": isinstance(findings.family, MultivariateNormal),
        "ranges": [
            (name, tick_label(low), tick_label(high))
            for name, (low, high) in (
                *zip(findings.columns, _rounded(findings.bounds), strict=True),
                *zip(findings.family.parameters, findings.parameter_bounds.tolist(), strict=True),
            )
        ],
        "bandwidth": listed(
            [f"{significant(float(h))} ({n})" for h, n in zip(estimator.bandwidth_, findings.columns, strict=True)]
        ),
        "figures": _figures(findings),
    }


def _rounded(bounds: FloatArray) -> list[tuple[float, float]]:
    """Bounds with four digits: by default they are quantiles, and no one wants all of their digits."""
    return [(float(f"{low:.4g}"), float(f"{high:.4g}")) for low, high in bounds.tolist()]


def _explained(findings: FitFindings) -> dict[str, Any] | None:
    explained = findings.estimator.explained_
    if explained is None:
        return None
    error = [max(100 * explained.standard_error, 1e-9)]
    lumps = []
    for lump in explained.lumps:
        sides = [
            f"{name} from {significant(low)} to {significant(high)}"
            for name, low, high in zip(findings.columns, lump.low, lump.high, strict=True)
        ]
        lumps.append({"where": " and ".join(sides), "share": f"{100 * lump.share:.0f}%"})
    return {"share": f"{100 * explained.share:.0f}", "error": plus_minus(0.0, error)[1], "lumps": lumps}


def _figures(findings: FitFindings) -> list[str]:
    if findings.curve is not None:
        return [fit_curve(findings, findings.curve)]
    pairs = ((0, 1),) if len(findings.columns) == 2 else ((0, 1), (0, 2), (1, 2))
    return [fit_map(findings, i, j) for i, j in pairs]


# -- one column -------------------------------------------------------------------------------------------


def fit_curve(findings: FitFindings, curve: FitCurve) -> str:
    """Draw the released density with two standard errors, and the family over it, smoothed and as it is."""
    x = curve.axis
    parts: list[str] = []
    legend: list[tuple[str, str, str]] = []
    top, bottom = float(curve.plain[np.isfinite(curve.plain)].max(initial=0.0)), 0.0
    if curve.released is not None and curve.sd is not None and curve.smoothed is not None:
        upper, lower = curve.released + 2 * curve.sd, curve.released - 2 * curve.sd
        seen = float(max(upper.max(), curve.smoothed.max()))
        top, bottom = max(seen, min(top, ROOM * seen)), min(0.0, float(lower.min()))
    frame = Frame(78, 34, 780, 330, (float(x[0]), float(x[-1])), (1.05 * bottom, 1.08 * max(top, 1e-300)))
    if curve.released is not None and curve.sd is not None and curve.smoothed is not None:
        edge = np.concatenate([np.stack([x, upper], axis=1), np.stack([x, lower], axis=1)[::-1]])
        parts += [
            _lumps(findings, frame),
            element("path", d=path([frame.at(edge)]), fill=INK, class_="noise"),
            element("path", d=line(frame, x, curve.released), class_="curve"),
            element("path", d=line(frame, x, curve.smoothed), stroke=ORANGE, class_="law"),
        ]
        legend = [("curve", INK, "released density"), ("law", ORANGE, "family, as smooth")]
    plain = np.minimum(np.where(np.isfinite(curve.plain), curve.plain, np.inf), frame.y[1])
    parts.append(element("path", d=line(frame, x, plain), stroke=BLUE, class_="law-plain"))
    legend.append(("law-plain", BLUE, "family, as it is"))
    name = findings.columns[0]
    return canvas(
        880,
        420,
        f"Curve of the {findings.family.name} family fitted to {short(name)}",
        frame.border("paper"),
        *parts,
        frame.border(),
        frame.axes((name, "density")),
        _legend(legend),
        class_="figure",
    )


def _lumps(findings: FitFindings, frame: Frame) -> str:
    """Shade where more records lie than the family explains."""
    explained = findings.estimator.explained_
    parts = []
    for lump in () if explained is None else explained.lumps:
        ends = np.clip(np.array([lump.low[0], lump.high[0]]), *frame.x)
        left, right = frame.at(np.stack([ends, np.full(2, frame.y[0])], axis=1))[:, 0].tolist()
        parts.append(
            element("rect", x=left, y=frame.top, width=right - left, height=frame.height, fill=HUES[4], class_="lump")
        )
        words = f"{100 * lump.share:.0f}% in excess"
        parts.append(element("text", text=words, x=0.5 * (left + right), y=frame.top + 18, class_="tick-label middle"))
    return "".join(parts)


def _legend(entries: list[tuple[str, str, str]]) -> str:
    parts, x = [], 78.0
    for class_, hue, words in entries:
        parts.append(element("path", d=f"M{x:.0f} 16H{x + 30:.0f}", stroke=hue, class_=class_))
        parts.append(element("text", text=words, x=x + 38, y=21, class_="row-label"))
        x += 62.0 + 7.4 * len(words)
    return "".join(parts)


# -- two and three columns ----------------------------------------------------------------------------------


def fit_map(findings: FitFindings, i: int, j: int) -> str:
    """Draw the released density of two columns, any other summed over, with ellipses of the fitted normal law."""
    small = len(findings.columns) > 2
    limits = [(float(low), float(high)) for low, high in findings.bounds[[i, j]]]
    frame = Frame(56, 8, 286, 262, *limits) if small else Frame(70, 10, 610, 470, *limits)
    density = findings.estimator.density_
    assert density is not None  # a descent has one column
    grid = density.grid(findings.estimator.bandwidth_)
    others = tuple(set(range(len(findings.columns))) - {i, j})
    spacing = float(np.prod([grid.axes[k][1] - grid.axes[k][0] for k in others]))
    values = grid.values.sum(axis=others) * spacing if others else grid.values
    names = (findings.columns[i], findings.columns[j])
    return canvas(
        356 if small else 700,
        318 if small else 540,
        f"Map of the released density of {short(names[0])} and {short(names[1])} with the fitted law",
        frame.border("paper"),
        heat(frame, (grid.axes[i], grid.axes[j]), values, 0.05 * float(values.max())),
        frame.border(),
        frame.axes((short(names[0], 26), short(names[1], 26)) if small else names, wanted=5 if small else 7),
        _ellipses(findings, frame, i, j),
        class_="figure",
    )


def _ellipses(findings: FitFindings, frame: Frame, i: int, j: int) -> str:
    family, theta = findings.family, findings.theta
    if not isinstance(family, MultivariateNormal):
        return ""
    try:
        covariance = family.covariance(theta)[np.ix_([i, j], [i, j])]
    except ValueError:  # estimates of correlations, each within its bounds, may belong to no distribution together
        return ""
    parts = [
        error_ellipse(frame, theta[[i, j]], covariance, float(np.sqrt(chi2.ppf(part, 2))), class_)
        for part in HELD
        for class_ in ("ellipse-halo", "ellipse")
    ]
    x, y = (float(v) for v in frame.at(theta[None, [i, j]])[0])
    return "".join([*parts, element("circle", cx=x, cy=y, r=2.6, class_="dot")])
