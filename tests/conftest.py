"""What all tests share: one thread, property tests that repeat, one Postgres server and one Spark session."""

import gc
import os
import sys
import tomllib
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "fogline",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("fogline")

LONG = Path(__file__).parent / "long.toml"
"""Tests that `make audit` runs and `make test` does not, with the reason of each."""


def pytest_collection_modifyitems(items):
    """Mark what `make test` leaves to `make audit`, and put the tests of Spark beside each other.

    Workers take neighbours: spread over the whole list, these tests would start a Java machine in each worker.
    """
    long = tuple(line["tests"] for line in tomllib.loads(LONG.read_text(encoding="utf-8"))["long"])
    for item in items:
        if item.nodeid.startswith(long):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: "spark" not in item.nodeid.lower())


def pytest_collection_finish():
    """Leave what the imports made out of garbage collection: a replay collects before it begins, hundreds of times."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item, nextitem):
    """Do the same for what a file left behind, such as a server's client, before the next file begins."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_sessionfinish():
    """Let the interpreter end as it would: what is frozen is not destroyed, and some libraries complain of leaks."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def postgres():
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    pytest.importorskip("psycopg")
    from loopback_postgres import loopback_postgres

    with loopback_postgres() as address:
        yield address


@pytest.fixture(scope="session")
def spark():
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    pytest.importorskip("pyspark")
    from local_spark import local_spark

    with local_spark(java="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC") as session:
        yield session
