"""A disk in memory that knows what is durable and what is not.

Every file has its live content, which all processes see, and its durable content, which survives a power cut for
sure. What lies between is a list of writes that nobody forced. A power cut keeps an arbitrary part of them, in any
order and torn at sectors. Names are alike: creating, renaming and removing count once their directory was forced.
"""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass, field
from posixpath import dirname

SECTOR = 512

Write = tuple[int, bytes | None]
"""Where, and what; None cuts or extends the file to that length."""
NameChange = tuple[tuple[str, "File | None"], ...]
"""Names and the files they stand for afterwards, None for no file; all of it or nothing."""


@dataclass(eq=False)
class File:
    """One file: an inode with the locks on it."""

    number: int
    live: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unforced: list[Write] = field(default_factory=list)
    levels: dict[object, int] = field(default_factory=dict)
    """The level of SQLite's lock that each handle holds: 1 shared, 2 reserved, 3 pending, 4 exclusive."""
    flocked: object = None
    foreign: bool = False
    """Whether it is a journal that an operator put here, of a copy and not of the file that somebody has open."""
    lock_changes: int = 0
    committed: list[tuple[int, bytes]] = field(default_factory=list)
    """What was durable each time that the forced removal of a journal ended a transaction, and when."""

    def force(self) -> None:
        if self.unforced:
            self.durable, self.unforced = bytes(self.live), []

    def apply(self, change: Write) -> None:
        _apply(self.live, change)
        self.unforced.append(change)

    def drop_locks(self, holder: object) -> None:
        if self.levels.pop(holder, 0):
            self.lock_changes += 1
        if self.flocked is holder:
            self.flocked = None

    def lose_power(self, rng: random.Random) -> None:
        """Keep of the writes that were not forced what a disk may keep: none, all, or any part of any of them."""
        if self.unforced:
            body, luck = bytearray(self.durable), rng.choice((0.0, 0.3, 0.7, 1.0))
            for where, what in self.unforced:
                if rng.random() >= luck:
                    continue
                if what is not None and len(what) > SECTOR and luck < 1.0 and rng.random() < 0.3:
                    what = what[: SECTOR * rng.randrange(1, len(what) // SECTOR + 1)]
                _apply(body, (where, what))
            self.durable, self.unforced = bytes(body), []
        self.live = bytearray(self.durable)
        self.levels, self.flocked = {}, None


def _apply(body: bytearray, change: Write) -> None:
    where, what = change
    if what is None:
        if where <= len(body):
            del body[where:]
        else:
            body.extend(bytes(where - len(body)))
        return
    if where > len(body):
        body.extend(bytes(where - len(body)))
    body[where : where + len(what)] = what


class Disk:
    """All files and their names. Directories exist from the moment they are made."""

    def __init__(self) -> None:
        self.names: dict[str, File] = {}
        self.durable_names: dict[str, File] = {}
        self.unforced: dict[str, list[NameChange]] = {}
        self.directories = {"/"}
        self.capacity: int | None = None
        self.failing = 0
        """How many of the next writes and forced writes fail."""
        self._numbers = 0

    # -- files ------------------------------------------------------------------------------------------

    def create(self, path: str) -> File:
        if dirname(path) not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        self._numbers += 1
        file = File(self._numbers)
        self.change_names(((path, file),))
        return file

    def fail(self) -> None:
        """Fail, if the disk is sick."""
        if self.failing:
            self.failing -= 1
            raise OSError(errno.EIO, "input/output error")

    def write(self, file: File, where: int, what: bytes) -> None:
        self.fail()
        if where == len(file.live) or where + len(what) > len(file.live):
            self.need(where + len(what) - len(file.live))
        file.apply((where, bytes(what)))

    def resize(self, file: File, length: int) -> None:
        self.need(length - len(file.live))
        if length != len(file.live):
            file.apply((length, None))

    def need(self, more: int) -> None:
        """Refuse what is beyond the disk's capacity."""
        if self.capacity is not None and more > 0:
            used = sum(len(file.live) for file in set(self.names.values()))
            if used + more > self.capacity:
                raise OSError(errno.ENOSPC, "no space left on device")

    def put(self, path: str, body: bytes) -> File:
        """Place a file, durable at once: what an operator copies and waits for."""
        self._numbers += 1
        file = File(self._numbers, bytearray(body), bytes(body))
        self.place(path, file)
        return file

    def place(self, path: str, file: File | None) -> None:
        """Let a name stand for a file, durable at once."""
        self.change_names(((path, file),))
        self.force_names(dirname(path))

    # -- names ------------------------------------------------------------------------------------------

    def change_names(self, change: NameChange) -> None:
        _rename(self.names, change)
        self.unforced.setdefault(dirname(change[0][0]), []).append(change)

    def force_names(self, directory: str) -> None:
        for change in self.unforced.pop(directory, ()):
            _rename(self.durable_names, change)

    def lose_power(self, rng: random.Random) -> None:
        """Lose what was not forced, or some of it."""
        for changes in self.unforced.values():
            luck, prefix = rng.choice((0.0, 0.5, 1.0)), rng.random() < 0.5
            kept = changes[: rng.randrange(len(changes) + 1)] if prefix else changes
            for change in kept:
                if prefix or rng.random() < luck:
                    _rename(self.durable_names, change)
        self.unforced = {}
        self.names = dict(self.durable_names)
        for file in sorted(set(self.names.values()), key=lambda file: file.number):
            file.lose_power(rng)

    def after_certain_loss(self) -> Disk:
        """Return the disk as it would be if the power went now and nothing survived that was not forced."""
        disk = Disk()
        copies = {
            file: File(file.number, bytearray(file.durable), file.durable) for file in self.durable_names.values()
        }
        disk.names = {name: copies[file] for name, file in self.durable_names.items()}
        disk.durable_names = dict(disk.names)
        disk.directories = self.directories
        return disk

    def copy(self) -> Disk:
        """Return a disk of its own with the same content; nothing may be locked or unforced."""
        disk = self.after_certain_loss()
        disk.directories = set(self.directories)
        disk._numbers = self._numbers
        return disk


def _rename(names: dict[str, File], change: NameChange) -> None:
    for name, file in change:
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file
