"""Try to break a ledger, at length: ``python -m tests.ledger.torture [--short]`` prints a table in Markdown.

Seeds are fresh and printed. A trial that breaks something says so in the table, and the exit code is 1. Trials that
need rights that are not there (mounting a disk, tracing system calls) say that they were skipped.

Speed is measured on one core. A thread alone waits for the disk seven times a reservation: SQLite forces its journal,
the journal's name, the journal's head, the file, and the removal of the journal; the high-water mark is forced, and
its name. Each closes a gap that a power cut could open. Threads that ask at the same time share them.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.ledger.torture import power_loss, trials

from fogline.ledger.disk import Disk

__all__ = ["Trial", "all_trials", "forced_writes", "main", "simulated", "table"]

Trial = tuple[str, Callable[[Path], str], bool]
"""A name, what to do in a folder, and whether it wants a disk rather than memory."""

_SKIPPED = "skipped: "
_ROOT = Path(__file__).resolve().parents[3]


def all_trials(seed: int, *, short: bool = False) -> list[Trial]:
    """Return every trial, at full length or shortened about ten times, the simulator a hundred times.

    Examples
    --------
    >>> [name for name, _, _ in all_trials(0)][:2]
    ['24 processes, a budget for 10', '24 processes, the same questions']
    """
    less = 10 if short else 1
    return [
        ("24 processes, a budget for 10", trials.race, True),
        ("24 processes, the same questions", lambda folder: trials.race(folder, same=True), True),
        ("24 processes, rho and pure epsilon", trials.race_in_both, True),
        ("kill -9 at every step", trials.kill_at_each_step, True),
        ("kill -9 at random", lambda folder: trials.kill_at_random(folder, 200 // less, seed), True),
        ("bit flips", lambda folder: trials.bit_flips(folder, 2000 // less, seed), False),
        ("truncation", lambda folder: trials.truncations(folder, 64 * less), False),
        ("old copy put back", trials.old_copy, True),
        ("original and copies in turn", trials.in_turn, True),
        ("original and copies at once", trials.racing, True),
        ("copied at every step", trials.copied_at_each_step, True),
        ("simulated runs", lambda _: simulated(100_000 // less**2, seed), False),
        ("clock set back", trials.clock_set_back, True),
        ("disk full at every level", _mounting(trials.filled_at_every_level), False),
        ("disk full during the release", _mounting(trials.filled_while_releasing), False),
        ("disk read-only", _mounting(trials.read_only), False),
        ("limit on the size of files", trials.largest_file, False),
        ("power cut after every call", lambda folder: _power(folder, 40 // less, seed), False),
        ("power cut, a disk that lies", lambda folder: _lying_disk(folder, seed), False),
        ("the forced writes of a reservation, disk", lambda folder: _writes(folder, 600 // less), True),
        ("reservations, 1 thread, disk", lambda folder: _speed(folder, 1, 600 // less), True),
        ("reservations, 32 threads, disk", lambda folder: _speed(folder, 32, 9600 // less), True),
        ("reservations, 1 thread, memory", lambda folder: _speed(folder, 1, 9600 // less), False),
        ("full questions, 32 threads, disk", lambda folder: _answers(folder, 32, 9600 // less), True),
        ("opening a long ledger", lambda folder: trials.opening(folder, 100_000 // less), False),
    ]


def table(listed: Sequence[Trial], *, say: Callable[[str], None] = print) -> int:
    """Run trials and say a table of what they saw; return how many broke something.

    Examples
    --------
    >>> table([("nothing", lambda folder: "nothing happened", False)])
    | trial | seen | seconds |
    | --- | --- | ---: |
    | nothing | nothing happened | 0.0 |
    0
    """
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    broken = 0
    say("| trial | seen | seconds |")
    say("| --- | --- | ---: |")
    for name, trial, disk in listed:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=None if disk else memory) as folder:
            try:
                seen = trial(Path(folder))
            except trials.Broken as failure:
                broken += 1
                seen = f"**BROKEN: {failure}**"
        say(f"| {name} | {seen} | {time.perf_counter() - start:.1f} |")
    return broken


def simulated(runs: int, seed: int) -> str:
    """Carry out runs of the simulator, which is part of the tests: of a checkout, not of an installation."""
    if not (_ROOT / "tests/ledger/simulator/__main__.py").is_file() or find_spec("apsw") is None:
        return _SKIPPED + "the simulator is not here, or apsw is not installed"
    asked = ["--seeds", str(runs), "--first", str(seed)]
    command = [sys.executable, "-m", "tests.ledger.simulator", *asked]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    trials.require(done.returncode == 0, done.stdout.partition("\n")[0])
    return done.stdout.strip()


def _mounting(trial: Callable[[Path], str]) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        return trial(folder) if trials.mountable(folder) else _SKIPPED + "no right to mount a disk"

    return run


def _power(folder: Path, questions: int, seed: int) -> str:
    if not power_loss.traceable():
        return _SKIPPED + "strace is not installed or not allowed"
    return power_loss.power_loss(folder, questions, seed=seed)


def _lying_disk(folder: Path, seed: int) -> str:
    """Check that the power cuts would notice."""
    if not power_loss.traceable():
        return _SKIPPED + "strace is not installed or not allowed"
    try:
        power_loss.power_loss(folder, 3, seed=seed, honest=False)
    except trials.Broken as failure:
        return f"noticed, as it must be: {failure}"
    raise trials.Broken("a disk that forces nothing was not noticed")


def _speed(folder: Path, askers: int, questions: int) -> str:
    with _one_core():
        return trials.throughput(folder, askers, questions, reserve_only=True)


def _writes(folder: Path, rounds: int) -> str:
    with _one_core():
        return forced_writes(folder, rounds)


def _answers(folder: Path, askers: int, questions: int) -> str:
    with _one_core():
        return trials.throughput(folder, askers, questions)


def forced_writes(folder: Path, rounds: int = 600) -> str:
    """Do what a reservation makes the disk do and nothing else: the most that one thread could reach here.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     forced_writes(Path(folder), 1).endswith("per minute without a ledger")
    True
    """
    books, marks = folder / "books", folder / "marks"
    books.mkdir()
    marks.mkdir()
    (books / "file").write_bytes(bytes(2**15))
    place = os.open(books, os.O_RDONLY | os.O_CLOEXEC)
    start = time.perf_counter()
    for _ in range(rounds):
        _forced(books / "journal", bytes(9000), os.fdatasync)  # as SQLite does; the mark is forced by fsync
        os.fdatasync(place)
        _forced(books / "journal", bytes(12), os.fdatasync)
        _forced(books / "file", bytes(8192), os.fdatasync)
        (books / "journal").unlink()
        os.fdatasync(place)
        _forced(marks / "new", bytes(256), os.fsync)
        (marks / "new").rename(marks / "mark")
        Disk().force_directory(marks)
    os.close(place)
    return f"{60 * rounds / (time.perf_counter() - start):,.0f} times per minute without a ledger"


def _forced(path: Path, body: bytes, force: Callable[[int], None]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.write(handle, body)
    force(handle)
    os.close(handle)


@contextmanager
def _one_core() -> Iterator[None]:
    """Run this thread, and those that it starts, on one core; where the system cannot say so, on any."""
    if not hasattr(os, "sched_setaffinity"):  # pragma: no cover - macOS
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def main(arguments: Sequence[str]) -> int:
    """Run all trials; return 1 if any broke something."""
    seed = secrets.randbits(32)
    print(f"seed {seed}\n", flush=True)
    listed = all_trials(seed, short="--short" in arguments)
    return int(table(listed, say=lambda line: print(line, flush=True)) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
