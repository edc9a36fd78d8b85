"""Copies of a ledger beside the original: of all of them together no more may be released than one cap allows."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from fogline.ledger.ledger import Ledger
from fogline.ledger.refusals import LedgerRefused
from fogline.ledger.steps import STEPS, observing
from fogline.ledger.trials import ask, check_balance, new_ledger, processes, reopen, require, size_of, touch

__all__ = ["copied_at_each_step", "in_turn", "racing"]


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
