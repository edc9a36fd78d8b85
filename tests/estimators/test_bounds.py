"""Private bounds: right with records enough, silent about records, honest with few; replay, mutants, an attack."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from canaries import by_turns
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fogline import Ledger, PrivateModes, private_bounds
from fogline.audit import attack, canary_pairs, replay
from fogline.density import columns as columns_module
from fogline.estimators import bounds as bounds_module
from fogline.ledger import LedgerRefused
from fogline.queries import magnitudes
from fogline.queries.magnitudes import (
    BINS,
    CELLS,
    ColumnCells,
    bin_counts,
    bin_edges,
    cell_counts,
    coarse_range,
    counts_sensitivity,
)
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
RELATIONS = ["add-remove", "replace"]


def seeded(X, seed=0, **options):
    with seeded_noise(seed):
        return private_bounds(X, **{**BUDGET, **options})


# -- counting ------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True))
def test_a_value_is_counted_once_and_in_its_bin(value):
    counts = bin_counts(np.array([value]))
    assert counts.shape == (BINS,)
    lower, upper = bin_edges()
    if not abs(value) < 2.0**64:
        assert counts.sum() == 0
        return
    assert counts.sum() == 1
    (index,) = np.flatnonzero(counts)
    if abs(value) < 2.0**-32:
        assert lower[index] == upper[index] == 0.0
    else:
        ends = (lower[index], upper[index])
        assert min(map(abs, ends)) <= abs(value) < max(map(abs, ends))
        assert np.sign(value) == np.sign(sum(ends))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20), st.floats(-1e9, 1e9), st.floats(1e-6, 1e9)
)
def test_cells_count_what_lies_in_the_range(values, low, width):
    high = low + width
    assume(low < high)
    column = np.array(values, dtype=float)
    counts = cell_counts(column, low, high)
    assert counts.shape == (CELLS,)
    assert counts.sum() == sum(low <= value <= high for value in values)


@pytest.mark.parametrize("relation", RELATIONS)
@settings(max_examples=50, deadline=None)
@given(crowd=st.lists(st.floats(), max_size=9), mine=st.floats(), other=st.floats())
def test_one_record_moves_the_counts_no_further_than_declared(relation, crowd, mine, other):
    before = crowd if relation == "add-remove" else [*crowd, other]
    for count in (bin_counts, lambda column: cell_counts(column, -1.0, 3.0)):
        one, two = (count(np.array(column, dtype=float)) for column in (before, [*crowd, mine]))
        assert np.linalg.norm(one - two) <= counts_sensitivity(relation, 1)


def test_edges_are_in_order():
    lower, upper = bin_edges()
    assert (lower <= upper).all()
    assert (upper[:-1] <= lower[1:]).all()


# -- reading -------------------------------------------------------------------------------------------------


SHAPES = {
    "years": lambda rng, n: rng.integers(1950, 2010, n).astype(float),
    "incomes": lambda rng, n: rng.lognormal(10, 0.5, n),
    "both signs": lambda rng, n: rng.normal(-1, 3, n),
    "small": lambda rng, n: rng.uniform(1e-4, 3e-4, n),
    "negative": lambda rng, n: -rng.gamma(5, 20, n),
    "many zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.gamma(2, 50, n)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_most_records_lie_inside_and_not_much_else(shape):
    rng = np.random.default_rng(1)
    for seed in range(4):
        x = SHAPES[shape](rng, 20_000)
        found = seeded(x, seed)
        (low, high), q = found.bounds[0], np.quantile(x, [0.001, 0.999])
        assert np.mean((x >= low) & (x <= high)) > 0.98
        assert high - low < 3 * (q[1] - q[0])
        seen = x[(x >= found.cells[0].low) & (x <= found.cells[0].high)]
        assert np.sum((seen < low) | (seen > high)) <= found.outside[0] * 1.2
        assert found.found
        assert found.messages == ("",)


def test_quantiles():
    x = np.random.default_rng(0).normal(50, 5, 50_000)
    found = seeded(np.column_stack([x, -x]))
    wanted = np.quantile(x, [0.1, 0.5, 0.9])
    assert np.abs(found.quantile([0.1, 0.5, 0.9])[0] - wanted).max() < 0.7
    assert np.abs(found.quantile([0.1, 0.5, 0.9])[1] + wanted[::-1]).max() < 0.7
    assert found.quantile(0.5).shape == (2,)
    assert (np.diff(found.quantile(np.linspace(0, 1, 30)), axis=1) >= 0).all()
    for bad in (-0.1, [0.5, 2.0], np.nan, [[0.5]]):
        with pytest.raises(ValueError, match="q must be"):
            found.quantile(bad)


def test_a_column_is_counted_within_its_noise():
    x = np.random.default_rng(0).normal(50, 5, 2000)
    found = [seeded(x, seed) for seed in range(20)]
    off = [(one.counts[0] - 2000) / one.count_standard_errors[0] for one in found]
    assert 0.5 < np.sqrt(np.mean(np.square(off))) < 1.6


def test_few_records_say_so_from_noisy_counts_alone():
    for n in (0, 1, 10):
        found = seeded(np.full((n, 1), 5.0))
        assert not found.found
        assert np.isnan(found.bounds).all()
        assert np.isnan(found.quantile(0.5)).all()
        assert "too few values stand out of the noise" in found.messages[0]
    some = seeded(np.random.default_rng(0).uniform(30, 40, 200))
    assert some.found
    assert "only about" in some.messages[0]
    with pytest.raises(ValueError, match="bounds"):
        PrivateModes(**BUDGET, bounds=seeded(np.zeros((0, 1))).bounds).fit([[1.0]])


def test_noise_alone_hardly_ever_looks_like_a_range():
    rng = np.random.default_rng(0)
    seen = [coarse_range(np.rint(rng.normal(0, 7.0, BINS)).astype(np.int64), 7.0) for _ in range(3000)]
    assert sum(found is not None for found in seen) <= 12  # 3 are expected


def test_coverage_cuts_tails():
    x = np.concatenate([np.random.default_rng(0).normal(50, 2, 60_000), np.linspace(64, 127, 900)])
    wide, narrow = (seeded(x, coverage=coverage).bounds[0] for coverage in (0.999, 0.9))
    assert wide[1] > 100
    assert narrow[1] < 70


def test_cells_without_any_evidence_keep_the_whole_range():
    cells = ColumnCells(0.0, 128.0, np.zeros(CELLS, dtype=np.int64), 5.0)
    assert cells.bounds(0.99) == (0.0, 128.0)
    assert cells.quantile(0.3) == 64.0
    assert cells.rank_error(0.5) > 0


# -- the call ------------------------------------------------------------------------------------------------


def test_columns_of_frames_and_files(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 8000), "income": rng.lognormal(10, 0.4, 8000)})
    frame.to_csv(tmp_path / "people.csv", index=False)
    one, two = seeded(frame), seeded(tmp_path / "people.csv")
    assert one.columns == two.columns == ("age", "income")
    assert np.array_equal(one.bounds, two.bounds)
    assert two.guarantee.unit == "line of the file"
    assert [str(share.portion) for share in one.shares.values()] == ["1/2", "1/2"]
    more = seeded(frame, shares={"income": "3/4", "age": "1/4"})
    assert more.cells[1].scale < more.cells[0].scale
    assert PrivateModes(**BUDGET, bounds=one.bounds).fit(frame).guarantee_.certified


def test_a_unit_is_cut_by_the_engine():
    from fogline.sources.registry import table

    rng = np.random.default_rng(0)
    visits = table(rng.uniform(20, 40, (6000, 1)), unit=rng.integers(2000, size=6000))
    guarantee = seeded(visits, max_contributions=2).guarantee
    assert (guarantee.unit, guarantee.max_contributions, guarantee.enforced) == ("unit", 2, True)


def test_a_list_and_a_column():
    values = [float(i % 50) for i in range(3000)]
    assert seeded(np.array(values)).bounds.shape == (1, 2)
    assert seeded(values, shares={"0": 1}).bounds.shape == (1, 2)
    for rows in (values, [], [[1.0, 2.0], [3.0]]):  # whatever is in a list, it does not say how many columns it has
        with pytest.raises(ValueError, match="plain list does not declare"):
            seeded(rows)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"delta": None}, "delta"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"coverage": 1.0}, "coverage"),
        ({"neighbours": "some"}, "neighbours"),
        ({"max_contributions": 0}, "max_contributions"),
        ({"shares": {"1": 1}}, "shares"),
        ({"shares": {"0": "1/2"}}, "shares"),
        ({"ledger": "budget"}, "ledger"),
    ],
)
def test_bad_parameters_are_named(options, word):
    with pytest.raises((ValueError, TypeError), match=word):
        private_bounds(np.ones((5, 1)), **{**BUDGET, **options})


def test_a_ledger_pays_once_and_answers_again(tmp_path):
    x = np.random.default_rng(0).normal(5, 1, (4000, 1))
    with Ledger.create(
        tmp_path / "budget", dataset="people", epsilon=1.2, delta=1e-5, high_water=tmp_path / "marks"
    ) as ledger:
        first = private_bounds(x, **BUDGET, ledger=ledger)
        again = private_bounds(x[:10], **BUDGET, coverage=0.9, ledger=ledger)
        assert first.receipt["commit"] == again.receipt["commit"]
        assert np.array_equal(first.quantile([0.2, 0.7]), again.quantile([0.2, 0.7]))
        with pytest.raises(LedgerRefused):
            private_bounds(x, **BUDGET, shares={"0": 1}, neighbours="replace", ledger=ledger)
        with pytest.raises(LedgerRefused):
            private_bounds(np.ones((5, 2)), **BUDGET, ledger=ledger)
        # columns of which nothing is seen are told as such again
        none = private_bounds(np.zeros((0, 3)), epsilon=0.1, delta=1e-6, ledger=ledger)
        told = private_bounds(np.zeros((0, 3)), epsilon=0.1, delta=1e-6, ledger=ledger)
        assert none.messages == told.messages


# -- privacy -------------------------------------------------------------------------------------------------

BOX = [(2.0, 10.0), (-3.0, 700.0)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("c", [1, 3])
def test_replay_on_canaries(relation, c):
    pairs = canary_pairs(BOX, neighbours=relation, n=400, max_contributions=c, block=4096)
    pairs = by_turns(pairs, relation) if c == 1 else [*pairs[::8], pairs[-1]]
    report = replay(lambda X: private_bounds(X, **BUDGET, neighbours=relation, max_contributions=c), pairs)
    assert report.passed, str(report)
    assert 0.99 < report.largest_ratio <= 1
    assert {pair.calls for pair in report.pairs} <= {2, 3, 4}
    assert 4 in {pair.calls for pair in report.pairs}


def broken(relation="add-remove"):
    pairs = canary_pairs(BOX, neighbours=relation, n=400, block=None)[::4]
    report = replay(lambda X: private_bounds(X, **BUDGET, neighbours=relation), pairs, until_failure=True)
    return not report.passed


def test_without_a_mutant_the_audit_passes():
    assert not broken()
    assert not broken("replace")


def test_mutants_fail(monkeypatch):
    def mutate(where, name, value):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, value)
            return broken() or broken("replace")

    assert mutate(magnitudes, "counts_sensitivity", lambda relation, c: 1.0)  # the same for replace
    assert mutate(magnitudes, "bin_counts", lambda column: 2 * bin_counts(column))
    double = lambda column, low, high: cell_counts(np.repeat(column, 2), low, high)  # noqa: E731
    assert mutate(magnitudes, "cell_counts", double)
    exact = lambda noisy, scale: coarse_range(noisy, 0.0)  # noqa: E731
    assert not mutate(magnitudes, "coarse_range", exact)  # a poor threshold is not a leak


def test_a_range_taken_from_the_records_would_be_noticed(monkeypatch):
    real = bounds_module._count

    def peeking(columns, shares, split, curator):
        seen = [0.0]
        found = real(columns, shares, split, curator)
        curator._records.each(lambda rows: seen.append(float(np.nan_to_num(rows, posinf=0.0).max(initial=0.0))))
        wider = [part.cells and replace(part.cells, high=part.cells.high + max(seen)) for part in found]
        return tuple(replace(part, cells=cells) for part, cells in zip(found, wider, strict=True))

    monkeypatch.setattr(bounds_module, "_count", peeking)
    assert broken()


def test_a_lonely_value_is_not_told():
    """One record far above all others must not set the range more often than the claim allows."""
    crowd = np.random.default_rng(0).uniform(1, 2, (300, 1))
    odd = np.append(crowd, [[1e9]], axis=0)
    seeds = itertools.count()
    release = lambda X: seeded(X, next(seeds))  # noqa: E731
    claim = release(crowd).guarantee
    score = {
        "high": lambda found: float(found.bounds[0, 1]),
        "outside": lambda found: float(np.nan_to_num(found.outside[0])),
    }
    report = attack(release, crowd, odd, claim=claim, score=score, runs=150)
    assert claim.epsilon == 1.0
    assert not report.broken
    bare = attack(lambda X: X.max(), crowd, odd, claim=claim, score=float, runs=150)
    assert bare.broken


def test_long_names_fit_into_a_ledger(tmp_path):
    names = [f"{i}" + "\U0001f33f" * 190 for i in range(12)]
    frame = pytest.importorskip("pandas").DataFrame(np.ones((3, 12)), columns=names)
    with Ledger.create(
        tmp_path / "budget", dataset="people", epsilon=1.2, delta=1e-5, high_water=tmp_path / "marks"
    ) as ledger:
        assert private_bounds(frame, **BUDGET, ledger=ledger).columns == tuple(names)


def test_a_column_may_have_any_name():
    frame = pytest.importorskip("pandas").DataFrame({"self": [1.0], "rho": [2.0]})
    assert private_bounds(frame, **BUDGET).columns == ("self", "rho")


# -- the split between the two stages ---------------------------------------------------------------------------


def test_few_expected_records_give_the_range_half_of_the_budget():
    noise = magnitudes.counts_sensitivity("replace", 2) / np.sqrt(2 * 0.01)
    few, many = int(0.9 * columns_module.FEW * noise), int(1.1 * columns_module.FEW * noise)
    share = bounds_module.magnitude_share
    assert share(few, 0.01, "replace", 2) == Fraction(1, 2)
    assert share(many, 0.01, "replace", 2) == share(None, 0.01, "replace", 2) == Fraction(1, 3)


def test_the_split_is_paid_for_in_full_and_an_old_answer_stays_free(tmp_path):
    x = np.random.default_rng(0).normal(5, 1, (500, 1))
    with Ledger.create(tmp_path / "split", dataset="x", epsilon=9, delta=1e-4, high_water=tmp_path / "m") as ledger:
        old = private_bounds(x, **BUDGET, ledger=ledger)
        again = private_bounds(x, **BUDGET, expect_records=10, ledger=ledger)
        assert again.receipt["commit"] == old.receipt["commit"]  # the words of before are known
        new = private_bounds(x, epsilon=0.5, delta=1e-6, expect_records=10, ledger=ledger)
        asked = ledger.answers()[-1].question.parameters["shares"]
        assert asked == ["1, 1/2 of it for powers of two"]
        assert private_bounds(x, epsilon=0.5, delta=1e-6, expect_records=11, ledger=ledger).receipt == new.receipt
