"""What was cut by a unit stays cut: in files, merges, updates and feeds; the exact sums keep to what is certified."""

import copy
import itertools
import json
import math

import numpy as np
import pytest

from fogline import DensitySketch, PrivateModes
from fogline.density.random_spec import plan_spec
from fogline.queries.fourier_sums import lattice_sensitivity, lattice_sums
from fogline.releases import count_into, sketch
from fogline.releases.sketch_file import NOTHING, ON_TRUST, ROW_BY_ROW, Provenance
from fogline.sources.contributions import ContributionBound
from fogline.sources.passes import RecordPasses
from fogline.sources.registry import table

LINE = plan_spec([(0, 10)], [0.05], None)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def people(values, ids):
    return table(np.asarray(values, dtype=float)[:, None], unit=np.asarray(ids))


def cut_sketch(most=1, *, seed=0, n=200, unit="who"):
    rng = np.random.default_rng(seed)
    frame = {"x": rng.uniform(0, 10, n), unit: rng.integers(0, n // 4, n)}
    return sketch(table(_frame(frame), ["x"], unit=unit), LINE, max_contributions=most)


def _frame(columns):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(columns)


def distance(one, other):
    moved = lattice_sums(one.table(), LINE).astype(object) - lattice_sums(other.table(), LINE).astype(object)
    return math.sqrt(sum(int(v) ** 2 for v in moved))


@pytest.fixture
def fixed_key(monkeypatch):
    monkeypatch.setattr(ContributionBound, "draw", classmethod(lambda cls, most: cls(most, (3, 5))))


WAYS = {
    "as it is": lambda cut, folder: cut,
    "saved and read": lambda cut, folder: saved(cut, folder),
    "merged with nothing": lambda cut, folder: cut.merge(DensitySketch.of(LINE)),
    "nothing merged with it": lambda cut, folder: DensitySketch.of(LINE).merge(cut),
    "merged, saved, read": lambda cut, folder: saved(DensitySketch.of(LINE).merge(cut), folder),
}


def saved(cut, folder):
    path = folder / "cut.npz"
    cut.save(path)
    return DensitySketch.load(path)


@pytest.mark.parametrize("way", WAYS)
def test_a_cut_is_never_released_for_rows(way, fixed_key, tmp_path):
    """One row less promotes another: the sums move by more than a row's sensitivity, so none is promised."""
    values, ids = [1.0, 9.0], [7, 7]
    kept = [sketch(people(v, i), LINE) for v, i in ((values, ids), (values[1:], ids[1:]), (values[:1], ids[:1]))]
    apart = max(distance(a, b) for a, b in itertools.combinations(kept, 2))
    assert apart > 1.3 * lattice_sensitivity(LINE, "add-remove", 1)  # 1.41 times: what rows would be promised
    assert max(distance(k, DensitySketch.of(LINE)) for k in kept) <= lattice_sensitivity(LINE, "add-remove", 1)
    (tmp_path / "s").mkdir()
    carried = WAYS[way](kept[0], tmp_path)
    guarantee = carried.release(**BUDGET).guarantee
    assert (guarantee.unit, guarantee.max_contributions, guarantee.enforced) == ("unit", 1, True)
    assert "one unit (at most 1 record, enforced)" in str(guarantee)


@pytest.mark.parametrize("way", WAYS)
def test_no_fewer_than_were_left(way, tmp_path):
    carried = WAYS[way](cut_sketch(3), tmp_path)
    with pytest.raises(ValueError, match="max_contributions must be at least 3: so many records of each who were left"):
        carried.release(**BUDGET, max_contributions=2)
    told = carried.release(**BUDGET, max_contributions=4).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("who", 4, True)


def test_records_of_nobody_knows_whom_are_refused(tmp_path):
    cut, rows = cut_sketch(2), DensitySketch.of(LINE).update([[1.0]])
    before = cut.state()
    for act in (
        lambda: cut.update([[5.0]]),
        lambda: cut.subtract([[5.0]]),
        lambda: cut.add_state(np.array([3]), np.array([1])),
        lambda: cut.add_cells(np.array([3]), np.array([1])),
        lambda: cut.merge(rows),
        lambda: rows.merge(cut),
        lambda: count_into(cut, [[1.0]]),
        lambda: count_into(rows, people([1.0], [1])),
        lambda: saved(cut, tmp_path).update([[5.0]]),
        lambda: cut.merge(DensitySketch.from_state(LINE, rows.state())),
    ):
        with pytest.raises(ValueError, match="nobody knows"):
            act()
    assert all(np.array_equal(a, b) for a, b in zip(before, cut.state(), strict=True))
    assert not cut.signed
    told = cut.release(**BUDGET, max_contributions=2).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("who", 2, True)


def test_what_is_left_of_a_unit_adds_up(tmp_path):
    one, two = cut_sketch(2), cut_sketch(3, seed=1)
    merged = saved(one.merge(two), tmp_path)
    with pytest.raises(ValueError, match="at least 5"):
        merged.release(**BUDGET, max_contributions=4)
    assert merged.release(**BUDGET, max_contributions=5).guarantee.enforced
    with pytest.raises(ValueError, match="unlike units, who and patient"):
        cut_sketch().merge(cut_sketch(unit="patient"))


def test_disjoint_units_are_declared(tmp_path):
    merged = cut_sketch(2).merge(cut_sketch(3, seed=1), disjoint_persons=True)
    with pytest.raises(ValueError, match="at least 3"):
        merged.release(**BUDGET)
    told = saved(merged, tmp_path).release(**BUDGET, max_contributions=3).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("who", 3, False)
    assert "as declared, not enforced" in str(told)
    further = cut_sketch(2).merge(cut_sketch(3, seed=1), disjoint_persons=True).merge(cut_sketch(1, seed=2))
    assert further.provenance == Provenance("who", 4, enforced=False)


def test_a_merge_moves_by_what_is_left_in_both(fixed_key):
    """Neighbours: with and without one unit, which is in both parts with many records."""
    rng = np.random.default_rng(0)
    crowd, mine = rng.uniform(0, 10, 60), np.array([1.0] * 5)

    def merged(with_me):
        values = np.concatenate([crowd, mine]) if with_me else crowd
        ids = [*range(10, 70), *([1] * 5 if with_me else [])]
        return sketch(people(values, ids), LINE, max_contributions=2).merge(
            sketch(people(values, ids), LINE, max_contributions=1)
        )

    moved = distance(merged(True), merged(False))
    assert lattice_sensitivity(LINE, "add-remove", 2) < moved <= lattice_sensitivity(LINE, "add-remove", 3)


def test_a_source_with_a_unit_is_fed_as_it_is_cut():
    fed = DensitySketch.of(LINE)
    count_into(fed, people([1.0, 2.0, 3.0], [1, 1, 2]), max_contributions=2)
    assert fed.provenance == Provenance("unit", 2)
    count_into(fed, people([1.0], [1]), max_contributions=1)
    assert fed.provenance.most == 3
    with pytest.raises(ValueError, match="at least 3"):
        fed.release(**BUDGET)
    plain = DensitySketch.of(LINE)
    count_into(plain, [[1.0]])
    count_into(plain, table(np.array([[2.0]])))
    assert plain.provenance == ROW_BY_ROW


# -- a table that was cut by hand --------------------------------------------------------------------------------


def test_a_bounded_table_is_cut_anew_and_named():
    source = people([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 2])
    cut = source.bounded(3)
    told = PrivateModes(bounds=[(0, 10)], **BUDGET).fit(cut).guarantee_
    assert (told.unit, told.max_contributions, told.enforced) == ("unit", 1, True)
    one = sketch(cut, LINE)
    assert (int(one.table().sum()), one.provenance) == (2, Provenance("unit", 1))
    assert sketch(cut, LINE, max_contributions=2).table().sum() == 3
    assert "unit='unit'" in repr(cut)
    batches = []
    cut.each_batch(batches.append)
    assert sum(map(len, batches)) == 4
    with pytest.raises(RuntimeError, match="does not tell whose"):
        cut.each_unit_batch(lambda rows, ids: None)
    passes = RecordPasses(cut, 1)
    passes.bound(1)
    seen = []
    passes.each(seen.append)
    assert sum(map(len, seen)) == 2


def test_columns_of_a_bounded_table():
    frame = _frame({"who": [1, 1, 2], "x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]})
    cut = table(frame, ["x", "y"], unit="who").bounded(1)[["y"]]
    rows = []
    cut.each_batch(rows.append)
    assert np.concatenate(rows).shape == (2, 1)
    assert cut.facts == {}
    assert set(np.concatenate(rows)[:, 0]) <= {4.0, 5.0, 6.0}
    with pytest.raises(TypeError, match="secret"):
        copy.deepcopy(cut)


# -- counts without the fact ------------------------------------------------------------------------------------


def old_file(counts, path, payers=("",)):
    """A file as version 1 wrote it."""
    keys, numbers = counts.state()
    header = {"format": "fogline-sketch-1", "secret": True, "spec": counts.spec.to_dict(), "payers": list(payers)}
    with path.open("wb") as file:
        np.savez_compressed(file, header=np.array(json.dumps(header)), keys=keys, counts=numbers)


@pytest.mark.parametrize("source", ["old file", "old file, saved anew", "from_state", "add_state", "add_cells"])
def test_counts_on_trust_are_not_called_enforced(source, tmp_path):
    counts = cut_sketch(1)
    made = DensitySketch.of(LINE)
    if source.startswith("old file"):
        old_file(counts, tmp_path / "old.npz")
        made = DensitySketch.load(tmp_path / "old.npz")
        if "anew" in source:
            made.save(tmp_path / "new.npz")
            made = DensitySketch.load(tmp_path / "new.npz")
    elif source == "from_state":
        made = DensitySketch.from_state(LINE, counts.state())
    else:
        getattr(made, source)(*counts.state())
    assert made.provenance == ON_TRUST
    merged = DensitySketch.of(LINE).update([[1.0]]).merge(made)
    guarantee = merged.release(**BUDGET).guarantee
    assert not guarantee.enforced
    assert "one record (as declared, not enforced)" in str(guarantee)
    assert "counts taken on trust" in guarantee.mechanism
    assert "not checked" in guarantee.explain()
    fresh = DensitySketch.of(LINE).add_state(*counts.state())
    assert not fresh.release(**BUDGET, max_contributions=2).guarantee.enforced


def test_two_contributions_cover_a_row_of_whatever_was_cut(fixed_key):
    rng = np.random.default_rng(0)
    most = lattice_sensitivity(LINE, "add-remove", 2)
    for _ in range(40):
        values, ids = rng.uniform(0, 10, 12), rng.integers(0, 3, 12)
        gone = rng.integers(12)
        c = int(rng.integers(1, 4))
        whole = sketch(people(values, ids), LINE, max_contributions=c)
        less = sketch(people(np.delete(values, gone), np.delete(ids, gone)), LINE, max_contributions=c)
        assert distance(whole, less) <= most


def test_provenance_is_checked():
    with pytest.raises(ValueError, match="is a row"):
        Provenance("record")
    with pytest.raises(ValueError, match="max_contributions"):
        Provenance("who", 0)
    with pytest.raises(TypeError, match="counted must be"):
        Provenance(counted=1)
    assert NOTHING.joined(NOTHING) == NOTHING
    assert NOTHING.joined(ON_TRUST) == ON_TRUST.joined(NOTHING) == ON_TRUST.joined(ROW_BY_ROW) == ON_TRUST


@pytest.mark.parametrize("change", [{"provenance": {}}, {"provenance": {"most": 0}}, {"runs": {"x": ""}}, {"runs": []}])
def test_a_header_that_nobody_writes_is_refused(change, tmp_path):
    path = tmp_path / "s.npz"
    cut_sketch().save(path)
    with np.load(path) as data:
        header, arrays = json.loads(str(data["header"])), {n: data[n] for n in ("keys", "counts")}
    header.update(change)
    if change == {"provenance": {}}:
        del header["provenance"]
    with path.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(ValueError, match="damaged"):
        DensitySketch.load(path)


def test_a_release_under_terms_keeps_to_the_cut():
    from fogline.releases.terms import ReleaseTerms

    cut = cut_sketch(2)
    with pytest.raises(ValueError, match="not released for rows"):
        cut.release_under(ReleaseTerms.checked(1.0, 1e-6, "add-remove", 5))
    with pytest.raises(ValueError, match="at least 2"):
        cut.release_under(ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1, "who"))
    assert cut.release(**BUDGET, max_contributions=2).guarantee.enforced  # nothing was spent by the refusals
