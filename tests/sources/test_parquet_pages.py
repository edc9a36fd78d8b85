"""A page that pyarrow leaves out in silence: no reader takes a file for one with fewer rows than it declares."""

import numpy as np
import pytest
from optional_packages import optional

from fogline import profile, release
from fogline.density.leaves import LeafSpec
from fogline.mechanisms.errors import ReleaseFailed
from fogline.sources.contributions import ContributionBound
from fogline.sources.files import FileTable, scan_text_ids
from fogline.sources.tables import ReadFailed

pytest.importorskip("duckdb")
pa, pq = optional("pyarrow"), optional("pyarrow.parquet")

LINE = LeafSpec.plan([(0, 8)], leaves=[8])
BOUND = ContributionBound(2, (11, 12))
UNKNOWN = 14
"""A kind of page that no version of the format has."""


def write(path, broken=(), group_rows=10):
    """A file of 40 rows, in which the first page of each of some columns is of an unknown kind."""
    content = {
        "x": np.arange(40) % 8 + 0.5,
        "person": [f"p{i % 20}" for i in range(40)],
        "sex": ["f", "m"] * 20,
    }
    how = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    pq.write_table(pa.table(content), path, row_group_size=group_rows, **how)
    found = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(0)
    for name in broken:
        at = group.column(list(content).index(name)).data_page_offset
        assert found[at : at + 3] == b"\x15\x00\x15"  # the header of a page of data
        found[at + 1] = UNKNOWN
    path.write_bytes(found)
    return path


def text_ids(path):
    return FileTable(path, ["x"], unit="person")._bounded(BOUND).state(LINE)[1].sum()


def typed(path):
    seen = []
    FileTable(path, ["x"], texts=["sex"]).each_typed_batch(lambda rows, *_: seen.append(len(rows)))
    return sum(seen)


def typed_alone(path):
    seen = []
    FileTable(path, [], texts=["sex"]).each_typed_batch(lambda rows, *_: seen.append(len(rows)))
    return sum(seen)


def doubles(path):
    seen = []
    FileTable(path, ["x"]).each_batch(lambda rows: seen.append(len(rows)))
    return sum(seen)


READERS = {doubles: ("x",), text_ids: ("x", "person"), typed: ("x", "sex"), typed_alone: ("sex",)}


@pytest.mark.parametrize("reader", READERS)
def test_every_row_of_a_whole_file_is_read(tmp_path, reader):
    assert reader(write(tmp_path / "a.parquet")) == 40


@pytest.mark.parametrize("group_rows", [10, 40], ids=["one group of four", "the only group"])
@pytest.mark.parametrize("reader", READERS)
def test_a_page_that_is_left_out_is_an_error(tmp_path, reader, group_rows):
    """In all columns that are read, and in each of them alone."""
    for broken in (READERS[reader], *((name,) for name in READERS[reader])):
        path = write(tmp_path / "a.parquet", broken, group_rows)
        with pytest.raises(ReadFailed, match=r"^the file could not be read$") as error:
            reader(path)
        assert error.value.__cause__ is None


def test_pyarrow_says_nothing_of_it(tmp_path):
    """Why rows are counted: without it the file would be one of 30 rows."""
    path = write(tmp_path / "a.parquet", ("x", "person"))
    assert sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches(columns=["x", "person"])) == 30


def test_nothing_is_released_of_such_a_file(tmp_path):
    path, terms = write(tmp_path / "a.parquet", ("x", "person", "sex")), {"epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ReleaseFailed):
        release(path, columns=["x"], bounds=[(0, 8)], unit="person", max_contributions=2, **terms)
    with pytest.raises(ReleaseFailed):
        profile(path, columns=["x", "sex"], bounds={"x": (0, 8)}, categories={"sex": ["f", "m"]}, **terms)


def test_no_limit_of_the_footer_lets_one_record_decide_whether_a_file_opens(tmp_path, monkeypatch):
    """A text of 100 MB in statistics, or a million row groups, is more than pyarrow takes by default."""
    path, opened, most = tmp_path / "doubles.parquet", pq.ParquetFile, 2**31 - 1
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "id": ["a", "b", "c"]}), path)
    with pytest.raises(OSError, match="limit"):  # the limit is one: a footer of more is refused
        opened(path, thrift_string_size_limit=2)
    limits = []

    def remember(*args, **options):
        limits.append((options.get("thrift_string_size_limit"), options.get("thrift_container_size_limit")))
        return opened(*args, **options)

    monkeypatch.setattr(pq, "ParquetFile", remember)
    FileTable(path, ["x"]).state(LINE)
    FileTable(path, ["x"]).each_batch(lambda rows: None)
    scan_text_ids([path], ["x"], "id", lambda rows, ids: None)
    assert len(limits) >= 3
    assert set(limits) == {(most, most)}
