"""Files of counts that are small and hold much: what is held of them at a time stays small, whatever they hold."""

import gzip
import tracemalloc

import pytest
from optional_packages import optional

from fogline.density.leaves import LeafSpec
from fogline.queries.fourier_sums import CellCounts
from fogline.sources.counts_file import read_counts

pytest.importorskip("duckdb")
pa, pq = optional("pyarrow"), optional("pyarrow.parquet")

LINE = LeafSpec.plan([(0, 10)], leaves=[8])
LONG = LeafSpec.plan([(0, 10)], leaves=[2**12])
MANY = 2**18
PLAIN = {"cell": [-1, 0], "records": [0, 7], "total": [7, 7], "grid": ["g", "g"]}


def most_held(path, spec, match):
    """Bytes that Python held at most while the file was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=match):
            read_counts(path, spec)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def numbers(kind):
    """Two cells, each of which is a list of many numbers; a few kilobytes in a file."""
    flat = pa.nulls(2 * MANY, kind).fill_null(pa.array([7]).cast(pa.decimal128(20, 1)).cast(kind, safe=False)[0])
    return pa.FixedSizeListArray.from_arrays(flat, MANY).cast(pa.list_(kind))


@pytest.mark.parametrize("column", ["cell", "records", "total"])
@pytest.mark.parametrize("kind", [lambda: pa.int64(), lambda: pa.decimal128(9, 1)], ids=["int64", "decimal128(9, 1)"])
def test_a_list_is_no_number(tmp_path, column, kind):
    """The name of the type of a list begins with that of its numbers."""
    path = tmp_path / "counts.parquet"
    pq.write_table(pa.table({**PLAIN, column: numbers(kind())}), path, compression="zstd")
    assert path.stat().st_size < 2**15
    assert most_held(path, LINE, "must hold whole numbers") < 2**21


def test_columns_beside_the_four_are_refused_before_their_cells_are_read(tmp_path):
    path = tmp_path / "counts.parquet"
    text = pa.array(["g" * 1000] * 2)
    pq.write_table(pa.table({**PLAIN, **{f"c{j}": text for j in range(1000)}}), path, compression="zstd")
    assert most_held(path, LINE, "columns beside") < 2**20


@pytest.mark.parametrize("name", ["counts.csv.gz", "counts.parquet"])
def test_the_second_grid_ends_the_reading(tmp_path, name):
    """Else all of them are held: as many long texts as the grid has cells."""
    path, rows = tmp_path / name, 2**12
    grids = [f"{row:0960}" for row in range(rows)]
    if name.endswith(".gz"):
        lines = ["cell,records,total,grid", *(f"{row - 1},0,0,{grid}" for row, grid in enumerate(grids))]
        path.write_bytes(gzip.compress("\n".join(lines).encode(), 1))
    else:
        zeros = [0] * rows
        pq.write_table(pa.table({"cell": range(-1, rows - 1), "records": zeros, "total": zeros, "grid": grids}), path)
    assert most_held(path, LONG, "one and the same text") < 2**21


def test_rows_of_parquet_are_held_a_few_at_a_time(tmp_path):
    """One long text in all rows, which is no news, is not held once per row."""
    path, rows = tmp_path / "counts.parquet", 2**15
    spec = LeafSpec.plan([(0, 10)], leaves=[rows])
    zeros = [0] * rows
    table = {"cell": range(-1, rows - 1), "records": zeros, "total": zeros, "grid": ["g" * 1000] * rows}
    pq.write_table(pa.table(table), path)
    CellCounts(spec)  # whatever is loaded with the first one
    tracemalloc.start()
    try:
        assert len(read_counts(path, spec)[0]) == rows - 1
        assert tracemalloc.get_traced_memory()[1] < 2**24  # and 2**25 of texts alone
    finally:
        tracemalloc.stop()
