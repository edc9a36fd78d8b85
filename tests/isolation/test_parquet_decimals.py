"""A decimal of a Parquet file that is longer than its column declares: it is missing, and nobody else's record is."""

import struct

import pytest
from optional_packages import optional

from fogline.density.leaves import LeafSpec
from fogline.sources.files import FileTable

pytest.importorskip("duckdb")
pa, pq = optional("pyarrow"), optional("pyarrow.parquet")

LINE = LeafSpec.plan([(0, 10)], leaves=[10])


def narrow_file(path, values):
    """Decimals of 16 bytes each, as some writers have all of them, in a column that declares four digits."""
    content = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    cells = pa.Array.from_buffers(pa.decimal128(38, 1), len(values), [None, pa.py_buffer(content)])
    how = {"store_schema": False, "use_dictionary": False, "compression": "none", "write_statistics": False}
    pq.write_table(pa.table({"x": cells}), path, **how)
    written = bytearray(path.read_bytes())
    footer = len(written) - 8 - struct.unpack("<I", written[-8:-4])[0]
    for place in range(footer, len(written) - 8):
        if written[place] == 2 * 38:  # the precision, twice: zigzag code of a number
            written[place] = 2 * 4
    path.write_bytes(written)
    return FileTable(path, ["x"])


@pytest.mark.parametrize("value", [45, 10**5, 10**30, -(10**30)])
def test_one_decimal_does_not_decide_whether_a_file_is_read(tmp_path, value):
    source = narrow_file(tmp_path / "a.parquet", [15, 25, value, 35])
    cells, counts = source.state(LINE)
    assert {1, 2, 3} <= set(cells.tolist())
    assert counts.sum() == 3 + (value == 45)
