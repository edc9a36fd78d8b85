"""Releases of counts that a warehouse made: the file, what is wrong with it, and what the guarantee says of it."""

import gzip
import os
import re
import tracemalloc
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from fogline import Ledger, PrivateDensity, release
from fogline.cli.app import app
from fogline.density.leaves import LeafSpec
from fogline.releases.counts_release import counts_query, release_counts
from fogline.sources.counts_file import read_counts
from fogline.testing import seeded_noise

duckdb = pytest.importorskip("duckdb")

ASKED = {"columns": ["age", "stay"], "bounds": {"age": "age", "stay": (0, 60)}}
CUT = {**ASKED, "unit": "person", "max_contributions": 2}


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(0)
    with duckdb.connect() as connection:
        columns = {"age": rng.integers(20, 90, 4000), "stay": rng.gamma(2, 3, 4000)}
        arriving = pa.table({**columns, "person": rng.integers(0, 900, 4000)})
        connection.register("arriving", arriving)
        connection.execute("CREATE TABLE visits AS SELECT * FROM arriving")
        yield connection


def answered(visits, path, dialect="duckdb", **asked):
    """The answer of a query in a file of the owner's own."""
    query = counts_query(dialect=dialect, table="visits", **asked)
    sql = query.sql(key="ab")
    found = visits.sql(sql if dialect == "duckdb" else counts_query(dialect="duckdb", table="visits", **asked).sql())
    if dialect != "duckdb":
        found = visits.sql(f"SELECT cell, records, total, '{query.grid}' AS grid FROM ({found.sql_query()})")
    (found.write_parquet if path.suffix == ".parquet" else found.write_csv)(str(path))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("name", ["counts.csv", "counts.parquet"])
def test_the_same_release_as_of_the_records(visits, tmp_path, name):
    path = answered(visits, tmp_path / name, **ASKED)
    with seeded_noise(4):
        mine = release_counts(path, epsilon=1.0, **ASKED)
    with seeded_noise(4):
        theirs = release(visits.table("visits"), epsilon=1.0, **ASKED)
    assert np.array_equal(mine.leaves.counts.counts, theirs.leaves.counts.counts)
    assert (mine.columns, mine.units) == (theirs.columns, theirs.units)


def test_what_the_guarantee_says(visits, tmp_path):
    plain = release_counts(answered(visits, tmp_path / "a.csv", **ASKED), epsilon=1.0, **ASKED).guarantee
    assert plain.certified
    assert not plain.enforced
    assert "as declared, not enforced" in str(plain)
    assert "made by fogline's query for DuckDB, on trust that it ran as printed" in str(plain)
    cut = release_counts(answered(visits, tmp_path / "b.csv", **CUT), epsilon=1.0, **CUT).guarantee
    # the file is believed, whatever query it says it is of: nothing was enforced by fogline
    assert (cut.unit, cut.max_contributions, cut.enforced, cut.certified) == ("person", 2, False, True)
    assert "which bounds the records of each person, on trust that it ran as printed" in str(cut)
    assert "enforced on the data" not in cut.explain()
    path = answered(visits, tmp_path / "c.csv", dialect="bigquery", **ASKED)
    never = release_counts(path, epsilon=1.0, **ASKED).guarantee
    assert not never.certified
    assert never.reason == "the SQL for BigQuery was never run against that engine"


def test_an_empty_table_is_released_like_any_other(tmp_path):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE visits (age DOUBLE, stay DOUBLE, person BIGINT)")
        path = answered(connection, tmp_path / "none.csv", **CUT)
    assert len(path.read_text().splitlines()) == 2
    assert abs(release_counts(path, epsilon=1.0, **CUT).count) < 1000


def changed(rows, what):
    """Rows of a file in which one thing is wrong."""
    header, *lines = rows
    cells = [line.split(",") for line in lines]
    first = next(i for i, line in enumerate(cells) if line[0] != "-1")
    if what == "missing row":
        del cells[first]
    elif what == "extra row":
        cells.append(["0", "5", *cells[first][2:]] if cells[first][0] != "0" else ["1", "5", *cells[first][2:]])
    elif what == "duplicate":
        cells.append(list(cells[first]))
    elif what == "no marker":
        cells = [line for line in cells if line[0] != "-1"]
    elif what == "two grids":
        cells[first][3] = cells[first][3].replace("duckdb", "oracle")
    elif what == "another format":
        for line in cells:
            line[3] = "counts of mine"
    elif what == "ragged":
        cells[first].append("1")
    else:
        column, value = {
            "negative": (1, "-7"), "fractional": (1, "2.5"), "no number": (1, "plenty"), "null": (1, ""),
            "outside": (0, "99999999"), "huge": (1, "9" * 19),
        }[what]  # fmt: skip
        cells[first][column] = value
        if column == 1 and value.lstrip("-").isdigit():
            total = sum(int(line[1]) for line in cells)
            for line in cells:
                line[2] = str(total)
    return [header, *(",".join(line) for line in cells)]


WRONG = {
    "missing row": "do not add up",
    "extra row": "do not add up",
    "duplicate": "do not add up",
    "no marker": "one row with the cell -1",
    "two grids": "one and the same text",
    "another format": "the query must run as printed",
    "ragged": "as many cells as the header",
    "negative": "counts must not be negative",
    "fractional": "whole numbers in every row",
    "no number": "whole numbers in every row",
    "null": "whole numbers in every row",
    "outside": "cells of the grid",
    "huge": "counts",
}


@pytest.mark.parametrize("what", list(WRONG))
def test_wrong_files_are_refused_by_their_structure_before_anything_is_paid(visits, tmp_path, what):
    path = answered(visits, tmp_path / "counts.csv", **ASKED)
    rows = changed(path.read_text().splitlines(), what)
    path.write_text("\n".join(rows) + "\n")
    with Ledger.create(tmp_path / "budget", dataset="v", epsilon=1.0, delta=0.0, high_water=tmp_path / "m") as ledger:
        before = len(ledger.history())
        with pytest.raises(ValueError, match=WRONG[what]) as error:
            release_counts(path, epsilon=1.0, ledger=ledger.on("v"), **ASKED)
        assert len(ledger.history()) == before
    for value in ("-7", "2.5", "plenty", "99999999"):
        assert value not in str(error.value)


@pytest.mark.parametrize("damage", ["cut short", "changed"])
def test_a_compressed_file_that_is_damaged(visits, tmp_path, damage):
    path = answered(visits, tmp_path / "counts.csv", **ASKED)
    packed = bytearray(gzip.compress(path.read_bytes()))
    packed = packed[:-12] if damage == "cut short" else packed[:40] + bytes(8) + packed[48:]
    damaged = tmp_path / "counts.csv.gz"
    damaged.write_bytes(packed)
    damaged.chmod(0o600)
    with pytest.raises(ValueError, match=r"counts: counts\.csv\.gz cannot be read as CSV"):
        release_counts(damaged, epsilon=1.0, **ASKED)


def test_a_name_that_looks_like_a_pattern_is_that_file_alone(visits, tmp_path):
    """DuckDB would read counts1.parquet and counts[1].parquet, or the other one alone, for this name."""
    rows = visits.sql(counts_query(dialect="duckdb", table="visits", **ASKED).sql())
    for name in ("counts1.parquet", "counts[1].parquet", "counts?.parquet"):
        path = tmp_path / name
        (rows if name != "counts1.parquet" else rows.limit(3)).write_parquet(str(path))
        path.chmod(0o600)
    for name in ("counts[1].parquet", "counts?.parquet"):
        assert release_counts(tmp_path / name, epsilon=1.0, **ASKED).count > 1000
    with pytest.raises(ValueError, match="cut short"):
        release_counts(tmp_path / "counts1.parquet", epsilon=1.0, **ASKED)


HOSTILE = {
    "list": lambda n: [[7]] * n,
    "date": lambda n: [date(2026, 1, 1)] * n,
    "truth": lambda n: [True] * n,
    "bytes": lambda n: [b"7"] * n,
    "infinity": lambda n: [float("inf")] * n,
    "nothing": lambda n: [None] * n,
}


@pytest.mark.parametrize("column", ["cell", "records", "total"])
@pytest.mark.parametrize("kind", list(HOSTILE))
def test_types_that_no_answer_has(tmp_path, column, kind):
    content = {"cell": [-1, 0], "records": [0, 7], "total": [7, 7], "grid": ["g", "g"]}
    path = tmp_path / "counts.parquet"
    pq.write_table(pa.table({**content, column: HOSTILE[kind](2)}), path)
    with pytest.raises(ValueError, match=f"counts: column {column} must hold whole numbers"):
        read_counts(path, LeafSpec.plan([(0, 10)], leaves=[8]))


def test_a_file_of_any_length_is_not_read_to_its_end(tmp_path):
    content = {"cell": np.arange(-1, 99_999), "records": np.zeros(100_000, int)}
    path = tmp_path / "counts.parquet"
    pq.write_table(pa.table({**content, "total": content["records"], "grid": ["g"] * 100_000}), path)
    with pytest.raises(ValueError, match="more rows than cells"):
        read_counts(path, LeafSpec.plan([(0, 10)], leaves=[8]))


def test_columns_of_the_file(visits, tmp_path):
    path = answered(visits, tmp_path / "counts.csv", **ASKED)
    text = path.read_text()
    path.write_text(text.replace("cell,records,total,grid", "CELL,Records,TOTAL,Grid", 1))
    release_counts(path, epsilon=1.0, **ASKED)
    path.write_text(text.replace("records", "n", 1))
    with pytest.raises(ValueError, match="one column 'records'"):
        release_counts(path, epsilon=1.0, **ASKED)
    wider = "\n".join(f"{line},1" for line in text.splitlines())
    path.write_text(wider.replace("grid,1", "grid,more", 1))
    with pytest.raises(ValueError, match="columns beside"):
        release_counts(path, epsilon=1.0, **ASKED)
    other = tmp_path / "counts.xlsx"
    other.write_bytes(b"")
    other.chmod(0o600)
    with pytest.raises(ValueError, match=r"must be a \.csv"):
        release_counts(other, epsilon=1.0, **ASKED)
    broken = tmp_path / "counts.parquet"
    broken.write_bytes(b"PAR1 and no more")
    broken.chmod(0o600)
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        release_counts(broken, epsilon=1.0, **ASKED)


@pytest.mark.parametrize(
    "other",
    [
        {"bounds": {"age": "age", "stay": (0, 61)}},
        {"steps": {"stay": 1.0}},
        {"columns": ["stay", "age"]},
        {"unit": "person"},
        {"features": "grid", "delta": 1e-6},
    ],
    ids=lambda value: next(iter(value)),
)
def test_a_file_that_was_made_for_another_question(visits, tmp_path, other):
    path = answered(visits, tmp_path / "counts.csv", **ASKED)
    with pytest.raises(ValueError, match=r"made for other columns|counts:"):
        release_counts(path, epsilon=1.0, **{**ASKED, **other})


def test_a_file_for_everybody_is_refused(visits, tmp_path):
    path = answered(visits, tmp_path / "counts.csv", **ASKED)
    path.chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        release_counts(path, epsilon=1.0, **ASKED)
    with pytest.warns(UserWarning, match="others on this machine can read"):
        release_counts(path, epsilon=1.0, allow_readable=True, **ASKED)
    path.chmod(0o640)
    with pytest.warns(UserWarning, match="others on this machine"):
        release_counts(path, epsilon=1.0, delete=True, **ASKED)
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        release_counts(path, epsilon=1.0, **ASKED)


# -- command line ---------------------------------------------------------------------------------------------------

WORDS = ["--columns", "age,stay", "--bounds", "age,0:60", "--unit", "person", "--max-contributions", "2"]


def fogline(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_from_the_query_to_the_release(visits, tmp_path):
    printed = fogline("sql", "--dialect", "duckdb", "--table", "visits", *WORDS)
    assert printed.exit_code == 0
    assert "fogline release --counts counts.csv" in printed.stdout
    keys = re.findall("'([0-9a-f]{32})'", printed.stdout)
    assert len(keys) == 1
    assert keys != re.findall("'([0-9a-f]{32})'", fogline("sql", "--dialect", "duckdb", "--table", "v", *WORDS).stdout)
    path = tmp_path / "counts.csv"
    visits.sql(printed.stdout).write_csv(str(path))
    path.chmod(0o644)
    out = tmp_path / "visits.fog"
    asked = ["release", "--counts", path, *WORDS, "--epsilon", "1", "--out", out]
    refused = fogline(*asked)
    assert refused.exit_code == 2
    assert "chmod 600" in refused.output
    allowed = fogline(*asked, "--allow-readable")
    assert allowed.exit_code == 0, allowed.output
    assert "caution: others on this machine" in allowed.output
    assert "as secret as the records" in allowed.output
    path.chmod(0o600)
    done = fogline(*asked, "--delete-counts")
    assert done.exit_code == 0, done.output
    assert not path.exists()
    assert PrivateDensity.load(out).guarantee.unit == "person"


def test_words_that_do_not_go_together(tmp_path):
    out = ["--epsilon", "1", "--out", tmp_path / "x.fog"]
    assert "one of FILE and --counts" in fogline("release", *out).output
    assert "one of FILE and --counts" in fogline("release", "a.csv", "--counts", "b.csv", *out).output
    assert fogline("release", "a.csv", "--delete-counts", *out).exit_code == 2
    assert fogline("release", "--counts", "b.csv", "--query", "t", *WORDS, *out).exit_code == 2
    assert "there is no file" in fogline("release", "--counts", tmp_path / "b.csv", *WORDS, *out).output
    assert "dialect must be one of" in fogline("sql", "--dialect", "cobol", "--table", "t", *WORDS).output
    printed = fogline("sql", "--dialect", "oracle", "--table", "t", *WORDS, "--out", tmp_path / "q.sql")
    assert "not certified" in printed.output
    assert os.stat(tmp_path / "q.sql").st_size > 0


def in_a_file(folder, name, content):
    """A file of the owner's own."""
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    path.chmod(0o600)
    return path


BOMBS = {
    "one line": lambda: b"0" * 2**24,
    "one cell in quotes": lambda: b'"' + b"0\n" * 2**23,
    "empty lines": lambda: b"cell,records,total,grid\n" + b"\n" * 2**24,
    "a long cell": lambda: b"cell,records,total,grid\n-1,0,0," + b"g" * 2**24,
}


@pytest.mark.parametrize("what", list(BOMBS))
@pytest.mark.parametrize("name", ["counts.csv", "counts.csv.gz"])
def test_a_file_that_grows_when_it_is_read_is_refused_early(tmp_path, name, what):
    """A few kilobytes of gzip can hold gigabytes: what is held of them at a time is bounded, and so is what is read."""
    path = in_a_file(tmp_path, name, BOMBS[what]())
    spec = LeafSpec.plan([(0, 10)], leaves=[8])
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"counts: (no answer has rows|counts\.csv(\.gz)? cannot be read)"):
            read_counts(path, spec)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


def test_a_long_text_of_parquet_is_cut_off(tmp_path):
    path = tmp_path / "counts.parquet"
    texts = ["g" * 2**20] * 2
    pq.write_table(pa.table({"cell": [-1, 0], "records": [0, 7], "total": [7, 7], "grid": texts}), path)
    assert len(read_counts(path, LeafSpec.plan([(0, 10)], leaves=[8]))[2]) == 1000


def test_the_marker_alone_is_no_answer_of_a_table_with_records(visits, tmp_path):
    """Only the answer about an empty table has that row alone, and it bears no total."""
    path = answered(visits, tmp_path / "counts.csv", **ASKED)
    header, *lines = path.read_text().splitlines()
    (marker,) = (line for line in lines if line.startswith("-1,"))
    assert marker.split(",")[2] == "4000"
    path.write_text(f"{header}\n{marker}\n")
    with pytest.raises(ValueError, match="do not add up"):
        release_counts(path, epsilon=1.0, **ASKED)


def test_answers_of_earlier_queries_are_read(visits, tmp_path):
    """Their marker had no total; the other rows' still tells that one is missing."""
    path = answered(visits, tmp_path / "counts.csv", **ASKED)
    lines = [re.sub(r"^-1,0,4000,", "-1,0,0,", line) for line in path.read_text().splitlines()]
    assert sum(line.startswith("-1,0,0,") for line in lines) == 1
    path.write_text("\n".join(lines) + "\n")
    assert release_counts(path, epsilon=1.0, **ASKED).count > 1000
    path.write_text("\n".join(lines[:-1] if not lines[-1].startswith("-1") else lines[:1] + lines[2:]) + "\n")
    with pytest.raises(ValueError, match="do not add up"):
        release_counts(path, epsilon=1.0, **ASKED)
