"""What a form or an address says: fields, numbers, the conditions of a slice and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

from starlette.requests import Request

from fogline.studio.explorer import Condition
from fogline.studio.questions import parse_number

__all__ = [
    "MOST_WORDS",
    "Fields",
    "body_fields",
    "last_of",
    "number_of",
    "query_fields",
    "slice_conditions",
    "slice_fault",
]

Fields = dict[str, list[str]]

MOST_FIELDS = 400
MOST_WORDS = 300


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


def slice_conditions(fields: Fields, names: tuple[str, ...], column: str) -> tuple[Condition, ...]:
    """Return the conditions of a slice: ranges of the other columns."""
    found = []
    for name in names:
        low, high = number_of(fields, f"low.{name}"), number_of(fields, f"high.{name}")
        if name != column and (low is not None or high is not None):
            found.append(Condition(name, low, high))
    return tuple(found)


def slice_fault(fields: Fields, others: Sequence[str]) -> str:
    """What is wrong with the form of a slice, in words; nothing if all is well."""
    typed = [last_of(fields, f"{end}.{name}") for name in others for end in ("low", "high")] + [last_of(fields, "at")]
    wrong = next((text for text in typed if text and parse_number(text) is None), "")
    if wrong:
        return f"“{wrong[:40]}” is not a number."
    for name in others:
        low, high = number_of(fields, f"low.{name}"), number_of(fields, f"high.{name}")
        if low is not None and high is not None and low > high:
            return f"Only where {name} lies: “from” is above “to”."
    split, at = last_of(fields, "split"), number_of(fields, "at")
    if split in others and at is None:
        return f"Say at which value of {split} the two groups part."
    return "Choose the column by which the two groups part." if at is not None and split not in others else ""
