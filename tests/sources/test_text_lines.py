"""Lines of text: each is read from its own bytes alone, the same compiled, in plain Python and by a reference."""

from __future__ import annotations

import gzip
import io
import math
from fractions import Fraction

import numpy as np
import pytest

from fogline.density.spec import SketchSpec
from fogline.sources import text_lines
from fogline.sources.contributions import ContributionBound, Identities
from fogline.sources.files import FileTable
from fogline.sources.reading import NumberRule, ReadingOptions
from fogline.sources.text_lines import MAX_LINE, Layout, blocks_of, plain_batches, scan_blocks

fast_lines = pytest.importorskip("fogline.sources._lines_numba")

SPAN = SketchSpec.plan([(0.0, 100.0)])
BOTH = SketchSpec.plan([(0.0, 100.0), (-50.0, 50.0)])

# -- an independent reader: byte by byte, numbers as fractions ------------------------------------------------


def reference_lines(content):
    lines, line, i = [], bytearray(), 0
    while i < len(content):
        byte = content[i]
        if byte in (10, 13):
            lines.append(bytes(line))
            line.clear()
            i += 2 if content[i : i + 2] == b"\r\n" else 1
            continue
        line.append(byte)
        i += 1
    return lines + ([bytes(line)] if line else [])


def reference_cells(line, delimiter):
    cells, i = [], 0
    while True:
        start = i
        if i < len(line) and line[i] == 34:
            i += 1
            inner, closed = bytearray(), False
            while i < len(line):
                if line[i] == 34 and i + 1 < len(line) and line[i + 1] == 34:
                    inner.append(34)
                    i += 2
                elif line[i] == 34:
                    closed = True
                    i += 1
                    break
                else:
                    inner.append(line[i])
                    i += 1
            if closed and (i == len(line) or line[i] == delimiter):
                cells.append(bytes(inner))
            else:
                while closed and i < len(line) and line[i] != delimiter:
                    i += 1
                cells.append(line[start:i])
        else:
            while i < len(line) and line[i] != delimiter:
                i += 1
            cells.append(line[start:i])
        if i == len(line):
            return cells
        i += 1


def reference_number(cell, options=None):
    options = options or ReadingOptions()
    text = cell.decode("latin-1").strip(" \t")
    if text in options.null:
        return math.nan
    sign, text = (-1, text[1:]) if text[:1] == "-" else (1, text[1:] if text[:1] == "+" else text)
    body, mark, exponent = text.replace("E", "e").partition("e")
    power = 0
    if mark:
        digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
        if not digits or not set(digits) <= set("0123456789"):
            return math.nan
        power = int(digits) * (-1 if exponent[0] == "-" else 1)
    whole, _, fraction = body.partition(options.decimal)
    if options.thousands and options.thousands in whole:
        first, *groups = whole.split(options.thousands)
        if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in groups):
            return math.nan
        whole = first + "".join(groups)
    digits = whole + fraction
    if not digits or not set(digits) <= set("0123456789"):
        return math.nan
    if not int(digits):
        return sign * 0.0
    power -= len(fraction)
    if power + len(digits) > 400:
        return sign * math.inf
    if power + len(digits) < -400:
        return sign * 0.0
    try:
        return sign * float(Fraction(int(digits)) * Fraction(10) ** power)
    except OverflowError:
        return sign * math.inf


def reference_rows(content, places, unit=None, *, options=None, header=True, delimiter=44, width=None):
    rows, ids = [], []
    for line in reference_lines(content)[header:]:
        kept = b"" if len(line) > MAX_LINE else line.removeprefix(b"\xef\xbb\xbf")
        cells = reference_cells(kept, delimiter)
        if width is not None and b"".join(cells[width:]).strip(b" \t"):
            cells = []
        cells += [b""] * (1 + max(places) + (unit or 0))
        rows.append([reference_number(cells[place], options) for place in places])
        name = None if unit is None else cells[unit]
        ids.append(None if not name else name.decode("utf-8", "surrogateescape"))
    return np.array(rows, dtype=float).reshape(-1, len(places)), ids


# -- the two ways of the engine -------------------------------------------------------------------------------


def engine_rows(content, layout, *, header, size, fast):
    rows, ids = [np.empty((0, len(layout.numbers)))], []

    def take(batch, names):
        rows.append(batch)
        ids.extend([] if names is None else [str(i) if isinstance(i, int) else i for i in list(_plain(names))])

    blocks = blocks_of(io.BytesIO(content), skip_header=header, size=size)
    if fast:
        scan_blocks(blocks, layout, take)
    else:
        for block in blocks:
            for batch in plain_batches(block, layout, NumberRule(layout.options)):
                take(*batch)
    return np.concatenate(rows), ids


def _plain(names):
    return names.tolist() if isinstance(names, np.ndarray) else names


def same(a, b):
    return (
        a.shape == b.shape
        and (a.view(np.uint64)[~np.isnan(a)] == b.view(np.uint64)[~np.isnan(b)]).all()
        and (np.isnan(a) == np.isnan(b)).all()
    )


PIECES = [
    *(b"\n", b"\r", b"\r\n", b"\r\r\n", b"\n\r", b"\n\n", b",", b",", b",", b",,", b'"', b'""', b'",', b',"'),
    *(b"1", b"7", b"42", b"-3.5", b"+2", b".5", b"5.", b"1e3", b"2E-2", b"1e", b"e5", b".", b"-", b"1_0", b"0x1F"),
    *(b"inf", b"nan", b"NA", b"\x00", b"\xff", b"\xc3\xa4", b"\xef\xbb\xbf", b" ", b"\t", b"ann", b"007", b"\xe2\x82"),
    *(b"17.999999999999998", b"0.1000000000000000055511151231257827", b"1e400", b"4.9e-324", b"9007199254740993"),
    *(b"123456789012345678", b"1234567890123456789012", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xa0", b"1,2", b'"3",4'),
]


def hostile(rng, pieces=None):
    chosen = PIECES if pieces is None else pieces
    return b"".join(chosen[i] for i in rng.integers(len(chosen), size=rng.integers(0, 60)))


@pytest.mark.parametrize("part", range(4))
def test_random_hostile_files_are_read_as_the_reference_reads_them(part):
    rng = np.random.default_rng([13, part])
    for _ in range(600):
        header = bool(rng.integers(2))
        content = (b"a,b,c\n" if header else b"") + hostile(rng)
        unit = None if rng.integers(2) else int(rng.integers(3))
        places = [(0,), (1, 0), (2, 0), (1,)][rng.integers(4)]
        width = [None, 3, 3, 4][rng.integers(4)]
        layout = Layout(ReadingOptions(), ",", places, unit, width=width)
        rows, ids = reference_rows(content, places, unit, header=header, width=width)
        size = int(rng.choice([1, 2, 3, 5, 17, 2**20]))
        for fast in (True, False):
            got, names = engine_rows(content, layout, header=header, size=size, fast=fast)
            assert same(got, rows), content
            if unit is not None:
                assert Identities().read(names)[1].tolist() == Identities().read(ids)[1].tolist()
                assert names == ids, content


def test_removing_a_line_removes_its_row_and_changes_no_other():
    rng = np.random.default_rng(14)
    inner = [piece for piece in PIECES if not set(piece) & set(b"\r\n")]
    for _ in range(400):
        lines = [hostile(rng, inner) for _ in range(rng.integers(1, 8))]
        ends = [[b"\n", b"\r\n", b"\r"][i] for i in rng.integers(3, size=len(lines))]
        where = int(rng.integers(len(lines)))
        layout = Layout(ReadingOptions(), ",", (0, 1), 2, width=3)
        for fast in (True, False):
            every = []
            for left_out in (None, where):
                pairs = [pair for i, pair in enumerate(zip(lines, ends, strict=True)) if i != left_out]
                content = b"a,b,c\r\n" + b"".join(line + end for line, end in pairs)
                rows, ids = engine_rows(content, layout, header=True, size=7, fast=fast)
                counted = zip(rows.tolist(), ids, strict=True)
                every.append(sorted(repr(row) for row in counted if not all(map(math.isnan, row[0]))))
            gone = sorted(every[0])
            for row in every[1]:
                gone.remove(row)
            assert len(gone) <= 1


def test_options_are_read_as_the_reference_reads_them():
    rng = np.random.default_rng(15)
    pieces = [*PIECES, b".", b".", b"'", b"123", b"234", b"5", b"1.234", b"12.345.678", b"-999", b"-99", b";", b",5"]
    for thousands, decimal in ((".", ","), ("'", "."), (" ", ","), (None, ","), ("_", ".")):
        options = ReadingOptions(";", decimal, thousands, null=("-999", "5", "NA"))
        layout = Layout(options, ";", (0, 1))
        for _ in range(150):
            content = b"a;b\n" + hostile(rng, pieces)
            rows, _ = reference_rows(content, (0, 1), options=options, delimiter=59)
            for fast in (True, False):
                got, _ = engine_rows(content, layout, header=True, size=11, fast=fast)
                assert same(got, rows), (options, content)


def test_compiled_numbers_are_the_nearest_doubles():
    rng = np.random.default_rng(16)
    cells = [b"9007199254740993", b"9007199254740993e-5", b"2.2250738585072011e-308", b"1.7976931348623159e308"]
    cells += [
        b"8.5e15",
        b"4503599627370497.5",
        b"9999999999999999999",
        b"0.5e-323",
        b"1" * 400,
        b"0." + b"0" * 330 + b"1",
    ]
    for _ in range(6000):
        digits = int(rng.integers(1, 24))
        word = "".join(map(str, rng.integers(10, size=digits)))
        point = int(rng.integers(0, digits + 1))
        power = f"e{rng.integers(-330, 330)}" if rng.random() < 0.5 else ""
        cells.append(f"{word[:point]}.{word[point:]}{power}".encode())
    halves = (rng.integers(2**52, 2**53, size=3000) * 2 + 1).tolist()
    cells += [str(half * 5**k).encode() + b"e-%d" % k for half, k in zip(halves, [0, 1, 2, 3] * 750, strict=True)]
    content = b"a\n" + b"\n".join(cells)
    got, _ = engine_rows(content, Layout(ReadingOptions(), ",", (0,)), header=True, size=2**20, fast=True)
    assert same(got[:, 0], np.array([float(cell) for cell in cells]))


# -- lines that are too long ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2**20, 10**6 - 1, 4 * 10**6])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_gigantic_line_contributes_nothing_and_moves_nobody(size, end):
    fits, beyond = b"7," + b"9" * (MAX_LINE - 2), b"8," + b"9" * (MAX_LINE - 1)
    lines = [b"a,b", b"1,1", fits, b"2,2", beyond, b"3,3", b"5," * 1_900_000, b"4,4", b'"' + b"6" * 5_000_000, b"5,5"]
    layout = Layout(ReadingOptions(), ",", (0,))
    for fast in (True, False):
        rows, _ = engine_rows(end.join(lines), layout, header=True, size=size, fast=fast)
        assert rows[:, 0].tolist() == pytest.approx([1, 7, 2, math.nan, 3, math.nan, 4, math.nan, 5], nan_ok=True)


# -- whole files: what was found ------------------------------------------------------------------------------


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("content", "column", "wanted"),
    [
        (b"weight\n70,5\n1,234\n81\n", "weight", [np.nan, np.nan, 81]),  # no delimiter in the header: else 70 and 1
        (b"id,pay\n1,1,234\n2,1,234.50\n3,900\n", "pay", [np.nan, np.nan, 900]),
        (b'pay,id,note\n7,1,a\n7,1,a,b\n7,1,"a,b"\n7,1\n', "pay", [7, np.nan, 7, 7]),
        (b'pay,id\n7,1,\n7,1, ,"",\t\n7,1,,"\n', "pay", [7, 7, np.nan]),  # empty cells beyond the names
    ],
)
def test_a_cell_beyond_the_names_voids_its_line(tmp_path, monkeypatch, content, column, wanted, fast):
    monkeypatch.setattr("fogline.sources.text_lines.compiled_loops", lambda: fast)
    (tmp_path / "t.csv").write_bytes(content)
    seen = []
    FileTable(tmp_path / "t.csv", [column]).each_batch(lambda rows: seen.extend(rows[:, 0].tolist()))
    assert np.array_equal(seen, wanted, equal_nan=True)


def states(path, spec, unit=None, **options):
    table = FileTable(path, unit=unit, **options)
    bounded = table if unit is None else table._bounded(ContributionBound(1, (3, 4)))
    return dict(zip(*(part.tolist() for part in bounded.state(spec)), strict=True))


def moved(first, second):
    """How many counts differ between two states."""
    return sum(abs(first.get(key, 0) - second.get(key, 0)) for key in {*first, *second})


INTRUDERS = {
    "lone carriage return": b"5\r",
    "carriage return before crlf": b"5\r\r\n",
    "only line ends": b"\r\r\n\n\r",
    "empty line": b"\n",
    "zero byte": b"\x00\n",
    "open quote": b'"5\r\n',
    "bad utf-8": b"\xff\xfe\r\n",
    "byte order mark": b"\xef\xbb\xbf5\r\n",
    "gigantic": b"9" * 3_000_000 + b"\r\n",
}


@pytest.mark.parametrize("name", INTRUDERS)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_one_line_of_a_crlf_file_moves_no_other(tmp_path, name, place):
    lines = [f"{i % 90 + 1}\r\n".encode() for i in range(2000)]
    at = {"first": 0, "middle": 1000, "last": 2000}[place]
    (tmp_path / "without.csv").write_bytes(b"a\r\n" + b"".join(lines))
    (tmp_path / "with.csv").write_bytes(b"a\r\n" + b"".join(lines[:at]) + INTRUDERS[name] + b"".join(lines[at:]))
    first, second = (states(tmp_path / f"{which}.csv", SPAN) for which in ("without", "with"))
    assert sum(first.values()) == 2000
    assert moved(first, second) <= 1


@pytest.mark.parametrize("name", INTRUDERS)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_lines_of_one_person_leave_the_kept_records_of_others(tmp_path, name, place):
    lines = [f"{person},{person % 90 + 1}\r\n".encode() for person in range(1000) for _ in range(2)]
    own = b"77777," + INTRUDERS[name] + b"77777,3\r" * 3 + b"77777,4\r\r\n"
    at = {"first": 0, "middle": 1000, "last": 2000}[place]
    (tmp_path / "without.csv").write_bytes(b"who,a\r\n" + b"".join(lines))
    (tmp_path / "with.csv").write_bytes(b"who,a\r\n" + b"".join(lines[:at]) + own + b"".join(lines[at:]))
    first, second = (states(tmp_path / f"{which}.csv", SPAN, unit="who") for which in ("without", "with"))
    assert sum(first.values()) == 1000
    assert moved(first, second) <= 2  # the person, and a line of theirs that names nobody or another


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("empty", [b"\n", b"\r\n"])
def test_an_empty_first_line_does_not_change_how_a_file_is_read(tmp_path, end, empty):
    body = b"".join(f"{i % 90 + 1},1".encode() + end for i in range(1286))
    (tmp_path / "a.csv").write_bytes(b"a,b" + end + body)
    (tmp_path / "b.csv").write_bytes(b"a,b" + end + empty + body)
    assert sum(states(tmp_path / "a.csv", BOTH).values()) == 1286
    assert states(tmp_path / "a.csv", BOTH) == states(tmp_path / "b.csv", BOTH)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("fast", [True, False])
def test_line_ends_compression_and_the_last_one_do_not_matter(tmp_path, end, fast, monkeypatch):
    if not fast:
        monkeypatch.setattr(text_lines, "_fast_reader", lambda: None)
    content = end.join([b"a,b", *(f"{i % 100},{i % 40}".encode() for i in range(70000))])
    (tmp_path / "t.csv").write_bytes(content)
    (tmp_path / "u.csv").write_bytes(content + end)
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(content[:5000]) + gzip.compress(content[5000:]))
    found = [states(tmp_path / name, BOTH) for name in ("t.csv", "u.csv", "v.csv.gz")]
    assert sum(found[0].values()) == 70000
    assert found[0] == found[1] == found[2]


def test_zstandard_is_read_where_a_library_is_there(tmp_path):
    pa = pytest.importorskip("pyarrow")
    with pa.output_stream(str(tmp_path / "t.csv.zst"), compression="zstd") as out:
        out.write(b"a\n1\n2\n")
    assert sum(states(tmp_path / "t.csv.zst", SPAN).values()) == 2


def test_an_id_that_is_no_text_is_still_an_id(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(b"who,a\n\xff\xfe,1\n\xff\xfe,1\n\xff\xfd,1\n\x00,1\n,1\nNA,1\n12,1\n")
    for _ in range(2):
        assert sum(states(tmp_path / "t.csv", SPAN, unit="who").values()) == 5
        assert sum(states(tmp_path / "t.csv", SPAN, unit="who", null=["NA", "12"]).values()) == 3
        monkeypatch.setattr(text_lines, "_fast_reader", lambda: None)


def test_every_line_is_one_row_in_order(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a\n" + b"".join(b"%d\n" % i if i % 3 else b"\n" for i in range(200_000)))
    batches = []
    FileTable(tmp_path / "t.csv").each_batch(batches.append)
    rows = np.concatenate(batches)[:, 0]
    wanted = np.where(np.arange(200_000) % 3 != 0, np.arange(200_000.0), np.nan)
    assert np.array_equal(rows, wanted, equal_nan=True)
