"""What every page has: the frame with guarantee, count, versions and receipt, and numbers as people write them."""

from __future__ import annotations

import base64
import hashlib
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from fogline.accounting.cautions import budget_cautions
from fogline.density.private_density import PrivateDensity
from fogline.report._svg import plus_minus, significant
from fogline.report.findings import python_call, versions

__all__ = [
    "as_sentence",
    "count_content",
    "few_listed",
    "frame_content",
    "listed",
    "p_value",
    "percent",
    "power_of_ten",
    "promise_content",
    "render_page",
]


def render_page(template: str, estimator: Any, content: dict[str, Any], *, title: str, command: str | None) -> str:
    """Return a page that needs nothing else: one of the templates that extend the frame, filled.

    Drawings in ``content`` stand under ``figures``, ``chart`` and ``bar`` as SVG and are not escaped; all else is.
    """
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
    drawings: dict[str, Any] = {"figures": [Markup(drawing) for drawing in content["figures"]]}
    drawings |= {name: Markup(content[name]) for name in ("chart", "bar") if name in content}
    call = python_call(estimator)
    page: str = environment.get_template(template).render(
        **{**content, **drawings},
        title=title,
        command=command or call,
        call=textwrap.fill(call, 100, subsequent_indent="    ", break_long_words=False),
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )
    return page


def frame_content(estimator: Any, density: PrivateDensity, count: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return what the frame says of any fitted estimator; the count is the density's unless it is told."""
    value, sd = (density.count, density.count_sd) if count is None else count
    return {
        **promise_content(estimator, density.receipt),
        "level": f"{estimator.level:.3g}",
        "level_percent": percent(estimator.level),
        **count_content(value, sd),
    }


def count_content(value: float, sd: float) -> dict[str, str]:
    """Return a noisy count and its error for people."""
    return {
        "count": f"{float(f'{value:.0f}'):.0f}",
        "count_error": f"{sd:.0f}" if sd >= 1 else plus_minus(value, [sd])[1],
    }


def promise_content(estimator: Any, receipt: Any) -> dict[str, Any]:
    """Return what every page says of guarantee, versions and receipt."""
    guarantee = estimator.guarantee_
    return {
        "message": as_sentence(estimator.message_),
        "loose": bool(budget_cautions(guarantee.epsilon, guarantee.delta)),
        "guarantee": guarantee,
        "sentence": str(guarantee),
        "explanation": guarantee.explain(),
        "epsilon": f"{guarantee.epsilon:.4g}",
        "delta": power_of_ten(guarantee.delta),
        "receipt": receipt,
        "versions": versions(),
        "date": datetime.now(UTC).strftime("%-d %B %Y"),
    }


def as_sentence(message: str) -> str:
    """Return a message as people write a sentence; empty if it is.

    Examples
    --------
    >>> as_sentence("nothing was found"), as_sentence("is the column numeric?"), as_sentence("")
    ('Nothing was found.', 'Is the column numeric?', '')
    """
    if not message:
        return ""
    return f"{message[0].upper()}{message[1:]}{'' if message.endswith(('?', '.')) else '.'}"


def percent(part: float) -> str:
    """Return a part of one for people.

    Examples
    --------
    >>> percent(0.05), percent(0.0001)
    ('5%', '0.0001')
    """
    return f"{part:.3g}" if part < 0.001 else f"{100 * part:.3g}%"


def power_of_ten(value: float) -> str:
    """Return a small number as people write it.

    Examples
    --------
    >>> power_of_ten(1e-5), power_of_ten(2.5e-6), power_of_ten(0.01), power_of_ten(0.0)
    ('10⁻⁵', '2.5 × 10⁻⁶', '0.01', '0')
    """
    if value >= 1e-3 or value == 0.0:
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


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


MOST_LETTERS = 44
"""Letters of names in a title."""


def few_listed(names: Sequence[str]) -> str:
    """Return the names of columns, or their number where that would be long.

    Examples
    --------
    >>> few_listed(["a", "b"]), few_listed(["a"] * 40)
    ('a and b', '40 columns')
    """
    words = listed(names)
    return words if len(words) <= MOST_LETTERS else f"{len(names)} columns"
