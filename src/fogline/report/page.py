"""The report: one HTML file that needs nothing else, for people who were not there when it was made."""

from __future__ import annotations

import base64
import hashlib
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from fogline.estimators import PrivateModes
from fogline.report.bars import share_bar, standing_chart
from fogline.report.figures import figures
from fogline.report.findings import Findings, find, python_call, versions
from fogline.report.svg import HUES, plus_minus, significant, tick_label

__all__ = ["render_report", "write_report"]


def write_report(
    estimator: PrivateModes,
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    title: str | None = None,
    command: str | None = None,
) -> Path:
    """Write a page about a fitted estimator; costs no privacy.

    Parameters
    ----------
    estimator : PrivateModes
        Fitted.
    path : str or Path
        Where to write; a file that exists is replaced.
    columns : sequence of str, optional
        Names for the axes; by default those of the frame or file it was fitted on.
    title : str, optional
    command : str, optional
        What the reader can type to do the same; by default the Python call.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from fogline import PrivateModes
    >>> from fogline.datasets import load_faithful
    >>> table = load_faithful()
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=table.bounds, steps=table.steps).fit(table.X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_report(found, f"{folder}/report.html", columns=table.columns)
    ...     "Certified" in written.read_text(encoding="utf-8")
    True
    """
    target = Path(path)
    page = render_report(find(estimator, columns), title=title, command=command)
    target.write_text(page, encoding="utf-8")
    return target


def render_report(findings: Findings, *, title: str | None = None, command: str | None = None) -> str:
    """Return the page as a string."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise ImportError("writing a report needs Jinja2: pip install 'fogline[cli]'") from None
    environment = Environment(
        loader=PackageLoader("fogline.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = resources.files("fogline.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page: str = environment.get_template("report.html.j2").render(
        **_content(findings),
        title=title or f"The shape of {_listed(findings.columns)}",
        command=command or python_call(findings.estimator),
        call=textwrap.fill(python_call(findings.estimator), 100, subsequent_indent="    ", break_long_words=False),
        style=Markup(style),
        style_hash=digest,
        figures=[Markup(drawing) for drawing in figures(findings)],
        standing_chart=Markup(standing_chart(findings)),
        share_bar=Markup(share_bar(findings)),
    )
    return page


def _content(findings: Findings) -> dict[str, Any]:
    estimator, density = findings.estimator, findings.estimator.density_
    guarantee = estimator.guarantee_
    count = plus_minus(density.count, [density.count_sd])
    rest = 1 - float(findings.basins.shares.sum())
    return {
        "d": findings.d,
        "k": findings.k,
        "columns": findings.columns,
        "bounds": [(tick_label(low), tick_label(high)) for low, high in findings.bounds],
        "steps": [tick_label(s) if s else "" for s in density.spec.steps],
        "modes": [_mode(findings, k) for k in range(findings.k)],
        "message": estimator.message_,
        "known": estimator.n_modes is not None,
        "level": f"{estimator.level:.3g}",
        "level_percent": f"{estimator.level:.3g}" if estimator.level < 0.001 else f"{100 * estimator.level:.3g}%",
        "count": f"{float(f'{density.count:.0f}'):.0f}",
        "count_error": f"{density.count_sd:.0f}" if density.count_sd >= 1 else count[1],
        "guarantee": guarantee,
        "sentence": str(guarantee),
        "explanation": guarantee.explain(),
        "epsilon": f"{guarantee.epsilon:.4g}",
        "delta": power_of_ten(guarantee.delta),
        "bandwidth": _listed(
            [f"{significant(h)} ({name})" for h, name in zip(findings.bandwidth, findings.columns, strict=True)]
        ),
        "rest": f"{100 * min(max(rest, 0.0), 1.0):.0f}%",
        "other": None if findings.standings.other is None else significant(findings.standings.other.ratio, 2),
        "receipt": density.receipt,
        "versions": versions(),
        "date": datetime.now(UTC).strftime("%-d %B %Y"),
    }


def _mode(findings: Findings, k: int) -> dict[str, Any]:
    estimator, standing = findings.estimator, findings.standings.modes[k]
    privacy = np.sqrt(np.diag(estimator.privacy_covariances_[k]))
    sampling = np.sqrt(np.diag(estimator.sampling_covariances_[k]))
    where = [
        plus_minus(*pair)
        for pair in zip(
            estimator.modes_[k].tolist(),
            zip(estimator.standard_errors_[k].tolist(), privacy.tolist(), sampling.tolist(), strict=True),
            strict=True,
        )
    ]
    return {
        "number": k + 1,
        "hue": HUES[k % len(HUES)],
        "where": where,
        "height": significant(float(estimator.heights_[k])),
        "p_value": p_value(float(estimator.p_values_[k])),
        "bandwidth": " × ".join(significant(float(h), 2) for h in estimator.bandwidth_[k]),
        "ratio": significant(standing.ratio, 2),
        "above": standing.ratio >= 1,
        "share": f"{100 * float(np.clip(findings.basins.shares[k], 0, 1)):.0f}",
        "share_error": f"{100 * float(findings.basins.share_errors[k]):.1f}".removesuffix(".0"),
    }


def power_of_ten(value: float) -> str:
    """Return a small number as people write it.

    Examples
    --------
    >>> power_of_ten(1e-5), power_of_ten(2.5e-6), power_of_ten(0.01)
    ('10⁻⁵', '2.5 × 10⁻⁶', '0.01')
    """
    if value >= 1e-3:
        return f"{value:.4g}"
    digits, power = f"{value:.3e}".split("e")
    raised = "10⁻" + str(-int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    lead = f"{float(digits):g}"
    return raised if lead == "1" else f"{lead} × {raised}"


def p_value(p: float) -> str:
    """Return a p-value for people.

    Examples
    --------
    >>> p_value(1e-12), p_value(0.031234), p_value(1.0)
    ('< 0.0001', '0.031', '1')
    """
    return "< 0.0001" if p < 1e-4 else significant(p, 2) if p < 0.995 else "1"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
