"""What would be released: columns with their public ranges, whom it protects, the budget, and guesses for a plan.

A question comes from the fields of a form and goes back into them, so that a page, a proposal and a second measurement
can all be an address that shows a form. What is wrong with it is said field by field, before anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

from fogline import units
from fogline.density.leaves import LeafSpec
from fogline.studio.catalogue import as_reading
from fogline.studio.config import Dataset

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = [
    "DEFAULT_RECORDS",
    "MOST_EPSILON",
    "MOST_WORDS",
    "ColumnWish",
    "Fields",
    "Form",
    "Question",
    "body_fields",
    "last_of",
    "number_of",
    "parse_number",
    "parse_question",
    "query_fields",
    "question_fields",
]

MOST_COLUMNS = 3
LEAST_EPSILON, MOST_EPSILON = 0.01, 20.0
MOST_CONTRIBUTIONS = 10_000
MOST_RECORDS = 100_000_000
DEFAULT_RECORDS = 10_000
MOST_LETTERS = 300
"""Most letters of the name of a column in a form."""
MOST_FIELDS = 400
MOST_WORDS = 300

Form = Mapping[str, Sequence[str]]
Fields = dict[str, list[str]]


@dataclass(frozen=True)
class ColumnWish:
    """One column of a question.

    Parameters
    ----------
    name : str
    low, high : float
    range_name : str or None
        Name of a public range, where it is one.
    step : float or None
        Rounding step; None for a continuous column.
    typical, spread : float or None
        A public guess of where its values lie, for the plan alone.
    """

    name: str
    low: float
    high: float
    range_name: str | None = None
    step: float | None = None
    typical: float | None = None
    spread: float | None = None

    @property
    def words(self) -> str:
        """The range for people."""
        ends = f"{self.low:g} to {self.high:g}"
        unit = units.named(self.range_name).unit if self.range_name else ""
        return f"{ends} {unit}".strip() + (f", in steps of {self.step:g}" if self.step else "")


@dataclass(frozen=True)
class Question:
    """A release that somebody wants.

    Parameters
    ----------
    dataset : str
        Id.
    columns : tuple of ColumnWish
    epsilon : float
    unit : str or None
    max_contributions : int
    records : int
        A guess of how many there are.
    reading : mapping
        How text is read, over the administrator's options.
    """

    dataset: str
    columns: tuple[ColumnWish, ...]
    epsilon: float
    unit: str | None = None
    max_contributions: int = 1
    records: int = DEFAULT_RECORDS
    reading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def bounds(self) -> dict[str, Any]:
        """Ranges as a release takes them."""
        return {c.name: c.range_name or (c.low, c.high) for c in self.columns}

    @property
    def steps(self) -> dict[str, float | None]:
        """Rounding steps as a release takes them."""
        return {column.name: column.step for column in self.columns}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Question:
        """Inverse of :meth:`to_dict`."""
        return cls(**{**values, "columns": tuple(ColumnWish(**column) for column in values["columns"])})

    def with_epsilon(self, epsilon: float) -> Question:
        """Return the same question at another budget."""
        return replace(self, epsilon=epsilon)

    def query(self) -> str:
        """Return the fields of a form that says this, as they stand in an address."""
        return urlencode(question_fields(self))


def question_fields(question: Question) -> list[tuple[str, str]]:
    """Fields of a form that say a question.

    Examples
    --------
    >>> question_fields(Question("visits", (ColumnWish("stay", 0.0, 60.0),), 1.0))[:3]
    [('column', 'stay'), ('range.stay', ''), ('low.stay', '0')]
    """
    fields: list[tuple[str, str]] = []
    for column in question.columns:
        name = column.name
        fields += [("column", name), (f"range.{name}", column.range_name or "")]
        fields += [(f"low.{name}", _number(column.low)), (f"high.{name}", _number(column.high))]
        fields.append((f"step.{name}", "" if column.step is None else _number(column.step)))
        for key in ("typical", "spread"):
            value = getattr(column, key)
            fields += [] if value is None else [(f"{key}.{name}", _number(value))]
    fields += [("epsilon", _number(question.epsilon)), ("records", str(question.records))]
    fields += [("unit", question.unit or ""), ("most", str(question.max_contributions))]
    for key, value in question.reading.items():
        fields.append((key, ",".join(value) if isinstance(value, list) else "tab" if value == "\t" else str(value)))
    return fields


def _number(value: float) -> str:
    return f"{value:.15g}"


def parse_question(dataset: Dataset, form: Form, known: Sequence[str]) -> tuple[Question | None, dict[str, str]]:
    """Read a question from the fields of a form.

    Parameters
    ----------
    dataset : Dataset
    form : mapping of names to values
    known : sequence of str
        Columns of the data set.

    Returns
    -------
    Question or None
        None where something is wrong or missing.
    dict
        What is wrong, by the field.
    """
    faults: dict[str, str] = {}
    chosen = list(dict.fromkeys(form.get("column", ())))
    if not chosen:
        faults["column"] = "Choose one to three columns."
    elif len(chosen) > MOST_COLUMNS:
        faults["column"] = "A release has up to three columns. Untick some; ask for the others in another release."
    elif any(name not in known or len(name) > MOST_LETTERS for name in chosen):
        faults["column"] = "A chosen column is not in the header. Choose again."
    columns = [] if "column" in faults else [_column(name, form, faults) for name in chosen]
    wished = [column for column in columns if column is not None]
    epsilon = parse_number(_one(form, "epsilon") or "1")
    if epsilon is None or not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        faults["epsilon"] = f"Choose an epsilon from {LEAST_EPSILON:g} to {MOST_EPSILON:g}."
    records = _whole(form, "records", dataset.expect_records or DEFAULT_RECORDS, MOST_RECORDS, faults)
    unit = dataset.unit if dataset.unit is not None else (_one(form, "unit") or None)
    most = dataset.max_contributions
    if dataset.unit is None:
        most = _whole(form, "most", 1, MOST_CONTRIBUTIONS, faults)
    if unit is not None and unit in chosen:
        faults["unit"] = "The column that says whose record a row is cannot be released as well."
    if faults or epsilon is None:
        return None, faults
    reading = as_reading({name: values[-1] for name, values in form.items() if values})
    return Question(dataset.id, tuple(wished), epsilon, unit, most, records, reading), faults


def _column(name: str, form: Form, faults: dict[str, str]) -> ColumnWish | None:
    chosen = _one(form, f"range.{name}")
    step_text = _one(form, f"step.{name}")
    step = parse_number(step_text) if step_text else None
    if chosen:
        if chosen not in units.names():
            faults[f"range.{name}"] = "There is no public range of that name."
            return None
        found = units.named(chosen)
        low, high, step = found[0], found[1], found.step if not step_text else step
    else:
        ends = parse_number(_one(form, f"low.{name}")), parse_number(_one(form, f"high.{name}"))
        if ends[0] is None or ends[1] is None or not ends[0] < ends[1]:
            faults[f"range.{name}"] = (
                "Give the lowest and the highest value that are possible, or choose a named range."
            )
            return None
        low, high = ends[0], ends[1]
    if step_text and (step is None or step <= 0):
        faults[f"range.{name}"] = "A rounding step is a number above 0; leave it empty for a continuous column."
        return None
    try:
        LeafSpec.plan([(low, high)], [step])
    except (ValueError, TypeError):
        faults[f"range.{name}"] = "The range and its rounding step do not fit together."
        return None
    typical, spread = parse_number(_one(form, f"typical.{name}")), parse_number(_one(form, f"spread.{name}"))
    guessed = typical is not None and spread is not None and low <= typical <= high and 0 < spread <= high - low
    return ColumnWish(name, low, high, chosen or None, step, typical if guessed else None, spread if guessed else None)


def _one(form: Form, name: str) -> str:
    values = form.get(name, ())
    return values[-1].strip()[:MOST_LETTERS] if values else ""


def query_fields(request: Request) -> Fields:
    """Return the fields of an address."""
    text = request.scope["query_string"].decode("latin-1")
    return parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)


async def body_fields(request: Request) -> Fields:
    """Return the fields of a form that was sent."""
    body = await request.body()
    return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)


def last_of(fields: Mapping[str, list[str]], name: str, most: int = MOST_WORDS) -> str:
    """Return the last value of a field, cut to ``most`` characters; empty where there is none."""
    values = fields.get(name, [])
    return values[-1][:most].strip() if values else ""


def number_of(fields: Mapping[str, list[str]], name: str) -> float | None:
    """Return a field as a number; None where it is none."""
    return parse_number(last_of(fields, name, 40))


def parse_number(text: str) -> float | None:
    """Return the number that a person typed; None for what is none.

    Examples
    --------
    >>> parse_number("−2,5"), parse_number("1 000"), parse_number("ten")
    (-2.5, 1000.0, None)
    """
    try:
        value = float(text.replace("−", "-").replace(",", ".").replace(" ", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) < 1e15 else None


def _whole(form: Form, name: str, default: int, most: int, faults: dict[str, str]) -> int:
    text = _one(form, name).replace(" ", "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:12]) <= most:
        faults[name] = f"Give a whole number from 1 to {most}."
        return default
    return int(text)
