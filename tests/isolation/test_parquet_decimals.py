"""Decimals of a Parquet file that may be longer than their column declares: refused by their schema."""

import struct
from decimal import Decimal

import pytest
from optional_packages import optional

from fogline.density.leaves import LeafSpec
from fogline.sources.files import FileTable

pytest.importorskip("duckdb")
pa, pq = optional("pyarrow"), optional("pyarrow.parquet")

LINE = LeafSpec.plan([(0, 10)], leaves=[10])


def narrow_file(path, values, digits=38, **how):
    """Decimals in all the bytes that so many digits need, as some writers have all of them, declared with four."""
    content = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    cells = pa.Array.from_buffers(pa.decimal128(digits, 1), len(values), [None, pa.py_buffer(content)])
    how = {"store_schema": False, "use_dictionary": False, "compression": "none", "write_statistics": False, **how}
    pq.write_table(pa.table({"x": cells}), path, **how)
    written = bytearray(path.read_bytes())
    footer = len(written) - 8 - struct.unpack("<I", written[-8:-4])[0]
    for place in range(footer, len(written) - 8):
        if written[place] == 2 * digits:  # the precision, twice: zigzag code of a number
            written[place] = 2 * 4
    path.write_bytes(written)
    return path


@pytest.mark.parametrize("digits", [38, 18, 9])
@pytest.mark.parametrize("value", [45, 10**5, -(10**8)])
def test_one_decimal_does_not_decide_whether_a_file_is_read(tmp_path, value, digits):
    path = narrow_file(tmp_path / "a.parquet", [15, 25, value, 35], digits)
    with pytest.raises(ValueError, match=r"columns: column 'x' of a\.parquet stores decimals of 4 digits"):
        FileTable(path, ["x"])


@pytest.mark.parametrize("value", [45, 10**5, -(10**8)])
def test_decimals_that_are_whole_numbers_are_read_whatever_their_size(tmp_path, value):
    path = narrow_file(tmp_path / "a.parquet", [15, 25, value, 35], 9, store_decimal_as_integer=True)
    cells, counts = FileTable(path, ["x"]).state(LINE)
    assert {1, 2, 3} <= set(cells.tolist())
    assert counts.sum() == 3 + (value == 45)


@pytest.mark.parametrize("digits", [4, 5, 9, 10, 18, 19, 38])
def test_decimals_as_writers_store_them_are_read(tmp_path, digits):
    cells = pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(digits, 1))
    pq.write_table(pa.table({"x": cells}), tmp_path / "a.parquet")
    cells, counts = FileTable(tmp_path / "a.parquet", ["x"]).state(LINE)
    assert cells.tolist() == [1, 2]
    assert counts.tolist() == [1, 1]
