"""What every page and every terminal shows: guarantee, count, versions, receipt, and numbers as people write them."""

from __future__ import annotations

import base64
import hashlib
import platform
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import fogline
from fogline.accounting.cautions import budget_cautions
from fogline.accounting.guarantee import Guarantee
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import default_names
from fogline.density.value_words import LEAST_ERROR
from fogline.estimators._base import default_parameters
from fogline.estimators.mode_fit import ModeFit
from fogline.report._svg import plus_minus, significant
from fogline.report.risk import risk_pictures

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "ConsoleTable",
    "FittedEstimator",
    "JudgedEstimator",
    "as_sentence",
    "column_names",
    "count_content",
    "count_words",
    "few_listed",
    "frame_content",
    "left_out_words",
    "listed",
    "p_value",
    "page_environment",
    "percent",
    "power_of_ten",
    "promise_content",
    "python_call",
    "render_content",
    "render_index",
    "render_page",
    "render_template",
    "share_with_error",
    "told_errors",
    "values_with_errors",
    "versions",
]


class FittedEstimator(Protocol):
    """What every page asks of a fitted estimator."""

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""

    @property
    def guarantee_(self) -> Guarantee:
        """What is promised, and to whom."""

    @property
    def message_(self) -> str:
        """What would help, and what to check."""

    @property
    def density_(self) -> PrivateDensity | None:
        """The released density, if there is one."""


class JudgedEstimator(FittedEstimator, Protocol):
    """A fitted estimator that tells findings from noise at a level."""

    @property
    def level(self) -> float:
        """Chance of a finding where only noise is."""


def render_page(
    template: str, estimator: FittedEstimator, content: dict[str, Any], *, title: str, command: str | None
) -> str:
    """Return a page that needs nothing else: one of the templates that extend the frame, filled.

    Drawings in ``content`` stand under ``figures``, ``chart``, ``bar`` and ``risk`` as SVG and are not escaped; all
    else is.
    """
    call = content.get("call") or python_call(estimator)
    return render_content(
        template, content, title=title, command=command, call=call, more_style=content.get("more_style")
    )


def render_content(
    template: str,
    content: dict[str, Any],
    *,
    title: str,
    command: str | None,
    call: str,
    more_style: str | None = None,
) -> str:
    """Return a page of what is no estimator; see :func:`render_page`.

    Parameters
    ----------
    template : str
    content : dict
    title, command, call : str
        What the page is called, what was typed, and the same in Python.
    more_style : str, optional
        Name of a style sheet of this page, besides that of all pages.
    """
    written = textwrap.fill(call, 100, subsequent_indent="    ", break_long_words=False)
    made = {"command": command or written, "call": written}
    return render_template(template, {**content, **made}, title=title, more_style=more_style)


def page_environment() -> Environment:
    """Return the templates of pages: all is escaped but what is marked, and a name that is missing is an error."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError("writing a report needs Jinja2: pip install 'fogline[cli]'") from None
    return Environment(
        loader=PackageLoader("fogline.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_template(template: str, content: dict[str, Any], *, title: str, more_style: str | None = None) -> str:
    """Return a page that needs nothing else: a template, filled. Drawings in it are as for :func:`render_page`."""
    environment = page_environment()
    from markupsafe import Markup

    sheets = ["report.css", *([] if more_style is None else [more_style])]
    folder = resources.files("fogline.report").joinpath("templates")
    style = "".join(folder.joinpath(sheet).read_text(encoding="utf-8") for sheet in sheets)
    # Drawings are made here, with escaped text; everything else is escaped by the template.
    drawings: dict[str, Any] = {"figures": [Markup(drawing) for drawing in content["figures"]]}
    drawings |= {name: Markup(content[name]) for name in ("chart", "bar") if name in content}
    drawings["risk"] = [Markup(drawing) for drawing in content.get("risk", ())]
    page: str = environment.get_template(template).render(
        **{**content, **drawings},
        title=title,
        style=Markup(style),
        # The page's content policy allows this one style and nothing from elsewhere.
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )
    return page


def render_index(title: str, content: dict[str, Any]) -> str:
    """Return a page that leads to others: their names, what they answer, and how they were made."""
    return render_template("index.html.j2", {**content, "figures": [], "date": _today()}, title=title)


def _today() -> str:
    return datetime.now(UTC).strftime("%-d %B %Y")


def frame_content(
    estimator: JudgedEstimator, density: PrivateDensity, count: tuple[float, float] | None = None
) -> dict[str, Any]:
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


def promise_content(estimator: FittedEstimator, receipt: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what every page says of guarantee, versions and receipt."""
    guarantee = estimator.guarantee_
    return {
        "message": as_sentence(estimator.message_),
        "loose": bool(budget_cautions(guarantee.epsilon, guarantee.delta)),
        "guarantee": guarantee,
        "sentence": str(guarantee),
        "explanation": guarantee.explain(),
        "risk": risk_pictures(guarantee),
        "epsilon": f"{guarantee.epsilon:.4g}",
        "delta": power_of_ten(guarantee.delta),
        "receipt": receipt,
        "versions": versions(),
        "date": _today(),
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


def share_with_error(share: float, error: float) -> str:
    """Return a share and its standard error, with as many decimals as the error needs.

    Examples
    --------
    >>> share_with_error(0.264, 0.004), share_with_error(0.57, 0.02)
    ('26.4% ± 0.4%', '57% ± 2%')
    """
    decimals = 0 if error >= 0.01 or error <= 0 else 1 if error >= 0.0005 else 2
    return f"{100 * share:.{decimals}f}% ± {100 * error:.{decimals}f}%"


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


def column_names(estimator: FittedEstimator, columns: Sequence[str] | None = None) -> tuple[str, ...]:
    """Names given, else those of the fitted frame or file, else x1, x2, ..."""
    d = int(estimator.n_features_in_)
    known: Any = getattr(estimator, "_columns", None) or getattr(estimator, "feature_names_in_", default_names(d))
    names = tuple(str(name) for name in (known if columns is None else columns))
    if len(names) != d:
        raise ValueError(f"columns must name the {d} column{'' if d == 1 else 's'} of the release, got {len(names)}")
    return names


def python_call(estimator: object) -> str:
    """Return the call that makes such an estimator; parameters only, the data is X, or X and y.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> python_call(PrivateModes(epsilon=1.0, delta=1e-6, bounds=[(0, 1)]))
    'PrivateModes(epsilon=1.0, delta=1e-06, bounds=[(0, 1)]).fit(X)'
    """
    # What was left at its default is left out: a reader sees what was chosen.
    defaults = default_parameters(type(estimator))
    first = [name for name in ("epsilon", "delta", "bounds", "x_bounds", "y_bounds") if name in defaults]
    shown = []
    for name in (*first, *(n for n in defaults if n not in first)):
        value = getattr(estimator, name)
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if repr(value) != repr(defaults[name]):
            shown.append(f"{name}={'...' if name == 'ledger' else repr(value)}")
    data = "X, y" if "y_bounds" in defaults else "X"
    # The command line fits the class without scikit-learn, which users do not import.
    name = "PrivateModes" if type(estimator) is ModeFit else type(estimator).__name__
    return f"{name}({', '.join(shown)}).fit({data})"


def versions() -> dict[str, str]:
    """Versions of what made the numbers.

    Examples
    --------
    >>> sorted(versions())
    ['fogline', 'numpy', 'opendp', 'python', 'scipy']
    """
    found = {"fogline": fogline.__version__}
    found |= {name: metadata.version(name) for name in ("numpy", "scipy", "opendp")}
    return found | {"python": platform.python_version()}


@dataclass(frozen=True)
class ConsoleTable:
    """A table and what is said below it.

    Parameters
    ----------
    title : str
    headings : tuple of str
    rows : tuple of rows of texts
        Without any, no table is shown.
    left : tuple of int
        Columns that are flush left; all others are numbers.
    left_out : str
        What the table does not show.
    remarks : tuple of str
        Long lines, which are not broken.
    sentences : tuple of str
        The message, the count, the guarantee.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = ()
    left_out: str = ""
    remarks: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def values_with_errors(
    values: Iterable[float], errors: Iterable[float], widths: Iterable[float] | None = None
) -> list[str]:
    """Numbers and their errors for people; with the ranges of their columns, errors next to nothing are told as such.

    Examples
    --------
    >>> values_with_errors([1.2345], [0.01])
    ['1.234 ± 0.010']
    """
    return [" ± ".join(pair) for pair in told_errors(values, errors, widths)]


def told_errors(
    values: Iterable[float], errors: Iterable[float], widths: Iterable[float] | None = None
) -> list[tuple[str, ...]]:
    """Numbers and their errors, as in :func:`values_with_errors`, each by itself.

    Examples
    --------
    >>> told_errors([1.2345, 1e-6], [0.01, 1e-5], [100.0, 100.0])
    [('1.234', '0.010'), ('0.0000', '< 0.0001')]
    """
    numbers, sizes = [float(v) for v in values], [float(e) for e in errors]
    least = [0.0] * len(numbers) if widths is None else [LEAST_ERROR * float(w) for w in widths]
    return [plus_minus(v, [e], small) for v, e, small in zip(numbers, sizes, least, strict=True)]


def left_out_words(columns: Sequence[str], shown: Sequence[int]) -> str:
    """Say how many columns a table leaves out; nothing if it has them all."""
    more = len(columns) - len(shown)
    if not more:
        return ""
    return f"{more} more column{'' if more == 1 else 's'}, of less difference, are in the document of --json."


def count_words(estimator: FittedEstimator, *, counted: bool = True) -> tuple[str, ...]:
    """Return what is said below every table: the message, the released count if there is one, the guarantee."""
    density = estimator.density_ if counted else None
    found = [as_sentence(estimator.message_)] if estimator.message_ else []
    if density is not None:  # where records were projected, the density's own count leaves some of them out
        count = getattr(estimator, "count_", density.count)
        error = getattr(estimator, "count_standard_error_", density.count_sd)
        found.append(f"Records within the bounds, as released: {count:.0f} ± {error:.0f}.")
    return (*found, str(estimator.guarantee_))
