"""The generator of hostile tables: it draws all of its list, its walks are of neighbours, and its cases can be kept."""

import os
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from fogline_research.audit_campaign.forms import SOURCES, Place, is_available, source_named
from fogline_research.audit_campaign.hostile_cells import CELLS, IDS, Box
from fogline_research.audit_campaign.hostile_tables import (
    LINE_CELLS,
    LINE_IDS,
    HostileTables,
    Record,
    Shape,
    vocabulary,
)
from fogline_research.audit_campaign.isolation import Case, IsolationReport, check_isolation
from fogline_research.audit_campaign.isolation_audit import (
    VERB_PAIRS,
    Campaign,
    coverage_lines,
    joined,
    pairs_of,
    parts_of,
    report_line,
)
from fogline_research.audit_campaign.isolation_cases import from_json, to_json
from fogline_research.audit_campaign.isolation_measures import BOUNDS
from fogline_research.audit_campaign.reference_reader import UNSURE, cell_of, line_items, lines_of, number, unit_key

FORMS = [source.form for source in SOURCES if source.state == "grid" and not source.form.server]
SHAPES = sorted({shape for source in SOURCES for shape in source.shapes}, key=str)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_of_its_list_is_drawn(shape):
    tables = HostileTables(shape, [BOUNDS] * shape.columns, seed=1)
    wanted = vocabulary(shape)
    for _ in range(400):
        tables.walk(4)
        if all(tables.drawn[name] for name in wanted):
            break
    assert not [name for name in wanted if not tables.drawn[name]]


@pytest.mark.parametrize("ids", [None, "object", "integer"])
def test_neighbours_differ_by_one_record_or_one_unit(ids):
    tables = HostileTables(Shape("double", 1, ids), [BOUNDS], seed=2)
    for _ in range(60):
        walk = tables.walk(4)
        for (before, after), step in zip(pairwise(walk.tables), walk.steps, strict=True):
            had, has = Counter(map(id, before)), Counter(map(id, after))
            known = {id(record): record for record in [*before, *after]}
            added, removed = list((has - had).elements()), list((had - has).elements())
            if step.kind.endswith("unit"):
                assert len({unit_key(known[key].unit) for key in [*added, *removed]}) <= 1
            else:
                assert len(added) <= (step.kind != "remove")  # a record may be replaced by its equal
                assert len(removed) <= (step.kind != "add")
                assert len(after) - len(before) == {"add": 1, "remove": -1, "replace": 0}[step.kind]


def test_a_seed_repeats():
    first, second = (HostileTables(Shape("object", 2, "object"), [BOUNDS] * 2, seed=3).walk(6) for _ in range(2))
    assert repr([len(t) for t in first.tables]) == repr([len(t) for t in second.tables])
    assert first.steps == second.steps


@pytest.mark.parametrize("kind", CELLS)
def test_every_cell_can_be_kept(kind):
    rng, box = np.random.default_rng(0), Box(*BOUNDS, 32)
    for name, make in CELLS[kind].items():
        cell = make(rng, box)
        case = Case("list", Shape(kind), {"delimiter": b",", "n": 3}, 1, (), (Record((cell,)),))
        again = from_json(to_json(case)).after[0].cells[0]
        assert number(again, kind) is UNSURE or number(again, kind) == pytest.approx(number(cell, kind), nan_ok=True)
        assert np.ndim(again) == np.ndim(cell), name


def test_every_id_can_be_kept():
    rng = np.random.default_rng(0)
    for make in IDS["object"].values():
        for unit in make(rng):
            case = Case("list", Shape("double", 1, "object"), {}, 1, (Record((1.0,), unit),), ())
            kept = from_json(to_json(case)).before[0].unit
            assert unit_key(kept)[0] == unit_key(unit)[0]


def ids_of(makers, rng):
    return [unit for make in makers.values() for unit in make(rng)]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_form_can_write_every_cell_and_id(form):
    """What a writer refuses would end a campaign when it is drawn, once in many thousand pairs."""
    if not is_available(form):
        pytest.skip(f"{form.name} needs {', '.join(form.needs)}")
    rng, box = np.random.default_rng(0), Box(*BOUNDS, 32)
    for shape in form.shapes:
        cells = LINE_CELLS if shape.cells == "line" else CELLS[shape.cells]
        ids = {} if shape.ids is None else LINE_IDS if shape.ids == "line" else IDS[shape.ids]
        units = ids_of(ids, rng) or [None]
        plain = cells["ordinary"](rng, box)
        rows = [Record((make(rng, box),) * shape.columns, units[0]) for make in cells.values()]
        rows += [Record((plain,) * shape.columns, unit) for unit in units]
        with Place.new() as place:
            for turn in range(max(map(len, form.options.values()), default=1)):
                public = {name: choices[turn % len(choices)] for name, choices in form.options.items()}
                assert len(list(form.each([rows, ()], shape, public, place))) == 2


def test_the_reference_cuts_lines_at_all_three_ends():
    assert lines_of(b"a\n1\r2\r\n3\n\r4") == [b"1", b"2", b"3", b"", b"4"]
    assert lines_of(b"a") == []
    items = line_items(b'a,who\n1.5,7\n"1",7\n,7\n3\n\n2,7,9', b",", 1, 1)
    assert [item.values if item.values is UNSURE else cell_of(item.values, [(0, 10)], [10]) for item in items] == [
        1, UNSURE, None, 3, None, UNSURE,
    ]  # fmt: skip
    assert items[0].unit == unit_key(7)


def test_lines_of_the_audit():
    source = source_named("CSV, CRLF")
    good = IsolationReport(source.name, pairs=5, read=5)
    assert report_line(source, good).passed
    assert report_line(source, good).verdict == "0"
    for bad in (IsolationReport("x", 5, 5, violations=1), IsolationReport("x", 5, 4), IsolationReport("x", 5, 0, 5)):
        assert not report_line(source, bad).passed
    assert report_line(source_named("numpy structured array"), IsolationReport("x", 5, 0, 5)).passed
    assert pairs_of(source, short=False) == 10_000
    assert {pairs_of(one, short=False) for one in SOURCES if one.form.server} == {1000, VERB_PAIRS}
    assert pairs_of(source_named("fogline.release: CSV, CRLF"), short=False) == VERB_PAIRS
    # every reader in this process has its 10 000 pairs on a grid; what is read again by the same has fewer
    here = [one for one in SOURCES if not one.form.server and one.state == "grid"]
    assert {pairs_of(one, short=False) for one in here} == {10_000}
    assert pairs_of(source_named("strata: unit ids in a list"), short=False) == 10_000
    fewer = [one for one in SOURCES if not one.form.server and pairs_of(one, short=False) == 1000]
    assert {one.form.name for one in fewer if one.state != "printed"} <= {one.form.name for one in here}
    lines = {line.check: line for line in coverage_lines(Counter({"cell: NaN": 3, "id: zero": 0}), short=False)}
    assert lines["cell (1)"].passed
    assert not lines["id (1)"].passed


def test_a_campaign_is_cut_into_parts_and_joined():
    assert sum(pairs for pairs, _ in parts_of(10_000, 3)) == 10_000
    assert len({seed for _, seed in parts_of(10_000, 3)}) == len(parts_of(10_000, 3)) == 10
    assert parts_of(40, 3) == [(40, 3)]
    source = source_named("numpy array")
    parts = [check_isolation(source, 8, seed) for seed in (1, 2)]
    whole = joined(source.name, parts)
    assert (whole.pairs, whole.read, whole.violations, whole.seeds) == (16, 16, 0, [])
    assert whole.drawn == parts[0].drawn + parts[1].drawn
    assert report_line(source, whole).passed
    found = joined(source.name, [parts[0], IsolationReport(source.name, 8, 8, violations=1, seeds=[5])])
    assert not report_line(source, found).passed
    assert "seeds 5" in report_line(source, found).verdict


def test_a_reader_that_ends_its_process_fails_and_hides_no_other():
    source = source_named("numpy array")
    with Campaign(1) as campaign:
        tasks = [campaign.submit(*task) for task in ((abs, -1), (os._exit, 3), (abs, "x"), (abs, -2))]
        first, died, refused, last = (task.result() for task in tasks)
    assert (first, died, last) == (1, "its process died", 2)
    assert refused.startswith("TypeError: ")
    for failure in (died, refused):
        line = report_line(source, joined(source.name, [IsolationReport(source.name, 8, 8), failure]))
        assert not line.passed
        assert f"1 parts failed: {failure}" in line.verdict
