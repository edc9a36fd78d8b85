"""Reading options: what is a number under each of them, what is refused, and that a first record is never shown."""

from __future__ import annotations

import builtins
import io
import math
import pathlib

import numpy as np
import pytest

from fogline import PrivateModes, private_strata
from fogline.density.spec import SketchSpec
from fogline.sources import text_lines
from fogline.sources.check import check
from fogline.sources.files import CountedFile, FileTable
from fogline.sources.reading import ReadingOptions
from fogline.sources.registry import table
from fogline.sources.text_lines import looks_like_value

SPAN = SketchSpec.plan([(0.0, 10000.0)])
GERMAN = {"delimiter": ";", "decimal": ",", "thousands": "."}


def written(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(params=["compiled", "plain"])
def either(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(text_lines, "_fast_reader", lambda: None)


def values(source):
    batches = []
    source.each_batch(batches.append)
    return [None if math.isnan(x) else x for x in np.concatenate(batches)[:, 0].tolist()]


@pytest.mark.parametrize(
    ("options", "cells", "wanted"),
    [
        ({}, ["1234.5", "1,5", "1_0", " 7\t", "0x10", "12%", "inf"], [1234.5, None, None, 7.0, None, None, None]),
        ({"decimal": ","}, ["1234,5", "1234.5", "-,5", "3,", "1,5e2"], [1234.5, None, -0.5, 3.0, 150.0]),
        (
            {"thousands": ","},
            ["1,234.50", "1234.5", "12,34", "1,2345", "1234,567", ",123", "1,234,567", "1,,234", "1,234."],
            [1234.5, 1234.5, None, None, None, None, 1234567.0, None, 1234.0],
        ),
        ({"decimal": ",", "thousands": "."}, ["1.234,50", "12.34", "1.234"], [1234.5, None, 1234.0]),
        ({"thousands": "'"}, ["1'234.5", "1 234"], [1234.5, None]),
        ({"thousands": " ", "decimal": ","}, ["1 234,5", " 1 234 ", "12 34"], [1234.5, 1234.0, None]),
        ({"thousands": "\u202f", "decimal": ","}, ["1\u202f234,5", "1 234"], [1234.5, None]),
        ({"null": ["-999", "9"]}, ["-999", " 9 ", "-999.0", "99", '"9"'], [None, None, -999.0, 99.0, None]),
    ],
)
def test_what_cells_count_as(tmp_path, either, options, cells, wanted):
    path = written(tmp_path, "a|b\n" + "".join(f"{cell}|x\n" for cell in cells))
    assert values(FileTable(path, ["a"], **options)) == wanted
    bare = [cell.strip('"') for cell in cells]
    assert [None if math.isnan(x) else x for x in map(ReadingOptions(**options).number, bare)] == wanted


def test_encodings_name_columns_and_ids(tmp_path, either):
    path = written(tmp_path, "größe;wer\n5;jürg\n6;jürg\n7;ann\n".encode("latin-1"))
    source = table(path, ["größe"], unit="wer", encoding="latin-1")
    batches = []
    source.each_unit_batch(lambda _, ids: batches.extend(ids))
    assert batches == ["jürg", "jürg", "ann"]
    with pytest.raises(ValueError, match=r"path.*UTF-8"):
        table(path)


def test_names_can_be_stated(tmp_path, either):
    path = written(tmp_path, "1,2\n3,4\n5,6")
    assert values(FileTable(path, ["b"], header=["a", "b"], delimiter=",")) == [2.0, 4.0, 6.0]
    assert values(CountedFile(path, ["b"], rows=2, header=["a", "b"], delimiter=",")) == [2.0, 4.0]
    tabs = written(tmp_path, "1\t2\n", "t.tsv")
    assert values(FileTable(tabs, ["b"], header=["a", "b"])) == [2.0]
    assert values(FileTable(written(tmp_path, "1\n3"), header=["a"])) == [1.0, 3.0]


def test_a_delimiter_is_not_guessed_where_no_line_shows_it(tmp_path, either):
    """As two cells between commas, the weight of `p1;70,5` would be 5."""
    path = written(tmp_path, "p1;70,5\np2;81,0\n")
    with pytest.raises(ValueError, match=r"delimiter must be given beside header"):
        table(path, ["weight"], header=["person", "weight"])
    read = table(path, ["weight"], header=["person", "weight"], delimiter=";", decimal=",")
    assert values(read) == [70.5, 81.0]


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"delimiter": ";;"}, ValueError, "delimiter"),
        ({"delimiter": ""}, ValueError, "delimiter"),
        ({"delimiter": "a"}, ValueError, "delimiter"),
        ({"delimiter": '"'}, ValueError, "delimiter"),
        ({"delimiter": "\n"}, ValueError, "delimiter"),
        ({"delimiter": "§"}, ValueError, "delimiter"),
        ({"delimiter": 5}, ValueError, "delimiter"),
        ({"decimal": "·"}, ValueError, "decimal"),
        ({"decimal": ","}, ValueError, "decimal"),
        ({"delimiter": ",", "decimal": ","}, ValueError, "decimal"),
        ({"thousands": ","}, ValueError, "thousands"),
        ({"thousands": "."}, ValueError, "thousands"),
        ({"thousands": "  "}, ValueError, "thousands"),
        ({"thousands": "5"}, ValueError, "thousands"),
        ({"thousands": "\u202f", "encoding": "latin-1"}, ValueError, "thousands"),
        ({"encoding": "utf-16"}, ValueError, "encoding"),
        ({"encoding": "utf-16-le"}, ValueError, "encoding"),
        ({"encoding": "utf-32"}, ValueError, "encoding"),
        ({"encoding": "shift_jis"}, ValueError, "encoding"),
        ({"encoding": "gb18030"}, ValueError, "encoding"),
        ({"encoding": "big5"}, ValueError, "encoding"),
        ({"encoding": "utf-7"}, ValueError, "encoding"),
        ({"encoding": "hz"}, ValueError, "encoding"),
        ({"encoding": "iso2022_jp"}, ValueError, "encoding"),
        ({"encoding": "cp037"}, ValueError, "encoding"),
        ({"encoding": "raw_unicode_escape"}, ValueError, "encoding"),
        ({"encoding": "rot13"}, ValueError, "encoding"),
        ({"encoding": "nonsense"}, ValueError, "encoding"),
        ({"encoding": 8}, TypeError, "encoding"),
        ({"null": 5}, TypeError, "null"),
        ({"null": [5]}, TypeError, "null"),
        ({"null": [""]}, ValueError, "null"),
        ({"null": ['"']}, ValueError, "null"),
        ({"header": "ab"}, TypeError, "header"),
        ({"header": []}, ValueError, "header"),
        ({"header": ["a", "a"]}, ValueError, "header"),
        ({"header": ["a", ""]}, ValueError, "header"),
        ({"header": [1, 2]}, TypeError, "header"),
    ],
)
def test_options_that_contradict_are_named(tmp_path, options, error, name):
    path = written(tmp_path, "a,b\n1,2\n")
    for make in (FileTable, table, check):
        with pytest.raises(error, match=f"^{name}"):
            make(path, **options)


@pytest.mark.parametrize(
    "encoding", ["UTF8", "latin-1", "cp1252", "ascii", "iso8859-15", "koi8-r", "cp437", "utf-8-sig"]
)
def test_encodings_that_contain_ascii_are_taken(encoding):
    assert ReadingOptions(encoding=encoding).number("5") == 5.0


def test_other_sources_take_no_options(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", np.zeros((3, 1)), pa.table({"a": [1.0]})):
        with pytest.raises(TypeError, match=r"^decimal"):
            table(source, decimal=",")
    with pytest.raises(TypeError, match=r"^null"):
        table("sqlite:///x.db", query="t", null=["NA"])


def test_stated_options_belong_to_the_question(tmp_path):
    path = written(tmp_path, "a;b\n1;2\n")
    assert "reading" not in FileTable(path).facts
    assert "reading" not in FileTable(path, decimal=".", encoding="UTF8").facts
    assert FileTable(path, decimal=",", null=["-9"]).facts["reading"] == {"decimal": ",", "null": ["-9"]}
    assert FileTable(path, header=["x", "y"], delimiter=";").facts["reading"]["header"] == ["x", "y"]


def test_a_release_reads_by_the_options(tmp_path):
    rng = np.random.default_rng(0)
    cells = [f"{x:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") for x in rng.normal(5000, 300, 4000)]
    path = written(tmp_path, "sex;pay\n" + "".join(f"{'fm'[i % 2]};{cell}\n" for i, cell in enumerate(cells)))
    budget = {"epsilon": 1.0, "delta": 1e-6, "bounds": [(0, 10000)]}
    model = PrivateModes(**budget).fit(table(path, ["pay"], **GERMAN))
    assert model.modes_[0, 0] == pytest.approx(5000, abs=200)
    found = private_strata(path, "sex", categories=["f", "m"], reading=GERMAN, **budget)
    assert found["f"].count == pytest.approx(2000, abs=200)


# -- headers --------------------------------------------------------------------------------------------------

SECRETS = ["1978-03-01,70.5", "Ann Smith,70.5", "ann@example.org,x", "4711,x", "-5,x", "12.5%,x", "$12,x", "1.234,x"]
SECRETS += ["31 Jan 1978,x", "Jan 31,x", "NaN,x", "NULL,x", "x,true", "x,NA", "12:30,x", "5 kg,x", '"42",x', "x;1,5"]
SECRETS += ["550e8400-e29b-41d4-a716-446655440000,x", "+41 79 555 00 00,x", "(5),x", "\ufeff7,x", "1e5,x", ".5,x"]


@pytest.mark.parametrize("line", SECRETS)
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", ""])
def test_a_first_record_is_refused_and_never_shown(tmp_path, line, end):
    path = written(tmp_path, line + end + ("3,4" + end if end else ""))
    for make in (FileTable, check, table, lambda p: PrivateModes(epsilon=1, delta=1e-6, bounds=[(0, 1)]).fit(p)):
        with pytest.raises(ValueError, match=r"^path.*header") as caught:
            make(path)
        text = str(caught.value)
        assert not any(
            cell and cell.strip('"') in text.replace(path.name, "") for cell in line.split(",") if len(cell) > 1
        )


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " ", ":"])
def test_another_delimiter_does_not_make_a_name_of_the_first_record(tmp_path, delimiter):
    path = written(tmp_path, "anna x,34,5.2\nbob y,40,7\n")
    for make in (check, FileTable):
        with pytest.raises(ValueError, match=r"^path.*looks like values") as caught:
            make(path, delimiter=delimiter)
        assert "anna" not in str(caught.value)
    names = written(tmp_path, "income (net, 2020);age;sex\n1;2;3\n")
    assert check(names, delimiter=";").columns == ("income (net, 2020)", "age", "sex")


@pytest.mark.parametrize(
    "name", ["age", "x1", "Na", "", "a b", "größe", "income (net)", "May", "e5x", "_1", "T4", "CO2"]
)
def test_usual_names_are_names(name):
    assert not looks_like_value(name)


def test_errors_about_text_list_no_names(tmp_path):
    path = written(tmp_path, "Ann Smith,Berlin\nBob,Rome\n")
    for words in ({"columns": ["age"]}, {"columns": ["Berlin"], "unit": "who"}):
        with pytest.raises(ValueError, match="there is no column") as caught:
            FileTable(path, **words)
        assert "Ann" not in str(caught.value)
    with pytest.raises(ValueError, match="there is no column") as caught:
        FileTable(path)[["age"]]
    assert "Ann" not in str(caught.value)
    twice = written(tmp_path, "Ann,Ann,b\n", "u.csv")
    with pytest.raises(ValueError, match="columns must name"):
        FileTable(twice)


def test_other_kinds_of_file_are_told_apart(tmp_path):
    with pytest.raises(ValueError, match="UTF-16"):
        FileTable(written(tmp_path, "a,b\n1,2\n".encode("utf-16")))
    with pytest.raises(ValueError, match=r"\.gz"):
        FileTable(written(tmp_path, b"\x1f\x8b\x08\x00abc\n"))
    with pytest.raises(ValueError, match="column names"):
        FileTable(written(tmp_path, b"a\x00,b\n"))
    with pytest.raises(ValueError, match="column names"):
        FileTable(written(tmp_path, b"a" * 1_000_001))
    with pytest.raises(ValueError, match=r"^path"):
        FileTable(written(tmp_path, b"no gzip at all", "t.csv.gz"))


# -- check ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_check_reads_the_header_and_not_a_byte_more(tmp_path, end, monkeypatch):
    header = b"\xef\xbb\xbfwho;weight" + end[:1]
    path = written(tmp_path, header + end[1:] + b"4711;70\n" * 10)
    taken = []

    class Counted(io.FileIO):
        def read(self, size=-1):
            assert size == 1
            taken.append(super().read(size))
            return taken[-1]

    def counting(self, mode="r", buffering=-1, **_):
        assert (mode, buffering) == ("rb", 0), "nothing may read ahead"
        return Counted(str(self))

    monkeypatch.setattr(pathlib.Path, "open", counting)
    monkeypatch.setattr(builtins, "open", lambda *_, **__: pytest.fail("another way in"))
    found = check(path, ["weight"], unit="who", decimal=",")
    assert b"".join(taken) == header
    assert found.header.has_bom
    assert found.header.line_end == ("LF" if end == b"\n" else "CR")
    assert (found.columns, found.unit, found.header.delimiter) == (("weight",), "who", ";")
    taken.clear()
    check(path, header=["who", "weight"], delimiter=";")
    assert not taken


def test_a_check_tells_what_cells_would_count_as(tmp_path):
    path = written(tmp_path, "a;b\n")
    told = check(path, **GERMAN, null=["-9"]).made_up
    assert (told["1.234,50"], told["1,234.50"], told["12%"], told["2026-01-31"], told["NA"]) == (1234.5, *[None] * 4)
    assert (told[" 7 "], told["-9"]) == (7.0, None)
    document = check(path, **GERMAN).to_dict()
    assert document["reading"] == GERMAN
    assert "line break" in document["isolation"]


def test_a_check_of_parquet(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    pq.write_table(pa.table({"a": [1.0], "who": ["x"]}), tmp_path / "t.parquet")
    found = check(tmp_path / "t.parquet", unit="who")
    assert (found.kind, found.columns, found.made_up) == ("Parquet", ("a",), {})
    with pytest.raises(TypeError, match=r"^columns"):
        check(tmp_path / "t.parquet")
