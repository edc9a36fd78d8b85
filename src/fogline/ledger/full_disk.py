"""Disks that are full or cannot be written, made of a small file system in memory. Needs the right to mount one."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fogline.ledger.refusals import LedgerRefused, ReleaseFailed
from fogline.ledger.trials import ask, counted, new_ledger, reopen, require

__all__ = ["filled_at_every_level", "filled_while_releasing", "largest_file", "mountable", "read_only"]

_ANSWER = 2**16


@contextmanager
def small_disk(folder: Path, kilobytes: int = 2048) -> Iterator[Path]:
    """Mount a disk of a given size, for as long as it is needed."""
    place = folder / "disk"
    place.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "fogline-trial", str(place)],
        check=True,
        capture_output=True,
    )
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)


def mountable(folder: Path) -> bool:
    """Say whether disks can be mounted here."""
    try:
        with small_disk(folder):
            pass
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        with suppress(OSError):
            (folder / "disk").rmdir()
    return True


def _fill(place: Path, leave: int = 0) -> None:
    """Fill the disk but for some bytes."""
    free = os.statvfs(place)
    size = free.f_bavail * free.f_frsize - leave
    handle = os.open(place / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        if size > 0:
            os.posix_fallocate(handle, 0, size)
    finally:
        os.close(handle)


def filled_at_every_level(folder: Path, step: int = 4096) -> str:
    """Ask with more and more room on the disk: each question is refused for nothing, or answered."""
    refused = answered = 0
    with small_disk(folder) as place:
        new_ledger(place, 1000).close()
        for number, leave in enumerate(range(0, 4 * _ANSWER + 2**17, step)):
            with suppress(FileNotFoundError):
                (place / "filler").unlink()
            with reopen(place) as ledger:
                before = ledger.remaining()
                _fill(place, leave)
                try:
                    ask(ledger, number, lambda: os.urandom(_ANSWER), size=_ANSWER)
                    answered += 1
                except LedgerRefused:
                    refused += 1
                    require(ledger.remaining() == before, "a refusal was charged")
        with reopen(place) as ledger:
            require(counted(ledger) == (answered, answered), "a reservation was burned by a full disk")
    require(refused > 0 and answered > 0, "the disk was never full, or always")
    return f"{refused + answered} levels: {refused} refused for free, {answered} answered, 0 burned"


def filled_while_releasing(folder: Path) -> str:
    """Let the release itself fill the disk to the last byte: the answer finds the room that was kept."""
    with small_disk(folder) as place, new_ledger(place, 10) as ledger:

        def greedy() -> bytes:
            _fill(place)
            return os.urandom(_ANSWER)

        answer = ask(ledger, 0, greedy, size=_ANSWER)
        require(counted(ledger) == (1, 1), "a reservation was burned by a full disk")
        (place / "filler").unlink()
        require(ask(ledger, 0).payload == answer.payload, "the answer is not what was stored")
        ledger.verify()
    return "answered from the room that was kept"


def read_only(folder: Path) -> str:
    """Open a ledger on a read-only disk; Linux refuses to make a disk read-only under an open one."""
    (folder / "marks").mkdir()
    with small_disk(folder) as place:

        def remount(mode: str) -> None:
            subprocess.run(["mount", "-o", f"remount,{mode}", str(place)], check=True, capture_output=True)

        (place / "marks").symlink_to(folder / "marks")  # the marks are on another disk, which still works
        with new_ledger(place, 10) as ledger:
            ask(ledger, 0)
            left = ledger.remaining()
        remount("ro")
        try:
            reopen(place).close()
            require(False, "a ledger on a read-only disk was opened")
        except LedgerRefused as refusal:
            require(refusal.check == "read-only", f"refused by {refusal.check!r}")
        remount("rw")
        with reopen(place) as ledger:
            require(ask(ledger, 0).cached and ledger.remaining() == left, "an answer was lost, or something charged")
    return "refused; nothing charged or lost"


def largest_file(folder: Path) -> str:
    """Forbid this process to write large files, which is how quotas are felt."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    refused = burned = 0
    with new_ledger(folder, 1000) as ledger:
        try:
            for number in range(40):
                resource.setrlimit(resource.RLIMIT_FSIZE, (2**15 * (1 + number), hard))
                try:
                    ask(ledger, number, lambda: os.urandom(_ANSWER), size=_ANSWER)
                except LedgerRefused:
                    refused += 1
                except ReleaseFailed:
                    burned += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        reserved, answered = counted(ledger)
    require(refused > 0 and answered > 0 and burned == 0, f"{refused} refused, {answered} answered, {burned} burned")
    require(reserved == answered, "a reservation was burned by a limit")
    return f"40 limits: {refused} refused for free, {answered} answered, 0 burned"
