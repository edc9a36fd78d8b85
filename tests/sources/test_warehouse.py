"""Queries for warehouses: the same integers in every engine that can run here, and the SQL of those that cannot."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from optional_packages import optional

from fogline import DensitySketch
from fogline.density.leaves import LeafSpec
from fogline.releases.counts_release import counts_query
from fogline.sources.dialects import DIALECTS, dyadic
from fogline.sources.warehouse import WarehouseQuery

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from adversarial_rows import GRIDS, PLACES, adversarial_rows, exact_doubles, grid_edges, specials
from warehouse_engines import NotInstalled, PostgresEngine, SparkEngine, opened_engine

optional("pyarrow")
duckdb = pytest.importorskip("duckdb")

HERE = Path(__file__).parent
TWO = (LeafSpec.plan([(0, 60), (-1, 100)]), ("f", "i"))
ROWS = adversarial_rows(grid_edges())
ENGINES = ("DuckDB", "SQLite", "Apache DataFusion", "ClickHouse (chDB)", "MariaDB", "fakesnow")


@pytest.fixture(scope="module", params=[*ENGINES, "PostgreSQL", "Apache Spark"])
def engine(request, tmp_path_factory):
    """An engine that holds the hostile rows; servers are started once for all tests."""
    if request.param == "PostgreSQL":
        found = PostgresEngine(request.getfixturevalue("postgres"))
        found.load("t", ROWS)
        yield found
        found.close()
        return
    if request.param == "Apache Spark":
        found = SparkEngine(request.getfixturevalue("spark"), tmp_path_factory.mktemp("spark"))
        found.load("t", ROWS)
        yield found
        return
    try:
        with opened_engine(request.param) as found:
            found.load("t", ROWS)
            yield found
    except NotInstalled as error:
        pytest.skip(f"{request.param} is not here: {error}")


def counted(rows):
    """Counts by cell, without the row that is always there; all totals must be their sum."""
    found = {int(cell): int(records) for cell, records, _, _ in rows}
    assert found.pop(-1) == 0
    assert len(found) == len(rows) - 1
    assert all(int(total) == sum(found.values()) for cell, _, total, _ in rows if int(cell) != -1)
    return found


def expected(spec, columns, rows=ROWS):
    X = np.column_stack([exact_doubles(rows, PLACES[name]) for name in columns])
    keys, counts = DensitySketch.of(spec).update(X).state()
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API")
def test_the_same_integers_in_every_engine(engine):
    is_slow = engine.dialect == "spark"  # half a second or more for a query, however small
    for name, (spec, columns) in GRIDS.items():
        if is_slow and name != "three columns":
            continue
        query = WarehouseQuery.of(spec, columns, dialect=engine.dialect, table="t")
        assert counted(engine.run(query.sql())) == expected(spec, columns), name


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API")
def test_at_most_c_records_of_each_unit(engine):
    spec, columns = TWO
    cells = {}
    for row in ROWS:
        for cell in expected(spec, columns, [row]):
            if row[3] is not None:
                cells.setdefault(row[3], []).append(cell)
    query = WarehouseQuery.of(spec, columns, dialect=engine.dialect, table="t", unit="who", max_contributions=2)
    found = counted(engine.run(query.sql(key="0123456789abcdef")))
    assert sum(found.values()) == sum(min(len(own), 2) for own in cells.values())
    if DIALECTS[engine.dialect].lot != "random()":
        # the same draw wherever the hash is the same: cells of each unit by their own lots
        assert found == _drawn(cells, 2, "0123456789abcdef")


def _drawn(cells, most, key):
    """What the query keeps, by another road: hashes in Python, unit by unit."""
    import hashlib

    kept = {}
    for who, own in cells.items():
        twins = [(cell, own[:k].count(cell) + 1) for k, cell in enumerate(own)]
        lots = sorted((hashlib.sha256(f"{key}|{who}|{c}|{t}".encode()).hexdigest(), c) for c, t in twins)
        for _, cell in lots[:most]:
            kept[cell] = kept.get(cell, 0) + 1
    return kept


def test_a_unit_moves_its_own_records_alone():
    pytest.importorskip("pyarrow")  # by which rows get into the engine
    spec = LeafSpec.plan([(0, 60)], leaves=[8])
    rng = np.random.default_rng(3)
    rows = [
        (float(x), 0, None, f"p{k}") for x, k in zip(rng.uniform(0, 60, 300), rng.integers(0, 40, 300), strict=True)
    ]
    query = WarehouseQuery.of(spec, ["f"], dialect="duckdb", table="t", unit="who", max_contributions=3).sql(key="ab")

    def answer(some):
        with opened_engine("DuckDB") as fresh:
            fresh.load("t", some)
            return counted(fresh.run(query))

    whole = answer(rows)
    for who in ("p0", "p7", "p39"):
        without = answer([row for row in rows if row[3] != who])
        gone = {cell: whole.get(cell, 0) - without.get(cell, 0) for cell in {*whole, *without}}
        assert min(gone.values()) >= 0
        assert 0 < sum(gone.values()) <= 3
    rng.shuffle(rows)
    assert answer(rows) == whole


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_the_sql_of_a_dialect_is_what_it_was(dialect):
    query = counts_query(
        dialect=dialect, table="clinic.visits", columns=["age", "stay"], bounds=["age", (-0.1, 60)], unit="person_id",
        max_contributions=2,
    )  # fmt: skip
    path = HERE / "warehouse_sql" / f"{dialect}.sql"
    text = query.sql(key="0123456789abcdef") + "\n"
    if "FOGLINE_WRITE_GOLDEN" in os.environ:
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("dialect", [name for name, each in DIALECTS.items() if not each.run_against])
def test_a_second_opinion_on_sql_that_no_engine_here_runs(dialect):
    """sqlglot reads it as that dialect, and what it makes of it for DuckDB gives the same integers."""
    sqlglot = pytest.importorskip("sqlglot")
    with opened_engine("DuckDB") as engine:
        engine.load("t", ROWS)
        engine.run("CREATE TABLE dual AS SELECT 1 AS dummy")
        engine.run("CREATE MACRO to_binary_double(x) AS CAST(x AS DOUBLE)")
        for spec, columns in GRIDS.values():
            query = WarehouseQuery.of(spec, columns, dialect=dialect, table="t")
            tree = sqlglot.parse_one(query.sql(), read=dialect)
            assert counted(engine.run(tree.sql("duckdb"))) == expected(spec, columns)


def test_sqlglot_reads_every_query():
    sqlglot = pytest.importorskip("sqlglot")
    as_another = {"mariadb": "mysql", "datafusion": "postgres"}
    for path in sorted((HERE / "warehouse_sql").glob("*.sql")):
        tree = sqlglot.parse_one(path.read_text(), read=as_another.get(path.stem, path.stem))
        steps = {step.alias for step in tree.find_all(sqlglot.expressions.CTE)}
        assert {"fogline_box", "fogline_cells", "fogline_ranked", "fogline_counts"} <= steps, path.stem


def test_doubles_are_whole_numbers_and_powers_of_two():
    values = [float(x) for x in specials() if x is not None and np.isfinite(x)]
    for value in [*values, 0.1, -1 / 3, 1e300, 123456.789]:
        numerator, powers = dyadic(value)
        assert abs(numerator) < 2**53 or not powers
        product = float(numerator)
        for power in powers:
            product *= 2.0**power
        assert product == value, value


def test_what_was_never_run_is_not_certified():
    run = {each.run_against for each in DIALECTS.values()} - {""}
    assert run == {
        "DuckDB",
        "SQLite",
        "PostgreSQL",
        "Apache DataFusion",
        "ClickHouse (chDB)",
        "MariaDB",
        "Apache Spark",
    }
    assert "never run" in DIALECTS["bigquery"].reason


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"dialect": "cobol"}, "dialect must be one of duckdb"),
        ({"columns": ["a", "a"]}, "different columns"),
        ({"columns": ["a"]}, "bounds has 2 ranges"),
        ({"unit": "a"}, "one of the columns"),
        ({"unit": "record"}, "rename the column"),
        ({"max_contributions": 2}, "name the unit's column"),
        ({"table": " "}, "name of a table"),
        ({"table": "a..b"}, "not the name of a table"),
        ({"features": "random"}, "need the records"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wishes_that_cannot_be(changed, match):
    plain = {"dialect": "duckdb", "table": "t", "columns": ["a", "b"], "bounds": [(0, 1), (0, 1)]}
    with pytest.raises(ValueError, match=match):
        counts_query(**{**plain, **changed})
    with pytest.raises(ValueError, match="hexadecimal"):
        counts_query(**plain, unit="who").sql(key="'; DROP TABLE t")


def test_names_are_quoted_as_each_engine_wants():
    odd = 'a "b" `c` ]d'
    assert DIALECTS["postgres"].quoted(odd) == '"a ""b"" `c` ]d"'
    assert DIALECTS["mysql"].quoted(odd) == '`a "b" ``c`` ]d`'
    assert DIALECTS["bigquery"].quoted(odd) == '`a "b" \\`c\\` ]d`'
    assert DIALECTS["tsql"].quoted(odd) == '[a "b" `c` ]]d]'
    assert DIALECTS["oracle"].quoted("Age") == '"Age"'
    assert DIALECTS["clickhouse"].quoted("a\\`) b") == "`a\\\\\\`) b`"
    with pytest.raises(ValueError, match="quotes"):
        DIALECTS["oracle"].quoted('a"b')
    select = counts_query(dialect="duckdb", table="SELECT 1 AS a -- one", columns=["a"], bounds=[(0, 1)])
    assert "(SELECT 1 AS a -- one\n  ) fogline_source" in select.sql()


@pytest.mark.parametrize("name", ["age\\", "a\\`) AS x0, arrayJoin(range(100)) AS k --", "a`b", "a\\`"])
def test_a_name_cannot_end_its_quotes_in_clickhouse(name):
    """A backslash is an escape there, also inside quotes: a name could count one record a hundred times."""
    chdb = pytest.importorskip("chdb")
    table = f"SELECT 5.0 AS {DIALECTS['clickhouse'].quoted(name)}"
    found = chdb.query(counts_query(dialect="clickhouse", table=table, columns=[name], bounds=[(0, 60)]).sql(), "CSV")
    counted = [int(line.split(",")[1]) for line in str(found).strip().splitlines()]
    assert sorted(counted) == [0, 1]


def test_ids_of_any_bytes_are_cut_in_postgres(postgres):
    """A database in SQL_ASCII holds texts that are no UTF-8: the query must not fail because of one."""
    psycopg = pytest.importorskip("psycopg")
    query = WarehouseQuery.of(
        LeafSpec.plan([(0, 10)], leaves=[4]), ["x"], dialect="postgres", table="odd", unit="who", max_contributions=1
    )
    name = "any_bytes"
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name}")
        server.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        try:
            parts = {**psycopg.conninfo.conninfo_to_dict(postgres), "dbname": name}
            with psycopg.connect(**parts, autocommit=True) as database:
                database.execute("CREATE TABLE odd (x double precision, who text)")
                for text in (b"\xff\xfe", b"\xff\xfe", b"\xff", b"Ann"):
                    row = b"INSERT INTO odd VALUES (5, convert_from('\\x" + text.hex().encode() + b"', 'SQL_ASCII'))"
                    database.execute(row)
                rows = database.execute(query.sql(key="7").encode()).fetchall()
        finally:
            server.execute(f"DROP DATABASE IF EXISTS {name}")
    assert sum(counted(rows).values()) == 3


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API")
@pytest.mark.parametrize("name", ["DuckDB", "SQLite"])
def test_an_engine_whose_casts_round_counts_the_same(name):
    """DuckDB's cast to a whole number rounds, SQLite's cuts off: the floor before it makes them agree."""
    if name == "DuckDB":
        pytest.importorskip("pyarrow")  # loads the rows
    spec, columns = GRIDS["three columns"]
    query = WarehouseQuery.of(spec, columns, dialect=name.lower(), table="t")
    careless = replace(query, dialect=replace(query.dialect, floor="{}"))
    with opened_engine(name) as engine:
        assert int(engine.run(f"SELECT {query.dialect.whole.format('1.7')}")[0][0]) == (2 if name == "DuckDB" else 1)
        engine.load("t", ROWS)
        assert counted(engine.run(query.sql())) == expected(spec, columns)
        assert (counted(engine.run(careless.sql())) == expected(spec, columns)) == (name == "SQLite")
