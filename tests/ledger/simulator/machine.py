"""Processes that take turns on one machine: one runs at a time, and the seed decides who is next.

Each task is a thread, but only the one that holds the baton runs. It gives the baton up nowhere but in `tick`, which
every call to the simulated operating system goes through, so a run is a function of its seed.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.ledger.simulator.disk import Disk, File


class Killed(BaseException):
    """The process is no more. Nothing that its code does while this unwinds has any effect."""


class Unsimulated(BaseException):
    """The ledger's code asked for something of the operating system that the simulator does not have."""


class Deadlock(Exception):
    """All processes wait for each other."""


@dataclass(eq=False)
class Handle:
    """An open file, or an open directory."""

    path: str
    file: File | None
    position: int = 0


@dataclass(eq=False)
class Process:
    """What the operating system knows of a process."""

    pid: int
    slot: int
    alive: bool = True
    handles: dict[int, Handle] = field(default_factory=dict)
    databases: list[Any] = field(default_factory=list)
    """What SQLite has open for this process: each has a file and, through it, locks."""

    def die(self) -> None:
        """Stop at once; the kernel closes what was open, which drops all locks."""
        self.alive = False
        for handle in self.handles.values():
            if handle.file is not None:
                handle.file.drop_locks(handle)
        for database in self.databases:
            database.file.drop_locks(database)
        self.handles.clear()
        self.databases.clear()


@dataclass(eq=False)
class Task:
    """One thread of a process."""

    process: Process
    work: Callable[[], None]
    worker: _Worker
    done: bool = False
    error: BaseException | None = None
    ready: Callable[[], bool] | None = None
    patient: bool = True
    """Whether it waits for ever; else it is told that time has passed when nobody else can go on."""
    timed_out: bool = False


class _Worker(threading.Thread):
    """A thread that is used again, run after run."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.baton = threading.Lock()
        self.baton.acquire()
        self.machine: Machine | None = None
        self.task: Task | None = None
        self.start()

    def run(self) -> None:
        while True:
            self.baton.acquire()
            machine, task = self.machine, self.task
            assert machine is not None
            assert task is not None
            try:
                task.work()
            except Killed:
                pass
            except BaseException as error:
                task.error = error
            task.done, self.machine, self.task = True, None, None
            _idle.append(self)
            baton = machine.baton
            del machine, task
            baton.release()


_idle: list[_Worker] = []
_handle_numbers = itertools.count(1000)


class Machine:
    """Processes, a clock and a disk.

    Parameters
    ----------
    rng : random.Random
        Decides all that is left to chance while the machine runs.
    disk : Disk
    switching : float
        How likely a turn ends at any tick.
    """

    running: Machine | None = None

    def __init__(self, rng: random.Random, disk: Disk, switching: float = 0.1) -> None:
        self.rng, self.disk, self.switching = rng, disk, switching
        self.clock = 1_700_000_000.0
        self.ticks = 0
        self.tasks: list[Task] = []
        self.current: Task | None = None
        self.baton = threading.Lock()
        self.baton.acquire()
        self.on_tick: Callable[[str, Process], bool] = lambda what, process: False
        """Told of each tick; returns whether something is due that only the machine itself can do."""
        self.between_turns: Callable[[], None] = lambda: None
        self.renamed: list[tuple[int, str, bytes]] = []
        """Each file that was renamed: when, to what, and what was in it."""
        self._pids = itertools.count(100)

    # -- for the simulated operating system -------------------------------------------------------------

    @property
    def process(self) -> Process | None:
        return None if self.current is None else self.current.process

    def tick(self, what: str) -> None:
        """Let time pass, and perhaps others run; raise `Killed` in a process that is no more."""
        task = self.current
        if task is None:
            return
        if not task.process.alive:
            raise Killed
        self.ticks += 1
        if self.on_tick(what, task.process) or self.rng.random() < self.switching:
            self._pause(task)

    def wait(self, ready: Callable[[], bool], *, patient: bool = True) -> bool:
        """Let others run until `ready`; say whether it came to that, rather than to the end of all patience."""
        task = self.current
        if task is None:
            raise Deadlock("nobody else is there to wait for")
        if not task.process.alive:
            raise Killed
        while not ready():
            task.ready, task.patient, task.timed_out = ready, patient, False
            self._pause(task)
            if task.timed_out:
                return False
        return True

    def _pause(self, task: Task) -> None:
        self.current = None
        worker = task.worker
        self.baton.release()
        worker.baton.acquire()
        task.ready = None
        if not task.process.alive:
            raise Killed

    # -- for the run ------------------------------------------------------------------------------------

    def start(self, slot: int, work: Callable[[], None], process: Process | None = None) -> Process:
        """Start a process, or one more thread in a process."""
        if process is None:
            process = Process(next(self._pids), slot)
        worker = _idle.pop() if _idle else _Worker()
        task = Task(process, work, worker)
        worker.machine, worker.task = self, task
        self.tasks.append(task)
        return process

    def kill(self, process: Process) -> None:
        """Stop a process without warning, and let its threads unwind without effect."""
        process.die()
        for task in [task for task in self.tasks if task.process is process]:
            self._finish(task)

    def lose_power(self) -> None:
        for process in {task.process: None for task in self.tasks}:
            process.die()
        self.disk.lose_power(self.rng)
        for task in list(self.tasks):
            self._finish(task)

    def _finish(self, task: Task) -> None:
        while not task.done:
            self._resume(task)
        if task in self.tasks:
            self.tasks.remove(task)

    def _resume(self, task: Task) -> None:
        self.current = task
        task.worker.baton.release()
        self.baton.acquire()
        self.current = None
        if task.error is not None:
            error, task.error = task.error, None
            raise error

    def run(self) -> None:
        """Let all processes run to their end."""
        Machine.running = self
        try:
            while True:
                self.between_turns()
                if not self.tasks:
                    return
                task = self._next()
                self._resume(task)
                if task.done:
                    self.tasks.remove(task)
        finally:
            for task in list(self.tasks):
                task.process.die()
                while not task.done:
                    task.error = None
                    self.current = task
                    task.worker.baton.release()
                    self.baton.acquire()
            self.tasks.clear()
            self.current = None
            Machine.running = None

    def _next(self) -> Task:
        ready = [task for task in self.tasks if task.ready is None or task.ready()]
        if ready:
            return ready[0] if len(ready) == 1 else self.rng.choice(ready)
        for task in self.tasks:
            if not task.patient:
                task.timed_out = True
                return task
        raise Deadlock("all processes wait for each other")

    @staticmethod
    def new_handle() -> int:
        return next(_handle_numbers)
