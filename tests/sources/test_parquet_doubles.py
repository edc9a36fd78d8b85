"""Columns of doubles that pyarrow decodes in threads: the integers of DuckDB, of numpy and of one thread."""

import math

import numpy as np
import pytest
from optional_packages import optional

from fogline import DensitySketch
from fogline.density.leaves import LeafSpec
from fogline.density.random_spec import plan_spec
from fogline.sources import files
from fogline.sources.files import FileTable, count_doubles
from fogline.sources.tables import ReadFailed

pytest.importorskip("duckdb")
pa, pq = optional("pyarrow"), optional("pyarrow.parquet")

SQUARE = LeafSpec.plan([(0.0, 8.0), (-1.0, 1.0)], leaves=[7, 3])
ODD = [
    0.0,
    -0.0,
    8.0,
    math.nextafter(8.0, 9.0),
    math.nan,
    -math.nan,
    math.inf,
    -math.inf,
    5e-324,
    1e308,
    None,
    1.0,
    -1.0,
]


def hostile(n=997, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {name: pa.array([ODD[k] for k in rng.integers(0, len(ODD), n)], pa.float64()) for name in ("x", "y", "z")}
    )


def by_hand(tables, spec, columns=("x", "y")):
    rows = [np.column_stack([np.array(t[c].to_pylist(), dtype=float) for c in columns]) for t in tables]
    return DensitySketch.of(spec).update(np.concatenate(rows)).state()


def same(mine, theirs):
    return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("group_rows", [1, 50, 2000])
def test_any_share_of_row_groups_counts_the_same(tmp_path, monkeypatch, threads, group_rows):
    """Files with more and with fewer row groups than there are threads, and one without any."""
    tables = [hostile(), hostile(7, 1), hostile(0)]
    for number, rows in enumerate(tables):
        how = {"use_dictionary": number == 0, "compression": ("snappy", "zstd", "none")[number]}
        pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=group_rows, **how)
    monkeypatch.setattr(files, "cores", lambda: threads)
    monkeypatch.setattr(files, "ARROW_ROWS", 64)
    wanted = by_hand(tables, SQUARE)
    assert same(FileTable(tmp_path, ["x", "y"]).state(SQUARE), wanted)
    monkeypatch.setattr(FileTable, "_is_all_doubles", lambda self: False)
    assert same(FileTable(tmp_path, ["x", "y"]).state(SQUARE), wanted)


def test_a_table_of_no_rows(tmp_path):
    pq.write_table(hostile(0), tmp_path / "none.parquet")
    assert len(FileTable(tmp_path / "none.parquet", ["y", "x"]).state(SQUARE)[0]) == 0


def test_a_grid_that_is_too_large_for_an_array(tmp_path, monkeypatch):
    pq.write_table(hostile(), tmp_path / "a.parquet", row_group_size=100)
    wanted = FileTable(tmp_path / "a.parquet", ["x", "y"]).state(SQUARE)
    monkeypatch.setattr("fogline.queries.fourier_sums.DENSE_CELLS", 1)
    assert same(FileTable(tmp_path / "a.parquet", ["x", "y"]).state(SQUARE), wanted)


def ways(monkeypatch):
    """Notes of whether pyarrow counted."""
    seen = []
    monkeypatch.setattr(files, "count_doubles", lambda *args: seen.append(count_doubles(*args)) or seen[-1])
    return seen


@pytest.mark.parametrize(
    ("column", "is_counted"),
    [
        (pa.array([1.0, 2.0]), True),
        (pa.array([1.0, 2.0]).dictionary_encode(), True),
        (pa.array([1, 2]), False),
        (pa.array([1.0, 2.0], pa.float32()), False),
    ],
    ids=["doubles", "dictionary", "integers", "floats"],
)
def test_other_types_take_the_other_way(tmp_path, monkeypatch, column, is_counted):
    pq.write_table(pa.table({"x": column}), tmp_path / "a.parquet")
    seen = ways(monkeypatch)
    state = FileTable(tmp_path / "a.parquet").state(plan_spec([(0, 10)], "auto", None))
    assert state[1].sum() == 2
    assert any(found is not None for found in seen) == is_counted


@pytest.mark.parametrize("names", [("x.y", "x"), ("x", "X"), ("a", "a"), ("é", "x.y.z")])
def test_names_that_readers_understand_otherwise(tmp_path, names):
    """A dot is no path into a nested column, and columns of one name are those that DuckDB tells."""
    nested = pa.array([{"y": 9.0}] * 3)
    columns = [pa.array([1.0, 2.0, 3.0]), pa.array([7.0, 7.0, None])]
    pq.write_table(pa.Table.from_arrays([*columns, nested], [*names, "nested"]), tmp_path / "a.parquet")
    line = LeafSpec.plan([(0, 10)], leaves=[10])
    first, second = _two(tmp_path)
    assert FileTable(tmp_path / "a.parquet", [first]).state(line)[0].tolist() == [1, 2, 3]
    assert FileTable(tmp_path / "a.parquet", [second]).state(line)[1].tolist() == [2]


def _two(folder):
    """Names of the first two columns, as DuckDB has them."""
    import duckdb

    found = duckdb.sql(f"DESCRIBE SELECT * FROM read_parquet('{folder / 'a.parquet'}')").fetchall()
    return [row[0] for row in found[:2]]


def test_a_file_that_breaks_while_it_is_read_says_nothing(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(hostile(), path, row_group_size=100, compression="zstd", use_dictionary=False)
    source, content = FileTable(path, ["x", "y"]), bytearray(path.read_bytes())
    content[60:260] = bytes(200)  # pages of the first row group; the schema stands at the end
    path.write_bytes(content)
    with pytest.raises(ReadFailed, match=r"^the file could not be read$") as error:
        source.state(SQUARE)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("threads", [1, 2])
def test_a_page_of_an_unknown_kind_is_no_page_less(tmp_path, monkeypatch, threads):
    """pyarrow leaves such a page out and says nothing: its records would be missing, where DuckDB fails."""
    path = tmp_path / "a.parquet"
    how = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    pq.write_table(pa.table({"x": np.arange(40) % 8 + 0.5}), path, row_group_size=10, **how)
    content = bytearray(path.read_bytes())
    assert content[4:7] == b"\x15\x00\x15"  # the header of the first page: a page of data
    content[5] = 14
    path.write_bytes(content)
    monkeypatch.setattr(files, "cores", lambda: threads)
    with pytest.raises(ReadFailed, match=r"^the file could not be read$"):
        FileTable(path, ["x"]).state(LeafSpec.plan([(0, 8)], leaves=[8]))


def test_progress_is_told_by_the_other_way(tmp_path):
    pq.write_table(hostile(), tmp_path / "a.parquet")
    told = []
    FileTable(tmp_path / "a.parquet", ["x", "y"], progress=told.append).state(SQUARE)
    assert told[-1] == 997


@pytest.mark.parametrize("columns", [["x", "y"], ["z", "y", "x"], ["y"]], ids=",".join)
@pytest.mark.parametrize("by_column", [False, True])
def test_rows_are_handed_over_as_duckdb_does(tmp_path, monkeypatch, columns, by_column):
    """The same doubles bit by bit, in the order of the files and of the columns that are asked for."""
    for number, rows in enumerate((hostile(), hostile(0), hostile(300, 1))):
        pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=100)
    monkeypatch.setattr(files, "BATCH_ROWS", 64)
    monkeypatch.setattr(FileTable, "_by_column", by_column)

    def handed():
        seen = []
        FileTable(tmp_path, columns).each_batch(lambda rows: seen.append(rows.copy()))
        return np.ascontiguousarray(np.concatenate(seen))

    asked = []
    monkeypatch.setattr(
        files, "scan_query", lambda *_, scan=files.scan_query, **how: asked.append(1) or scan(*_, **how)
    )
    mine = handed()
    assert not asked
    monkeypatch.setattr(FileTable, "_is_all_doubles", lambda self: False)
    theirs = handed()
    assert asked
    assert mine.shape == (1297, len(columns))
    assert np.array_equal(np.isnan(mine), np.isnan(theirs))
    assert mine[~np.isnan(mine)].tobytes() == theirs[~np.isnan(theirs)].tobytes()  # zeros of both signs


def test_a_count_takes_the_columns_in_the_order_that_is_asked_for(tmp_path):
    pq.write_table(hostile(), tmp_path / "a.parquet")
    spec = LeafSpec.plan([(-1.0, 1.0), (0.0, 8.0)], leaves=[3, 7])
    wanted = by_hand([hostile()], spec, ("z", "x"))
    assert same(FileTable(tmp_path / "a.parquet", ["z", "x"]).state(spec), wanted)
    assert not same(wanted, by_hand([hostile()], spec, ("x", "z")))
