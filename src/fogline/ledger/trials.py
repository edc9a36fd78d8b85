"""Attempts on a ledger, each of which raises if it succeeds. `stress` runs them at length, the tests in short.

Every trial works in a folder of its own and returns a line on what it saw. What is counted: *touched*, how often a
release was let at the data; *reserved* and *answered*, from the ledger; *acknowledged*, answers a caller was given.
Always: touched <= reserved <= cap, and what was acknowledged is still there.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np

from fogline.accounting import Cost
from fogline.accounting.zcdp import epsilon_of
from fogline.ledger import session as session_module
from fogline.ledger.ledger import Ledger
from fogline.ledger.question import Question
from fogline.ledger.receipts import Answer
from fogline.ledger.refusals import BudgetExceeded, LedgerRefused, ReleaseFailed
from fogline.ledger.steps import STEPS, observing

__all__ = ["Broken", "bit_flips", "clock_set_back", "kill_at_each_step", "kill_at_random", "old_copy", "opening"]
__all__ += ["race", "throughput", "truncations"]

PRICE = Cost(2.0**-10)


class Broken(AssertionError):
    """A trial that succeeded in breaking the ledger."""


def require(condition: bool, message: str) -> None:
    """Raise `Broken` unless the condition holds.

    Examples
    --------
    >>> require(True, "the sky has fallen")
    """
    if not condition:
        raise Broken(message)


def new_ledger(folder: Path, releases: float) -> Ledger:
    """Return a fresh ledger whose cap allows for the given number of releases."""
    (folder / "marks").mkdir(parents=True, exist_ok=True)
    epsilon = epsilon_of(PRICE.rho * (releases + 0.5), 1e-6)
    return Ledger.create(folder / "ledger", dataset="trial", epsilon=epsilon, delta=1e-6, high_water=folder / "marks")


def reopen(folder: Path) -> Ledger:
    """Open the ledger of a trial."""
    return Ledger.open(folder / "ledger", high_water=folder / "marks")


def ask(ledger: Ledger, number: int, release: Callable[[], bytes] | None = None, size: int = 2**16) -> Answer:
    """Ask question `number`, whose answer is fresh with each release."""
    question = Question("trial", "1", "trial", "1", {"number": number})
    fresh = release or (lambda: os.urandom(32).hex().encode() * (1 + number % 14))
    return ledger.spend(question, cost=PRICE, neighbours="add-remove", certified=True, release=fresh, max_payload=size)


def counted(ledger: Ledger) -> tuple[int, int]:
    """Return the number of reservations and of answers."""
    kinds = [entry.kind for entry in ledger.history()]
    return kinds.count("reserve"), kinds.count("commit")


# -- processes that race and die ------------------------------------------------------------------------


def processes() -> multiprocessing.context.ForkServerContext:
    """Return a way to start processes that have fogline loaded and nothing open."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fogline.ledger.trials"])
    return context


def touch(folder: Path) -> bytes:
    """Be a release: leave a trace that the data were touched, and answer with something new."""
    handle = os.open(folder / "touched", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, b".")
    os.close(handle)
    return os.urandom(300)


def _acknowledge(folder: Path, number: int, answer: Answer) -> None:
    handle = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{number} {sha256(answer.payload).hexdigest()}\n".encode())
    os.close(handle)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _racer(folder: Path, first: int, questions: int) -> None:
    with reopen(folder) as ledger:
        for number in range(first, first + questions):
            try:
                _acknowledge(folder, number, ask(ledger, number, lambda: touch(folder)))
            except BudgetExceeded:
                return


def race(folder: Path, contenders: int = 24, releases: int = 10, same: bool = False) -> str:
    """Let many processes ask at once, different questions or all the same, on a budget for a few."""
    new_ledger(folder, releases).close()
    context = processes()
    started = [context.Process(target=_racer, args=(folder, 0 if same else 100 * k, 2)) for k in range(contenders)]
    for process in started:
        process.start()
    for process in started:
        process.join()
        require(process.exitcode == 0, "a process failed")
    expected = 2 if same else releases
    with reopen(folder) as ledger:
        reserved, answered = counted(ledger)
    touched = size_of(folder / "touched")
    require((touched, reserved, answered) == (expected,) * 3, f"{touched} touched, {reserved} reserved: not {expected}")
    check_acknowledged(folder)
    return f"{contenders} processes: {touched} released, {reserved} reserved, {expected} expected"


def check_acknowledged(folder: Path) -> int:
    """Check that every answer that was ever given out is the ledger's answer still; return their number."""
    path = folder / "acknowledged"
    lines = path.read_text().splitlines() if path.exists() else []
    with reopen(folder) as ledger:
        for line in lines:
            number, digest = line.split()

            def never() -> bytes:
                raise Broken("an acknowledged answer was lost")

            answer = ask(ledger, int(number), never)
            require(answer.cached and sha256(answer.payload).hexdigest() == digest, "an answer has changed")
            require(answer.receipt.verify(ledger) and answer.receipt.covers(answer.payload), "a receipt is wrong")
    return len(lines)


def check_balance(folder: Path, cap: int) -> tuple[int, int]:
    """Check that no more was touched than reserved and no more reserved than the cap; return both numbers."""
    with reopen(folder) as ledger:
        reserved, answered = counted(ledger)
    touched = size_of(folder / "touched")
    require(answered <= touched <= reserved <= cap, f"{answered} answered, {touched} touched, {reserved} reserved")
    return touched, reserved


def _victim(folder: Path, first: int, step: str) -> None:
    """Die at a step; or ask, in four threads whose writes are grouped, until somebody kills this process."""

    def die(reached: str) -> None:
        if reached == step:
            os.kill(os.getpid(), signal.SIGKILL)

    ledger = reopen(folder)

    def work(asker: int) -> None:
        for number in range(first + 10_000 * asker, first + 10_000 * (asker + 1)):
            try:
                _acknowledge(folder, number, ask(ledger, number, lambda: touch(folder)))
            except BudgetExceeded:
                return

    with observing(die):
        _in_threads(work, 1 if step else 4)


def kill_at_each_step(folder: Path) -> str:
    """Kill a process at every step of the protocol, and ask the same question again."""
    cap = 2 * len(STEPS)
    new_ledger(folder, cap).close()
    context = processes()
    for number, step in enumerate(STEPS):
        process = context.Process(target=_victim, args=(folder, 1000 * number, step))
        process.start()
        process.join()
        require(process.exitcode == -signal.SIGKILL, f"step {step!r} was not reached")
        check_balance(folder, cap)
        with reopen(folder) as ledger:
            _acknowledge(folder, 1000 * number, ask(ledger, 1000 * number, lambda: touch(folder)))
    touched, reserved = check_balance(folder, cap)
    given = check_acknowledged(folder)
    return f"{len(STEPS)} steps: {touched} released, {reserved} reserved (cap {cap}), {given} acknowledged and kept"


def kill_at_random(folder: Path, times: int = 200, seed: int = 0, longest: float = 0.15) -> str:
    """Kill a process that asks one question after another, at moments that nobody chose."""
    rng = np.random.default_rng(seed)
    cap = 200 * times
    new_ledger(folder, cap).close()
    context = processes()
    for number in range(times):
        process = context.Process(target=_victim, args=(folder, 100_000 * number, ""))
        process.start()
        before = size_of(folder / "touched")
        deadline = time.monotonic() + 30.0
        while size_of(folder / "touched") == before and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(float(rng.uniform(0.0, longest)))
        process.kill()
        process.join()
    touched, reserved = check_balance(folder, cap)
    given = check_acknowledged(folder)
    return f"{times} kills: {touched} released, {reserved} reserved (cap {cap}), {given} acknowledged and kept"


# -- files that change --------------------------------------------------------------------------------


def _specimen(folder: Path, releases: int = 12) -> dict[str, object]:
    """Make a ledger with some answers and return what it says."""
    with new_ledger(folder, 2 * releases) as ledger:
        for number in range(releases):
            ask(ledger, number)
        return _said(ledger, releases)


def _said(ledger: Ledger, releases: int) -> dict[str, object]:
    def never() -> bytes:
        raise Broken("an answer was lost without a refusal")

    return {
        "remaining": ledger.remaining(),
        "history": ledger.history(),
        "answers": [ask(ledger, number, never) for number in range(releases)],
    }


def _same(folder: Path, said: dict[str, object], releases: int = 12) -> bool:
    """Return whether a tampered file is refused; raise if it is accepted and says anything else."""
    try:
        with reopen(folder) as ledger:
            now = _said(ledger, releases)
    except LedgerRefused:
        return True
    require(now["remaining"] == said["remaining"] and now["history"] == said["history"], "a change went unnoticed")
    answers = [(a.payload, a.receipt) for a in now["answers"]]  # type: ignore[attr-defined]
    require(answers == [(a.payload, a.receipt) for a in said["answers"]], "a changed answer")  # type: ignore[attr-defined]
    return False


def bit_flips(folder: Path, flips: int = 2000, seed: int = 0) -> str:
    """Flip one bit of the file at a time."""
    _specimen(folder)
    with reopen(folder) as ledger:
        said = _said(ledger, 12)
    path = folder / "ledger"
    whole = path.read_bytes()
    refused = 0
    for bit in np.random.default_rng(seed).integers(0, 8 * len(whole), size=flips).tolist():
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        refused += _same(folder, said)
    path.write_bytes(whole)
    require(not _same(folder, said), "the unchanged file is refused")
    return f"{flips} flips in {len(whole)} bytes: {refused} refused, {flips - refused} without effect, 0 unnoticed"


def truncations(folder: Path, every: int = 64) -> str:
    """Cut the file at every so many bytes."""
    said = _specimen(folder)
    path = folder / "ledger"
    whole = path.read_bytes()
    cuts = range(0, len(whole), every)
    for length in cuts:
        path.write_bytes(whole[:length])
        require(_same(folder, said), f"a file cut at {length} was accepted")
    return f"{len(cuts)} cuts of {len(whole)} bytes: all refused"


def old_copy(folder: Path) -> str:
    """Put an old copy back, under an open handle and then for a new one."""
    _specimen(folder, 3)
    path, copy = folder / "ledger", folder / "copy"
    shutil.copy(path, copy)
    with reopen(folder) as ledger:
        ask(ledger, 100)
        shutil.copy(copy, folder / "renamed")
        os.rename(folder / "renamed", path)
        _refused(lambda: ask(ledger, 101), "file")
    _refused(lambda: reopen(folder).close(), "high-water")
    return "refused when opened, and under an open handle"


def _refused(action: Callable[[], object], check: str) -> None:
    try:
        action()
    except LedgerRefused as refusal:
        require(refusal.check == check, f"refused by {refusal.check!r}, not {check!r}")
        return
    raise Broken("an old copy was accepted")


def clock_set_back(folder: Path) -> str:
    """Let the clock go back by decades between two entries."""
    now = session_module._now
    with new_ledger(folder, 5) as ledger:
        ask(ledger, 0)
        session_module._now = lambda: "1970-01-01T00:00:00.000000+00:00"
        try:
            ask(ledger, 1)
        finally:
            session_module._now = now
        times = [entry.time for entry in ledger.history()]
        require(times == sorted(times), "time ran backwards")
    with reopen(folder) as ledger:
        require(counted(ledger) == (2, 2), "an entry was lost")
    return "time in the ledger stands still until the clock has caught up"


# -- how fast -----------------------------------------------------------------------------------------


def throughput(folder: Path, askers: int = 1, questions: int = 200, reserve_only: bool = False) -> str:
    """Ask as fast as possible from one process with some threads; or only reserve, by releases that fail."""

    def fail() -> bytes:
        raise RuntimeError

    with new_ledger(folder, 10 * questions) as ledger:

        def work(asker: int) -> None:
            for number in range(questions // askers):
                with suppress(ReleaseFailed):
                    ask(ledger, 10**6 * asker + number, fail if reserve_only else lambda: b"x" * 900)

        wall, cpu = _in_threads(work, askers)
        reserved, answered = counted(ledger)
        require(reserved == questions // askers * askers, "not every question was paid for")
        require(answered == (0 if reserve_only else reserved), "not every question was answered")
    what = "reservations" if reserve_only else "questions answered"
    return f"{60 * reserved / wall:,.0f} {what} a minute; {1000 * cpu / reserved:.2f} ms of processor each"


def _in_threads(work: Callable[[int], None], askers: int) -> tuple[float, float]:
    """Return the time that the work takes: on the clock, and of the processor."""
    threads = [threading.Thread(target=work, args=(asker,)) for asker in range(askers)]
    wall, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - wall, time.process_time() - cpu


def opening(folder: Path, entries: int = 100_000, askers: int = 40) -> str:
    """Open and verify a long ledger whose answers have 1 KB."""
    with new_ledger(folder, entries) as ledger:

        def work(asker: int) -> None:
            for number in range(entries // 2 // askers):
                ask(ledger, 10**6 * asker + number, lambda: os.urandom(512).hex().encode())

        _in_threads(work, askers)
    wall, cpu = time.perf_counter(), time.process_time()
    with reopen(folder) as ledger:
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        count = len(ledger.history())
    taken = f"{wall:.2f} s, of the processor {cpu:.2f} s"
    return f"{count:,} entries, half of them answers of 1 KB: opened and verified in {taken}"
