"""What all tests share: one thread, property tests that repeat, one Postgres server and one Spark session."""

import gc
import os
import sys
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


def pytest_collection_finish():
    """Leave what the imports made out of garbage collection: a replay collects before it begins, hundreds of times."""
    gc.collect()
    gc.freeze()


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

    with local_spark() as session:
        yield session
