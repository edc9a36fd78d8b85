"""Attempts on a ledger, each of which raises if it succeeds. `stress` runs them at length, the tests in short.

Every trial works in a folder of its own and returns a line on what it saw. What is counted: *touched*, how often a
release was let at the data; *reserved* and *answered*, from the ledger; *acknowledged*, answers a caller was given.
Always: touched <= reserved <= cap, and what was acknowledged is still there.

Copies of a ledger beside the original: of all of them together no more may be released than one cap allows.

Disks that are full or cannot be written, made of a small file system in memory. Needs the right to mount one.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
from tests.ledger.simulator.prices import Prices

from fogline.accounting import Cost, PrivacyWarning, PureCost
from fogline.accounting.zcdp import epsilon_of
from fogline.ledger import session as session_module
from fogline.ledger.ledger import Ledger
from fogline.ledger.question import BudgetExceeded, LedgerRefused, Question, ReleaseFailed
from fogline.ledger.receipts import Answer
from fogline.ledger.steps import STEPS, observing

__all__ = [
    "Broken",
    "bit_flips",
    "clock_set_back",
    "copied_at_each_step",
    "filled_at_every_level",
    "filled_while_releasing",
    "in_turn",
    "kill_at_each_step",
    "kill_at_random",
    "largest_file",
    "mountable",
    "old_copy",
    "opening",
    "racing",
    "read_only",
]
__all__ += ["race", "race_in_both", "throughput", "truncations"]

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
    places = {"dataset": "trial", "high_water": folder / "marks"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # a trial of thousands of releases has a cap above 10
        return Ledger.create(folder / "ledger", epsilon=epsilon, delta=1e-6, **places)


def reopen(folder: Path) -> Ledger:
    """Open the ledger of a trial."""
    return Ledger.open(folder / "ledger", high_water=folder / "marks")


def ask(
    ledger: Ledger,
    number: int,
    release: Callable[[], bytes] | None = None,
    size: int = 2**16,
    cost: Cost | PureCost = PRICE,
) -> Answer:
    """Ask question `number`, whose answer is fresh with each release."""
    question = Question("trial", "1", "trial", "1", {"number": number})
    fresh = release or (lambda: os.urandom(32).hex().encode() * (1 + number % 14))
    return ledger.spend(question, cost=cost, neighbours="add-remove", certified=True, release=fresh, max_payload=size)


def counted(ledger: Ledger) -> tuple[int, int]:
    """Return the number of reservations and of answers."""
    kinds = [entry.kind for entry in ledger.history()]
    return kinds.count("reserve"), kinds.count("commit")


# -- processes that race and die ------------------------------------------------------------------------


def processes() -> multiprocessing.context.ForkServerContext:
    """Return a way to start processes that have fogline loaded and nothing open."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.ledger.torture.trials"])
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


def _racer_in_both(folder: Path, first: int, questions: int, prices: Prices) -> None:
    with reopen(folder) as ledger:
        for number in range(first, first + questions):
            with suppress(BudgetExceeded):
                ask(ledger, number, lambda: touch(folder), cost=prices.of(number))


def race_in_both(folder: Path, contenders: int = 24, releases: int = 10) -> str:
    """Let many processes ask at once, for rho and for pure epsilon by turns, on a cap that both share."""
    prices = Prices("mixed", releases)
    (folder / "marks").mkdir(parents=True, exist_ok=True)
    caps = {"epsilon": prices.epsilon, "delta": prices.delta}
    Ledger.create(folder / "ledger", dataset="trial", high_water=folder / "marks", **caps).close()
    context = processes()
    started = [
        context.Process(target=_racer_in_both, args=(folder, 100 * k + k % 2, 3, prices)) for k in range(contenders)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
        require(process.exitcode == 0, "a process failed")
    with reopen(folder) as ledger:
        ledger.verify()
        reserved = [e.content["asked"]["parameters"]["number"] for e in ledger.history() if e.kind == "reserve"]
    touched, pure = size_of(folder / "touched"), sum(map(prices.is_pure, reserved))
    require(touched == len(reserved), f"{touched} touched, {len(reserved)} reserved")
    require(prices.hold(reserved), f"{len(reserved)} releases, {pure} of them pure, are above the cap")
    # both kinds were asked for more often than they fit: nothing of either does any more
    require(not (prices.allow([*reserved, 0]) or prices.allow([*reserved, 1])), "something was refused that would fit")
    return f"{contenders} processes: {len(reserved)} released, {pure} of them pure, all within the cap"


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
    return f"{60 * reserved / wall:,.0f} {what} per minute; {1000 * cpu / reserved:.2f} ms of processor each"


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


def in_turn(folder: Path, releases: int = 12, others: int = 4) -> str:
    """Spend from a ledger and from copies of it in turn, all of them open at once, until nobody is served."""
    new_ledger(folder, releases).close()
    handles = [reopen(folder)]
    for number in range(others):
        shutil.copy(folder / "ledger", folder / f"copy{number}")
        handles.append(Ledger.open(folder / f"copy{number}", high_water=folder / "marks"))
    refused = 0
    for number in range(3 * releases * len(handles)):
        try:
            ask(handles[number % len(handles)], number, lambda: touch(folder))
        except LedgerRefused:
            refused += 1
    touched = size_of(folder / "touched")
    require(touched <= releases, f"{touched} touched with a cap of {releases}")
    require(touched == releases, f"only {touched} touched with a cap of {releases}")
    for handle in handles:
        handle.close()
    check_balance(folder, releases)
    return f"original and {others} copies in turn: {touched} released, cap {releases}, {refused} refused"


def _copier(folder: Path, name: str, first: int, questions: int) -> None:
    with suppress(LedgerRefused), Ledger.open(folder / name, high_water=folder / "marks") as ledger:
        for number in range(first, first + questions):
            ask(ledger, number, lambda: touch(folder))


def racing(folder: Path, releases: int = 12, others: int = 3) -> str:
    """Let a process spend from the original while others spend from copies of it."""
    new_ledger(folder, releases).close()
    names = ["ledger", *(f"copy{number}" for number in range(others))]
    for name in names[1:]:
        shutil.copy(folder / "ledger", folder / name)
    context = processes()
    started = [context.Process(target=_copier, args=(folder, name, 100 * k, 15)) for k, name in enumerate(names)]
    for process in started:
        process.start()
    for process in started:
        process.join()
        require(process.exitcode == 0, "a process failed")
    touched = size_of(folder / "touched")
    require(0 < touched <= releases, f"{touched} touched with a cap of {releases}")
    return f"original and {others} copies at once: {touched} released, cap {releases}"


def copied_at_each_step(folder: Path) -> str:
    """Copy the file at every step of a question, ask the copy, and then the original again."""
    touched = 0
    for number, step in enumerate(STEPS):
        place = folder / str(number)
        new_ledger(place, 2).close()

        def copy(reached: str, step: str = step, place: Path = place) -> None:
            if reached == step and not (place / "copy").exists():
                shutil.copy(place / "ledger", place / "copy")

        with reopen(place) as ledger, observing(copy):
            first = ask(ledger, 0, lambda place=place: touch(place))  # type: ignore[misc]
        for name in ("copy", "ledger", "copy", "ledger"):
            for question in (0, 1, 2, 3):
                with suppress(LedgerRefused), Ledger.open(place / name, high_water=place / "marks") as ledger:
                    answer = ask(ledger, question, lambda place=place: touch(place))  # type: ignore[misc]
                    require(question != 0 or answer.payload == first.payload, f"another answer, copied at {step!r}")
        require(
            size_of(place / "touched") == 2, f"{size_of(place / 'touched')} touched with a cap of 2, copied at {step!r}"
        )
        touched += 2
    return f"copied at {len(STEPS)} steps: {touched} released of {touched}, the same answers"


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
