"""One Spark session for all sources that need it, where Spark is installed."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark")
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from local_spark import local_spark

    with local_spark(threads=1, shuffles=1) as session:
        yield session
