"""The privacy unit: at most c records of each, the same in any order and engine, and nobody else's choice."""

import uuid

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optional_packages import optional

from fogline import DensitySketch, Ledger, PrivateModes
from fogline.density.leaves import LeafSpec
from fogline.density.random_spec import plan_spec
from fogline.ledger import LedgerRefused
from fogline.releases import sketch
from fogline.sources import contributions
from fogline.sources.contributions import (
    ContributionBound,
    Identities,
    PlainSampler,
    UnitBuckets,
    kept_state,
    new_sampler,
)
from fogline.sources.files import FileTable
from fogline.sources.passes import RecordPasses
from fogline.sources.registry import table

pd, pa = optional("pandas"), optional("pyarrow")

LINE = plan_spec([(0, 10)], "auto", None)
FIVE = plan_spec([(0, 10)] * 5, "auto", None, features=16)
KEY = (0x0123456789ABCDEF, 0xFEDCBA9876543210)


def state(values, ids, most, spec=LINE, key=KEY):
    rows = np.asarray(values, dtype=float).reshape(len(values), spec.d)
    return table(rows, unit=np.asarray(ids))._bounded(ContributionBound(most, key)).state(spec)


def counts(values, ids, most, key=KEY):
    total = np.zeros(LINE.cells, dtype=np.int64)
    keys, numbers = state(values, ids, most, key=key)
    total[keys] = numbers
    return total


RECORDS = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([1.0, 2.0, 2.0, 3.5, 9.0, 11.0, np.nan])), max_size=40)


@settings(max_examples=60)
@given(RECORDS, st.integers(1, 3), st.integers(0, 2**64 - 1))
def test_a_person_moves_the_counts_by_at_most_c(people, most, key):
    """For every key: what is kept of others does not depend on the one who leaves."""
    ids, values = [p for p, _ in people], [x for _, x in people]
    everyone = counts(values, np.array(ids, dtype=int), most, (key, key ^ 5))
    for person in set(ids):
        rest = [(p, x) for p, x in people if p != person]
        without = counts([x for _, x in rest], np.array([p for p, _ in rest], dtype=int), most, (key, key ^ 5))
        gone = everyone - without
        usable = sum(p == person and 0 <= x <= 10 for p, x in people)
        assert gone.min() >= 0
        assert gone.sum() == min(most, usable)


@settings(max_examples=40)
@given(RECORDS, st.integers(1, 3), st.randoms(use_true_random=False))
def test_order_does_not_matter(people, most, random):
    shuffled = list(people)
    random.shuffle(shuffled)
    one, other = (
        counts([x for _, x in rows], np.array([p for p, _ in rows], dtype=int), most) for rows in (people, shuffled)
    )
    assert np.array_equal(one, other)


def chosen(who, record_digests, wanted, bound, names=None):
    """Pairs that the compiled choice keeps, and those of numpy; fed in batches, the second as texts by number."""
    pairs = []
    for sampler in (new_sampler(bound, True, 2**16), PlainSampler(bound)):
        for start in range(0, len(who), 1000):
            here = slice(start, start + 1000)
            sampler.add(who[here], record_digests[here], wanted[here], start)
        kept, places = sampler.kept(names)
        assert np.array_equal(record_digests[places], kept)
        assert wanted[places].all()
        assert len(set(places.tolist())) == len(places)
        pairs.append(sorted(zip(who[places].tolist(), kept.tolist(), strict=True)))
    return pairs


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 3000), st.integers(1, 60), st.integers(1, 300), st.booleans())
def test_the_compiled_choice_is_that_of_numpy(seed, size, most, people, texts):
    pytest.importorskip("numba")
    rng = np.random.default_rng(seed)
    who = (
        rng.integers(0, people, size) if texts else rng.integers(-(2**63), 2**63, people)[rng.integers(0, people, size)]
    )
    record_digests = rng.integers(0, 1 + seed % 500, size).astype(np.uint32 if seed % 2 else np.uint64)
    names = rng.integers(0, 2**63, people).astype(np.uint64) if texts else None
    compiled, plain = chosen(who, record_digests, rng.random(size) < 0.9, ContributionBound(most, KEY), names)
    assert compiled == plain


@pytest.mark.parametrize("size", [1, 31, 32, 33, 20_000])
def test_many_records_of_one_person_take_the_same_choice_compiled(size):
    pytest.importorskip("numba")
    record_digests = np.random.default_rng(0).integers(0, 300, size).astype(np.uint64)
    compiled, plain = chosen(np.full(size, 7), record_digests, np.ones(size, dtype=bool), ContributionBound(30, KEY))
    assert compiled == plain
    assert len(plain) == min(size, 30)


def test_which_of_equal_marks_is_kept_does_not_depend_on_others():
    """Marks of unlike rows may collide: which is kept must be a matter of that person's rows alone."""
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    seen = set()
    for crowd in (0, 100, 300_000):
        sampler = new_sampler(ContributionBound(2, KEY), True, 2**16)
        who = np.concatenate([np.zeros(3, dtype=np.int64), rng.integers(1, 9, crowd), np.zeros(3, dtype=np.int64)])
        sampler.add(who, np.full(len(who), 5, dtype=np.uint64), np.ones(len(who), dtype=bool), 0)
        places = np.sort(sampler.kept(None)[1])
        mine = places[who[places] == 0]
        seen.add(tuple(np.searchsorted(np.flatnonzero(who == 0), mine).tolist()))
    assert len(seen) == 1


@pytest.mark.parametrize("late", [None, "a text", float("nan")])
def test_ids_of_another_kind_in_a_later_batch_do_not_open_the_choice_again(late):
    """A unit whose records come in batches of integers and in mixed ones is cut once."""

    def scan(take):
        take(np.array([[1.0], [2.0], [3.0]]), np.array([7, 7, 7]))
        take(np.array([[4.0], [5.0], [6.0]]), np.array([7, 7, late], dtype=object))

    _, counts = contributions.kept_state(LeafSpec.plan([(0.0, 10.0)]), ContributionBound(1, KEY), scan)
    assert counts.sum() == 1 + (late == "a text")


def test_threads_choose_the_same_records(monkeypatch):
    fast = pytest.importorskip("fogline.sources._contributions_numba")
    rng = np.random.default_rng(0)
    who, record_digests = rng.integers(0, 30_000, 200_000), rng.integers(0, 500, 200_000).astype(np.uint32)
    kept = []
    for many in (10**9, 0):
        monkeypatch.setattr(fast, "MANY", many)
        sampler = new_sampler(ContributionBound(3, KEY), True, 2**28)
        sampler.add(who, record_digests, np.ones(len(who), dtype=bool), 0)
        kept.append(sampler.kept(None))
    for mine, theirs in zip(*kept, strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("most", [1, 3, 40])
def test_counts_of_cells_are_those_of_the_records_that_are_kept(most, texts):
    """Counted as they are chosen, or from a list of them; compiled, or in numpy; from one thread or several."""
    fast = pytest.importorskip("fogline.sources._contributions_numba")
    rng = np.random.default_rng(most)
    who, cells = rng.integers(0, 2000, 20_000), rng.integers(0, 300, 20_000).astype(np.uint32)
    who[:3000] = 7
    names = rng.integers(0, 2**63, 2000).astype(np.uint64) if texts else None
    found = []
    for many in (10**9, 0, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fast, "MANY", many)
            for way in ("counted", "listed"):
                bound = ContributionBound(most, KEY)
                sampler = PlainSampler(bound) if many is None else new_sampler(bound, False, 2**16)
                sampler.add(who, cells, np.ones(20_000, dtype=bool), 0)
                total = np.zeros(300, dtype=np.int64)
                if way == "counted":
                    sampler.count_kept(names, total)
                else:
                    total += np.bincount(sampler.kept(names)[0].astype(np.int64), minlength=300)
                found.append(total)
    assert all(np.array_equal(total, found[0]) for total in found)
    assert found[0].sum() == np.minimum(np.bincount(who), most).sum()


def test_a_grid_that_is_too_large_for_an_array_counts_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    rows, ids = rng.uniform(0, 10, (500, 1)), rng.integers(0, 50, 500)
    whole = state(rows, ids, 2)
    monkeypatch.setattr("fogline.queries.fourier_sums.DENSE_CELLS", 1)
    for mine, theirs in zip(state(rows, ids, 2), whole, strict=True):
        assert np.array_equal(mine, theirs)


def test_the_choice_is_a_uniform_draw_of_records():
    """Heaps count by their size: a person with nine records here and one there is kept here nine times of ten."""
    people = np.repeat(np.arange(20_000), 10)
    values = np.tile([2.0] * 9 + [7.0], 20_000)
    kept = counts(values, people, 1)
    there = kept[LINE.cells[0] // 2 :].sum()
    assert kept.sum() == 20_000
    assert abs(there - 2000) < 5 * np.sqrt(20_000 * 0.09)


def test_the_key_chooses():
    values, ids = np.linspace(0, 10, 1000), np.arange(1000) % 100
    one, again, other = (counts(values, ids, 1, key) for key in (KEY, KEY, (3, 4)))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert one.sum() == other.sum() == 100


def test_records_outside_do_not_compete():
    values = [5.0, -1.0, np.nan, 11.0, np.inf]
    assert counts(values, [1] * 5, 1).sum() == 1


def test_rows_without_a_person_contribute_nothing():
    values = np.full(6, 5.0)
    for ids in (
        [1, None, None, None, None, 2],
        [1.0, np.nan, np.inf, 1.5, -np.inf, 2.0],
        ["a", "", None, True, b"x", "b"],
    ):
        assert state(values, np.array(ids, dtype=object), 1)[1].sum() == 2
        if not isinstance(ids[0], str):
            assert state(values, pa.array(list(ids), from_pandas=True), 1)[1].sum() == 2


def test_an_id_is_the_same_in_any_type():
    rng = np.random.default_rng(0)
    whole = rng.integers(-5, 60, 500)
    values = rng.uniform(0, 10, 500)
    expected = state(values, whole, 2)
    forms = [
        whole.astype(np.int8),
        whole.astype(float),
        whole.astype(str),
        whole.astype(object),
        pa.array(whole),
        pa.array(whole.astype(str)),
        pa.array(whole.astype(str)).dictionary_encode(),
        pa.array(whole.astype(float)),
        pd.Series(whole).astype("Int64").array,
    ]
    for ids in forms:
        rows = table(values, unit=ids)
        for mine, theirs in zip(rows._bounded(ContributionBound(2, KEY)).state(LINE), expected, strict=True):
            assert np.array_equal(mine, theirs)


def test_texts_are_people_too():
    rng = np.random.default_rng(0)
    names = np.array([f"person {i}" for i in range(60)] + ["7", "07", "7 "])[rng.integers(0, 63, 800)]
    values = rng.uniform(0, 10, 800)
    kept = state(values, names, 2)
    order = rng.permutation(800)
    for mine, theirs in zip(state(values[order], pa.array(names[order]), 2), kept, strict=True):
        assert np.array_equal(mine, theirs)
    assert kept[1].sum() == sum(min(2, n) for n in np.unique(names, return_counts=True)[1])


def test_numbers_beyond_64_bits_and_uuids_are_texts():
    people = Identities()
    values, kinds = people.read([2**70, str(2**70), str(uuid.UUID(int=5))])
    assert kinds.tolist() == [1, 1, 1]
    assert values.tolist() == [0, 0, 1]


@pytest.mark.parametrize("spec", [LINE, FIVE], ids=["grid", "random"])
def test_parts_that_are_too_large_are_split(monkeypatch, spec):
    rng = np.random.default_rng(0)
    rows, ids = rng.uniform(0, 10, (4000, spec.d)), rng.integers(0, 500, 4000)
    whole = state(rows, ids, 2, spec)
    monkeypatch.setattr(contributions, "MOST_BYTES", 3000)
    monkeypatch.setattr("fogline.sources.frames.BATCH_ROWS", 100)
    for mine, theirs in zip(state(rows, ids, 2, spec), whole, strict=True):
        assert np.array_equal(mine, theirs)
    lonely = state(rows, np.zeros(4000, dtype=int), 2, spec)  # one person cannot be split, and is read all the same
    assert (lonely[1].sum() if spec is LINE else lonely[0][0]) == 2


def test_a_scan_that_cannot_be_repeated_is_not():
    rng = np.random.default_rng(0)
    rows, ids = rng.uniform(0, 10, (500, 1)), rng.integers(0, 50, 500)
    reader = pa.table({"x": rows[:, 0], "who": ids}).to_reader(max_chunksize=50)
    kept = table(reader, unit="who")._bounded(ContributionBound(2, KEY)).state(LINE)
    for mine, theirs in zip(kept, state(rows, ids, 2), strict=True):
        assert np.array_equal(mine, theirs)


def test_passes_see_the_same_records_each_time():
    rng = np.random.default_rng(0)
    rows, ids = rng.uniform(0, 10, (500, 2)), rng.integers(0, 50, 500)
    passes = RecordPasses(table(rows, unit=ids), 2)
    with pytest.raises(RuntimeError, match="bound its contributions"):
        passes.each(lambda _: None)
    passes.bound(3)
    seen = []
    for _ in range(2):
        batches = []
        passes.each(batches.append)
        seen.append(np.concatenate(batches))
    assert np.array_equal(*seen)
    assert len(seen[0]) == sum(min(3, n) for n in np.unique(ids, return_counts=True)[1])


def test_an_unbounded_table_with_a_unit_is_refused():
    rows = table(np.zeros((3, 1)), unit=[1, 2, 3])
    with pytest.raises(RuntimeError, match="bound its contributions"):
        rows.state(LINE)


# -- through the front door ---------------------------------------------------------------------------------

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "bounds": [(0, 10)]}


def visits(n=6000):
    rng = np.random.default_rng(1)
    return pd.DataFrame({"person_id": rng.integers(0, n // 4, n), "x": rng.normal(5, 1, n)})


def test_the_guarantee_says_who_is_protected(tmp_path):
    frame = visits()
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_parquet(tmp_path / "v.parquet")
    for source in (
        table(frame, unit="person_id"),
        FileTable(tmp_path / "v.csv", unit="person_id"),
        FileTable(tmp_path / "v.parquet", ["x"], unit="person_id"),
    ):
        model = PrivateModes(**BUDGET, max_contributions=2).fit(source)
        assert "one person_id (at most 2 records, enforced)" in str(model.guarantee_)
        assert abs(model.modes_[0, 0] - 5) < 0.5
    plain = PrivateModes(**BUDGET).fit(frame[["x"]]).guarantee_
    assert "one record" in str(plain)
    declared = PrivateModes(**BUDGET, max_contributions=2).fit(frame[["x"]]).guarantee_
    assert "declared, not enforced" in str(declared)
    odd = frame.rename(columns={"person_id": "record"})
    assert PrivateModes(**BUDGET).fit(table(odd, unit="record")).guarantee_.unit == "value of record"


def test_noise_grows_with_c():
    scales = [
        PrivateModes(**BUDGET, max_contributions=c).fit(table(visits(), unit="person_id")).density_ for c in (1, 4)
    ]
    assert scales[1].noise_scale == pytest.approx(4 * scales[0].noise_scale, rel=1e-3)


def test_a_ledger_tells_units_apart(tmp_path):
    frame = visits(1000)
    with Ledger.create(
        tmp_path / "budget", dataset="v", epsilon=3.0, delta=1e-4, high_water=tmp_path / "marks"
    ) as ledger:
        first = PrivateModes(**BUDGET, ledger=ledger).fit(table(frame, unit="person_id"))
        left = ledger.remaining().rho
        again = PrivateModes(**BUDGET, ledger=ledger).fit(table(frame, unit="person_id"))
        assert ledger.remaining().rho == left
        assert np.array_equal(first.density_.coefficients, again.density_.coefficients)
        assert again.guarantee_.enforced
        with pytest.raises(LedgerRefused, match="accounted for one person_id"):
            PrivateModes(**BUDGET, ledger=ledger).fit(frame[["x"]])
        assert ledger.remaining().rho == left


def test_errors_name_the_unit(tmp_path):
    frame = visits(20).assign(born=pd.Timestamp("2000-01-01"), flag=True)
    frame.to_parquet(tmp_path / "v.parquet")
    reader = pa.Table.from_pandas(frame)
    for make in (lambda u: table(frame, ["x"], unit=u), lambda u: FileTable(tmp_path / "v.parquet", ["x"], unit=u)):
        for unit, error in (("nobody", ValueError), ("born", TypeError), ("flag", TypeError)):
            with pytest.raises(error, match=rf"unit.*'{unit}'"):
                make(unit)
    with pytest.raises(TypeError, match=r"unit.*'born'"):
        table(reader.to_reader(), ["x"], unit="born")
    with pytest.raises(TypeError, match="unit must be the name"):
        FileTable(tmp_path / "v.parquet", ["x"], unit=3)
    for ids in ([1, 2], np.zeros((3, 2)), np.array([b"a", b"b", b"c"])):
        with pytest.raises((TypeError, ValueError), match="unit"):
            table(np.zeros((3, 1)), unit=ids)
    with pytest.raises(TypeError, match="unit"):
        table(np.zeros((3, 1)), unit="person_id")


def test_a_person_with_many_records_moves_the_sums_by_two():
    """The person who leaves has nine records; the declared sensitivity is that of two, and it is kept."""
    rng = np.random.default_rng(0)
    crowd = np.column_stack([rng.integers(10, 40, 200), rng.uniform(0, 10, 200)])
    person = np.column_stack([np.full(9, 3.0), rng.uniform(0, 10, 9)])
    spec = plan_spec([(0, 10)], "auto", None)
    bound = ContributionBound(2, KEY)
    with_, without = (sketch_of(rows, spec, bound) for rows in (np.concatenate([crowd, person]), crowd))
    assert np.abs(with_ - without).sum() == 2
    unbounded = [
        DensitySketch.of(spec).update(rows[:, 1:]).table() for rows in (np.concatenate([crowd, person]), crowd)
    ]
    assert np.abs(unbounded[0] - unbounded[1]).sum() == 9  # what the mutant without a bound would do


def sketch_of(rows, spec, bound):
    keys, numbers = table(rows[:, 1:], unit=rows[:, 0])._bounded(bound).state(spec)
    return DensitySketch.of(spec).add_state(keys, numbers).table()


def test_sketch_bounds_what_it_is_told_to():
    frame = visits(1000)
    kept = sketch(table(frame, unit="person_id"), LINE, max_contributions=1)
    assert kept.state()[1].sum() <= frame.person_id.nunique()
    buckets = UnitBuckets(LINE, ContributionBound(1, KEY))
    assert len(buckets.kept()[0]) == 0
    assert kept_state(LINE, ContributionBound(1, KEY), lambda take: None)[1].sum() == 0


def test_a_release_says_whether_the_bound_was_enforced():
    people = table(visits(1000), unit="person_id")
    budget = {"epsilon": 1.0, "delta": 1e-6}
    cut = sketch(people, LINE, max_contributions=2)
    with pytest.raises(ValueError, match="max_contributions must be at least 2: so many records of each person_id"):
        cut.release(**budget)
    told = cut.release(**budget, max_contributions=2).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("person_id", 2, True)
    told = sketch(visits(1000)[["x"]], LINE).release(**budget, max_contributions=2).guarantee
    assert (told.unit, told.enforced) == ("person", False)


# -- ids at the ends of what 64 bits hold ----------------------------------------------------------------------

LARGE = 2**63 + 5


@pytest.mark.parametrize("number", [10**18 - 1, 10**18 + 1, 2**63 - 1, -(2**63), LARGE, -(2**63) - 1])
def test_an_integer_and_its_text_are_one_unit(number):
    values, kinds = Identities().read([number, str(number)])
    assert (values[0], kinds[0]) == (values[1], kinds[1])


def test_unsigned_ids_do_not_wrap():
    people = Identities()
    forms = [np.array([LARGE], dtype=np.uint64), pa.array([LARGE], pa.uint64()), pa.array([LARGE, None], pa.uint64())]
    pairs = {(int(values[0]), int(kinds[0])) for values, kinds in map(people.read, [*forms, [LARGE], [str(LARGE)]])}
    assert len(pairs) == 1
    assert pairs != {(int(v[0]), int(k[0])) for v, k in [people.read([LARGE - 2**64])]}


def test_a_gap_in_one_batch_makes_no_second_unit():
    pl = pytest.importorskip("polars")
    n = 2**16 + 10  # two batches, of which the second has a gap
    ids = pl.Series([LARGE] * (n - 1) + [None], dtype=pl.UInt64)
    frame = pl.DataFrame({"x": np.full(n, 5.0), "person": ids})
    assert sketch(table(frame, ["x"], unit="person"), LINE).state()[1].sum() == 1


def test_ids_beside_a_gap_are_not_rounded():
    pl = pytest.importorskip("polars")
    neighbours = [2**53, 2**53 + 1, 2**53 + 2]
    for ids in (pl.Series([*neighbours, None]), [*neighbours, float("nan")]):
        assert sketch(table(np.full((4, 1), 5.0), unit=ids), LINE).state()[1].sum() == 3


def test_a_masked_id_is_missing():
    ids = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert sketch(table(np.full((3, 1), 5.0), unit=ids), LINE).state()[1].sum() == 2


def test_floats_beyond_integers_are_missing_in_every_form():
    for ids in (np.array([1e19, 2.0**63]), [1e19, 2.0**63], pa.array([1e19, 2.0**63])):
        assert Identities().read(ids)[1].tolist() == [-1, -1]


@pytest.mark.parametrize("texts", [[], ["Ann"] * 5])
def test_the_largest_id_moves_nobody_elses_choice(texts):
    """Ids up to 2^63 - 1 have 64-bit numbers of their own, not those of floats."""
    last = 2**63 - 1
    ids = [*[last - 7] * 20, *[last - 1] * 20, *texts]
    values = (np.arange(len(ids)) % 20) * 0.45
    rest = counts(values, np.array(ids, dtype=object), 3)
    everyone = counts([*values, 9.9], np.array([*ids, last], dtype=object), 3)
    moved = everyone - rest
    assert moved.min() == 0
    assert moved.sum() == 1
