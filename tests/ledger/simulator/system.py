"""The operating system that the ledger's code is given, and the loading of that code.

Each simulated process runs a copy of its own of the package `fogline.ledger`, imported while `os`, `fcntl`, `sqlite3`,
`pathlib`, `threading` and the like stand for the simulated machine. The code is the real one, and knows of no seam.
"""

from __future__ import annotations

import datetime as real_datetime
import errno
import fnmatch
import importlib
import os as real_os
import pathlib
import sys
import threading as real_threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

from tests.ledger.simulator import sqlite
from tests.ledger.simulator.disk import File
from tests.ledger.simulator.machine import Handle, Killed, Machine, Process, Unsimulated

_PACKAGE = "fogline.ledger"


def _machine() -> Machine:
    machine = Machine.running
    if machine is None:
        raise Killed
    return machine


def _text(path: Any) -> str:
    return real_os.fspath(path)


def _status(file: File | None) -> SimpleNamespace:
    if file is None:
        return SimpleNamespace(st_dev=1, st_ino=0, st_mode=0o040700, st_size=0)
    return SimpleNamespace(st_dev=1, st_ino=file.number, st_mode=0o100600, st_size=len(file.live))


class _OS:
    """As much of `os` as the ledger uses. Every call that touches the disk is a moment at which others may run."""

    name = "posix"
    path = real_os.path
    environ: ClassVar[dict[str, str]] = {}
    PathLike, strerror, fsdecode = real_os.PathLike, staticmethod(real_os.strerror), staticmethod(real_os.fsdecode)
    fspath, fsencode = staticmethod(real_os.fspath), staticmethod(real_os.fsencode)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("O_") or name.endswith("_OK") or name.startswith("SEEK_"):
            return getattr(real_os, name)
        if not hasattr(real_os, name):
            raise AttributeError(name)
        raise Unsimulated(f"os.{name}")

    def register_at_fork(self, **_: Any) -> None:
        pass

    def getpid(self) -> int:
        machine = Machine.running
        process = None if machine is None else machine.process
        return 0 if process is None else process.pid

    def kill(self, pid: int, signal: int) -> None:
        if signal != 0:
            raise Unsimulated("os.kill")
        if pid not in {task.process.pid for task in _machine().tasks}:
            raise ProcessLookupError(errno.ESRCH, "no such process")

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        machine, name = _machine(), _text(path)
        machine.tick("open")
        disk, file = machine.disk, None
        if name not in disk.directories:
            file = disk.names.get(name)
            if file is None:
                if not flags & real_os.O_CREAT:
                    raise FileNotFoundError(errno.ENOENT, "no such file", name)
                file = disk.create(name)
            elif flags & real_os.O_EXCL:
                raise FileExistsError(errno.EEXIST, "file exists", name)
            elif flags & real_os.O_TRUNC:
                disk.resize(file, 0)
        number = machine.new_handle()
        _process(machine).handles[number] = Handle(name, file)
        return number

    def close(self, number: int) -> None:
        machine = Machine.running
        if machine is not None and machine.process is not None:
            handle = machine.process.handles.pop(number, None)
            if handle is not None and handle.file is not None:
                handle.file.drop_locks(handle)

    def write(self, number: int, body: bytes) -> int:
        machine = _machine()
        machine.tick("write")
        handle = _handle(machine, number)
        assert handle.file is not None
        machine.disk.write(handle.file, handle.position, body)
        handle.position += len(body)
        return len(body)

    def read(self, number: int, size: int) -> bytes:
        handle = _handle(_machine(), number)
        assert handle.file is not None
        body = bytes(handle.file.live[handle.position : handle.position + size])
        handle.position += len(body)
        return body

    def fsync(self, number: int) -> None:
        machine = _machine()
        machine.tick("sync")
        machine.disk.fail()
        handle = _handle(machine, number)
        if handle.file is None:
            machine.disk.force_names(handle.path)
        else:
            handle.file.force()

    fdatasync = fsync

    def ftruncate(self, number: int, length: int) -> None:
        machine = _machine()
        machine.tick("truncate")
        handle = _handle(machine, number)
        assert handle.file is not None
        machine.disk.resize(handle.file, length)

    def posix_fallocate(self, number: int, start: int, length: int) -> None:
        machine = _machine()
        machine.tick("allocate")
        handle = _handle(machine, number)
        assert handle.file is not None
        if start + length > len(handle.file.live):
            machine.disk.resize(handle.file, start + length)

    def stat(self, path: Any) -> SimpleNamespace:
        name, disk = _text(path), _machine().disk
        if name in disk.directories:
            return _status(None)
        if name not in disk.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", name)
        return _status(disk.names[name])

    def fstat(self, number: int) -> SimpleNamespace:
        return _status(_handle(_machine(), number).file)

    def access(self, path: Any, mode: int) -> bool:
        disk = _machine().disk
        return _text(path) in disk.names or _text(path) in disk.directories

    def rename(self, source: Any, target: Any) -> None:
        machine = _machine()
        machine.tick("rename")
        file = _existing(machine, _text(source))
        machine.disk.change_names(((_text(target), file), (_text(source), None)))
        machine.renamed.append((machine.ticks, _text(target), bytes(file.live)))

    replace = rename

    def link(self, source: Any, target: Any) -> None:
        machine = _machine()
        machine.tick("link")
        file = _existing(machine, _text(source))
        if _text(target) in machine.disk.names:
            raise FileExistsError(errno.EEXIST, "file exists", _text(target))
        machine.disk.change_names(((_text(target), file),))

    def unlink(self, path: Any) -> None:
        machine = _machine()
        if machine.process is not None and not machine.process.alive:
            return
        machine.tick("unlink")
        _existing(machine, _text(path))
        machine.disk.change_names(((_text(path), None),))

    remove = unlink


os = _OS()


def _process(machine: Machine) -> Process:
    assert machine.process is not None
    return machine.process


def _handle(machine: Machine, number: int) -> Handle:
    try:
        return _process(machine).handles[number]
    except KeyError:
        raise OSError(errno.EBADF, "bad file descriptor") from None


def _existing(machine: Machine, path: str) -> File:
    if path not in machine.disk.names:
        raise FileNotFoundError(errno.ENOENT, "no such file", path)
    return machine.disk.names[path]


class Path(pathlib.PurePosixPath):
    """As much of `pathlib.Path` as the ledger uses. What is missing is missed: it raises AttributeError."""

    __slots__ = ()

    def resolve(self) -> Path:
        return self

    def stat(self) -> SimpleNamespace:
        return os.stat(self)

    def exists(self) -> bool:
        return os.access(self, 0)

    def is_file(self) -> bool:
        return _text(self) in _machine().disk.names

    def is_dir(self) -> bool:
        return _text(self) in _machine().disk.directories

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        machine = _machine()
        machine.tick("mkdir")
        directories = machine.disk.directories
        if _text(self) in directories and not exist_ok:
            raise FileExistsError(errno.EEXIST, "file exists", _text(self))
        if not parents and _text(self.parent) not in directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", _text(self))
        directories.update(map(_text, (self, *self.parents)))

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            os.unlink(self)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rename(self, target: Any) -> None:
        os.rename(self, target)

    def read_bytes(self) -> bytes:
        machine = _machine()
        machine.tick("read")
        return bytes(_existing(machine, _text(self)).live)

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def iterdir(self) -> Iterator[Path]:
        names = [name for name in sorted(_machine().disk.names) if Path(name).parent == self]
        return iter([Path(name) for name in names])

    def glob(self, pattern: str) -> Iterator[Path]:
        return iter([path for path in self.iterdir() if fnmatch.fnmatchcase(path.name, pattern)])

    @classmethod
    def home(cls) -> Path:
        return cls("/home")

    @classmethod
    def cwd(cls) -> Path:
        return cls("/")


class _FileLocks:
    """As much of `fcntl` as the ledger uses."""

    LOCK_EX, LOCK_NB, LOCK_UN, LOCK_SH = 2, 4, 8, 1

    def flock(self, number: int, operation: int) -> None:
        machine = _machine()
        machine.tick("flock")
        handle = _handle(machine, number)
        file = handle.file
        assert file is not None
        if operation & self.LOCK_UN:
            file.drop_locks(handle)
            return
        if not operation & self.LOCK_EX:
            raise Unsimulated("shared flock")
        if file.flocked not in (None, handle):
            if operation & self.LOCK_NB:
                raise BlockingIOError(errno.EWOULDBLOCK, "locked")
            machine.wait(lambda: file.flocked is None)
        file.flocked = handle


class Lock:
    """A lock between the threads of a simulated process, reentrant or not."""

    reentrant = False

    def __init__(self) -> None:
        self._owner: object = None
        self._depth = 0

    def acquire(self) -> bool:
        machine = Machine.running
        task = None if machine is None else machine.current
        if task is None or not task.process.alive:
            return True
        assert machine is not None
        if self._owner is not None and not (self.reentrant and self._owner is task):
            machine.wait(lambda: self._owner is None)
        self._owner = task
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            self._owner = None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    reentrant = True


class Event:
    """As `threading.Event`."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self) -> bool:
        return _machine().wait(self.is_set)


class _Datetime(real_datetime.datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        machine = _machine()
        machine.clock += 0.001
        return real_datetime.datetime.fromtimestamp(machine.clock, tz)


class _Nothing:
    """A module that the ledger has no business with."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):
            raise AttributeError(name)
        raise Unsimulated(f"{self._name}.{name}")


class _Secrets:
    def token_hex(self, size: int) -> str:
        return _machine().rng.randbytes(size).hex()


def _module(name: str, source: ModuleType, **replaced: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update({**vars(source), **replaced})
    return made


_SIMULATED: dict[str, Any] = {
    "os": os,
    "fcntl": _FileLocks(),
    "sqlite3": sqlite.module,
    "pathlib": _module("pathlib", pathlib, Path=Path),
    "threading": _module("threading", real_threading, Lock=Lock, RLock=RLock, Event=Event),
    "datetime": _module("datetime", real_datetime, datetime=_Datetime),
    "secrets": _Secrets(),
    "resource": SimpleNamespace(RLIMIT_FSIZE=1, RLIM_INFINITY=-1, getrlimit=lambda which: (-1, -1)),
    **{name: _Nothing(name) for name in ("time", "shutil", "tempfile", "subprocess", "socket", "glob", "random", "io")},
}


class Code:
    """A copy of the ledger's code: its modules by name, as attributes."""

    def __init__(self) -> None:
        importlib.import_module(_PACKAGE)  # with all that it leans on, which is shared
        kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _ours(name)}
        parent = sys.modules["fogline"]
        replaced = {name: sys.modules.get(name) for name in _SIMULATED}
        sys.modules.update(_SIMULATED)
        try:
            self.package: Any = importlib.import_module(_PACKAGE)
            self.modules = {name.rpartition(".")[2]: sys.modules.pop(name) for name in list(sys.modules) if _ours(name)}
        finally:
            for name, module in replaced.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module
            for name in [name for name in sys.modules if _ours(name)]:
                del sys.modules[name]
            sys.modules.update(kept)
            parent.ledger = kept[_PACKAGE]  # type: ignore[attr-defined]
        self.modules["steps"]._observers.append(_reached)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["modules"][name]
        except KeyError:
            raise AttributeError(name) from None

    def reset(self) -> None:
        """Forget what the process before remembered: a new one begins."""
        self.session._sessions.clear()
        self.session._stopped.clear()
        self.session._registry_lock = Lock()
        self.disk._held.clear()


def _ours(name: str) -> bool:
    return name == _PACKAGE or name.startswith(_PACKAGE + ".")


def _reached(step: str) -> None:
    machine = Machine.running
    if machine is not None:
        machine.tick(step)
