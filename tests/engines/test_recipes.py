"""The recipes of docs/scale.md that need a server: run as they stand. The others are doctests."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
RECIPES = dict(re.findall(r"```python recipe: (\w+)\n(.*?)```", PAGE, flags=re.DOTALL))


def visits():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "person_id": rng.integers(0, 1000, 3000),
            "weight": rng.normal(70, 8, 3000),
            "glucose": rng.normal(5, 0.5, 3000),
        }
    )


def test_every_recipe_is_run():
    assert set(RECIPES) == {"postgres", "spark"}


def test_postgres_recipe(postgres):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("CREATE TABLE visits (person_id bigint, weight double precision, glucose double precision)")
        try:
            with server.cursor() as cursor:
                cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s)", visits().values.tolist())
            names = {"address": postgres}
            exec(RECIPES["postgres"], names)
        finally:
            server.execute("DROP TABLE visits")
    assert names["found"].guarantee_.unit == "person_id"
    assert names["found"].guarantee_.enforced


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_spark_recipe(spark, tmp_path):
    visits().to_parquet(tmp_path / "v.parquet")
    names = {"session": spark, "folder": tmp_path}
    exec(RECIPES["spark"], names)
    assert names["found"].guarantee_.unit == "person_id"
    assert names["found"].guarantee_.enforced
