"""One Postgres server and one Spark session for all tests that need them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from local_spark import local_spark
from loopback_postgres import loopback_postgres


@pytest.fixture(scope="session")
def postgres():
    with loopback_postgres() as address:
        yield address


@pytest.fixture(scope="session")
def spark():
    with local_spark() as session:
        yield session
