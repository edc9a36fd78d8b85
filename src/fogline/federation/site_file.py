"""The file of a site's sketch: a header in JSON, the secret integers, a version; nothing is unpickled."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_max_contributions, check_name
from fogline.federation.pair_keys import check_site
from fogline.sketch.planning import Spec, spec_from_dict
from fogline.sketch.secret_files import write_secret

__all__ = ["FORMAT", "Header", "Member", "read_file", "write_file"]

FORMAT = "fogline-site-1"
NOTICE = "SECRET: exact counts of private records. Guard this file as you guard the records, and never publish it."
MASKED = "SECRET: masked counts of private records. Send it to nobody but the merging party."


@dataclass(frozen=True)
class Member:
    """One site's part: its name, the run that made it, and how many records a person may have there."""

    site: str
    run: str
    max_contributions: int = 1
    unit: str = "record"
    enforced: bool = False

    def __post_init__(self) -> None:
        check_site(self.site)
        check_name(self.run, "run")
        check_max_contributions(self.max_contributions)
        check_name(self.unit, "unit")
        if not isinstance(self.enforced, bool):
            raise TypeError("enforced must be true or false")


@dataclass(frozen=True)
class Header:
    """What a file says besides the integers; public but for its company."""

    spec: Spec
    pass_name: str
    members: tuple[Member, ...]
    columns: tuple[str, ...] | None
    roster: tuple[str, ...]
    checks: dict[str, str]
    signed: bool
    payers: tuple[str, ...]


def write_file(path: str | Path, header: Header, state: tuple[Any, ...]) -> None:
    """Write one array of masked integers, or the two of a sketch's state."""
    content = {
        "format": FORMAT,
        "secret": True,
        "notice": MASKED if len(state) == 1 else NOTICE,
        "pass": header.pass_name,
        "spec": header.spec.to_dict(),
        "columns": header.columns,
        "members": [vars(member) for member in header.members],
        "roster": header.roster,
        "checks": header.checks,
        "signed": header.signed,
        "payers": header.payers,
    }
    arrays: Any = {f"state_{i}": part for i, part in enumerate(state)}
    file = io.BytesIO()
    np.savez_compressed(file, header=np.array(json.dumps(content)), **arrays)
    write_secret(path, file.getvalue())


def read_file(path: str | Path) -> tuple[Header, list[NDArray[Any]]]:
    """Read a file of this version; everything else is refused by one line."""
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"path: there is no file {str(path)!r}")
    try:
        with np.load(source, allow_pickle=False) as data:
            content = json.loads(str(data["header"]))
            version = content.get("format")
            state = [data[f"state_{i}"] for i in range(len(data.files) - 1)] if version == FORMAT else []
    except Exception:
        raise ValueError(f"path: {source.name} is not a sketch of format {FORMAT}") from None
    if version != FORMAT:
        raise ValueError(f"path: {source.name} is of format {version!r}, not {FORMAT!r}")
    try:
        header = Header(
            spec=spec_from_dict(content["spec"]),
            pass_name=check_name(content["pass"], "pass"),
            members=tuple(Member(**member) for member in content["members"]),
            columns=None if content["columns"] is None else tuple(content["columns"]),
            roster=tuple(content["roster"]),
            checks=dict(content["checks"]),
            signed=bool(content["signed"]),
            payers=tuple(content["payers"]),
        )
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"path: the header of {source.name} is damaged") from None
    if len(state) not in (1, 2) or (len(state) == 1 and (state[0].dtype != np.uint64 or state[0].ndim != 1)):
        raise ValueError(f"path: {source.name} is damaged")
    return header, state
