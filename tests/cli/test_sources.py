"""Commands that read a database, and whose people are cut to what they may contribute."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from click.testing import CliRunner

from fogline.cli.app import app
from fogline.cli.parse import masked

BUDGET = ["--epsilon", "2", "--delta", "1e-5"]
SECRET = "hunter2"
UNREACHABLE = f"postgres://ada:{SECRET}@127.0.0.1:1/clinic"

COMMANDS = {
    "modes": ["--columns", "age", "--bounds", "0:100", *BUDGET, "--json"],
    "clusters": ["--columns", "age,minutes", "--bounds", "0:100,0:100", *BUDGET, "--json"],
    "regress": ["--x", "age", "--y", "minutes", "--x-bounds", "0:100", "--y-bounds", "0:100", *BUDGET, "--json"],
    "fit": [
        *("--column", "age", "--family", "normal", "--parameter-bounds", "mu=0:100,sigma=1:20"),
        *(*BUDGET, "--json"),
    ],
    "mixture": [
        *("--columns", "age,minutes", "--center", "50,50", "--radius", "80", "--components", "1"),
        *(*BUDGET, "--json"),
    ],
    "bounds": ["--columns", "age", *BUDGET, "--json"],
    "strata": ["--columns", "age", "--bounds", "0:100", "--by", "sex", "--categories", "f,m", *BUDGET, "--json"],
    "sample": ["--columns", "age", "--bounds", "0:100", "--per-draw-epsilon", "0.5", "--draws", "2", "--json"],
}
"""Commands that spend, and words for each of them."""

WITH_UNIT = sorted(set(COMMANDS) - {"strata", "sample"})


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def people():
    rng = np.random.default_rng(0)
    ages = rng.normal(40, 6, 2400)
    return [
        (int(person), "fm"[i % 2], age, age + 5)
        for i, (person, age) in enumerate(zip(rng.integers(0, 800, 2400), ages.tolist(), strict=True))
    ]


@pytest.fixture(scope="module")
def lite(tmp_path_factory):
    path = tmp_path_factory.mktemp("databases") / "clinic.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE visits (person_id INTEGER, sex TEXT, age REAL, minutes REAL)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", people())
    return f"sqlite:///{path}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_spends_reads_a_database(command, lite):
    result = run(command, lite, "--query", "SELECT * FROM visits WHERE age > 0", *COMMANDS[command])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout, parse_constant=pytest.fail)
    assert lite in told["command"]
    assert "SELECT * FROM visits" in told["command"]


@pytest.mark.parametrize("command", WITH_UNIT)
def test_contributions_of_a_person_are_enforced(command, lite):
    words = ["--query", "visits", "--unit", "person_id", "--max-contributions", "2", *COMMANDS[command]]
    result = run(command, lite, *words)
    assert result.exit_code == 0, result.output
    guarantee = json.loads(result.stdout)["guarantee"]
    assert guarantee["unit"] == "person_id"
    assert guarantee["max_contributions"] == 2
    assert guarantee["enforced"]


def test_a_person_of_a_file_too(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("person_id,sex,age,minutes\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in people()))
    result = run("modes", path, "--unit", "person_id", *COMMANDS["modes"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["guarantee"]["enforced"]
    assert "person_id" not in run("modes", path, *COMMANDS["modes"]).stdout


def test_one_person_with_all_the_records_is_lost_in_the_fog(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("who,age\n" + "Ann,40\n" * 5000)
    words = [path, *COMMANDS["modes"], "--json"]
    assert json.loads(run("modes", *words).stdout)["modes"]
    assert json.loads(run("modes", *words, "--unit", "who").stdout)["count"]["value"] < 500


def test_a_site_counts_a_database(lite, tmp_path):
    words = ["--columns", "age", "--bounds", "0:100", "--site", "north", "--pass", "spring", "--out", tmp_path / "n"]
    result = run("sketch", lite, "--query", "visits", "--unit", "person_id", *words)
    assert result.exit_code == 0, result.output
    released = run("release", tmp_path / "n", *BUDGET, "--json")
    assert released.exit_code == 0, released.output
    assert json.loads(released.stdout)["guarantee"]["unit"] == "person_id"


def test_a_plan_takes_a_public_sample_from_a_database(lite):
    words = ["--bounds", "0:100", "--n", "500", "--delta", "1e-6", "--epsilons", "2", "--runs", "1", "--json"]
    result = run("plan", *words, "--shape", lite, "--query", "SELECT age FROM visits LIMIT 500")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["modes"][0][0] == pytest.approx(40, abs=4)
    idle = run("plan", *words, "--query", "visits")
    assert idle.exit_code == 2
    assert "--query" in idle.stderr


def test_postgres_gives_a_command_what_the_server_has(postgres, tmp_path):
    psycopg = pytest.importorskip("psycopg")
    pages = [tmp_path / name for name in ("page.html", "density.npz")]
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("CREATE TABLE shell_visits (person_id bigint, sex text, age float8, minutes float8)")
        try:
            with server.cursor() as cursor:
                cursor.executemany("INSERT INTO shell_visits VALUES (%s, %s, %s, %s)", people())
            address = postgres.replace("postgres@", f"postgres:{SECRET}@")
            words = ["--query", "shell_visits", "--unit", "person_id", "--report", pages[0], "--save", pages[1]]
            result = run("modes", address, *words, *COMMANDS["modes"])
        finally:
            server.execute("DROP TABLE shell_visits")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["modes"][0]["position"][0] == pytest.approx(40, abs=3)
    assert told["guarantee"]["enforced"]
    assert "postgresql://…" in told["command"]
    for text in (result.output, *(page.read_bytes().decode(errors="replace") for page in pages)):
        assert SECRET not in text
        assert "127.0.0.1" not in text


# -- the ledger ----------------------------------------------------------------------------------------------


def test_another_query_or_unit_is_another_question(lite, tmp_path):
    pytest.importorskip("fcntl")
    books = tmp_path / "budget.fogline"
    made = run("ledger", "create", books, "--dataset", "visits", "--epsilon", "30", "--delta", "1e-3")
    assert made.exit_code == 0, made.output

    def cached(command, *words):
        result = run(command, lite, *words, *COMMANDS[command], "--ledger", books)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["cached"]

    for command in ("modes", "bounds", "strata"):
        assert not cached(command, "--query", "visits")
        assert cached(command, "--query", " visits; ")
        assert not cached(command, "--query", "SELECT * FROM visits WHERE sex = 'f'")
    persons = run("modes", lite, "--query", "visits", "--unit", "person_id", *COMMANDS["modes"], "--ledger", books)
    assert persons.exit_code == 4
    assert "accounted for one record" in persons.output

    def commit(query):
        words = [*COMMANDS["sample"], "--currency", "zcdp", "--ledger", books]
        result = run("sample", lite, "--query", query, *words)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["receipt"]["commit"]

    assert commit("visits") == commit("visits") < commit("SELECT age FROM visits")


# -- what is wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "--query"),
        (["--query", " "], "--query"),
        (["--query", "nowhere"], "--query"),
        (["--query", "SELEKT 1"], "--query"),
        (["--query", "SELECT sex AS age, sex AS minutes, sex FROM visits"], "column"),
        (["--query", "SELECT sex FROM visits"], "column"),
    ],
)
def test_what_is_wrong_with_a_query_is_named(command, words, named, lite):
    result = run(command, lite, *words, *COMMANDS[command])
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", WITH_UNIT)
def test_what_is_wrong_with_a_unit_is_named(command, lite):
    result = run(command, lite, "--query", "visits", "--unit", "nobody", *COMMANDS[command])
    assert result.exit_code == 2, result.output
    assert "--unit" in result.stderr


def test_a_file_has_no_query(tmp_path):
    (tmp_path / "v.csv").write_text("age\n40\n")
    result = run("modes", tmp_path / "v.csv", "--query", "visits", *COMMANDS["modes"])
    assert result.exit_code == 2
    assert "--query" in result.stderr


def test_a_descent_reads_files_alone_and_cuts_nobody(lite):
    words = [*COMMANDS["fit"], "--method", "gradient", "--rows", "2400", "--neighbours", "replace"]
    assert "--query" in run("fit", lite, "--query", "visits", *words).stderr
    assert "--unit" in run("fit", "v.csv", "--unit", "who", *words).stderr


def test_broken_cells_are_nobody_s_business(tmp_path):
    path = tmp_path / "broken.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (who, age REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [("Ann", "forty"), (None, 9e999), (b"x", None)])
    for words in ([], ["--unit", "who"]):
        result = run("modes", f"sqlite:///{path}", "--query", "t", *words, *COMMANDS["modes"])
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", [*COMMANDS, "sketch"])
@pytest.mark.parametrize(
    "address",
    [
        UNREACHABLE,
        UNREACHABLE.upper().replace(SECRET.upper(), SECRET),
        f"mysql://ada:{SECRET}@host/clinic",
        f"postgres://ada:{SECRET}'x y/@host:port",
        f"postgresql:///clinic?host=127.0.0.1&port=1&password={SECRET}",
    ],
)
def test_no_password_is_ever_repeated(command, address, tmp_path):
    pytest.importorskip("psycopg")
    sketch = ["--bounds", "0:1", "--site", "a", "--pass", "b", "--out", tmp_path / "s"]
    result = run(command, address, "--query", "visits", *COMMANDS.get(command, sketch))
    assert result.exit_code == 2, result.output
    assert SECRET not in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "words",
    [
        [UNREACHABLE],
        ["modes", UNREACHABLE, UNREACHABLE, *COMMANDS["modes"]],
        ["modes", "v.csv", "--bounds", UNREACHABLE, *BUDGET],
        ["modes", UNREACHABLE, "--no-such-option"],
        ["plan", "--bounds", "0:1", "--n", "9", "--delta", "1e-6", "--shape", UNREACHABLE, "--query", "t"],
        ["plan", "--bounds", "0:1", "--n", "9", "--delta", "1e-6", "--shape", UNREACHABLE],
    ],
)
def test_nor_where_the_words_are_wrong(words):
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert SECRET not in result.output


def test_the_library_does_not_repeat_it_either():
    pytest.importorskip("psycopg")
    from fogline.sources.registry import table

    with pytest.raises(ConnectionError, match="Postgres") as caught:
        table(UNREACHABLE, query="t")
    assert SECRET not in repr(caught.value)
    assert caught.value.__suppress_context__


def test_masking_keeps_what_is_no_server():
    for text in ("visits/*.parquet", "sqlite:////tmp/a.db", "postgres:// or sqlite://", "a:b//c"):
        assert masked(text) == text
    assert masked("at s3://key:word@bucket 'x'") == "at s3://…"
