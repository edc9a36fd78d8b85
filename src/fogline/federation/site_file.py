"""The file of a site's sketch: a header in JSON, the secret integers, a version; nothing is unpickled."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_max_contributions, check_name
from fogline.accounting.guarantee import ROWS
from fogline.federation.pair_keys import check_site
from fogline.sketch.planning import Spec, spec_from_dict
from fogline.sketch.provenance import Provenance
from fogline.sketch.release_marks import check_runs, common_payer
from fogline.sketch.secret_files import write_secret

__all__ = ["FORMAT", "Header", "Member", "read_file", "write_file"]

FORMAT = "fogline-site-2"
EARLIER = "fogline-site-1"
"""Without ids of the sketches' records; what it says of units was given by hand, and is taken on trust."""

NOTICE = "SECRET: exact counts of private records. Guard this file as you guard the records, and never publish it."
MASKED = "SECRET: masked counts of private records. Send it to nobody but the merging party."


@dataclass(frozen=True)
class Member:
    """One site's part: its name, the run that made it, and how many records a person may have there.

    ``enforced`` says that an engine cut the records of each unit, ``on_trust`` that nobody knows whether one did.
    """

    site: str
    run: str
    max_contributions: int = 1
    unit: str = "record"
    enforced: bool = False
    on_trust: bool = False

    def __post_init__(self) -> None:
        check_site(self.site)
        check_name(self.run, "run")
        check_max_contributions(self.max_contributions)
        check_name(self.unit, "unit")
        for name in ("enforced", "on_trust"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false")
        if self.enforced and self.unit in ROWS:
            raise ValueError(f"unit: {self.unit!r} is a row, and rows are not cut")

    @classmethod
    def of(
        cls,
        cut: Provenance,
        site: str,
        run: str,
        *,
        max_contributions: int | None,
        unit: str | None,
        enforced: bool | None,
    ) -> Member:
        """A site's part as its sketch says it was counted, with what only the site can know.

        Parameters
        ----------
        cut : Provenance
            Of the sketch.
        site, run : str
        max_contributions, unit, enforced
            What the site says; None where the sketch is to say it. Nothing may go beyond what the sketch says.
        """
        most = cut.most if max_contributions is None else max_contributions
        name = (cut.unit or "record") if unit is None else unit
        me = cls(site, run, most, name, on_trust=cut.on_trust)
        if cut.unit is None:
            if enforced:
                raise ValueError("enforced: the records of this sketch were not cut by a unit, as engines.sketch does")
            return me
        if me.unit in ROWS:
            raise ValueError(f"unit: records were cut to {cut.most} of each {cut.unit}, and are not released for rows")
        if me.max_contributions < cut.most:
            raise ValueError(f"max_contributions must be at least {cut.most}: so many of each {cut.unit} were left")
        return replace(me, enforced=cut.enforced and enforced is not False)

    @property
    def provenance(self) -> Provenance:
        """How its records were counted."""
        if self.unit in ROWS:
            return Provenance(on_trust=self.on_trust)
        return Provenance(self.unit, self.max_contributions, self.enforced, self.on_trust)


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
    runs: dict[str, str]


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
        "runs": header.runs,
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
            known = version in (FORMAT, EARLIER)
            state = [data[f"state_{i}"] for i in range(len(data.files) - 1)] if known else []
    except Exception:
        raise ValueError(f"path: {source.name} is not a sketch of format {FORMAT}") from None
    if not known:
        raise ValueError(f"path: {source.name} is of format {version!r}, not {FORMAT!r}")
    try:
        members, runs = _members(content) if version == FORMAT else _earlier_members(content)
        header = Header(
            spec=spec_from_dict(content["spec"]),
            pass_name=check_name(content["pass"], "pass"),
            members=members,
            columns=None if content["columns"] is None else tuple(content["columns"]),
            roster=tuple(content["roster"]),
            checks=dict(content["checks"]),
            signed=bool(content["signed"]),
            runs=runs,
        )
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"path: the header of {source.name} is damaged") from None
    if len(state) not in (1, 2) or (len(state) == 1 and (state[0].dtype != np.uint64 or state[0].ndim != 1)):
        raise ValueError(f"path: {source.name} is damaged")
    return header, state


def _members(content: dict[str, Any]) -> tuple[tuple[Member, ...], dict[str, str]]:
    return tuple(Member(**member) for member in content["members"]), check_runs(content["runs"])


def _earlier_members(content: dict[str, Any]) -> tuple[tuple[Member, ...], dict[str, str]]:
    """Members of a file of version 1, which may have taken a cut at five for one at one, or for none."""
    given = tuple(Member(**member) for member in content["members"])
    members = tuple(replace(member, enforced=False, on_trust=True) for member in given)
    payer = common_payer(content["payers"])
    return members, check_runs(dict.fromkeys((member.run for member in members), payer))
