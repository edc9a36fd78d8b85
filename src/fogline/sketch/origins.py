"""Which records a sketch holds and who paid for their releases: what keeps them from being released twice unseen.

Records that are counted into one sketch have one *origin*: a random id, which goes with them into merges and files. Two
sketches that share an id share records: a file and its copy, a snapshot and the stream that ran on. They are not
merged, and a release of one is a release of the other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from fogline.mechanisms.entropy import SystemSource
from fogline.sketch import release_marks
from fogline.sketch.release_marks import UNCOUNTED, AlreadyReleased

__all__ = [
    "UNCOUNTED",
    "AlreadyReleased",
    "Origin",
    "claim",
    "keep_at",
    "known_origin",
    "payer_of",
    "require_apart",
    "require_own",
]

_CLAIMING = threading.RLock()
_KNOWN: WeakValueDictionary[str, Origin] = WeakValueDictionary()


class Origin:
    """Records counted together, and who paid for their releases; shared by all sketches of a process that hold them.

    The payer is empty before the first release, then the id of the ledger that counts them, or UNCOUNTED. An origin is
    stored once a file holds its records: releases are then noted where other processes see them.
    """

    def __init__(self, run: str = "", payer: str = "", *, stored: bool = False) -> None:
        self.run = run or SystemSource().bytes(16).hex()
        self.payer = payer
        self.stored = stored
        _KNOWN[self.run] = self

    def note(self, payer: str) -> None:
        """Take note of a payer found elsewhere; two that differ cannot be counted by either."""
        if payer and payer != self.payer:
            self.payer = UNCOUNTED if self.payer else payer


def known_origin(run: str, payer: str) -> Origin:
    """The origin that a file names: one object for each id in this process."""
    with _CLAIMING:
        origin = _KNOWN.get(run)
        if origin is None:
            return Origin(run, payer, stored=True)
        origin.stored = True
        origin.note(payer)
        return origin


def require_apart(mine: tuple[Origin, ...], theirs: tuple[Origin, ...]) -> None:
    """Refuse to add up what shares records."""
    if {origin.run for origin in mine} & {origin.run for origin in theirs}:
        raise ValueError("other: a sketch cannot be merged with itself or with one that holds the same records")


def keep_at(origins: tuple[Origin, ...], path: Path, files: dict[Path, tuple[str, ...]]) -> None:
    """Note that records are about to go into a file, and learn of releases that other processes made of them.

    Parameters
    ----------
    origins : tuple of Origin
    path : Path
    files : dict
        Files that held them so far; only this one from now on.
    """
    with _CLAIMING:
        runs = [origin.run for origin in origins]
        for found in (release_marks.payers_in(path, files.get(path, ())), release_marks.payers_noted(runs)):
            for origin in origins:
                origin.note(found.get(origin.run, ""))
                origin.stored = True
        files.clear()
        files[path] = tuple(runs)


def claim(
    origins: tuple[Origin, ...], payer: str, process: int, files: Mapping[Path, tuple[str, ...]] | None = None
) -> None:
    """Mark records as released, before they are; refuse what nobody would count, or another process might.

    Parameters
    ----------
    origins : tuple of Origin
    payer : str
        Id of a ledger, or UNCOUNTED.
    process : int
        The process that counted the records, or read them from a file.
    files : mapping, optional
        Files that hold some of the records, with the ids of those: they are marked as well.
    """
    require_own(process)
    with _CLAIMING:
        release_marks.require_free([origin.payer for origin in origins], payer)
        stored = [origin.run for origin in origins if origin.stored]
        if stored:
            release_marks.mark(stored, payer, files or {})
        for origin in origins:
            origin.payer = payer


def require_own(process: int) -> None:
    """Refuse a sketch that came here by a fork: a copy's releases are not seen by the process that made it."""
    if os.getpid() != process:
        raise AlreadyReleased("this sketch was made in another process, which may release it as well")


def payer_of(ledger: Any) -> str:
    """Id of a ledger or of the ledger behind a view of it."""
    return str(getattr(ledger, "ledger", ledger).id)
