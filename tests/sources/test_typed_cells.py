"""Cells of a profile: the same from every source, each a function of its own record, cut by units without a leak."""

from __future__ import annotations

import contextlib
import sqlite3

import numpy as np
import pytest

from fogline import profile, table
from fogline._validation import plain_loops
from fogline.density.columns import CategoryColumn, NumberColumn
from fogline.sources.passes import label_text
from fogline.sources.typed_cells import CellCoder, SearchCoder, TypedPasses, declared_kinds, typed_source
from fogline.testing import seeded_noise

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PLANS = [
    NumberColumn("age", (0.0, 110.0), 1.0),
    CategoryColumn.of("sex", ["f", "m"]),
    NumberColumn("day", (16436.0, 20088.0), 1.0, "date"),
    NumberColumn("cost", (0.0, 100.0)),
]

LINES = [
    b"34,f,2015-06-01,12.5",
    b"34, m ,2015-06-01 12:30,1e3",
    b'"7","f","2019-01-31",""',
    b"x,,31.12.2015,-5",
    b"",
    b"1,2",
    b'"1,2,3',
    b"5,\xff\xfe,2016-02-30,3",
    b'12,"a ""quoted"" m",2016-02-29,4,5,6',
    b"\xef\xbb\xbf9,f,2015-01-01,nan",
    b"1\x00,m\x00,2015-01-01,7",
    b"8," + b"f" * 300 + b",2020-01-01T00:00:00Z,0",
    b"9999999999999999999999,m,0001-01-01,99.999999999999999",
]


def coded(source, plans=PLANS, coder=CellCoder, **more):
    names = [plan.name for plan in plans if plan.kind == "number"]
    opened = typed_source(source, names, [plan.name for plan in plans if plan.kind != "number"], **more)
    found = []
    TypedPasses(opened, names, 1).run(coder(plans), found.append)
    return np.concatenate([np.empty((0, coder(plans).width)), *found])


def written(folder, lines):
    path = folder / "table.csv"
    path.write_bytes(b"age,sex,day,cost\n" + b"\n".join(lines) + b"\n")
    return path


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
@pytest.mark.parametrize("coder", [CellCoder, SearchCoder])
def test_a_line_is_read_from_its_own_bytes_alone(tmp_path, plain, coder):
    """Each hostile line by itself gives the row that it gives among all others."""
    plans = PLANS
    if coder is SearchCoder:
        plans = [NumberColumn("age"), CategoryColumn("sex"), NumberColumn("day", kind="date"), NumberColumn("cost")]

    def read(lines):
        if plain:
            with plain_loops():
                return coded(written(tmp_path, lines), plans, coder)
        return coded(written(tmp_path, lines), plans, coder)

    together = read(LINES)
    assert len(together) == len(LINES)
    for line, row in zip(LINES, together, strict=True):
        assert np.array_equal(read([line])[0], row)
    assert np.array_equal(read(LINES[::-1]), together[::-1])
    assert np.isfinite(together).all()


def test_compiled_and_plain_readers_agree(tmp_path):
    path = written(tmp_path, LINES * 40)
    with plain_loops():
        plain = coded(path)
    assert np.array_equal(coded(path), plain)


def test_cells_are_what_they_say(tmp_path):
    cells = coded(written(tmp_path, LINES))
    missing, other = 111, 2
    assert cells[:2].astype(int).tolist()[0][:3] == [34, 0, 151]
    assert cells[1].astype(int).tolist() == [34, 1, 151, 4098], "blanks are stripped, a time is left out, above"
    assert cells[3, 0] == missing
    assert cells[3, 1] == 3
    assert cells[3, 3] == 4097, "below"
    assert (cells[4] == [missing, 3, 3653, 4096]).all(), "an empty line is a record without values"
    assert cells[11, 1] == other, "keys are cut, and a long text is no category of the list"


ROWS = {
    "age": [34, 7, 111, -1],
    "sex": ["f", "m", None, "x"],
    "day": ["2015-06-01", None, "2024-12-31", "2030-01-01"],
    "cost": [12.5, 0.0, None, 100.0],
}


def sources(folder):
    frame = pd.DataFrame(ROWS)
    csv, parquet = folder / "rows.csv", folder / "rows.parquet"
    frame.to_csv(csv, index=False)
    frame.astype({"age": "int32"}).assign(day=pd.to_datetime(frame["day"]).dt.date).to_parquet(parquet)
    import polars as pl

    base = sqlite3.connect(folder / "rows.db")
    base.execute("CREATE TABLE visits (age INTEGER, sex TEXT, day TEXT, cost REAL)")
    base.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", list(zip(*ROWS.values(), strict=True)))
    base.commit()
    base.close()
    yield "csv", csv, {}
    yield "parquet", parquet, {}
    yield "pandas", frame, {}
    yield "pandas dates", frame.assign(day=pd.to_datetime(frame["day"])), {}
    yield "polars", pl.DataFrame(ROWS).with_columns(pl.col("day").str.to_date()), {}
    yield "sqlite", f"sqlite:///{folder / 'rows.db'}", {"query": "visits"}


def test_every_source_gives_the_same_cells(tmp_path):
    expected = [[34, 0, 151, 512], [7, 1, 3653, 0], [113, 3, 3652, 4096], [112, 2, 3655, 4095]]
    for name, source, more in sources(tmp_path):
        assert coded(source, **more).astype(int).tolist() == expected, name


def test_declared_kinds_come_from_schemas_alone(tmp_path):
    wanted = {"age": "integer", "sex": "text", "cost": "number"}
    for name, source, more in sources(tmp_path):
        kinds = declared_kinds(source, **more)
        assert list(kinds) == ["age", "sex", "day", "cost"]
        if name in ("csv", "parquet", "pandas", "pandas dates"):
            assert set(kinds.values()) == {None}, "what pandas chose by the cells is no declaration"
            continue
        assert {key: kinds[key] for key in wanted} == wanted, name
        assert kinds["day"] == ("text" if name == "sqlite" else "date"), name


ODD = {
    "a gap among whole numbers": ("n", [1, 2, 3], [1, 2, None]),
    "a gap among truth values": ("n", [True, False, True], [True, False, None]),
    "a text among numbers": ("n", [1.0, 2.0], [1.0, "x"]),
    "a number among texts": ("n", ["a", "b"], ["a", 3]),
    "a date among texts": ("n", [pd.Timestamp("2020-01-01")] * 2, [pd.Timestamp("2020-01-01"), "soon"]),
    "the only value": ("n", [None, None], [None, "a"]),
}


@pytest.mark.parametrize("case", ODD)
def test_one_record_does_not_change_what_a_column_of_pandas_is_taken_for(case, tmp_path):
    """In memory, and in a Parquet file that pandas wrote, where it can."""
    name, *both = ODD[case]
    frames = [pd.DataFrame({name: cells}) for cells in both]
    assert declared_kinds(frames[0]) == declared_kinds(frames[1])
    for k, frame in enumerate(frames):
        with contextlib.suppress(pa.ArrowException):  # Arrow has no type for both
            frame.to_parquet(tmp_path / f"{k}.parquet")
    kinds = [declared_kinds(path) for path in sorted(tmp_path.glob("*.parquet"))]
    assert all(kind == kinds[0] for kind in kinds)
    assert kinds


def test_types_that_somebody_chose_are_declarations(tmp_path):
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None], "Int64"),
            "flag": pd.array([True, None], "boolean"),
            "name": pd.array(["a", None], "string"),
            "ward": pd.Categorical(["a", "b"]),
            "cost": pd.array([1.5, None], "double[pyarrow]"),
            "plain": [1, 2],
        }
    )
    wanted = {"whole": "integer", "flag": "boolean", "name": "text", "ward": "text", "cost": "number", "plain": None}
    assert declared_kinds(frame) == wanted
    frame.to_parquet(tmp_path / "a.parquet")
    assert declared_kinds(tmp_path / "a.parquet") == wanted


def test_a_note_of_pandas_that_cannot_be_read_declares_nothing(tmp_path):
    table = pa.table({"age": [1, 2]}).replace_schema_metadata({"pandas": "{"})
    pq.write_table(table, tmp_path / "a.parquet")
    assert declared_kinds(tmp_path / "a.parquet") == {"age": None}


def test_texts_of_a_source_that_cannot_give_them_are_refused():
    import polars as pl

    with pytest.raises(TypeError, match="dates and categories are read from files"):
        typed_source(pl.LazyFrame(ROWS), ["age"], ["sex"])
    with pytest.raises(TypeError, match="a table already"):
        typed_source(table(np.zeros((2, 2))), [], ["sex"])


def test_records_with_missing_cells_compete_for_a_units_place():
    frame = pd.DataFrame({"age": [np.nan] * 5 + [3.0] * 5, "person": [1] * 5 + [2] * 5})
    plans = [NumberColumn("age", (0.0, 9.0), 1.0)]
    passes = TypedPasses(typed_source(frame, ["age"], [], unit="person"), ["age"], 2)
    found = []
    passes.run(CellCoder(plans), found.append)
    assert sorted(np.concatenate(found).ravel().tolist()) == [3.0, 3.0, 10.0, 10.0]
    passes.forget()
    with pytest.raises(RuntimeError, match="over"):
        passes.run(CellCoder(plans), found.append)


FAR_DAYS = [18262] * 50 + [10_000_000]  # the last one is after the year 9999


@pytest.mark.parametrize("form", ["arrow", "polars"])
def test_a_day_that_python_has_no_date_for_is_missing_alone(form):
    pa = pytest.importorskip("pyarrow")
    days = pa.table({"d": pa.array(FAR_DAYS, pa.int32()).cast(pa.date32())})
    given = days if form == "arrow" else pytest.importorskip("polars").from_arrow(days)
    with seeded_noise(1):
        found = profile(given, bounds={"d": ("2015-01-01", "2024-12-31")}, epsilon=10.0)
    assert abs(found.count - 51) < 3
    assert found["d"].missing.value == pytest.approx(1 / 51, abs=0.06)


class Hostile(str):
    """A text with an error of its own."""

    def strip(self, *_):
        raise RuntimeError("secret")


@pytest.mark.parametrize("cell", [np.timedelta64(1, "s"), Hostile("f")])
def test_a_label_that_raises_is_no_label(cell):
    assert label_text(cell) is None


def test_a_profile_with_a_unit_splits_a_table_that_is_too_large(monkeypatch):
    frame = pd.DataFrame({"a": np.linspace(0, 1, 3000), "p": np.arange(3000)})
    with seeded_noise(1):
        whole = profile(frame, columns=["a"], bounds={"a": (0, 1)}, unit="p", epsilon=10.0)
    monkeypatch.setattr("fogline.sources.contributions.MOST_BYTES", 2**14)
    with seeded_noise(2):
        parts = profile(frame, columns=["a"], bounds={"a": (0, 1)}, unit="p", epsilon=10.0)
    assert max(abs(whole.count - 3000), abs(parts.count - 3000)) < 10
