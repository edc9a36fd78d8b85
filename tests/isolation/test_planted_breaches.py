"""A reader that leaks in each of the ways that were found must be caught, in as many pairs as the tests try."""

import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from fogline.queries import fourier_sums
from fogline.sources import typed_cells
from fogline.sources.tables import Source
from fogline_research.audit_campaign import isolation_measures
from fogline_research.audit_campaign.forms import is_available, source_named
from fogline_research.audit_campaign.isolation import check_isolation


class Leaky(Source):
    """A table of rows and ids that were read by a careless reader."""

    def __init__(self, rows, ids, width, unit):
        super().__init__(None, width, unit)
        self._rows, self._ids = np.asarray(rows, dtype=float).reshape(-1, width), ids

    def _scan(self, take):
        take(self._rows, self._ids)


def number(cell):
    try:
        return float(cell)
    except ValueError:
        return math.nan


def text_rows(lines, source, delimiter=None):
    """Cells and ids of lines, each as it stands."""
    header, *lines = lines
    names = [name.strip('"\ufeff') for name in re.split(r"[,;|\t]", header)]
    mark = delimiter or re.search(r"[,;|\t]|$", header).group() or ","
    rows, ids = [], []
    for line in lines:
        cells = [*line.split(mark), *[""] * len(names)]
        rows.append([number(cells[names.index(name)]) for name in names if name != "who"])
        ids.append(cells[names.index("who")] if "who" in names else None)
    has_unit = "who" in names
    return Leaky(rows, ids if has_unit else None, len(names) - has_unit, "who" if has_unit else None)


def guessed_line_ends(source, **_):
    """The line end is guessed from the first bytes, and a carriage return eats what follows it."""
    text = source.read_bytes().decode("utf-8", "replace")
    first = re.search(r"\r\n|\n|\r", text)
    if first is not None and first.group() == "\r\n":
        text = re.sub(r"\r.", "\n", text, flags=re.DOTALL)
    return text_rows(text.replace("\r", "\n").split("\n"), source)


def quotes_across_lines(source, **_):
    """A quote that is never closed swallows the lines after it."""
    text = source.read_bytes().decode("utf-8", "replace").replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    mark = re.search(r"[,;|\t]|$", text.split("\n")[0]).group() or ","
    csv.field_size_limit(10**8)
    lines = [
        mark.join(cell.replace("\n", " ") for cell in row) for row in csv.reader(io.StringIO(text), delimiter=mark)
    ]
    return text_rows(lines, source)


def one_bad_byte_fails(source, **_):
    """A byte that is no UTF-8 is an error."""
    return text_rows(re.split("\r\n|\r|\n", source.read_bytes().decode("utf-8")), source)


def dropped_filter(source, **_):
    """A group of rows whose extremes lie in the box is counted whole: a NaN has no part in the extremes."""
    import pyarrow.parquet as pq

    table = pq.read_table(source)
    names = [name for name in table.column_names if name != "who"]
    rows = np.column_stack([table.column(name).cast("float64", safe=False).to_numpy() for name in names])
    lower, upper = isolation_measures.BOUNDS
    known = rows[~np.isnan(rows)]
    if len(known) and known.min() >= lower and known.max() <= upper:
        rows = np.where(np.isnan(rows), lower, rows)
    return Leaky(rows, None, len(names), None)


def one_type_for_all_ids(source, unit=None, **_):
    """numpy finds one type for all ids."""
    return Leaky(source, np.asarray(unit), source.shape[1], "unit")


def width_of_the_first_row(source, **_):
    """The first row says how many columns there are."""
    width = len(source[0]) if len(source) and isinstance(source[0], list) else 1
    rows = [row for row in source if isinstance(row, list) and len(row) == width]
    return Leaky(
        [[number(c) if isinstance(c, float | int) else math.nan for c in row] for row in rows], None, width, None
    )


def one_cell_is_an_error(source, **_):
    """A cell that is infinite is refused aloud."""
    if np.isinf(source).any():
        raise ValueError("X holds an infinite value")
    return Leaky(source, None, source.shape[1], None)


def one_cell_is_a_warning(source, **_):
    import warnings

    if np.isnan(source).any():
        warnings.warn("some records are missing", UserWarning, stacklevel=1)
    return Leaky(source, None, source.shape[1], None)


def first_come_first_served(source, unit=None, **_):
    """Records of all units share one quota, and who comes first is kept."""
    return Leaky(source[:6], unit[:6], source.shape[1], "unit")


PLANTED = {
    guessed_line_ends: "CSV, CRLF",
    quotes_across_lines: "CSV, LF",
    one_bad_byte_fails: "CSV, LF",
    dropped_filter: "Parquet by pyarrow",
    one_type_for_all_ids: "unit ids in a list",
    width_of_the_first_row: "list",
    one_cell_is_an_error: "numpy array",
    one_cell_is_a_warning: "numpy array",
    first_come_first_served: "unit ids in an integer array",
}


@pytest.mark.parametrize("reader", PLANTED, ids=lambda reader: reader.__name__)
def test_a_leaky_reader_is_caught(reader, monkeypatch):
    source = source_named(PLANTED[reader])
    if not is_available(source.form):
        pytest.skip("not installed")
    options = {**source.form.options, "entry": ("table",)}
    if reader in (one_cell_is_an_error, one_cell_is_a_warning):
        options |= {"layout": ("rows",)}
    if reader is width_of_the_first_row:
        options |= {"rows": ("lists",)}
    shapes = source.form.shapes
    if reader is dropped_filter:
        shapes = tuple(shape for shape in shapes if shape.ids is None and shape.cells.startswith("double"))
    source = replace(source, form=replace(source.form, options=options, shapes=shapes))
    monkeypatch.setattr(isolation_measures.sources, "table", lambda given, **keywords: reader(given, **keywords))
    report = check_isolation(source, source.form.pairs, seed=20, shrinking=False)
    assert report.violations


def test_a_break_is_shrunk(monkeypatch):
    monkeypatch.setattr(isolation_measures.sources, "table", lambda given, **_: one_cell_is_an_error(given))
    source = source_named("numpy array")
    source = replace(source, form=replace(source.form, options={**source.form.options, "entry": ("table",)}))
    (found, *_) = check_isolation(source, source.form.pairs, seed=20).found
    assert len(found.case.before) + len(found.case.after) == 1


def a_range_from_the_records(patch):
    """The cells of a profile are moved by the largest value of the batch."""
    real = typed_cells.number_cells
    patch.setattr(typed_cells, "number_cells", lambda values, spec: real(values + (np.nanmax([*values, 0]) > 9), spec))


def an_outlier_drops_the_others(patch):
    """A record beyond the bounds takes its batch with it."""
    real = fourier_sums.CellCounts.add_rows

    def add(self, rows):
        return real(self, rows[:0] if (rows > 1e6).any() else rows)

    patch.setattr(fourier_sums.CellCounts, "add_rows", add)


@pytest.mark.parametrize(
    ("breach", "name"),
    [
        (a_range_from_the_records, "fogline.profile: numpy array"),
        (an_outlier_drops_the_others, "fogline.release: numpy array"),
        (an_outlier_drops_the_others, "fogline.release, named densities: pandas (numpy)"),
    ],
)
def test_a_verb_that_leaks_is_caught(breach, name, monkeypatch):
    if "pandas" in name:
        pytest.importorskip("pandas")
    breach(monkeypatch)
    assert check_isolation(name, 120, 1, shrinking=False).violations
