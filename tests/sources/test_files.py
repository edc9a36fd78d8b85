"""Files: the same integers as numpy, errors from the schema alone, silence about the data."""

import csv
import math
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optional_packages import optional

from fogline import DensitySketch
from fogline.density.leaves import LeafSpec
from fogline.density.spec import SketchSpec
from fogline.queries.fourier_sums import cell_keys
from fogline.releases import count_into
from fogline.sources.cell_sql import DUCKDB, CellSql
from fogline.sources.files import FileTable, ReadFailed
from fogline.sources.passes import as_source, width_of

duckdb = pytest.importorskip("duckdb")
pa, pq = optional("pyarrow"), optional("pyarrow.parquet")

LINE = SketchSpec.plan([(0.0, 100.0)])
PLANE = SketchSpec.plan([(0.0, 100.0), (-50.0, 50.0)], steps=[None, 0.5])


def expected(rows, spec):
    """Cells and counts of an array, by numpy."""
    keys = cell_keys(np.array(rows, dtype=float).reshape(-1, spec.d), spec)
    return np.unique(keys[keys < np.prod(spec.cells)], return_counts=True)


def check(table, rows, spec):
    keys, counts = table.state(spec)
    assert keys.dtype == counts.dtype == np.int64
    wanted_keys, wanted_counts = expected(rows, spec)
    assert keys.tolist() == wanted_keys.tolist()
    assert counts.tolist() == wanted_counts.tolist()


def written(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def awkward_rows(n=3000):
    """Doubles of every size, in and out of the box, on its bounds, missing and infinite."""
    rng = np.random.default_rng(7)
    rows = rng.normal([50, 0], [40, 30], size=(n, 2))
    special = [0.0, -0.0, 100.0, 50.0, -50.0, 1e-320, 1e308, math.inf, -math.inf, math.nan, 99.99999999999999]
    where = rng.random(rows.shape) < 0.1
    rows[where] = rng.choice(special, size=where.sum())
    return rows


# -- counts -------------------------------------------------------------------------------------------------


def test_csv_counts_equal_numpy(tmp_path):
    rows = awkward_rows()
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "note", "b"])
        writer.writerows([repr(a), "some, text", repr(b)] for a, b in rows.tolist())
    check(FileTable(path, ["a", "b"]), rows, PLANE)
    check(FileTable(path, ["b", "a"]), rows[:, ::-1], PLANE)
    check(FileTable(path, ["a"]), rows[:, 0], LINE)


def test_parquet_counts_equal_numpy(tmp_path):
    rows = awkward_rows()
    missing = np.arange(len(rows)) % 17 == 0
    table = pa.table({"a": pa.array(rows[:, 0], mask=missing), "text": ["x"] * len(rows), "b": rows[:, 1]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=700)
    rows[missing, 0] = math.nan
    check(FileTable(tmp_path / "rows.parquet", ["a", "b"]), rows, PLANE)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [1, -3, None, 99]),
        (pa.int64(), [1, 2**60 + 1, 50, -(2**62)]),
        (pa.uint64(), [1, 2**64 - 1, 50]),
        (pa.float32(), [0.1, 3.3333, None, math.inf, math.nan]),
        (pa.bool_(), [True, False, None, True]),
    ],
)
def test_parquet_types_of_numbers(tmp_path, kind, values):
    pq.write_table(pa.table({"a": pa.array(values, kind)}), tmp_path / "typed.parquet")
    as_float = np.array(pa.array(values, kind).cast("float64", safe=False).to_pylist(), dtype=float)
    check(FileTable(tmp_path / "typed.parquet"), as_float, LINE)


def test_a_decimal_column_is_numbers(tmp_path):
    decimals = pa.array([Decimal("1.00"), Decimal("2.00"), None, Decimal("50.00")], pa.decimal128(10, 2))
    pq.write_table(pa.table({"a": decimals}), tmp_path / "money.parquet")
    check(FileTable(tmp_path / "money.parquet"), [1.0, 2.0, math.nan, 50.0], LINE)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("5", 5.0),
        (" 5 ", 5.0),
        ("+5", 5.0),
        ("5.", 5.0),
        (".5", 0.5),
        ("5e0", 5.0),
        ("1E1", 10.0),
        ('"5"', 5.0),
        ("1e-400", 0.0),
        ("0.1000000000000000055511151231257827", 0.1),
        ("17.999999999999998", 17.999999999999998),
        ("1e400", math.inf),
        ("-1e400", -math.inf),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("nan", math.nan),
        ("NaN", math.nan),
        ("", math.nan),
        ("NULL", math.nan),
        ("N/A", math.nan),
        ("0x10", math.nan),
        ("0x1p3", math.nan),
        ("true", math.nan),
        ("1,5", math.nan),
        ("5 5", math.nan),
        ("--5", math.nan),
        ("five", math.nan),
        ("2020-01-01", math.nan),
        ('"5""', math.nan),
        ("5\x00", math.nan),
    ],
)
def test_what_a_cell_of_text_is_worth(tmp_path, cell, value):
    path = written(tmp_path, f"a;b\n{cell};1\n7;1\n")
    check(FileTable(path, ["a"]), [[value], [7.0]], LINE)


GOOD = [[1.0, 2.0], [3.0, 4.0]]

LAYOUTS = {
    "plain": ("a,b\n1,2\n3,4\n", GOOD),
    "no last line end": ("a,b\n1,2\n3,4", GOOD),
    "crlf": ("a,b\r\n1,2\r\n3,4\r\n", GOOD),
    "cr": ("a,b\r1,2\r3,4\r", GOOD),
    "mixed line ends": ("a,b\r\n1,2\n3,4\r\n", GOOD),
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n3,4\n", GOOD),
    "blank lines": ("a,b\n\n1,2\n\n\n3,4\n\n", GOOD),
    "tab": ("a\tb\n1\t2\n3\t4\n", GOOD),
    "semicolon": ("a;b\n1;2\n3;4\n", GOOD),
    "pipe": ("a|b\n1|2\n3|4\n", GOOD),
    "quoted": ('"a","b"\n"1","2"\n"3",4\n', GOOD),
    "other delimiter within quotes": ('"a";"b";"x,y,z"\n1;2;"q;w"\n3;4;\n', GOOD),
    "spaces around names": (" a , b \n1,2\n3,4\n", GOOD),
    "line break within quotes": ('a,b,c\n1,2,"x\ny"\n3,4,z\n', GOOD),
    "doubled quote": ('a,b,c\n1,2,"say ""no"""\n3,4,z\n', GOOD),
    "unnamed index column": (",a,b\n0,1,2\n1,3,4\n", GOOD),
    "extra field": ("a,b\n1,2\n5,6,9\n3,4\n", GOOD),  # a decimal comma or thousands separator, for all one knows
    "missing field": ("a,b\n1,2\n5\n3,4\n", GOOD),
    "only delimiters": ("a,b\n,\n1,2\n,,,,\n3,4\n", GOOD),
    "stray quote": ('a,b\n1,2\n5,6"7\n3,4\n', GOOD),
    "text after a quote": ('a,b\n1,2\n"5"x,6\n3,4\n', GOOD),
    "a quote that never closes": ('a,b\n1,2\n"5,6\n3,4\n', GOOD),
    "bytes that are no text": (b"a,b\n1,2\n\xff\xfe,4\n3,4\n", GOOD),
    "bytes that are no text elsewhere": (b"a,b,c\n1,2,\xff\n3,4,x\n", GOOD),
    "a zero byte": (b"a,b\n1,2\n\x00,7\n3,4\n", GOOD),
    "a comment sign": ("a,b\n1,2\n#5,6\n3,4\n", GOOD),
    "a header again": ("a,b\n1,2\na,b\n3,4\n", GOOD),
    "a line of three megabytes": ("a,b\n1,2\n" + "9" * 3_000_000 + ",5\n3,4\n", GOOD),
    "header only": ("a,b\n", []),
    "header without line end": ("a,b", []),
    "header and blank lines": ("a,b\n\n\n", []),
    "nothing but text": ("a,b\nx,y\nz,w\n", []),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_lines(tmp_path, name):
    text, rows = LAYOUTS[name]
    check(FileTable(written(tmp_path, text), ["a", "b"]), rows, PLANE)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".CSV"])
def test_suffixes_of_text(tmp_path, suffix):
    check(FileTable(written(tmp_path, "a\tb\n1\t2\n3\t4\n", f"table{suffix}")), GOOD, PLANE)


def test_a_line_is_a_record_in_a_large_file(tmp_path):
    # A line break within quotes ends the line: what follows is a line of its own, wherever DuckDB cuts the file.
    n = 300_000
    path = written(tmp_path, "a,b,c\n" + '1,2,"zzzzzzzzzz\nx,y,zzzzzzzzzzzz"\n' * n)
    _, counts = FileTable(path, ["a", "b"]).state(PLANE)
    assert counts.tolist() == [n]


NAMES = ['he said ""hi""', "o'clock", "größe", "数", "a b", "x; DROP TABLE t", "select", "A%_", "c1", "c0"]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_a_column(tmp_path, name):
    path = written(tmp_path, f'c1,"{name}x"\n9,1\n9,3\n')
    check(FileTable(path, [name.replace('""', '"') + "x"]), [1.0, 3.0], LINE)
    plain = name.replace('""', '"')
    pq.write_table(pa.table({plain: [1.0, 3.0], "other": [9.0, 9.0]}), tmp_path / "named.parquet")
    check(FileTable(tmp_path / "named.parquet", [plain]), [1.0, 3.0], LINE)


def test_names_that_differ_in_case_alone(tmp_path):
    path = written(tmp_path, "a,A\n1,2\n3,4\n")
    check(FileTable(path), GOOD, PLANE)
    check(FileTable(path, ["A"]), [2.0, 4.0], LINE)


@pytest.mark.parametrize("name", ["t[1].csv", "t*.csv", "t?.csv"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_name_is_not_a_pattern(tmp_path, name, suffix):
    for other in ("t1", "tx", "t22"):
        written(tmp_path, "a\n9\n9\n9\n", f"{other}.csv")
        pq.write_table(pa.table({"a": [9.0, 9.0]}), tmp_path / f"{other}.parquet")
    path = tmp_path / name.replace("csv", suffix)
    if suffix == "csv":
        path.write_text("a\n1\n3\n")
    else:
        pq.write_table(pa.table({"a": [1.0, 3.0]}), path)
    check(FileTable(path), [1.0, 3.0], LINE)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_folder_name_is_not_a_column(tmp_path, suffix):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    path = folder / f"t.{suffix}"
    if suffix == "csv":
        path.write_text("a\n1\n3\n")
    else:
        pq.write_table(pa.table({"a": [1.0, 3.0]}), path)
    table = FileTable(path)
    assert table.columns == ("a",)
    check(table, [1.0, 3.0], LINE)


# -- the expression -----------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(data=st.data())
def test_the_sql_expression_is_that_of_numpy(data):
    d = data.draw(st.integers(1, 3))
    low = data.draw(st.lists(st.floats(-1e6, 1e6), min_size=d, max_size=d))
    width = data.draw(st.lists(st.floats(1e-3, 1e6), min_size=d, max_size=d))
    is_leaves = data.draw(st.booleans())
    steps = [data.draw(st.sampled_from([None, w / 7, w / (9000 if is_leaves else 20)])) for w in width]
    bounds = [(a, a + w) for a, w in zip(low, width, strict=True)]
    spec = LeafSpec.plan(bounds, steps) if is_leaves else SketchSpec.plan(bounds, 0.25, steps=steps)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = rng.uniform(spec.lower - 0.05 * spec.widths, spec.upper + 0.05 * spec.widths, size=(300, d))
    borders = spec.lower + (rng.integers(0, max(spec.cells), size=(300, d)) - spec.shift) * spec.cell_widths
    rows = np.where(rng.random(rows.shape) < 0.5, borders, rows)
    rows = np.where(rng.random(rows.shape) < 0.1, np.nextafter(rows, np.inf), rows)
    anything = data.draw(st.lists(st.floats(width=64), min_size=3 * d, max_size=3 * d))
    rows = np.concatenate([rows, np.array(anything).reshape(-1, d), [spec.lower, spec.upper]])
    frame = pa.table({f"v{j}": rows[:, j] for j in range(d)})
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        columns = [f"TRY_CAST(v{j} AS DOUBLE)" for j in range(d)]
        answer = connection.execute(CellSql.of(spec, DUCKDB).query(columns, "frame")).fetchall()
    keys, counts = expected(rows, spec)
    assert sorted(answer) == list(zip(keys.tolist(), counts.tolist(), strict=True))


# -- errors from the schema ---------------------------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path.*nowhere\.csv"):
        FileTable(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match="path"):
        FileTable(tmp_path)


@pytest.mark.parametrize("name", ["table.xlsx", "table", "table.csv.bz2", "table.gz", "table.parquet.gz", "table.json"])
def test_a_suffix_that_is_not_known(tmp_path, name):
    with pytest.raises(ValueError, match=r"path.*\.parquet"):
        FileTable(written(tmp_path, "a\n1\n", name))


@pytest.mark.parametrize(
    "text",
    ["", "\na,b\n1,2\n", ",,\n1,2,3\n", '"a\nb",c\n1,2\n', b"\xff\xfea,b\n1,2\n", b"a,\xe9\n1,2\n"],
    ids=["empty file", "blank first line", "no names", "name over two lines", "utf-16", "latin-1"],
)
def test_a_header_that_cannot_be_used(tmp_path, text):
    with pytest.raises(ValueError, match="path"):
        FileTable(written(tmp_path, text))


def test_bytes_after_the_header_do_not_matter_to_it(tmp_path):
    path = written(tmp_path, b"a,b\n" + b"\xff" * 100 + b"\n1,2\n")
    assert FileTable(path).columns == ("a", "b")


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["c"], ValueError),
        (["A"], ValueError),
        (["a", "a"], ValueError),
        ([], ValueError),
        (["twice"], ValueError),
        ("ab", TypeError),
    ],
)
def test_columns_that_cannot_be_used(tmp_path, columns, error):
    path = written(tmp_path, "a,b,twice,twice\n1,2,3,4\n")
    with pytest.raises(error, match="columns"):
        FileTable(path, columns)


def test_all_columns_of_a_header_with_one_name_twice(tmp_path):
    with pytest.raises(ValueError, match="columns"):
        FileTable(written(tmp_path, "a,a\n1,2\n"))


def test_an_unknown_column_is_told_which_there_are(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"no column 'c'.*a, b"):
        FileTable(tmp_path / "t.parquet", ["c"])


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", "y"]),
        pa.array([1, 2], pa.timestamp("s")),
        pa.array([[1.0], [2.0]]),
        pa.array([b"1", b"2"]),
        pa.array([{"u": 1}, {"u": 2}]),
    ],
    ids=["text", "time", "list of doubles", "binary", "struct"],
)
def test_a_parquet_column_that_holds_no_numbers(tmp_path, column):
    pq.write_table(pa.table({"a": column, "b": [1.0, 2.0]}), tmp_path / "t.parquet")
    with pytest.raises(TypeError, match=r"columns.*'a'"):
        FileTable(tmp_path / "t.parquet")
    check(FileTable(tmp_path / "t.parquet", ["b"]), [1.0, 2.0], LINE)


def test_a_file_that_is_no_parquet(tmp_path):
    path = written(tmp_path, "secret 123,456\n", "fake.parquet")
    with pytest.raises(ValueError, match="path") as error:
        FileTable(path)
    assert "123" not in str(error.value)


def test_as_many_columns_as_axes(tmp_path):
    with pytest.raises(ValueError, match=r"columns.*2.*1"):
        FileTable(written(tmp_path, "a,b\n1,2\n")).state(LINE)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_failure_of_reading_is_one_sentence(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    if suffix == "csv":
        path.write_text("a\n777\n")
    else:
        pq.write_table(pa.table({"a": [777.0]}), path)
    table = FileTable(path)
    messages = set()
    path.unlink()
    with pytest.raises(ReadFailed) as gone:
        table.state(LINE)
    messages.add(str(gone.value))
    if suffix == "parquet":
        path.write_bytes(b"777 is what it said")
        with pytest.raises(ReadFailed) as broken:
            table.state(LINE)
        messages.add(str(broken.value))
        assert broken.value.__context__ is None
    assert messages == {"the file could not be read"}
    assert gone.value.__context__ is None
    assert gone.value.__cause__ is None


def test_repr_shows_the_schema_only(tmp_path):
    path = written(tmp_path, "a,b\n777,2\n")
    assert repr(FileTable(path, ["a"])) == "FileTable('table.csv', columns=['a'])"


# -- the one way in -----------------------------------------------------------------------------------------


def test_feed_takes_arrays_paths_and_tables_alike(tmp_path):
    rows = np.random.default_rng(0).normal(50, 10, size=(500, 2))
    path = written(tmp_path, "a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in rows.tolist()))
    pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), tmp_path / "t.parquet")
    sources = [rows, rows.tolist(), path, str(path), FileTable(path), tmp_path / "t.parquet"]
    states = []
    for source in sources:
        sketch = DensitySketch([(0, 100)] * 2)
        count_into(sketch, source)
        states.append([part.tolist() for part in sketch.state()])
    assert sum(states[0][1]) == 500
    assert all(state == states[0] for state in states)


def test_width_is_known_from_the_schema(tmp_path):
    path = written(tmp_path, "a,b\n1,2\n")
    assert width_of(as_source(path)) == 2
    assert width_of(np.zeros((5, 3))) == 3
    assert width_of(np.zeros(5)) == 1
    assert width_of([[1, 2]]) is None


def test_a_missing_duckdb_says_what_to_install(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "t.parquet")
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    check(FileTable(written(tmp_path, "a\n1\n")), [1.0], LINE)
    with pytest.raises(ImportError, match=re.escape("fogline[cli]")):
        FileTable(tmp_path / "t.parquet")  # before anything is paid
