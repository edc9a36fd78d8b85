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
    return run_in_shell(SHELL[recipe], folder, **variables)


def run_in_shell(script, folder, **variables):
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "COLUMNS": "200", **variables}
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
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


def test_the_command_of_the_airflow_snippet(tmp_path):
    """The task that releases, from counts that a task before it has written, and a ledger that pays."""
    duckdb = pytest.importorskip("duckdb")
    (snippet,) = re.findall(r"```text\n(query = .*?)```", PAGE, flags=re.DOTALL)
    (arguments,) = re.findall(r"bash_command=(.*?)\)\n", snippet, flags=re.DOTALL)
    query = "fogline sql --dialect duckdb --table visits --columns weight --bounds 30:150 --out counts.sql"
    ledger = "fogline ledger create budget.fogline --dataset visits --epsilon 2 --delta 1e-6"
    run_in_shell(f"{query}\n{ledger}", tmp_path)
    with duckdb.connect() as database:
        database.register("visits", visits())
        database.sql((tmp_path / "counts.sql").read_text()).write_csv(str(tmp_path / "counts.csv"))
    (tmp_path / "counts.csv").chmod(0o600)
    told = run_in_shell("".join(re.findall(r'"(.*?)"', arguments)), tmp_path)
    assert "fogline's query for DuckDB" in told
    assert (tmp_path / "visits.fog").exists()
    assert not (tmp_path / "counts.csv").exists()


def dbt_project(folder):
    """A project of dbt with the visits as its seed, and the macro and model that the recipe writes; what is kept."""
    for part in ("models", "macros", "seeds"):
        (folder / part).mkdir()
    in_shell("dbt", folder)
    frame = visits()
    frame.to_csv(folder / "seeds" / "visits.csv", index=False)
    return frame[frame.weight.between(30, 150)].groupby("person_id").size().clip(upper=2).sum()


def test_a_macro_of_dbt(tmp_path):
    """As Jinja renders it; ``make test-dbt`` has dbt itself run it."""
    duckdb = pytest.importorskip("duckdb")
    jinja2 = pytest.importorskip("jinja2")
    kept = dbt_project(tmp_path)
    parts = [(tmp_path / part / "fogline_counts.sql").read_text() for part in ("macros", "models")]
    query = jinja2.Template("".join(parts)).render(ref=lambda name: f"clinic_{name}")
    with duckdb.connect() as database:
        database.register("clinic_visits", visits())
        assert sum(row[1] for row in database.execute(query).fetchall()) == kept


DBT = Path(os.environ.get("FOGLINE_DBT", Path(__file__).parents[2] / ".venv-dbt")) / "bin"


@pytest.mark.skipif(not (DBT / "dbt").exists(), reason="dbt has an environment of its own: make test-dbt")
def test_dbt_runs_the_macro(tmp_path):
    kept = dbt_project(tmp_path)
    (tmp_path / "dbt_project.yml").write_text("name: clinic\nprofile: clinic\n")
    target = "{type: duckdb, path: clinic.duckdb, threads: 1}"
    (tmp_path / "profiles.yml").write_text(f"clinic: {{target: here, outputs: {{here: {target}}}}}\n")
    quiet = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DBT_VERSION_CHECK": "false"}
    subprocess.run([DBT / "dbt", "build", "--profiles-dir", "."], cwd=tmp_path, env=quiet, check=True)
    export = "COPY (SELECT * FROM fogline_counts) TO 'counts.csv' (HEADER)"
    read = f"import duckdb; duckdb.connect('clinic.duckdb').execute({export!r})"
    subprocess.run([DBT / "python", "-c", read], cwd=tmp_path, umask=0o077, check=True)
    rows = pd.read_csv(tmp_path / "counts.csv")
    assert rows.records.sum() == kept
    question = "--columns weight --bounds 30:150 --unit person_id --max-contributions 2 --epsilon 1 --out visits.fog"
    release = [sys.executable, "-m", "fogline.cli", "release", "--counts", "counts.csv", *question.split()]
    told = subprocess.run(release, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "one person_id (at most 2 records, as declared, not enforced)" in told


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
