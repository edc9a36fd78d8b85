"""Power cuts, replayed from a trace of system calls.

A short run is traced with strace. From the trace a model of the disk is kept: of each file what was forced to the disk
and which writes were not, of each directory likewise. Then the power is cut after every single call: what was not
forced is dropped, all of it or an arbitrary part, and the ledger is opened from what is left. It must open, hold every
answer that was acknowledged before the cut, and at least as many reservations as the data were touched.

The model is stricter than most disks: creating, renaming and removing count only once the directory was forced.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.ledger.torture.trials import ask, counted, new_ledger, reopen, require

from fogline.ledger.question import LedgerRefused

__all__ = ["power_loss", "traceable"]

_CALLS = "open,openat,close,write,pwrite64,lseek,ftruncate,fallocate,fsync,fdatasync,rename,unlink,link,mkdir"
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')

Write = tuple[int, bytes | None]
"""Where, and what; None instead of bytes cuts or extends the file to that length."""


@dataclass
class _File:
    forced: bytearray = field(default_factory=bytearray)
    pending: list[Write] = field(default_factory=list)

    def force(self) -> None:
        self.forced, self.pending = self.after(self.pending), []

    def after(self, writes: list[Write]) -> bytearray:
        body = bytearray(self.forced)
        for where, what in writes:
            if what is None:
                body = body[:where] + bytes(max(0, where - len(body)))
            else:
                body[len(body) :] = bytes(max(0, where - len(body)))
                body[where : where + len(what)] = what
        return body


@dataclass
class _Disk:
    """What is on the disk for sure, and what may or may not be."""

    folder: str
    names: dict[str, _File] = field(default_factory=dict)
    forced_names: dict[str, _File] = field(default_factory=dict)
    open: dict[int, list[int | str]] = field(default_factory=dict)  # handle -> [path, position]
    handles: dict[int, _File] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> _Disk:
        disk = cls(str(folder))
        for path in folder.rglob("*"):
            if path.is_file():
                disk.names[str(path)] = _File(bytearray(path.read_bytes()))
        disk.forced_names = dict(disk.names)
        return disk

    def call(self, name: str, arguments: str, result: int) -> bool:
        """Take one system call into account; say whether it changed anything."""
        texts = [bytes.fromhex(text.replace("\\x", "")) for text in _TEXT.findall(arguments)]
        if name in ("open", "openat"):
            return self._opened(os.fsdecode(texts[0]), arguments, result)
        if name in ("rename", "unlink", "link"):
            return self._named(name, [os.fsdecode(text) for text in texts])
        handle = int(arguments.split(",")[0])
        if name == "close":
            self.open.pop(handle, None)
            self.handles.pop(handle, None)
            return False
        if handle not in self.open:
            return False
        return self._handled(name, handle, arguments, texts, result)

    def _opened(self, path: str, arguments: str, result: int) -> bool:
        if not path.startswith(self.folder):
            return False
        self.open[result] = [path, 0]
        if "O_DIRECTORY" in arguments or Path(path).is_dir():
            return False
        fresh = path not in self.names
        file = self.names.setdefault(path, _File())
        self.handles[result] = file
        if "O_TRUNC" in arguments:
            file.pending.append((0, None))
        return fresh

    def _named(self, name: str, paths: list[str]) -> bool:
        if not paths[-1].startswith(self.folder):
            return False
        if name == "unlink":
            self.names.pop(paths[0], None)
        else:
            self.names[paths[1]] = self.names[paths[0]]
            if name == "rename":
                del self.names[paths[0]]
        return True

    def _handled(self, name: str, handle: int, arguments: str, texts: list[bytes], result: int) -> bool:
        file, numbers = self.handles.get(handle), [int(n) for n in re.findall(r", (\d+)(?=,|$)", arguments)]
        if name in ("fsync", "fdatasync"):
            if file is not None:
                file.force()
            else:
                self._force_directory(str(self.open[handle][0]))
            return True
        if file is None:
            return False
        if name == "lseek":
            self.open[handle][1] = result
        elif name == "pwrite64":
            file.pending.append((numbers[-1], texts[0][:result]))
        elif name == "write":
            position = int(self.open[handle][1])
            file.pending.append((position, texts[0][:result]))
            self.open[handle][1] = position + result
        elif name == "ftruncate":
            file.pending.append((numbers[-1], None))
        return name != "lseek"

    def _force_directory(self, directory: str) -> None:
        def inside(names: dict[str, _File]) -> dict[str, _File]:
            return {path: file for path, file in names.items() if os.path.dirname(path) == directory}

        for path in inside(self.forced_names):
            del self.forced_names[path]
        self.forced_names.update(inside(self.names))

    def cut(self, target: Path, rng: np.random.Generator | None) -> None:
        """Write to `target` what a power cut now leaves: the least, or with `rng` some part of the rest as well."""
        some = rng is not None and rng.random() < 0.5
        names = self.names if some else self.forced_names
        shutil.rmtree(target, ignore_errors=True)
        for folder in ("marks", "ledger.locks"):
            (target / folder).mkdir(parents=True)
        for path, file in names.items():
            writes = [] if rng is None else [write for write in file.pending if rng.random() < 0.5]
            copy = target / os.path.relpath(path, self.folder)
            copy.write_bytes(file.after(writes))
            copy.chmod(0o600)


def traceable() -> bool:
    """Say whether system calls can be traced here.

    Examples
    --------
    >>> traceable() in (True, False)
    True
    """
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0


def power_loss(folder: Path, questions: int = 20, every: int = 1, seed: int = 0, honest: bool = True) -> str:
    """Cut the power after every so many calls of a run that asks some questions.

    With ``honest=False`` the disk only claims to have forced what it was told to: no ledger survives that, and a trial
    that did not notice would prove nothing.
    """
    place = folder / "place"
    place.mkdir()
    new_ledger(place, 2 * questions).close()
    (place / "ledger.locks").mkdir(exist_ok=True)
    disk = _Disk.of(place)
    trace = folder / "trace"
    command = ["strace", "-f", "-xx", "-s", "1000000", "-e", f"trace={_CALLS}", "-o", str(trace)]
    run = [sys.executable, "-m", "tests.ledger.torture.power_loss", str(place), str(questions)]
    subprocess.run([*command, *run], check=True, capture_output=True)
    rng = np.random.default_rng(seed)
    touched, acknowledged, cuts, calls = 0, dict[int, str](), 0, 0
    for name, arguments, result in _calls(trace):
        if name == "write" and arguments.startswith("1,"):
            said = bytes.fromhex(_TEXT.findall(arguments)[0].replace("\\x", "")).decode().split()
            if said[0] == "touched":
                touched += 1
            else:
                acknowledged[int(said[1])] = said[2]
        elif (name in ("fsync", "fdatasync") and not honest) or not disk.call(name, arguments, result):
            continue
        calls += 1
        if calls % every == 0:
            for chance in (None, rng):
                disk.cut(place, chance)  # at its old place, since a ledger knows the place of its mark
                _check(place, touched, acknowledged)
                cuts += 1
    require(len(acknowledged) == questions and calls > 20 * questions, "the trace is not one of the whole run")
    return f"{cuts} power cuts in {calls} calls, {questions} answers: nothing acknowledged was lost"


def _calls(trace: Path) -> Iterator[tuple[str, str, int]]:
    """Yield name, arguments and result of each call that succeeded."""
    unfinished: dict[str, str] = {}
    for line in trace.read_text().splitlines():
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            unfinished[thread] = line.removesuffix("<unfinished ...>").rstrip()
            continue
        resumed = re.match(r"^\d+ +<\.\.\. \w+ resumed>(.*)$", line)
        found = _LINE.match(unfinished.pop(thread) + resumed[1] if resumed else line)
        if found and int(found[3]) >= 0:
            yield found[1], found[2], int(found[3])


def _check(folder: Path, touched: int, acknowledged: dict[int, str]) -> None:
    def never() -> bytes:
        raise AssertionError

    try:
        with reopen(folder) as ledger:
            require(counted(ledger)[0] >= touched, "the data were touched without a reservation")
            for number, digest in acknowledged.items():
                answer = ask(ledger, number, never)
                require(answer.cached and answer.receipt.payload == digest, "an acknowledged answer was lost")
    except LedgerRefused as refusal:
        require(False, f"the ledger does not open after a power cut: {refusal}")


def _run(place: Path, questions: int) -> None:
    """Ask some questions, and say on the standard output what was done."""
    with reopen(place) as ledger:
        for number in range(questions):

            def release() -> bytes:
                os.write(1, b"touched\n")
                return os.urandom(700)

            answer = ask(ledger, number, release)
            os.write(1, f"acknowledged {number} {answer.receipt.payload}\n".encode())


if __name__ == "__main__":
    _run(Path(sys.argv[1]), int(sys.argv[2]))
