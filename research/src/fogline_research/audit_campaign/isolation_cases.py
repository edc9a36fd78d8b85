r"""Cases of isolation as JSON: what was found once is tried again for ever.

Cells of any type are written with their type: a double by its 64 bits, bytes as hexadecimal digits, an integer in
hexadecimal, since Python prints no 5000 decimal digits. A record that both tables have is written once.
"""

from __future__ import annotations

import datetime
import json
import struct
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fogline_research.audit_campaign.hostile_cells import Unreadable, bits
from fogline_research.audit_campaign.hostile_tables import Record, Shape
from fogline_research.audit_campaign.isolation import Case

__all__ = ["from_json", "load_cases", "to_json"]


def to_json(case: Case, note: str = "") -> str:
    r"""Write a case, with a note on what it showed.

    Examples
    --------
    >>> record = Record((float("nan"), None), b"\xff")
    >>> case = Case("numpy array", Shape("double", 2), {"layout": "rows"}, 1, (), (record,))
    >>> str(from_json(to_json(case)).after) == str(case.after)
    True
    """
    every = {id(record): record for record in [*case.before, *case.after]}
    numbers = {key: number for number, key in enumerate(every)}
    content = {
        "note": note,
        "source": case.source,
        "shape": asdict(case.shape),
        "public": {name: _encoded(value) for name, value in case.public.items()},
        "most": case.most,
        "records": [
            {"cells": [_encoded(cell) for cell in record.cells], "unit": _encoded(record.unit)}
            for record in every.values()
        ],
        "before": [numbers[id(record)] for record in case.before],
        "after": [numbers[id(record)] for record in case.after],
    }
    return json.dumps(content, indent=1) + "\n"


def from_json(text: str) -> Case:
    """Read a case."""
    content = json.loads(text)
    records = [
        Record(tuple(_decoded(cell) for cell in record["cells"]), _decoded(record["unit"]))
        for record in content["records"]
    ]
    before, after = (tuple(records[number] for number in content[side]) for side in ("before", "after"))
    public = {name: _decoded(value) for name, value in content["public"].items()}
    return Case(content["source"], Shape(**content["shape"]), public, content["most"], before, after)


def load_cases(folder: Path) -> dict[str, Case]:
    """All cases of a folder, by the names of their files."""
    return {path.stem: from_json(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def _encoded(value: Any) -> Any:
    """A value with its type; None, texts and truth values stand for themselves."""
    if value is None or isinstance(value, str | bool):
        return value
    if type(value) is float:
        return {"double": struct.pack(">d", value).hex()}
    if type(value) is int:
        return {"integer": hex(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()} if len(value) < 1000 else {"many": value[:1].hex(), "times": len(value)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, Fraction):
        return {"fraction": [hex(value.numerator), hex(value.denominator)]}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, list):
        return {"list": [_encoded(one) for one in value]}
    if isinstance(value, np.ndarray):
        return {"array": [_encoded(one) for one in value.ravel().tolist()], "dimensions": value.ndim}
    if isinstance(value, np.generic):
        return {"numpy": str(value.dtype), "value": _encoded(value.item()) if value.itemsize <= 8 else str(value)}
    return {"object": type(value).__name__}


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kind = next(iter(value))
    content = value[kind]
    if kind == "numpy":
        return np.dtype(content).type(_decoded(value["value"]))
    if kind == "array":
        found = np.array([_decoded(one) for one in content])
        return found.reshape(()) if value["dimensions"] == 0 else found
    if kind == "many":
        return bytes.fromhex(content) * value["times"]
    makers: dict[str, Any] = {
        "double": lambda: bits(int(content, 16)),
        "integer": lambda: int(content, 16),
        "bytes": lambda: bytes.fromhex(content),
        "decimal": lambda: Decimal(content),
        "fraction": lambda: Fraction(*(int(part, 16) for part in content)),
        "date": lambda: datetime.date.fromisoformat(content[:10]),
        "list": lambda: [_decoded(one) for one in content],
        "object": Unreadable,
    }
    return makers[kind]()
