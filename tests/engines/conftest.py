"""One Spark session for all tests that need it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from local_spark import local_spark


@pytest.fixture(scope="session")
def spark():
    with local_spark() as session:
        yield session
