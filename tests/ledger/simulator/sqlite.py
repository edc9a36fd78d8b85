"""SQLite on the simulated disk: a virtual file system of apsw, and what `sqlite3` offers, on top of apsw.

What matters is as in SQLite's own file system for Unix: the levels of its locks, and the directory that is forced with
a new journal and after a journal was removed.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator
from posixpath import dirname
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlparse

import apsw
from tests.ledger.simulator.disk import Disk, File
from tests.ledger.simulator.machine import Killed, Machine, Process

_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
_POWERSAFE_OVERWRITE = apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


class _DatabaseFile:
    """A file that SQLite has open, for one process."""

    def __init__(self, disk: Disk, path: str, file: File, flags: int, process: Process | None) -> None:
        self.disk, self.path, self.file, self.process = disk, path, file, process
        self._new_journal = bool(flags & _JOURNALS and flags & apsw.SQLITE_OPEN_CREATE)
        self._delete_on_close = bool(flags & apsw.SQLITE_OPEN_DELETEONCLOSE)
        if process is not None:
            process.databases.append(self)

    def _tick(self, what: str) -> None:
        """Let others run; what a killed process asks for fails, without a word to SQLite about why."""
        if self.process is None:
            return
        try:
            Machine.running.tick(what)  # type: ignore[union-attr]
        except Killed:
            raise apsw.IOError("killed") from None

    @property
    def _dead(self) -> bool:
        return self.process is not None and not self.process.alive

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if self._dead:
            raise apsw.IOError("killed")
        return bytes(self.file.live[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._tick("write")
        try:
            self.disk.write(self.file, offset, data)
        except OSError as error:
            raise (apsw.FullError if error.errno == errno.ENOSPC else apsw.IOError)(error.strerror) from None

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._tick("truncate")
        self.disk.resize(self.file, size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._tick("sync")
        try:
            self.disk.fail()
        except OSError:
            raise apsw.IOError("disk failed") from None
        self.file.force()
        if self._new_journal:
            self.disk.force_names(dirname(self.path))
            self._new_journal = False

    def xFileSize(self) -> int:  # noqa: N802
        return len(self.file.live)

    def xLock(self, level: int) -> None:  # noqa: N802
        self._tick("lock")
        levels = self.file.levels
        if levels.get(self, 0) >= level:
            return
        others = max((held for handle, held in levels.items() if handle is not self), default=0)
        if others >= (3 if level == 1 else 2):
            raise apsw.BusyError("locked")
        if level == 4 and others:
            levels[self] = 3
            raise apsw.BusyError("locked")
        levels[self] = level

    def xUnlock(self, level: int) -> None:  # noqa: N802
        if self._dead:
            return
        if level:
            self.file.levels[self] = level
        else:
            self.file.levels.pop(self, None)
        self.file.lock_changes += 1

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return any(held >= 2 for handle, held in self.file.levels.items() if handle is not self)

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 4096

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return _POWERSAFE_OVERWRITE

    def xClose(self) -> None:  # noqa: N802
        if self._dead:
            return
        self.file.drop_locks(self)
        if self.process is not None and self in self.process.databases:
            self.process.databases.remove(self)
        if self._delete_on_close:
            self.disk.change_names(((self.path, None),))


class SimulatedVFS(apsw.VFS):
    """The file system that SQLite sees: the disk of the machine that runs, or one that is being looked at."""

    NAME = "fogline-simulated"

    def __init__(self) -> None:
        super().__init__(self.NAME, "", makedefault=True)
        self.looked_at: Disk | None = None
        self.entropy: Callable[[int], bytes] = lambda size: bytes(size)

    def _where(self) -> tuple[Disk, Process | None]:
        if self.looked_at is not None:
            return self.looked_at, None
        machine = Machine.running
        assert machine is not None
        return machine.disk, machine.process

    def _tick(self, what: str, process: Process | None) -> None:
        if process is not None:
            try:
                Machine.running.tick(what)  # type: ignore[union-attr]
            except Killed:
                raise apsw.IOError("killed") from None

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        disk, process = self._where()
        self._tick("open", process)
        file = disk.names.get(path)
        if file is None:
            if not flags[0] & apsw.SQLITE_OPEN_CREATE:
                raise apsw.CantOpenError("no such file")
            file = disk.create(path)
        flags[1] = flags[0]
        return _DatabaseFile(disk, path, file, flags[0], process)

    def xDelete(self, name: str, sync_directory: bool) -> None:  # noqa: N802
        disk, process = self._where()
        self._tick("delete", process)
        if name not in disk.names:
            raise apsw.IOError("no such file")
        disk.change_names(((name, None),))
        if sync_directory:
            self._tick("sync", process)
            disk.force_names(dirname(name))
            self._committed(name, process)

    def _committed(self, journal: str, process: Process | None) -> None:
        """Note what is durable in the file of a journal whose removal has just become durable."""
        machine = Machine.running
        if process is not None and machine is not None:
            for database in process.databases:
                if database.path + "-journal" == journal:
                    database.file.committed.append((machine.ticks, database.file.durable))

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: N802
        disk, _ = self._where()
        return name in disk.names and (flags != apsw.SQLITE_ACCESS_EXISTS or len(disk.names[name].live) > 0)

    def xRandomness(self, size: int) -> bytes:  # noqa: N802
        return self.entropy(size)

    def xSleep(self, microseconds: int) -> int:  # noqa: N802
        return microseconds

    def xCurrentTime(self) -> float:  # noqa: N802
        return 2460000.5

    def xGetLastError(self) -> tuple[int, str]:  # noqa: N802
        return 0, ""


vfs = SimulatedVFS()


# -- what the ledger's code takes for `sqlite3` ---------------------------------------------------------

_KINDS: tuple[tuple[type[Exception], type[Exception]], ...] = (
    (apsw.ConstraintError, sqlite3.IntegrityError),
    (apsw.CorruptError, sqlite3.DatabaseError),
    (apsw.NotADBError, sqlite3.DatabaseError),
    (apsw.Error, sqlite3.OperationalError),
)


def _translated(error: Exception, process: Process | None) -> BaseException:
    if process is not None and not process.alive:
        return Killed()
    return next(theirs for ours, theirs in _KINDS if isinstance(error, ours))(str(error))


class _Rows:
    """The rows of a statement, fetched one by one."""

    def __init__(self, cursor: Any, process: Process | None) -> None:
        self._cursor, self._process = cursor, process

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        try:
            return next(self._cursor)  # type: ignore[no-any-return]
        except apsw.Error as error:
            raise _translated(error, self._process) from None

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self)


class Connection:
    """As much of `sqlite3.Connection` as the ledger uses."""

    def __init__(self, path: str, *, process: Process | None) -> None:
        self._process = process
        try:
            self._inner = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=SimulatedVFS.NAME)
        except apsw.Error as error:
            raise _translated(error, process) from None
        if process is not None:
            self._inner.set_busy_handler(self._busy)

    def _busy(self, attempts: int) -> bool:
        """Wait until any lock on a file of this process has changed hands; give up when nobody else can go on."""
        assert self._process is not None
        files = [(database.file, database.file.lock_changes) for database in self._process.databases]
        try:
            return Machine.running.wait(  # type: ignore[union-attr]
                lambda: any(file.lock_changes != seen for file, seen in files), patient=False
            )
        except Killed:
            return False

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> _Rows:
        if self._process is not None and not self._process.alive:
            raise Killed
        try:
            return _Rows(self._inner.execute(statement, values), self._process)
        except apsw.ConnectionClosedError:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.") from None
        except apsw.Error as error:
            raise _translated(error, self._process) from None

    @property
    def in_transaction(self) -> bool:
        try:
            return self._inner.in_transaction
        except apsw.ConnectionClosedError:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.") from None

    def close(self) -> None:
        try:
            self._inner.close(True)
        except apsw.Error as error:  # SQLite may roll back as it closes, which a dead process cannot
            if self._process is None or self._process.alive:
                raise _translated(error, self._process) from None


def connect(address: str, **options: Any) -> Connection:
    """Open a file by its address, as the ledger's code does: an existing one, to read and write."""
    assert options["uri"] is True
    assert options["isolation_level"] is None
    parts = urlparse(address)
    assert parts.query == "mode=rw"
    machine = Machine.running
    assert machine is not None
    machine.tick("connect")
    return Connection(unquote(parts.path), process=machine.process)


module = SimpleNamespace(
    connect=connect,
    Connection=Connection,
    Error=sqlite3.Error,
    DatabaseError=sqlite3.DatabaseError,
    OperationalError=sqlite3.OperationalError,
    IntegrityError=sqlite3.IntegrityError,
    ProgrammingError=sqlite3.ProgrammingError,
    sqlite_version=apsw.sqlite_lib_version(),
    sqlite_version_info=tuple(map(int, apsw.sqlite_lib_version().split("."))),
)


def look(disk: Disk, path: str, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a file on a disk that nobody uses, having let SQLite recover it."""
    vfs.looked_at = disk
    try:
        connection = Connection(path, process=None)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()
    finally:
        vfs.looked_at = None


def restart_randomness(entropy: Callable[[int], bytes]) -> None:
    """Let SQLite's own random numbers, which go into journals, depend on the seed."""
    vfs.entropy = entropy
    apsw.randomness(0)
