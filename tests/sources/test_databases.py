"""SQLite and Postgres: the integers of numpy, from one statement where the data are; errors from the schema alone."""

import csv
import math
import sqlite3
import sys
from contextlib import closing
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optional_packages import optional

from fogline import DensitySketch, PrivateModes
from fogline.density.leaves import LeafSpec
from fogline.density.random_spec import plan_spec
from fogline.density.spec import SketchSpec
from fogline.releases import sketch
from fogline.sources.contributions import ContributionBound
from fogline.sources.files import FileTable
from fogline.sources.registry import table
from fogline.sources.tables import ReadFailed

psycopg = optional("psycopg")

PLANE = SketchSpec.plan([(0.0, 100.0), (-50.0, 50.0)], steps=[None, 0.5])
LINE = SketchSpec.plan([(0.0, 100.0)])
FOUR = plan_spec([(-3, 3)] * 4, "auto", None, features=32)
SPECIAL = [0.0, -0.0, 100.0, 50.0, -50.0, 1e-320, 1e308, math.inf, -math.inf, math.nan, 99.99999999999999]


def awkward(n=1500, d=2):
    rng = np.random.default_rng(3)
    rows = rng.normal([50, 0] * (d // 2), [40, 30] * (d // 2), size=(n, d))
    where = rng.random(rows.shape) < 0.1
    rows[where] = rng.choice(SPECIAL, size=where.sum())
    return rows


def wanted(rows, spec):
    return DensitySketch.of(spec).update(rows).state()


def assert_same(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert np.array_equal(a, b)


@pytest.fixture
def lite():
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection


@pytest.fixture
def server(postgres):
    with psycopg.connect(postgres) as connection:
        yield connection
        connection.rollback()


# -- the same integers --------------------------------------------------------------------------------------


def test_sqlite_counts_as_numpy_does(lite):
    rows = awkward()
    lite.execute("CREATE TABLE visits (a REAL, b DOUBLE PRECISION)")
    lite.executemany("INSERT INTO visits VALUES (?, ?)", rows.tolist())  # NaN becomes NULL
    assert_same(table(lite, query="visits").state(PLANE), wanted(rows, PLANE))
    assert_same(table(lite, ["b", "a"], query="SELECT * FROM visits;").state(PLANE), wanted(rows[:, ::-1], PLANE))


def test_postgres_counts_as_numpy_does(server, postgres):
    rows = awkward()
    server.execute("CREATE TABLE visits (a double precision, b double precision)")
    with server.cursor() as cursor:
        cursor.executemany("INSERT INTO visits VALUES (%s, %s)", rows.tolist())
    assert_same(table(server, query="visits").state(PLANE), wanted(rows, PLANE))
    query = "SELECT a, b FROM visits WHERE 'a%' LIKE '%' -- a sign of a parameter\n"
    assert_same(table(server, ["b", "a"], query=query).state(PLANE), wanted(rows[:, ::-1], PLANE))


@settings(max_examples=20)
@given(data=st.data())
def test_the_expression_is_that_of_numpy(postgres, data):
    d = data.draw(st.integers(1, 3))
    low = data.draw(st.lists(st.floats(-1e6, 1e6), min_size=d, max_size=d))
    width = data.draw(st.lists(st.floats(1e-3, 1e6), min_size=d, max_size=d))
    is_leaves = data.draw(st.booleans())
    steps = [data.draw(st.sampled_from([None, w / 7, w / (9000 if is_leaves else 20)])) for w in width]
    bounds = [(a, a + w) for a, w in zip(low, width, strict=True)]
    spec = LeafSpec.plan(bounds, steps) if is_leaves else SketchSpec.plan(bounds, 0.25, steps=steps)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = rng.uniform(spec.lower - 0.05 * spec.widths, spec.upper + 0.05 * spec.widths, size=(60, d))
    borders = spec.lower + (rng.integers(0, max(spec.cells), size=rows.shape) - spec.shift) * spec.cell_widths
    rows = np.where(rng.random(rows.shape) < 0.5, borders, rows)
    rows = np.where(rng.random(rows.shape) < 0.1, np.nextafter(rows, np.inf), rows)
    rows = np.concatenate([rows, [spec.lower, spec.upper]])
    names = [f"v{j}" for j in range(d)]
    create = f"CREATE TEMP TABLE edges ({', '.join(f'{name} double precision' for name in names)})"
    with psycopg.connect(postgres) as server, closing(sqlite3.connect(":memory:")) as lite:
        server.execute(create)
        lite.execute(create)
        with server.cursor() as cursor:
            cursor.executemany(f"INSERT INTO edges VALUES ({', '.join(['%s'] * d)})", rows.tolist())
        lite.executemany(f"INSERT INTO edges VALUES ({', '.join('?' * d)})", rows.tolist())
        for connection in (server, lite):
            assert_same(table(connection, names, query="edges").state(spec), wanted(rows, spec))
        server.rollback()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_random_features_come_in_batches(engine, lite, server):
    rows = np.random.default_rng(0).normal(size=(700, 4))
    create = "CREATE TABLE wide (a double precision, b double precision, c double precision, d double precision)"
    if engine == "sqlite":
        lite.execute(create)
        lite.executemany("INSERT INTO wide VALUES (?, ?, ?, ?)", rows.tolist())
        source = table(lite, query="wide")
    else:
        server.execute(create)
        with server.cursor() as cursor:
            cursor.executemany("INSERT INTO wide VALUES (%s, %s, %s, %s)", rows.tolist())
        source = table(server, query="wide")
    assert_same(source.state(FOUR), wanted(rows, FOUR))


def test_postgres_and_the_csv_exported_from_it(server, tmp_path):
    rng = np.random.default_rng(5)
    server.execute("CREATE TABLE visits (person_id bigint, a numeric(12, 6), b real, note text)")
    with server.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO visits VALUES (%s, %s, %s, %s)",
            [
                (
                    None if i % 50 == 0 else int(p),
                    None if i % 31 == 0 else Decimal(repr(round(a, 6))),
                    b,
                    'so "to", say',
                )
                for i, (p, a, b) in enumerate(
                    zip(
                        rng.integers(0, 300, 2000),
                        rng.normal(50, 30, 2000).tolist(),
                        rng.normal(0, 30, 2000).tolist(),
                        strict=True,
                    )
                )
            ],
        )
        path = tmp_path / "visits.csv"
        with path.open("wb") as file, cursor.copy("COPY visits TO STDOUT (FORMAT csv, HEADER)") as copy:
            for part in copy:
                file.write(part)
    # a real prints as few digits as single precision needs: both are read as the same double only if cast alike
    query = "SELECT person_id, a, b::text::double precision AS b FROM visits"
    assert_same(table(server, ["a", "b"], query=query).state(PLANE), FileTable(path, ["a", "b"]).state(PLANE))
    bound = ContributionBound(3, (11, 12))
    mine = table(server, ["a", "b"], query=query, unit="person_id")._bounded(bound).state(PLANE)
    theirs = FileTable(path, ["a", "b"], unit="person_id")._bounded(bound).state(PLANE)
    assert_same(mine, theirs)
    assert 0 < mine[1].sum() <= 900


# -- what cells are worth -----------------------------------------------------------------------------------


def test_sqlite_text_in_a_column_of_numbers_is_missing(lite):
    lite.execute("CREATE TABLE t (a REAL)")
    cells = [1.5, "2.5", "abc", "12abc", "", None, b"3", 2**60 + 1, "1e400", "inf", "nan"]
    lite.executemany("INSERT INTO t VALUES (?)", [(cell,) for cell in cells])
    assert_same(table(lite, query="t").state(LINE), wanted([[1.5], [2.5]], LINE))
    loose = table(lite, query="SELECT a AS b FROM (SELECT 7 AS a UNION ALL SELECT 'seven')")
    assert_same(loose.state(LINE), wanted([[7.0]], LINE))


def test_postgres_types_of_numbers(server):
    server.execute("CREATE TABLE t (s smallint, i integer, l bigint, r real, d double precision, n numeric, b boolean)")
    with server.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [
                (1, 2, 2**60 + 1, 0.1, 0.1, Decimal("0.1"), True),
                (99, 50, 3, 1e30, math.nan, Decimal("NaN"), False),
                (None, None, None, None, None, Decimal("1e400"), None),
                (5, 5, 5, 5, 5, Decimal("-1e-400"), True),
                (6, 6, 6, 6, 6, Decimal("1e-400"), True),
                (7, 7, 7, 7, 7, Decimal("17.999999999999998"), True),
            ],
        )
    single = float(np.float32(0.1))
    expected = {
        "s": [1, 99, 5, 6, 7],
        "i": [2, 50, 5, 6, 7],
        "l": [3, 5, 6, 7],
        "r": [single, 5, 6, 7],
        "d": [0.1, 5, 6, 7],
        "n": [0.1, 1e-300, 17.999999999999998],
        "b": [1, 0, 1, 1, 1],
    }
    for name, values in expected.items():
        assert_same(table(server, [name], query="t").state(LINE), wanted([[float(v)] for v in values], LINE))


# -- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "unit", "error", "match"),
    [
        (["c"], None, ValueError, r"columns.*'c'.*person_id, a, name"),
        (["a", "a"], None, ValueError, "columns"),
        (["name"], None, TypeError, r"columns.*'name'.*cast"),
        (["a"], "nobody", ValueError, "unit.*'nobody'"),
        (["a"], "born", TypeError, "unit.*'born'"),
        ("a", None, TypeError, "columns"),
    ],
)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_errors_of_the_schema(engine, lite, server, columns, unit, error, match):
    connection = lite if engine == "sqlite" else server
    connection.execute("CREATE TABLE t (person_id integer, a double precision, name text, born timestamp)")
    with pytest.raises(error, match=match):
        table(connection, columns, query="t", unit=unit)


@pytest.mark.parametrize("query", ["nowhere", "SELECT FROM WHERE", "SELECT b FROM nowhere"])
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_query_that_is_none(engine, lite, server, query):
    with pytest.raises(ValueError, match="query"):
        table(lite if engine == "sqlite" else server, query=query)
    if engine == "postgres":
        server.rollback()


def test_a_database_needs_a_query(lite, postgres):
    for source in (lite, postgres, "sqlite:///nowhere.db"):
        with pytest.raises(TypeError, match="query"):
            table(source)
    with pytest.raises(TypeError, match="query"):
        PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit(postgres)
    with pytest.raises(TypeError, match="query is for databases"):
        table(np.zeros((2, 1)), query="t")


def test_a_file_of_sqlite_is_only_read(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.db"):
        table(f"sqlite:///{tmp_path}/nowhere.db", query="t")
    assert not (tmp_path / "nowhere.db").exists()
    path = tmp_path / "a file?.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a REAL)")
        connection.execute("INSERT INTO t VALUES (5)")
    before = path.read_bytes()
    address = f"sqlite:////{str(path)[1:]}".replace("?", "%3F")
    assert table(address, query="t").state(LINE)[1].tolist() == [1]
    assert path.read_bytes() == before


def test_every_failure_of_reading_is_one_sentence(lite, server):
    lite.execute("CREATE TABLE t (a REAL)")
    server.execute("CREATE TABLE t (a double precision)")
    server.execute("INSERT INTO t VALUES (0)")
    tables = [table(lite, query="t"), table(server, query="SELECT 777 / a AS a FROM t")]
    lite.execute("DROP TABLE t")
    for source in tables:
        with pytest.raises(ReadFailed) as error:
            source.state(LINE)
        assert str(error.value) == "the database could not be read"
        assert error.value.__context__ is None
    server.rollback()


def test_a_missing_driver_says_what_to_install(postgres, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"fogline\[postgres\]"):
        table(postgres, query="t")


def test_a_table_that_changes_during_the_pass_is_of_one_state(postgres):
    with psycopg.connect(postgres, autocommit=True) as writer:
        writer.execute("CREATE TABLE growing AS SELECT 5.0::float8 AS a FROM generate_series(1, 100000)")
        try:
            seen = []

            def grow(rows):
                if not len(rows):
                    return  # before the pass begins
                if not seen:
                    writer.execute("INSERT INTO growing SELECT 6.0 FROM generate_series(1, 1000)")
                seen.append(rows)

            table(postgres, query="growing").each_batch(grow)
            assert sum(len(rows) for rows in seen) == 100_000
            assert all((rows == 5.0).all() for rows in seen)
            assert len(seen) > 1
        finally:
            writer.execute("DROP TABLE growing")


def test_a_fit_reads_a_database(lite, postgres, server):
    rows = np.random.default_rng(0).normal(50, 5, size=(4000, 1))
    lite.execute("CREATE TABLE t (a REAL)")
    lite.executemany("INSERT INTO t VALUES (?)", rows.tolist())
    model = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 100)]).fit(table(lite, query="t"))
    assert abs(model.modes_[0, 0] - 50) < 5
    assert model.feature_names_in_.tolist() == ["a"]
    assert int(sketch(table(lite, query="t"), LINE).state()[1].sum()) == 4000


def test_csv_of_awkward_numbers_is_the_same(lite, tmp_path):
    rows = awkward(300)
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *[[repr(x) for x in row] for row in rows.tolist()]])
    lite.execute("CREATE TABLE t (a REAL, b REAL)")
    lite.executemany("INSERT INTO t VALUES (?, ?)", rows.tolist())
    assert_same(table(lite, query="t").state(PLANE), FileTable(path).state(PLANE))


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_tiny_number_in_a_wide_box_is_no_error(engine, lite, server):
    """A quotient that is too small for a double is zero; Postgres by itself would stop, and tell of the record."""
    source = lite if engine == "sqlite" else server
    kind = "REAL" if engine == "sqlite" else "double precision"
    source.execute(f"CREATE TEMP TABLE tiny (x {kind})")
    rows = np.array([5e-324, 1e-320, 1e-310, 2.0, 0.0, 1e6])
    mark = "?" if engine == "sqlite" else "%s"
    for x in rows.tolist():
        source.execute(f"INSERT INTO tiny VALUES ({mark})", (x,))
    for spec in (SketchSpec.plan([(0.0, 1e6)]), SketchSpec.plan([(0.0, 1e6)], steps=[1000.0])):
        assert_same(table(source, ["x"], query="tiny").state(spec), wanted(rows[:, None], spec))


def test_sqlite_ids_that_are_no_utf8_are_ids(lite):
    lite.execute("CREATE TABLE visits (x REAL, person TEXT)")
    for person in ("'Ann'", "CAST(x'ff41' AS TEXT)", "CAST(x'ff41' AS TEXT)", "CAST(x'fe41' AS TEXT)"):
        lite.execute(f"INSERT INTO visits VALUES (5.0, {person})")
    lite.text_factory = bytes
    assert sketch(table(lite, ["x"], query="visits", unit="person"), LINE).state()[1].sum() == 3
    assert lite.text_factory is bytes


def test_a_connection_that_makes_rows_of_its_own(lite):
    lite.execute("CREATE TABLE visits (x REAL)")
    lite.execute("INSERT INTO visits VALUES (5.0)")
    lite.row_factory = lambda cursor, row: dict(zip([c[0] for c in cursor.description], row, strict=True))
    assert table(lite, ["x"], query="visits").state(LINE)[1].sum() == 1


# -- cells and ids that one record could break --------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "UTF8", "WIN1251"])
def test_an_id_that_the_client_cannot_write_is_an_id_all_the_same(server, encoding):
    server.execute("CREATE TABLE t (a double precision, person text, short char(4), whole bigint)")
    people = ["Ann", "\N{EURO SIGN}", "\N{EURO SIGN}", "\N{CYRILLIC SMALL LETTER EL}", "", None, "7"]
    for person in people:
        server.execute("INSERT INTO t VALUES (5, %s, %s, 7)", (person, person))
    server.execute(f"SET client_encoding TO '{encoding}'")
    bound = ContributionBound(1, (11, 12))
    here = table(np.full(len(people), 5.0), unit=people)._bounded(bound).state(LINE)
    assert here[1].sum() == 4
    for unit in ("person", "short"):
        assert_same(table(server, ["a"], query="t", unit=unit)._bounded(bound).state(LINE), here)
    assert table(server, ["a"], query="t", unit="whole")._bounded(bound).state(LINE)[1].sum() == 1
    assert server.execute("SHOW client_encoding").fetchone() in ((encoding,), (encoding.encode(),))


def test_a_query_with_signs_that_the_client_does_not_have_is_refused(server):
    server.execute('CREATE TABLE t ("\N{EURO SIGN}" double precision)')
    server.execute("INSERT INTO t VALUES (5)")
    assert table(server, query='SELECT "\N{EURO SIGN}" AS a FROM t').state(LINE)[1].sum() == 1
    server.execute("SET client_encoding TO 'LATIN1'")
    with pytest.raises(ValueError, match=r"query.*client_encoding"):
        table(server, query='SELECT "\N{EURO SIGN}" AS a FROM t')


def test_rows_of_any_kind_that_a_connection_gives(postgres):
    from psycopg.rows import dict_row

    with psycopg.connect(postgres, row_factory=dict_row) as connection:
        connection.execute("CREATE TEMP TABLE t (a double precision, person text)")
        connection.execute("INSERT INTO t VALUES (5, 'Ann')")
        assert table(connection, ["a"], query="t").state(LINE)[1].sum() == 1
        assert table(connection, ["a"], query="t", unit="person").bounded(1).state(LINE)[1].sum() == 1


def test_decimals_beyond_the_doubles_are_missing_as_infinities_are(server):
    cells = ["1e400", "-1e400", "'Infinity'", "'-Infinity'", "'NaN'", "NULL", "1e-400", "-1e-400", "5", "1.5e308"]
    server.execute("CREATE TABLE t (a numeric)")
    for cell in cells:
        server.execute(f"INSERT INTO t VALUES ({cell})")
    seen = []
    table(server, query="t").each_batch(seen.append)
    rows = np.concatenate(seen)[:, 0]
    assert np.isnan(rows[:6]).all()
    assert 0 < rows[6] < 1e-299
    assert -1e-299 < rows[7] < 0
    assert rows[8:].tolist() == [5.0, 1.5e308]


def test_cells_of_sqlite_are_of_any_type():
    def fail(content):
        raise ValueError("secret 777")

    sqlite3.register_converter("fogline_person", fail)
    with closing(sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)) as lite:
        lite.execute("CREATE TABLE t (a REAL, person fogline_person)")
        cells = [5.0, 2**60, "Ann", b"\xff", None, math.inf, "7"]
        people = ["Ann", "Ann\0", b"\xff", 7, None, 2.0, "7"]
        lite.executemany("INSERT INTO t VALUES (?, ?)", list(zip(cells, people, strict=True)))
        seen = []
        table(lite, ["a"], query="t").each_batch(seen.append)
        expected = [5.0, 2.0**60, math.nan, math.nan, math.nan, math.inf, 7.0]  # the column makes a number of '7'
        assert np.array_equal(np.concatenate(seen)[:, 0], expected, equal_nan=True)
        lite.execute("UPDATE t SET a = 5")
        bounded = table(lite, ["a"], query="t", unit="person").bounded(1)
        assert bounded.state(LINE)[1].sum() == 4  # Ann, Ann with NUL, 7 and 2; no blob and no NULL
