"""From a file to a cluster: what a pass costs, against what the engine needs to read the data, in one run.

Rows are generated into a folder outside the repository and kept there for the next run. Each figure is written to
docs/benchmarks/scale.csv as soon as it is known; those that are there already are not measured again unless asked.

    python benchmarks/scale.py [--folder DIR] [--largest 100000000] [--again] [NAME ...]
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from common import read_csv, write_csv
from fogline import DensitySketch
from fogline.density.random_spec import Spec, plan_spec
from fogline.releases import sketch
from fogline.releases.continual import ContinualCounts
from fogline.sources.contributions import ContributionBound
from fogline.sources.files import FileTable
from fogline.sources.registry import table
from local_spark import local_spark
from loopback_postgres import loopback_postgres
from many_sites import seconds_of

BOX = [(-10.0, 10.0), (-10.0, 10.0)]
GRID = plan_spec(BOX, "auto", None)
RANDOM = plan_spec([(-10.0, 10.0)] * 4, "auto", None, features=64)
MEGABYTE = 2**20
PEOPLE = 10**6
BOUND = ContributionBound(3, (5, 6))


@dataclass(frozen=True)
class Scene:
    """Where the rows are, and how many."""

    folder: Path
    largest: int

    @property
    def middle(self) -> int:
        """Rows where ten million are asked for."""
        return min(10**7, self.largest)

    def parquet(self, rows: int, columns: int = 2) -> Path:
        """File of so many rows: people, and columns in a box, clusters in the first two."""
        path = self.folder / f"rows-{rows}-{columns}.parquet"
        if not path.exists():
            import duckdb

            # a difference of two exponentials: what the numbers are matters to no figure here
            value = "least(greatest(3 * (ln(random()) - ln(random())), -12), 12)"
            names = ", ".join(f"{value} AS v{j}" for j in range(columns))
            part = path.with_suffix(".part")
            with duckdb.connect(config={"preserve_insertion_order": False}) as connection:
                connection.execute(
                    f"COPY (SELECT (hash(i) % {PEOPLE})::BIGINT AS person_id, {names} FROM range({rows}) t(i)) "
                    f"TO '{part}' (FORMAT parquet)"
                )
            part.rename(path)
        return path

    def uniform(self, rows: int, people: int = 0) -> Path:
        """File of so many rows of two doubles in the box, and whose they are, if there are people."""
        path = self.folder / f"uniform-{rows}-{people}.parquet"
        if not path.exists():
            part = path.with_suffix(".part")
            who = f"(hash(i) % {people})::BIGINT AS person_id, " if people else ""
            # in a process of its own, whose memory is not measured
            columns = f"{who}random() * 20 - 10 AS v0, random() * 20 - 10 AS v1"
            code = (
                "import duckdb; connection = duckdb.connect(config={'preserve_insertion_order': False}); "
                f"connection.execute(\"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{part}' (FORMAT parquet)\")"
            )
            subprocess.run([sys.executable, "-c", code], check=True)
            part.rename(path)
        return path


def best_of(*actions: Callable[[], Any], repeats: int = 5) -> list[float]:
    """Least wall-clock time of each action; they take turns, so that a busy moment meets all of them."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(repeats):
        for action, seconds in zip(actions, times, strict=True):
            began = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - began)
    return [min(seconds) for seconds in times]


def same(mine: Any, theirs: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def cpu_of(*actions: Callable[[], Any], repeats: int = 5) -> list[float]:
    """Least CPU time of each action, of all threads together: what others do on the machine matters less to it."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(repeats):
        for action, seconds in zip(actions, times, strict=True):
            began = time.process_time()
            action()
            seconds.append(time.process_time() - began)
    return [min(seconds) for seconds in times]


def average(path: Path) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"SELECT avg(v0), avg(v1), min(v0), max(v0) FROM '{path}'").fetchall()


Row = dict[str, Any]


def figure(what: str, value: Any, target: str = "") -> Row:
    return {"what": what, "value": value, "target": target}


def parquet_pass(scene: Scene) -> Iterator[Row]:
    path = scene.uniform(scene.largest)
    FileTable(path, ["v0", "v1"]).state(GRID)
    actions = (lambda: average(path), lambda: FileTable(path, ["v0", "v1"]).state(GRID))
    reading, counting = best_of(*actions, repeats=10)
    rows = f"{scene.largest:.0e} rows of Parquet"
    yield figure(f"{rows}: SELECT avg, avg, min, max, seconds", reading)
    yield figure(f"{rows}: the sketch, seconds", counting)
    yield figure(f"{rows}: sketch over SELECT", counting / reading, "at most 1.5")
    code = f"import scale; from pathlib import Path; scale.print_peak(Path({str(path)!r}))"
    peak = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path(__file__).parent
    )
    yield figure(f"{rows}: peak memory of the process, MiB", float(peak.stdout), "below 1024")


def parquet_cpu(scene: Scene) -> Iterator[Row]:
    """The same in CPU time of all threads, for machines that are never quiet."""
    path = scene.uniform(scene.largest)
    source = FileTable(path, ["v0", "v1"])
    source.state(GRID)
    reading, counting = cpu_of(lambda: average(path), lambda: source.state(GRID))
    rows = f"{scene.largest:.0e} rows of Parquet"
    yield figure(f"{rows}: SELECT avg, avg, min, max, CPU nanoseconds per row", 1e9 * reading / scene.largest)
    yield figure(f"{rows}: the sketch, CPU nanoseconds per row", 1e9 * counting / scene.largest)
    yield figure(f"{rows}: CPU of the sketch over CPU of SELECT", counting / reading, "at most 1.5")


def peak_memory() -> float:
    """The most memory that this process ever had, in MiB.

    Not by ``getrusage``: its figure includes what the parent held when it started the process.
    """
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / MEGABYTE


def print_peak(path: Path) -> None:
    """Print the most memory that this process ever had, after a pass; in MiB."""
    FileTable(path, ["v0", "v1"]).state(GRID)
    print(peak_memory())


def billion(scene: Scene) -> Iterator[Row]:
    """One pass over ten times `largest` rows: ten links to one file of generated rows, so that the disk holds it."""
    part, folder = scene.uniform(scene.largest), scene.folder / "ten"
    folder.mkdir()
    try:
        for number in range(10):
            (folder / f"{number}.parquet").hardlink_to(part)
        few = scene.uniform(scene.largest // 10)
        code = (
            f"import scale; from pathlib import Path; scale.print_two_passes(Path({str(few)!r}), Path({str(folder)!r}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path(__file__).parent
        )
    finally:
        shutil.rmtree(folder)
    found = json.loads(done.stdout)
    rows = f"{10 * scene.largest:.0e} rows x 2 columns in one pass, ten links to one file"
    each, each_few = 1e9 * found["many"] / (10 * scene.largest), 1e9 * found["few"] / (scene.largest // 10)
    yield figure(f"{rows}: CPU nanoseconds per row", each)
    yield figure(f"{rows}: CPU per row over that of {scene.largest // 10:.0e} rows", each / each_few, "at most 1.1")
    yield figure(f"{rows}: peak memory of the process, MiB", found["peak_many"], "below 1024")
    yield figure(
        f"{rows}: peak memory over that of {scene.largest // 10:.0e} rows", found["peak_many"] / found["peak_few"]
    )
    yield figure(f"{rows}: every row counted", found["counted"] == 10 * scene.largest, "True")


def print_two_passes(few: Path, many: Path) -> None:
    """Print CPU and peak memory of a pass over few rows, then over many, as JSON.

    The few are read ten times, half of them before and half after, and the mean counts: one long pass meets quiet and
    busy moments alike. (The first run took the least of five before and after, and gave 1.12 in place of 1.01.)
    """
    source, found = FileTable(few, ["v0", "v1"]), dict[str, float]()
    source.state(GRID)
    states: list[Any] = []
    few_each = [cpu_of(lambda: source.state(GRID), repeats=1)[0] for _ in range(5)]
    found["peak_few"] = peak_memory()
    (found["many"],) = cpu_of(lambda: states.append(FileTable(many, ["v0", "v1"]).state(GRID)), repeats=1)
    found["peak_many"] = peak_memory()
    few_each += [cpu_of(lambda: source.state(GRID), repeats=1)[0] for _ in range(5)]
    found["few"], found["counted"] = float(np.mean(few_each)), int(states[0][1].sum())
    print(json.dumps(found))


def fixed_cost(scene: Scene) -> Iterator[Row]:
    """What a pass costs beside its rows: that of a file of ten rows, which has the same schema."""
    source, ten = FileTable(scene.parquet(min(10**6, scene.largest)), ["v0", "v1"]), scene.parquet(10)
    for _ in range(3):
        FileTable(ten, ["v0", "v1"]).state(GRID)
    few = FileTable(ten, ["v0", "v1"])
    actions = (lambda: few.state(GRID), lambda: source.state(GRID))
    (wall, wall_million), (cpu, cpu_million) = best_of(*actions, repeats=30), cpu_of(*actions, repeats=30)
    yield figure("a pass over 10 rows of Parquet: milliseconds", 1e3 * wall, "below 2")
    yield figure("a pass over 10 rows of Parquet: CPU milliseconds, threads of DuckDB included", 1e3 * cpu)
    yield figure("a pass over 1e+06 rows of Parquet: milliseconds", 1e3 * wall_million)
    yield figure("a pass over 1e+06 rows of Parquet: CPU milliseconds", 1e3 * cpu_million)


def time_per_row(scene: Scene) -> Iterator[Row]:
    sizes = [rows for rows in (10**6, 10**7, 10**8) if rows <= scene.largest]
    took: dict[int, float] = {}
    for rows in sizes:
        path = scene.uniform(rows)
        source = FileTable(path, ["v0", "v1"])
        source.state(GRID)
        (seconds,) = cpu_of(partial(source.state, GRID), repeats=5 * min(10**8 // rows, 4))
        took[rows] = seconds
        yield figure(f"{rows:.0e} rows of Parquet: CPU nanoseconds per row", 1e9 * seconds / rows, "within 20%")
        counts = sketch(table(path, ["v0", "v1"]), GRID)

        def after(counts: DensitySketch = counts) -> None:
            DensitySketch.of(GRID).add_state(*counts.state()).release(epsilon=1.0, delta=1e-6).modes()

        (later,) = cpu_of(after, repeats=3)
        yield figure(f"{rows:.0e} rows: CPU seconds after the pass, release and modes", later, "the same for all")
    for fewer, more in itertools.pairwise(sizes):
        each = 1e9 * (took[more] - took[fewer]) / (more - fewer)
        what = f"from {fewer:.0e} to {more:.0e} rows of Parquet: CPU nanoseconds per further row"
        yield figure(what, each, "within 20%")


class ByDuckDB(FileTable):
    """A file whose rows DuckDB hands over, as it does those with a unit."""

    def _is_all_doubles(self) -> bool:
        return False


def contributions(scene: Scene) -> Iterator[Row]:
    """CPU of all threads: the bounded pass, and what of it no choice could save, which is to read one more column."""
    path = scene.parquet(scene.middle)
    plain, bounded = FileTable(path, ["v0", "v1"]), FileTable(path, ["v0", "v1"], unit="person_id")
    rows = ByDuckDB(path, ["v0", "v1"])
    actions = (
        lambda: plain.state(GRID),
        lambda: bounded._bounded(BOUND).state(GRID),
        lambda: rows._for_cells().each_batch(lambda *_: None),
        lambda: bounded._for_cells().each_unit_batch(lambda *_: None),
    )
    cpu_of(*actions, repeats=1)
    without, within, numbers, numbers_and_ids = cpu_of(*actions)
    what = f"{scene.middle:.0e} rows of {PEOPLE:.0e} people, 3 of each kept, CPU"
    yield figure(f"{what}: plain pass, nanoseconds per row", 1e9 * without / scene.middle)
    yield figure(f"{what}: bounded pass, nanoseconds per row", 1e9 * within / scene.middle)
    yield figure(f"{what}: bounded over plain pass", within / without, "at most 2.5")
    floor = 1 + (numbers_and_ids - numbers) / without
    yield figure(f"{what}: plain pass that also reads the ids, over plain pass", floor)


def bounded_memory(scene: Scene) -> Iterator[Row]:
    """Peak memory of a bounded pass in a process of its own: people with many records, and with ten each."""
    for people in (PEOPLE, scene.largest // 10):
        path = scene.uniform(scene.largest, people)
        code = f"import scale; from pathlib import Path; scale.print_bounded_peak(Path({str(path)!r}))"
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path(__file__).parent
        )
        path.unlink()
        what = f"{scene.largest:.0e} rows of {people:.0e} people, 3 of each kept"
        yield figure(f"{what}: peak memory of the process, MiB", float(done.stdout), "below 2048")


def print_bounded_peak(path: Path) -> None:
    """Print the most memory that this process ever had, after a bounded pass; in MiB."""
    FileTable(path, ["v0", "v1"], unit="person_id")._bounded(BOUND).state(GRID)
    print(peak_memory())


COLUMNS = 100


def many_columns(scene: Scene) -> Iterator[Row]:
    """A profile of many columns in one pass, in a process of its own, against SUMMARIZE of the same file."""
    rows = min(10**6, scene.largest)
    path = scene.folder / f"wide-{rows}.parquet"
    columns = ", ".join(f"random() * 20 - 10 AS c{j}" for j in range(COLUMNS))
    code = (
        "import duckdb; duckdb.connect(config={'preserve_insertion_order': False})"
        f".execute(\"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT parquet)\")"
    )
    try:
        subprocess.run([sys.executable, "-c", code], check=True)
        code = f"import scale; from pathlib import Path; scale.print_profile(Path({str(path)!r}))"
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path(__file__).parent
        )
    finally:
        path.unlink(missing_ok=True)
    found = json.loads(done.stdout.splitlines()[-1])  # after what DuckDB says of its progress
    what = f"{rows:.0e} rows x {COLUMNS} columns of Parquet, all of them released by profile"
    yield figure(f"{what}: CPU seconds", found["release"])
    yield figure(f"{what}: CPU over that of SUMMARIZE", found["release"] / found["summarize"])
    yield figure(f"{what}: times that the file was read", found["passes"], "1")
    yield figure(f"{what}: peak memory of the process, MiB", found["peak"], "below 1024")


def print_profile(path: Path) -> None:
    """Print CPU and peak memory of a profile of all columns of a file, and how often it was read, as JSON."""
    import duckdb

    from fogline import profile

    passes, scan = 0, FileTable._scan

    def counted(self: FileTable, take: Any) -> None:
        nonlocal passes
        passes += 1
        scan(self, take)

    FileTable._scan = counted  # type: ignore[method-assign]
    bounds = {f"c{j}": (-10.0, 10.0) for j in range(COLUMNS)}
    (release,) = cpu_of(lambda: profile(path, bounds=bounds, epsilon=1.0, delta=1e-6), repeats=1)
    peak = peak_memory()
    with duckdb.connect() as connection:
        (summarize,) = cpu_of(lambda: connection.execute(f"SUMMARIZE SELECT * FROM '{path}'").fetchall(), repeats=1)
    print(json.dumps({"release": release, "peak": peak, "summarize": summarize, "passes": passes}))


def _memory_rows(scene: Scene, columns: int) -> Any:
    import duckdb

    names = ", ".join(f"v{j}" for j in range(columns))
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {names} FROM '{scene.parquet(scene.middle, columns)}'").fetchnumpy()
    return np.column_stack([found[f"v{j}"] for j in range(columns)])


def _cases(scene: Scene) -> Iterator[tuple[str, Spec, int, Any]]:
    for name, spec, columns in (("grid", GRID, 2), ("random features", RANDOM, 4)):
        yield name, spec, columns, DensitySketch.of(spec).update(_memory_rows(scene, columns)).state()


def dask_identity(scene: Scene) -> Iterator[Row]:
    import dask.dataframe as dd

    for name, spec, columns, wanted in _cases(scene):
        frame = dd.read_parquet(scene.parquet(scene.middle, columns), columns=[f"v{j}" for j in range(columns)])
        for parts in (1, 7):
            got = table(frame.repartition(npartitions=parts)).state(spec)
            yield figure(
                f"Dask, {scene.middle:.0e} rows, {name}, {parts} partitions: equal to numpy", same(got, wanted), "True"
            )


def spark_identity(scene: Scene) -> Iterator[Row]:
    with local_spark(memory="2g") as session, tempfile.TemporaryDirectory() as marks:
        for name, spec, columns, wanted in _cases(scene):
            names = [f"v{j}" for j in range(columns)]
            frame = session.read.parquet(str(scene.parquet(scene.middle, columns))).select(*names)
            for parts in (3, 16):
                got = table(frame.repartition(parts)).state(spec)
                what = f"Spark local[2], {scene.middle:.0e} rows, {name}, {parts} partitions"
                yield figure(f"{what}: equal to numpy", same(got, wanted), "True")
            label = f"{marks}/{columns}"
            fragile = frame.mapInArrow(_dying(label), ", ".join(f"{v} double" for v in names))
            got = table(fragile).state(spec)
            what = f"Spark, {scene.middle:.0e} rows, {name}, a worker killed after its rows went out"
            yield figure(f"{what}: equal to numpy", same(got, wanted) and Path(label).exists(), "True")
        frame = session.read.parquet(str(scene.parquet(scene.middle)))
        integers = frame.selectExpr("CAST(floor(v0 * 14) AS INT) AS i", "CAST(floor(v1 * 14) AS INT) AS j").cache()
        integers.count()
        numbers = frame.select("v0", "v1").cache()
        numbers.count()
        plain, ours = best_of(
            lambda: integers.groupBy("i", "j").count().toArrow(), lambda: table(numbers).state(GRID), repeats=3
        )
        yield figure(f"Spark, {scene.middle:.0e} rows: sketch over groupBy of two integers", ours / plain, "at most 3")


def _dying(label: str) -> Callable[[Any], Any]:
    """A step that passes rows on, and whose worker is killed once, at the end of a partition."""

    def step(batches: Any) -> Any:
        import os

        from pyspark import TaskContext

        yield from batches
        task = TaskContext.get()
        if task is not None and task.partitionId() == 0 and not os.path.exists(label):
            open(label, "w").close()
            os._exit(1)

    return step


def spark_cluster(scene: Scene) -> Iterator[Row]:
    """A cluster of two processes, of which one is lost with its rows."""
    rows = min(10**6, scene.largest)
    path = scene.parquet(rows)
    memory = _parquet_rows(path)
    wanted = DensitySketch.of(GRID).update(memory).state()
    with local_spark(workers=2) as session, tempfile.TemporaryDirectory() as marks:
        frame = session.read.parquet(str(path)).select("v0", "v1").repartition(6)
        got = table(frame.mapInArrow(_lost(marks), "v0 double, v1 double")).state(GRID)
        attempts = len(list(Path(marks).iterdir()))
        what = f"Spark, a cluster of two processes, {rows:.0e} rows, a worker process lost"
        yield figure(f"{what}: attempts at one task", attempts)
        yield figure(f"{what}: equal to numpy", same(got, wanted) and attempts > 1, "True")


def _lost(label: str) -> Callable[[Any], Any]:
    """A step that kills the Java process of its worker, once, after its rows went out."""

    def step(batches: Any) -> Any:
        import os
        import signal
        from pathlib import Path

        from pyspark import TaskContext

        yield from batches
        task = TaskContext.get()
        if task is not None and task.partitionId() == 0:
            is_first = not os.listdir(label)
            open(f"{label}/{os.getpid()}", "w").close()
            if is_first:  # the parent of Python's daemon is the worker's Java process
                status = Path(f"/proc/{os.getppid()}/status").read_text()
                (worker,) = (line.split()[1] for line in status.splitlines() if line.startswith("PPid"))
                if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{worker}/cmdline").read_bytes():
                    os.kill(int(worker), signal.SIGKILL)

    return step


def spark_twice(scene: Scene) -> Iterator[Row]:  # noqa: ARG001
    """A master and two workers at two addresses, where Spark runs tasks twice."""
    with tempfile.TemporaryDirectory() as marks:
        script = Path(__file__).parent / "tasks_that_run_twice.py"
        done = subprocess.run([sys.executable, str(script), marks], check=True, capture_output=True, text=True)
    for case in json.loads(done.stdout.splitlines()[-1]):
        attempts = sum(note.isdigit() for note in case["marks"])
        what = f"Spark, a master and two workers, a task of {case['case']}"
        yield figure(f"{what}: attempts", attempts)
        yield figure(f"{what}: equal to numpy", case["equal"], "True")


def _parquet_rows(path: Path) -> Any:
    import duckdb

    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT v0, v1 FROM '{path}'").fetchnumpy()
    return np.column_stack([found["v0"], found["v1"]])


def postgres_identity(scene: Scene) -> Iterator[Row]:
    import psycopg

    rows = min(10**6, scene.largest)
    source = scene.parquet(rows)
    path = source.with_suffix(".csv")
    with loopback_postgres() as address, psycopg.connect(address, autocommit=True) as server:
        server.execute("CREATE TABLE visits (person_id bigint, v0 double precision, v1 double precision)")
        import duckdb

        with duckdb.connect() as connection, server.cursor() as cursor:
            with cursor.copy("COPY visits FROM STDIN") as copy:
                connection.execute(f"SELECT person_id, v0, v1 FROM '{source}'")
                while chunk := connection.fetchmany(10_000):
                    for record in chunk:
                        copy.write_row(record)
            with path.open("wb") as file, cursor.copy("COPY visits TO STDOUT (FORMAT csv, HEADER)") as out:
                for piece in out:
                    file.write(piece)
        names = ["v0", "v1"]
        mine, theirs = table(address, names, query="visits").state(GRID), FileTable(path, names).state(GRID)
        yield figure(f"Postgres, {rows:.0e} rows: equal to the CSV exported from it", same(mine, theirs), "True")
        mine = table(address, names, query="visits", unit="person_id")._bounded(BOUND).state(GRID)
        theirs = FileTable(path, names, unit="person_id")._bounded(BOUND).state(GRID)
        yield figure(f"Postgres, {rows:.0e} rows, 3 of each person: equal to the CSV", same(mine, theirs), "True")


def bytes_per_row(scene: Scene) -> Iterator[Row]:
    import duckdb

    path = scene.parquet(scene.middle)
    with duckdb.connect() as connection:
        ((total,),) = connection.execute(
            f"SELECT sum(total_compressed_size) FROM parquet_metadata('{path}') WHERE path_in_schema IN ('v0', 'v1')"
        ).fetchall()
    yield figure("bytes that a row's two columns take in Parquet", int(total) / scene.middle)


def continual(scene: Scene) -> Iterator[Row]:  # noqa: ARG001
    """Noise of 52 weekly releases of an empty table, against one release of the same budget."""
    for leavers, target in ((False, "at most 2.5"), (True, "at most 3")):
        weeks: dict[str, Any] = {
            "bounds": [(0, 1)],
            "leaves": [4096],
            "epsilon": 1.0,
            "delta": 1e-6,
            "leavers": leavers,
        }
        noise = []
        for periods in (52, 1):
            counts = ContinualCounts(periods=periods, **{**weeks, "leavers": leavers and periods > 1})
            for _ in range(periods):
                released = counts.release()
            noise.append(float(np.std(released.cumulative()[0])))
        what = "52 weekly releases" + (" with leavers" if leavers else "")
        yield figure(f"{what}: noise of the last over that of a single release", noise[0] / noise[1], target)


def federation(scene: Scene) -> Iterator[Row]:  # noqa: ARG001
    seconds_of(2)  # what is loaded once
    for count in (10, 100, 1000):
        masking, merging = seconds_of(count)
        yield figure(f"{count} masked sites: CPU seconds at each site", masking)
        yield figure(f"{count} masked sites: CPU seconds of the merge, every mask cancelled", merging)
        checks = count * (count - 1)
        yield figure(f"{count} masked sites: CPU microseconds of the merge per check of a pair", 1e6 * merging / checks)


PARTS: dict[str, Callable[[Scene], Iterator[Row]]] = {
    "parquet": parquet_pass,
    "parquet cpu": parquet_cpu,
    "rows": time_per_row,
    "billion": billion,
    "fixed": fixed_cost,
    "contributions": contributions,
    "bounded memory": bounded_memory,
    "many columns": many_columns,
    "dask": dask_identity,
    "postgres": postgres_identity,
    "spark": spark_identity,
    "spark cluster": spark_cluster,
    "spark twice": spark_twice,
    "bytes": bytes_per_row,
    "continual": continual,
    "federation": federation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "fogline-scale")
    parser.add_argument("--largest", type=int, default=10**8)
    parser.add_argument("--again", action="store_true", help="measure what was measured before")
    parser.add_argument("--dry", action="store_true", help="print the figures and write nothing")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="NAME", help=", ".join(PARTS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    scene = Scene(options.folder, options.largest)
    known = read_csv("scale")
    for name in options.parts or PARTS:
        if any(row["part"] == name for row in known) and not (options.again or options.dry):
            continue
        rows = [{"part": name, **row} for row in _said(PARTS[name](scene))]
        known = [row for row in known if row["part"] != name] + rows
        if not options.dry:
            write_csv("scale", known)


def _said(rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        print(f"{row['what']}: {row['value']}", flush=True)
        yield row


if __name__ == "__main__":
    main()
