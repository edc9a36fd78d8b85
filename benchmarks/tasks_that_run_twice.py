"""Counts of a Spark cluster that runs some tasks twice, as JSON.

Each case makes one task run twice: on speculation, where the first attempt waits until the second has handed over all
of its rows or its state, so that both have; or by a killed executor. An attempt leaves a file with its id.

    python benchmarks/tasks_that_run_twice.py FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fogline import DensitySketch
from fogline.density.random_spec import Spec, plan_spec
from fogline.sources import spark as engine
from fogline.sources.contributions import ContributionBound
from fogline.sources.registry import table
from local_spark import local_spark

HOSTS = ("127.0.0.1", "127.0.0.2")
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.multiplier": "1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JAVA,
}
PLANE = plan_spec([(-3.0, 3.0)] * 2, "auto", None)
FOUR = plan_spec([(-3.0, 3.0)] * 4, "auto", None, features=32)
BOUND = ContributionBound(2, (11, 12))
NAMES = [f"v{j}" for j in range(4)]
SCHEMA = "person bigint, " + ", ".join(f"{name} double" for name in NAMES)
ROWS, PEOPLE = 900, 150
PARTITION = 1
"""The partition whose task runs twice."""

POLLS, PAUSE = 6000, 0.05
"""How often a first attempt looks for the second before it gives up, and the seconds between."""

Step = Callable[[Iterator[Any]], Iterator[Any]]


def attempt(marks: str) -> tuple[int, bool] | None:
    """Leave a note of this attempt at the task; its id, and whether it is the first. None in other partitions.

    Attempts are told apart by their ids: where the rows of an earlier stage are lost with an executor, Spark begins the
    whole stage anew and numbers attempts from zero again.
    """
    from pyspark import TaskContext

    task: Any = TaskContext.get()
    if task.partitionId() != PARTITION:
        return None
    is_first = not os.listdir(marks)
    open(f"{marks}/{task.taskAttemptId()}", "w").close()
    return int(task.taskAttemptId()), is_first


def awaited(step: Step, marks: str) -> Step:
    """A step whose first attempt ends only after another attempt has handed over everything."""

    def waiting(batches: Iterator[Any]) -> Iterator[Any]:
        here = attempt(marks)
        yield from step(batches)
        if here is not None and not here[1]:
            open(f"{marks}/all of {here[0]}", "w").close()
        for _ in range(POLLS if here is not None and here[1] else 0):
            if any(name.startswith("all of") for name in os.listdir(marks)):
                break
            time.sleep(PAUSE)

    return waiting


def killed(marks: str) -> Step:
    """A step that kills the Java process of its executor, once, after all of its rows went out."""

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        here = attempt(marks)
        yield from batches
        if here is not None and not any(name.startswith("killed") for name in os.listdir(marks)):
            status = Path(f"/proc/{os.getppid()}/status").read_text()  # the parent of Python's daemon is the executor
            (executor,) = (line.split()[1] for line in status.splitlines() if line.startswith("PPid"))
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes():
                open(f"{marks}/killed {here[0]}", "w").close()
                os.kill(int(executor), signal.SIGKILL)

    return step


def slow(marks: str) -> Step:
    """A step that hands on its rows, and waits in its first attempt."""
    return awaited(lambda batches: batches, marks)


class Cases:
    """What numpy counts, and what Spark does where a task runs twice."""

    def __init__(self, session: Any, folder: Path) -> None:
        import pyarrow as pa

        rng = np.random.default_rng(1)
        self.rows, self.ids, self.folder = rng.normal(size=(ROWS, 4)), rng.integers(0, PEOPLE, ROWS), folder
        content = {"person": self.ids, **{name: self.rows[:, j] for j, name in enumerate(NAMES)}}
        self.frame = session.createDataFrame(pa.table(content)).repartition(3)

    def tried(self) -> Iterator[dict[str, Any]]:
        """Try all cases: the marks of attempts, how many records numpy counts, and whether Spark counts the same."""
        cells = DensitySketch.of(PLANE).update(self.rows[:, :2]).state()
        kept = table(self.rows[:, :2], unit=self.ids)._bounded(BOUND).state(PLANE)
        features = DensitySketch.of(FOUR).update(self.rows).state()
        for how, step in (("run twice on speculation", slow), ("run again after its executor was killed", killed)):
            yield self._one(f"rows {how}", partial(self._cells, step), cells)
            yield self._one(f"rows with a unit {how}", partial(self._people, step), kept)
        for what, own, spec, wanted in (
            ("states with a unit", "_bounded_step", PLANE, kept),
            ("states of random features", "_state_step", FOUR, features),
        ):
            yield self._one(f"{what} run twice on speculation", partial(self._waiting, own, spec), wanted)

    def _one(self, name: str, count: Callable[[str], Any], wanted: Any) -> dict[str, Any]:
        marks = self.folder / name
        marks.mkdir()
        found = count(str(marks))
        return {
            "case": name,
            "marks": sorted(note.name for note in marks.iterdir()),
            "records": int(wanted[1].sum()) if wanted[1].ndim == 1 else ROWS,
            "equal": all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)),
        }

    def _cells(self, step: Callable[[str], Step], marks: str) -> Any:
        return table(self.frame.mapInArrow(step(marks), SCHEMA), NAMES[:2]).state(PLANE)

    def _people(self, step: Callable[[str], Step], marks: str) -> Any:
        return table(self.frame.mapInArrow(step(marks), SCHEMA), NAMES[:2], unit="person")._bounded(BOUND).state(PLANE)

    def _waiting(self, name: str, spec: Spec, marks: str) -> Any:
        """A count in which a step of fogline's own tasks waits after its state went out."""
        plain = getattr(engine, name)
        setattr(engine, name, lambda *terms: awaited(plain(*terms), marks))
        try:
            if spec is FOUR:
                return table(self.frame, NAMES).state(spec)
            return table(self.frame, NAMES[:2], unit="person")._bounded(BOUND).state(spec)
        finally:
            setattr(engine, name, plain)


def main() -> None:
    """Print the cases of a cluster that is started for them."""
    with local_spark(hosts=HOSTS, java=JAVA, settings=SPECULATION) as session:
        print(json.dumps(list(Cases(session, Path(sys.argv[1])).tried())))


if __name__ == "__main__":
    main()
