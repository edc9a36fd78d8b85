"""Spark with one partition after a shuffle: the tables are small and many."""

import pytest

SHUFFLES = "spark.sql.shuffle.partitions"


@pytest.fixture(name="spark")
def _one_shuffle(spark):
    before = spark.conf.get(SHUFFLES)
    spark.conf.set(SHUFFLES, "1")
    yield spark
    spark.conf.set(SHUFFLES, before)
