"""Questions in words: ``"P(stay > 10 | age > 70)"``, ``"median stay"``, ``"mean stay by age 0:100:20"``, ``"count"``.

The grammar, in which words may be of either case::

    question   = what [ "by" column start ":" stop ":" step ] [ where ]
    what       = "count"
               | "P(" events [ "|" events ] ")"          also "share of" events
               | statistic [ "of" ] column
               | "quantile" numbers [ "of" ] column      also "percentile", "quartiles", "deciles"
               | "correlation" [ "of" ] column [ "and" ] column
    statistic  = "mean" | "median" | "variance" | "sd"
    where      = ( "where" | "given" | "if" ) events
    events     = event { ( "and" | "," | "&" ) event }
    event      = column op number | number op column [ op number ] | column "in" number ":" number
    op         = "<" | "<=" | ">" | ">=" | "="

A column whose name is no plain word stands in double quotes. ``by`` cuts a column into parts, each of which holds its
lower end and not its upper end, but for the last. Every answer is read from the posterior, free, with an error that
holds privacy, sampling and smoothing.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from fogline.density.counted_records import is_nothing
from fogline.density.posterior.axes import Ends, LeafAxis
from fogline.density.posterior.conditions import Conditions
from fogline.density.posterior.estimates import Estimate, Target

if TYPE_CHECKING:
    from fogline.density.posterior.posterior import Posterior

__all__ = ["Answer", "AnswerRow", "Question", "ask", "parse_question"]

MOST_PARTS = 1000
"""Most parts that ``by`` may cut a column into."""

_TOKEN = re.compile(
    r"""\s*(?:"(?P<quoted>[^"]*)"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?%?(?![\w.]))"""
    r"""|(?P<op><=|>=|==|=|<|>)|(?P<sign>[|(),&:\[\]])|(?P<word>[^\s<>=|(),&:\[\]"]+))"""
)

_STATISTICS = {
    "mean": "mean",
    "average": "mean",
    "median": "median",
    "variance": "variance",
    "sd": "sd",
    "std": "sd",
}
_QUANTILES = {"quartiles": (0.25, 0.5, 0.75), "deciles": tuple(k / 10 for k in range(1, 10))}
_WHERE = ("where", "given", "if")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class Event:
    """One comparison of a column with numbers: a range whose ends belong to it or not.

    Parameters
    ----------
    column : str
    low, high : float or None
        Ends; None where it is open.
    low_open, high_open : bool
        Whether an end itself is left out.
    """

    column: str
    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False

    def closed(self, axis: LeafAxis) -> Ends:
        """The same as a closed range on an axis: values of a lattice count as wholes."""
        low, high = self.low, self.high
        if low is not None and self.low_open:
            low = _beyond(axis, low, 1)
        if high is not None and self.high_open:
            high = _beyond(axis, high, -1)
        return low, high

    def __str__(self) -> str:
        if self.low is not None and self.low == self.high:
            return f"{self.column} = {self.low:g}"
        low = "" if self.low is None else f"{self.low:g} {'<' if self.low_open else '<='} "
        high = "" if self.high is None else f" {'<' if self.high_open else '<='} {self.high:g}"
        if not high:
            return f"{self.column} {'>' if self.low_open else '>='} {self.low:g}"
        return f"{low}{self.column}{high}"


@dataclass(frozen=True)
class Question:
    """What is asked, as the words were understood.

    Parameters
    ----------
    words : str
        As they were typed.
    kind : str
        "count", "probability", "mean", "median", "variance", "sd", "quantile" or "correlation".
    columns : tuple of str
        What a statistic is of.
    levels : tuple of float
        Of quantiles.
    events, given : tuple of Event
        Of a probability, and conditions of anything.
    by : tuple of (str, float, float, float), optional
        Column, start, stop and step of the parts.
    """

    words: str
    kind: str
    columns: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    events: tuple[Event, ...] = ()
    given: tuple[Event, ...] = ()
    by: tuple[str, float, float, float] | None = None

    def parts(self) -> Iterator[Event]:
        """Ranges that ``by`` cuts its column into."""
        if self.by is None:
            return
        column, start, stop, step = self.by
        number = math.ceil((stop - start) / step - 1e-9)
        for k in range(number):
            is_last = k == number - 1
            yield Event(column, start + k * step, stop if is_last else start + (k + 1) * step, high_open=not is_last)


@dataclass(frozen=True)
class AnswerRow:
    """One number of an answer.

    Parameters
    ----------
    label : str
        Which part or quantile it is; empty where there is one number.
    estimate : Estimate or None
        None where nothing is estimated to lie in the condition, so that nothing can be said.
    note : str
        What else a reader should know, such as that a range lies outside the bounds.
    """

    label: str
    estimate: Estimate | None
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """Answer to a question: one number, or one per part, each with its whole error.

    Parameters
    ----------
    question : Question
    rows : tuple of AnswerRow
    unit : str
        Of the numbers; empty where none is known.
    message : str
        What to know of the release itself, such as that it may hold no record; else empty.
    """

    question: Question
    rows: tuple[AnswerRow, ...]
    unit: str = field(default="")
    message: str = ""

    @property
    def estimate(self) -> Estimate:
        """The only number, with its error; refused where there are several, or none."""
        if len(self.rows) != 1 or self.rows[0].estimate is None:
            raise ValueError(f"question: {self.question.words!r} has no single number for an answer")
        return self.rows[0].estimate

    def __float__(self) -> float:
        return float(self.estimate)

    def __str__(self) -> str:
        lines = [self.question.words] if len(self.rows) > 1 else []
        for row in self.rows:
            label = f"  {row.label}: " if len(self.rows) > 1 else f"{self.question.words}: "
            said = "nothing to say" if row.estimate is None else self._words(row.estimate)
            lines.append(label + said + (f" [{row.note}]" if row.note else ""))
        return "\n".join([*lines, *filter(None, [self.message])])

    def _words(self, estimate: Estimate) -> str:
        """A number with its error; counts as whole numbers."""
        if self.question.kind == "count":
            value, error, low, high, privacy, smoothing = (
                f"{float(getattr(estimate, name)):.0f}"
                for name in ("value", "standard_error", "low", "high", "privacy", "smoothing")
            )
            interval = f"{100 * estimate.level:g}% interval {low} to {high}"
            return f"{value} ± {error} ({interval}; privacy {privacy}, sampling 0, smoothing {smoothing})"
        value, bracket, rest = str(estimate).partition(" (")
        return f"{value} {self.unit}".rstrip() + bracket + rest

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = []
        for row in self.rows:
            number = {} if row.estimate is None else asdict(row.estimate)
            number.pop("message", None)  # the note says it
            number = {name: value if name == "target" else float(value) for name, value in number.items()}
            rows.append({"label": row.label, "note": row.note, "estimate": number or None})
        message = {"message": self.message} if self.message else {}
        return {"question": self.question.words, "unit": self.unit, "answers": rows, **message}


# -- grammar -------------------------------------------------------------------------------------------------


def parse_question(words: str, columns: Sequence[str]) -> Question:
    """Understand a question about some columns; every error begins with ``question``.

    Examples
    --------
    >>> parse_question("P(stay > 10 | 70 < age <= 80)", ["age", "stay"]).given[0].high
    80.0
    >>> parse_question("median sty", ["age", "stay"])
    Traceback (most recent call last):
    ValueError: question: there is no column 'sty' in 'median sty'; did you mean 'stay'? Released are age, stay
    """
    if not isinstance(words, str):
        raise TypeError(f"question must be a text, got {type(words).__name__}")
    return _Parser(words, columns).question()


class _Parser:
    """Reads a question from left to right."""

    def __init__(self, words: str, columns: Sequence[str]) -> None:
        self.words = words
        self.columns = tuple(columns)
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while words[place:].strip():
            found = _TOKEN.search(words, place)
            if found is None or found.start() != place:
                self.fail(f"cannot be read from {words[place:].strip()!r} on")
            kind = str(found.lastgroup)
            self.tokens.append((kind, found.group(kind)))
            place = found.end()
        self.place = 0

    def fail(self, why: str) -> NoReturn:
        """Raise an error that quotes the question."""
        raise ValueError(f"question: {self.words!r} {why}")

    def expected(self, what: str) -> NoReturn:
        """Raise an error that says what should stand at this place."""
        got = repr(self.tokens[self.place][1]) if self.place < len(self.tokens) else "nothing"
        self.fail(f"needs {what} where there is {got}")

    # -- tokens --

    def peek(self) -> str:
        """The next word or sign in small letters; empty at the end and for quoted names."""
        if self.place >= len(self.tokens) or self.tokens[self.place][0] == "quoted":
            return ""
        return self.tokens[self.place][1].lower()

    def take(self, *words: str) -> str:
        """Take the next token if it is one of these; empty if not."""
        if self.peek() in words and self.peek():
            self.place += 1
            return self.tokens[self.place - 1][1].lower()
        return ""

    def need(self, *words: str) -> str:
        """Take the next token, which must be one of these."""
        return self.take(*words) or self.expected(" or ".join(repr(word) for word in words))

    def number(self) -> float:
        """Take a number; a percentage is a hundredth."""
        if self.place >= len(self.tokens) or self.tokens[self.place][0] != "number":
            self.expected("a number")
        text = self.tokens[self.place][1]
        self.place += 1
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)

    def is_number(self) -> bool:
        """Whether a number is next."""
        return self.place < len(self.tokens) and self.tokens[self.place][0] == "number"

    def column(self) -> str:
        """Take the name of a column."""
        if self.place >= len(self.tokens) or self.tokens[self.place][0] not in ("word", "quoted", "number"):
            self.expected("a column")
        name = self.tokens[self.place][1]
        if name not in self.columns:
            near = difflib.get_close_matches(name, self.columns, 1) or [
                known for known in self.columns if known.lower() == name.lower()
            ]
            hint = f"did you mean {near[0]!r}? " if near else ""
            there = ", ".join(self.columns)
            told = f"{hint}Released are {there}" if hint else f"released are {there}"
            raise ValueError(f"question: there is no column {name!r} in {self.words!r}; {told}")
        self.place += 1
        return name

    # -- phrases --

    def question(self) -> Question:
        """Read all of it."""
        if not self.tokens:
            raise ValueError("question: is empty; ask for count, P(...), mean, median, quantile, correlation ...")
        found = self.what()
        while self.place < len(self.tokens):
            if self.take("by"):
                if found.by is not None:
                    self.fail("has two parts that begin with 'by'")
                found = replace(found, by=self.by())
            elif self.take(*_WHERE):
                found = replace(found, given=(*found.given, *self.events()))
            else:
                self.expected("'by', 'where' or the end")
        return found

    def condition(self) -> tuple[Event, ...]:
        """Read all of it as comparisons."""
        if not self.tokens:
            raise ValueError("question: is empty; a condition is such as age >= 70 and stay < 10")
        found = self.events()
        if self.place < len(self.tokens):
            self.expected("'and' or the end")
        return found

    def what(self) -> Question:
        """Read what is asked for."""
        word = self.peek()
        if self.take("count"):
            return Question(self.words, "count")
        if self.take("p", "pr", "prob", "probability"):
            self.need("(")
            events = self.events()
            given = self.events() if self.take("|") else ()
            self.need(")")
            return Question(self.words, "probability", events=events, given=given)
        if self.take("share"):
            self.take("of")
            return Question(self.words, "probability", events=self.events())
        if self.take(*_STATISTICS):
            self.take("of")
            return Question(self.words, _STATISTICS[word], (self.column(),))
        if self.take(*_QUANTILES):
            self.take("of")
            return Question(self.words, "quantile", (self.column(),), _QUANTILES[word])
        if self.take("quantile", "quantiles", "percentile", "percentiles"):
            levels = self.levels(1.0 if word.startswith("quantile") else 100.0)
            self.take("of")
            return Question(self.words, "quantile", (self.column(),), levels)
        if self.take("correlation", "corr"):
            self.take("of")
            first = self.column()
            self.take("and", ",")
            second = self.column()
            if first == second:
                self.fail("needs two different columns")
            return Question(self.words, "correlation", (first, second))
        known = ["count", "P(...)", "share", *_STATISTICS, *_QUANTILES, "quantile", "percentile", "correlation"]
        near = difflib.get_close_matches(word, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return self.fail(f"begins with {self.tokens[self.place][1]!r}, which is none of {', '.join(known)}{hint}")

    def levels(self, whole: float) -> tuple[float, ...]:
        """Read levels of quantiles, parts of `whole`."""
        found = [self.number() / whole]
        while self.take(","):
            found.append(self.number() / whole)
        if not all(0 <= level <= 1 for level in found):
            self.fail(f"needs levels from 0 to {whole:g}")
        return tuple(found)

    def by(self) -> tuple[str, float, float, float]:
        """Read the column and the parts that it is cut into."""
        column = self.column()
        start = self.number()
        self.need(":")
        stop = self.number()
        self.need(":")
        step = self.number()
        if not (start < stop and step > 0 and math.isfinite(stop - start)):
            self.fail("needs start:stop:step with start < stop and a step above 0")
        if (stop - start) / step > MOST_PARTS:
            self.fail(f"has more than {MOST_PARTS} parts")
        return column, start, stop, step

    def events(self) -> tuple[Event, ...]:
        """Read comparisons, joined by 'and'."""
        found = [self.event()]
        while self.take("and", ",", "&"):
            found.append(self.event())
        return tuple(found)

    def event(self) -> Event:
        """Read one comparison."""
        if self.is_number() and self.tokens[self.place][1] not in self.columns:
            number = self.number()
            first = self.operator()
            column = self.column()
            found = _compared(column, _MIRRORED[first], number)
            if self.place < len(self.tokens) and self.tokens[self.place][0] == "op":
                second = self.operator()
                if first[0] != second[0] or first == "=":
                    self.fail("has a range whose comparisons point in different directions")
                found = _both(found, _compared(column, second, self.number()))
        else:
            column = self.column()
            if self.take("in"):
                bracket = self.take("[", "(")
                low = self.number()
                self.need(":", ",")
                high = self.number()
                if bracket:
                    self.need("]", ")")
                found = Event(column, low, high)
            else:
                found = _compared(column, self.operator(), self.number())
        if found.low is not None and found.high is not None and found.low > found.high:
            self.fail(f"has a range of {found.column} that falls, from {found.low:g} to {found.high:g}")
        return found

    def operator(self) -> str:
        """Take a sign of comparison."""
        if self.place >= len(self.tokens) or self.tokens[self.place][0] != "op":
            self.expected("one of < <= > >= =")
        self.place += 1
        return self.tokens[self.place - 1][1].replace("==", "=")


def _compared(column: str, operator: str, number: float) -> Event:
    if operator == "=":
        return Event(column, number, number)
    if operator[0] == "<":
        return Event(column, high=number, high_open=operator == "<")
    return Event(column, low=number, low_open=operator == ">")


def _both(first: Event, second: Event) -> Event:
    """One range of two open ones that point towards each other."""
    low, high = (first, second) if first.low is not None else (second, first)
    return replace(low, high=high.high, high_open=high.high_open)


# -- answers -------------------------------------------------------------------------------------------------


def ask(
    posterior: Posterior,
    words: str,
    *,
    units: Sequence[str] | None = None,
    target: Target = "population",
    level: float = 0.95,
) -> Answer:
    """Answer a question from a posterior; free.

    Parameters
    ----------
    posterior : Posterior
    words : str
        In the grammar of :mod:`fogline.density.questions`.
    units : sequence of str, optional
        Units of the columns.
    target : {"population", "records"}
        What the density behind the records would answer, or the table itself. Counts are always of the table.
    level : float
        Of the intervals.

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> print(ask(example_posterior(), "P(stay > 9)"))
    P(stay > 9): 0 ± 0 (95% interval 0 to 0; privacy 0, sampling 0, smoothing 0) [stay > 9 lies outside the released
    bounds 0 to 8, where nothing was counted]
    >>> bool(ask(example_posterior(), "median stay where stay < 2").estimate.value < 2)
    True
    """
    question = parse_question(words, posterior.columns)
    asked = _Asked(question, Conditions(posterior), target, level)
    parts: list[Event | None] = [*question.parts()]
    rows = [row for part in parts or [None] for row in asked.rows(part)]
    unit = ""
    if question.columns and question.kind not in ("correlation", "variance"):
        unit = "" if units is None else units[posterior.columns.index(question.columns[0])]
    return Answer(question, tuple(rows), unit)


def condition_ranges(posterior: Posterior, words: str) -> dict[str, Ends]:
    """Closed ranges by column of a condition in words, for :meth:`Posterior.given`.

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> condition_ranges(example_posterior(), "stay >= 2 and stay <= 5")
    {'stay': (2.0, 5.0)}
    """
    events = _Parser(words, posterior.columns).condition()
    asked = _Asked(Question(words, "count"), Conditions(posterior), "population", 0.95)
    found = asked._ranges(events)[0]
    axes = {axis.name: axis for axis in posterior.axes}
    return {name: _on_values(axes[name], ends) for name, ends in found.items()}


def _beyond(axis: LeafAxis, end: float, way: int) -> float:
    """End of a closed range that leaves this number out: a value of a lattice as a whole, else the number alone."""
    if not axis.step:
        return math.nextafter(end, way * math.inf)
    is_value = bool((abs(axis.centres - end) < 1e-6 * axis.step).any())
    return end + way * axis.step / 2 if is_value else end


def _on_values(axis: LeafAxis, ends: Ends) -> Ends:
    """The same range with ends at values of the column, where it has a step: below 80 is up to 79 in whole numbers."""
    low, high = (-math.inf if ends[0] is None else ends[0]), (math.inf if ends[1] is None else ends[1])
    inside = axis.centres[(axis.centres >= low) & (axis.centres <= high)]
    if not axis.step or not len(inside):
        return ends
    return (
        None if ends[0] is None else float(inside[0]),
        None if ends[1] is None else float(inside[-1]),
    )


@dataclass(frozen=True)
class _Asked:
    """A question to the boxes of a posterior."""

    question: Question
    boxes: Conditions
    target: Target
    level: float

    def rows(self, part: Event | None) -> list[AnswerRow]:
        """Answer for one part, or for all records."""
        question = self.question
        given = (*question.given, *(() if part is None else (part,)))
        ranges, notes = self._ranges(given)
        notes += self._few(ranges)
        label = "" if part is None else str(part)
        if question.kind == "count":
            return [AnswerRow(label, self.boxes.count(ranges, level=self.level), "; ".join(notes))]
        if ranges and self.boxes.is_empty(ranges):
            return [AnswerRow(label, None, "; ".join(notes or ["no record is estimated to lie there"]))]
        if question.kind == "probability":
            event, more = self._ranges(question.events)
            found = self.boxes.share(event, ranges, target=self.target, level=self.level)
            return [AnswerRow(label, found, "; ".join((*notes, *more)))]
        return [replace(row, label=": ".join(filter(None, (label, row.label))), note="; ".join(notes))
                for row in self._statistics(ranges)]  # fmt: skip

    def _statistics(self, ranges: dict[str, Ends]) -> list[AnswerRow]:
        question = self.question
        options: dict[str, Any] = {"target": self.target, "level": self.level}
        posterior, column = self.boxes.posterior, question.columns[0]
        if ranges:
            posterior = self.boxes.within(ranges, list(question.columns))
        elif len(question.columns) == 1 and posterior.d > 1:
            posterior = posterior.marginal(column)  # which knows heaps of a single column
        if question.kind == "quantile":
            found = posterior.quantile(list(question.levels), column, **options)
            return [AnswerRow(f"{q:g}", found[k]) for k, q in enumerate(question.levels)]
        simple: dict[str, Callable[[], Estimate]] = {
            "mean": lambda: posterior.mean(column, **options),
            "median": lambda: posterior.quantile(0.5, column, **options),
            "variance": lambda: posterior.variance(column, **options),
            "sd": lambda: _root(posterior.variance(column, **options)),
            "correlation": lambda: posterior.correlation(*question.columns, target=self.target),
        }
        return [AnswerRow("", simple[question.kind]())]

    def _ranges(self, events: Sequence[Event]) -> tuple[dict[str, Ends], list[str]]:
        """Closed ranges of events that hold together, and what lies outside the bounds."""
        posterior = self.boxes.posterior
        found: dict[str, Ends] = {}
        notes = []
        for event in events:
            axis = posterior.axes[posterior.columns.index(event.column)]
            low, high = event.closed(axis)
            first, last = axis.bounds
            if (low is not None and low > last) or (high is not None and high < first):
                notes.append(
                    f"{event} lies outside the released bounds {first:g} to {last:g}, where nothing was counted"
                )
            before = found.get(event.column, (None, None))
            lows = [end for end in (before[0], low) if end is not None]
            highs = [end for end in (before[1], high) if end is not None]
            found[event.column] = (max(lows, default=None), min(highs, default=None))
        for name in self.boxes.blurred_columns(found):
            width = posterior.axes[posterior.columns.index(name)].width
            notes.append(f"cells of {name} are {width:.3g} wide, and within one nobody knows where its records are")
        for name, wall in self.boxes.wall_heaps(found):
            width = posterior.axes[posterior.columns.index(name)].width
            notes.append(f"many records lie within {width:.3g} of {wall:g}, and are taken to be {name} = {wall:g}")
        return found, notes

    def _few(self, ranges: dict[str, Ends]) -> list[str]:
        """Say that hardly a record is in the condition, where that is so."""
        if not ranges or self.question.kind == "count":
            return []
        count = self.boxes.count(ranges)
        if not float(count.value) > 0 or not is_nothing(float(count.value), float(count.standard_error)):
            return []
        return [f"about {count.value:.0f} ± {count.standard_error:.0f} records lie there, which may be none"]


def _root(variance: Estimate) -> Estimate:
    """Standard deviation of a variance: ends by the root, errors by its slope."""
    value = math.sqrt(max(float(variance.value), 0.0))
    slope = 0.5 / value if value > 0 else 0.0
    names = ("standard_error", "privacy", "sampling", "smoothing")
    changes: dict[str, Any] = {name: slope * float(getattr(variance, name)) for name in names}
    changes |= {name: math.sqrt(max(float(getattr(variance, name)), 0.0)) for name in ("low", "high")}
    return replace(variance, value=value, **changes)
