"""The recipes of docs/scale.md that need a server: run as they stand. The others are doctests."""

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from optional_packages import optional

pd = optional("pandas")

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
RECIPES = dict(re.findall(r"```python recipe: (\w+)\n(.*?)```", PAGE, flags=re.DOTALL))
SHELL = dict(re.findall(r"```sh recipe: (\w+)\n(.*?)```", PAGE, flags=re.DOTALL))


def visits():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "person_id": rng.integers(0, 1000, 3000),
            "weight": rng.normal(70, 8, 3000),
            "glucose": rng.normal(5, 0.5, 3000),
            "sex": rng.choice(["f", "m"], 3000),
        }
    )


def test_every_recipe_is_run():
    assert set(RECIPES) == {"postgres", "spark"}
    assert set(SHELL) == {"sqlite", "postgres", "files", "warehouse", "dbt"}


@pytest.fixture
def visits_table(postgres):
    psycopg = pytest.importorskip("psycopg")
    create = "CREATE TABLE visits (person_id bigint, weight double precision, glucose double precision, sex text)"
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(create)
        with server.cursor() as cursor:
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s, %s)", visits().values.tolist())
        yield postgres
        server.execute("DROP TABLE visits")


def in_shell(recipe, folder, **variables):
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "COLUMNS": "200", **variables}
    done = subprocess.run(
        ["sh", "-e", "-c", SHELL[recipe]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sqlite_from_the_shell(tmp_path):
    with closing(sqlite3.connect(tmp_path / "clinic.db")) as database:
        visits().to_sql("visits", database, index=False)
    told = in_shell("sqlite", tmp_path)
    assert told.count("one person_id (at most 2 records, enforced)") == 1
    assert "Strata" in told
    assert "Certified" in (tmp_path / "glucose.html").read_text(encoding="utf-8")


def test_postgres_from_the_shell(visits_table, tmp_path):
    told = in_shell("postgres", tmp_path, ADDRESS=visits_table)
    assert "one person_id (at most 2 records, enforced)" in told
    page = (tmp_path / "clusters.html").read_text(encoding="utf-8")
    assert "postgresql://…" in page
    assert visits_table not in page


def test_a_warehouse_of_ones_own(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    frame = visits()
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as database:
        database.register("arriving", frame)
        database.execute("CREATE TABLE visits AS SELECT * FROM arriving")
    told = in_shell("warehouse", tmp_path)
    assert "one person_id (at most 2 records, as declared, not enforced)" in told
    assert "fogline's query for DuckDB, which bounds the records of each person_id, on trust" in told
    assert (tmp_path / "visits.fog").exists()
    assert not (tmp_path / "counts.csv").exists()


def test_a_model_of_dbt(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    jinja2 = pytest.importorskip("jinja2")
    (tmp_path / "models").mkdir()
    in_shell("dbt", tmp_path)
    model = jinja2.Template((tmp_path / "models" / "fogline_counts.sql").read_text())
    frame = visits()
    with duckdb.connect() as database:
        database.register("clinic_visits", frame)
        rows = database.execute(model.render(ref=lambda name: f"clinic_{name}")).fetchall()
    kept = frame[frame.weight.between(30, 150)].groupby("person_id").size().clip(upper=2).sum()
    assert sum(row[1] for row in rows) == kept


def test_files_from_the_shell(tmp_path):
    (tmp_path / "months").mkdir()
    for month in (1, 2):
        visits()[month - 1 :: 2].to_parquet(tmp_path / "months" / f"{month}.parquet")
    assert "one person_id (at most 2 records, enforced)" in in_shell("files", tmp_path)


def test_postgres_recipe(visits_table):
    names = {"address": visits_table}
    exec(RECIPES["postgres"], names)
    assert names["found"].guarantee_.unit == "person_id"
    assert names["found"].guarantee_.enforced


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_spark_recipe(spark, tmp_path):
    visits().to_parquet(tmp_path / "v.parquet")
    names = {"session": spark, "folder": tmp_path}
    exec(RECIPES["spark"], names)
    assert names["found"].guarantee_.unit == "person_id"
    assert names["found"].guarantee_.enforced
