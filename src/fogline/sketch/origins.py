"""Who paid for releases of which records: what keeps one sketch from being released twice unseen."""

from __future__ import annotations

import os
import threading
from typing import Any

__all__ = ["UNCOUNTED", "AlreadyReleased", "Origin", "claim", "payer_of", "require_own"]

UNCOUNTED = "no ledger"

_CLAIMING = threading.Lock()


class AlreadyReleased(RuntimeError):
    """A sketch was asked for a second release, which would cost a second budget that nobody counts."""


class Origin:
    """Who paid for releases of records counted together; shared by all sketches that hold them.

    Empty before the first release, then the id of the ledger that counts them, or UNCOUNTED.
    """

    def __init__(self, payer: str = "") -> None:
        self.payer = payer


def claim(origins: tuple[Origin, ...], payer: str, process: int) -> None:
    """Mark records as released, before they are; refuse what nobody would count, or another process might."""
    require_own(process)
    with _CLAIMING:
        if any(origin.payer and (payer == UNCOUNTED or origin.payer != payer) for origin in origins):
            raise AlreadyReleased(
                "this sketch was released before; further releases need the ledger that counts them all"
            )
        for origin in origins:
            origin.payer = payer


def require_own(process: int) -> None:
    """Refuse a sketch that came here by a fork: a copy's releases are not seen by the process that made it."""
    if os.getpid() != process:
        raise AlreadyReleased("this sketch was made in another process, which may release it as well")


def payer_of(ledger: Any) -> str:
    """Id of a ledger or of the ledger behind a view of it."""
    return str(getattr(ledger, "ledger", ledger).id)
