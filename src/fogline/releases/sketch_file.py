"""The file of a sketch: a header in JSON, the secret integers, a version; nothing is unpickled.

How the records of a sketch were counted: row by row, or cut to at most c of each unit; public.

A cut by a unit makes rows depend on each other: without one of a unit's rows another is kept in its place. So what was
cut is never released for rows, and never for fewer records than were left of a unit. The sketch carries this fact
wherever it goes: into files, merges, and the sketches of sites.
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_max_contributions, check_name
from fogline.accounting.guarantee import ROWS
from fogline.density.random_spec import Spec, spec_from_dict
from fogline.releases.origins import Origin, check_runs, common_payer, known_origin, write_secret

__all__ = [
    "FORMAT",
    "NOTHING",
    "ON_TRUST",
    "ROW_BY_ROW",
    "TRUSTED",
    "Provenance",
    "SketchFile",
    "read_sketch",
    "write_sketch",
]

TRUSTED = "counts taken on trust, as of records that were not cut by a unit"
"""What a guarantee says of counts that came without this fact: made elsewhere, or read from a file before version 2."""


@dataclass(frozen=True)
class Provenance:
    """How the records of a sketch were counted.

    Parameters
    ----------
    unit : str or None
        What the records were cut by; None where every row counts.
    most : int
        Most records that were left of a unit.
    enforced : bool
        Whether an engine saw to all of it; false where units were declared to be disjoint.
    on_trust : bool
        Whether some of the counts came without this fact.
    counted : bool
        Whether anything was ever counted. That calls were made is public; how many records they brought is not.

    Examples
    --------
    >>> north, south = Provenance(unit="patient", most=2), Provenance(unit="patient", most=3)
    >>> north.joined(south).most, north.joined(south, disjoint=True).most
    (5, 3)
    >>> north.joined(ROW_BY_ROW)
    Traceback (most recent call last):
    ValueError: records were cut to 2 of each patient: others, whose patient nobody knows, can be neither added nor
    taken back; count the whole source again, with its unit
    """

    unit: str | None = None
    most: int = 1
    enforced: bool = True
    on_trust: bool = False
    counted: bool = True

    def __post_init__(self) -> None:
        check_max_contributions(self.most)
        if self.unit is not None and check_name(self.unit, "unit") in ROWS:
            raise ValueError(f"unit: {self.unit!r} is a row, and rows are not cut")
        for name in ("enforced", "on_trust", "counted"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false")

    def joined(self, other: Provenance, *, disjoint: bool = False) -> Provenance:
        """That of both record sets in one sketch: a unit may be in both, unless they are declared to be disjoint."""
        # an empty sketch takes over how the first records are counted
        if not (self.counted and other.counted):
            return self if self.counted else other
        on_trust = self.on_trust or other.on_trust
        if self.unit is None and other.unit is None:
            return Provenance(on_trust=on_trust)
        if self.unit is None or other.unit is None:
            cut = other if self.unit is None else self
            raise ValueError(
                f"records were cut to {cut.most} of each {cut.unit}: others, whose {cut.unit} nobody knows, can be "
                "neither added nor taken back; count the whole source again, with its unit"
            )
        if self.unit != other.unit:
            raise ValueError(
                f"records were cut by unlike units, {self.unit} and {other.unit}: nobody knows whose are whose"
            )
        # a unit that may be in both has what is left of it here and there
        most = max(self.most, other.most) if disjoint else self.most + other.most
        return Provenance(self.unit, most, self.enforced and other.enforced and not disjoint, on_trust)

    def to_dict(self) -> dict[str, Any]:
        """In terms of JSON."""
        return asdict(self)


NOTHING = Provenance(counted=False)
ROW_BY_ROW = Provenance()
ON_TRUST = Provenance(on_trust=True)

FORMAT = "fogline-sketch-2"
EARLIER = "fogline-sketch-1"
"""Without ids of records, and without a word on whether they were cut by a unit."""

_SEEN: WeakValueDictionary[tuple[int, int, int, int], Origin] = WeakValueDictionary()
"""Origins of files of version 1 that are in use: the same file, read twice, holds the same records."""


@dataclass(frozen=True)
class SketchFile:
    """What a file holds."""

    spec: Spec
    state: tuple[NDArray[Any], NDArray[Any]]
    signed: bool
    provenance: Provenance
    origins: tuple[Origin, ...]


def write_sketch(path: Path, content: SketchFile) -> None:
    """Write a file for its owner alone, whole or not at all."""
    header = {
        "format": FORMAT,
        "secret": True,
        "spec": content.spec.to_dict(),
        "signed": content.signed,
        "provenance": content.provenance.to_dict(),
        "runs": {origin.run: origin.payer for origin in content.origins},
    }
    keys, counts = content.state
    file = io.BytesIO()
    np.savez_compressed(file, header=np.array(json.dumps(header)), keys=keys, counts=counts)
    write_secret(path, file.getvalue())


def read_sketch(path: Path) -> SketchFile:
    """Read a file of this version or the one before."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
        header = json.loads(str(data["header"]))
        version = header.get("format")
        if version not in (FORMAT, EARLIER):
            raise ValueError(f"path: not a sketch of format {FORMAT}: {version!r}")
        state = (data["keys"], data["counts"])
        # of the open file: at the path there may be another one by now
        details = os.fstat(file.fileno())
    spec, signed = spec_from_dict(header["spec"]), bool(header.get("signed", False))
    runs = check_runs(header.get("runs", {}))
    if version == FORMAT:
        try:
            provenance = Provenance(**header["provenance"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"path: the header of {path.name} is damaged") from None
        return SketchFile(spec, state, signed, provenance, tuple(known_origin(*item) for item in runs.items()))
    payer = common_payer(header["payers"])
    if runs:  # it was released since, and has an id
        return SketchFile(spec, state, signed, ON_TRUST, tuple(known_origin(run, payer) for run in runs))
    place = (details.st_dev, details.st_ino, details.st_size, details.st_mtime_ns)
    # files of version 1 have no ids: the same file is known by its inode, size and time
    origin = _SEEN.setdefault(place, Origin(payer=payer, stored=True))
    return SketchFile(spec, state, signed, ON_TRUST, (origin,))
