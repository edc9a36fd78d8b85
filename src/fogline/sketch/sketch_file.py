"""The file of a sketch: a header in JSON, the secret integers, a version; nothing is unpickled."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.origins import Origin, known_origin
from fogline.sketch.planning import Spec, spec_from_dict
from fogline.sketch.provenance import ON_TRUST, Provenance
from fogline.sketch.release_marks import check_runs, common_payer
from fogline.sketch.secret_files import write_secret

__all__ = ["FORMAT", "SketchFile", "read_sketch", "write_sketch"]

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
    origin = _SEEN.setdefault(place, Origin(payer=payer, stored=True))
    return SketchFile(spec, state, signed, ON_TRUST, (origin,))
