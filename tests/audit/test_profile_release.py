"""The release of a profile: replays hold for both relations and both laws, its own kinds of faults are seen."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from canaries import first_failure

from fogline import profile
from fogline.audit import Pair, canary_pairs, replay, stage_attack
from fogline.queries import bucket_counts, column_counts, pair_counts
from fogline.releases import profile as profile_release

BOX = [(-3.0, 10.0), (0.0, 5.0), (100.0, 101.0)]
RELATIONS = ["add-remove", "replace"]
NAMES = {
    "empty and one record",
    "one record that changes",
    "corner 1",
    "missing",
    "far outside",
    "opposite corners",
    "all missing, and one in the middle",
}


def releaser(relation, *, delta=None, epsilon=1.0, **more):
    given = {"epsilon": epsilon, "delta": delta, "neighbours": relation, **more}
    return lambda data: profile(data, bounds=BOX, **given)


def gaussian(relation, **more):
    """So large a chance of failure that Gaussian noise is less with three columns already."""
    return releaser(relation, delta=0.05, **more)


def chosen_pairs(relation, **more):
    pairs = canary_pairs(BOX, neighbours=relation, n=40, block=None, **more)
    return [pair for pair in pairs if pair.name in NAMES][:5]


# -- replay --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
def test_both_stages_on_canaries(relation):
    report = replay(releaser(relation), chosen_pairs(relation))
    assert report.passed, str(report)
    assert {pair.calls for pair in report.pairs} == {2}
    assert report.largest_ratio == 1.0, "all columns of a record move at once"


@pytest.mark.parametrize("relation", RELATIONS)
def test_gaussian_stages_and_several_records(relation):
    pairs = chosen_pairs(relation, max_contributions=2)[:3]
    report = replay(gaussian(relation, max_contributions=2), pairs)
    assert report.passed, str(report)
    assert 0.5 < report.largest_ratio <= 1


def typed(data):
    """Numbers, days and labels of a table, each a function of its own row."""
    days = np.where(np.isnan(data[:, 0]), "", "2020-01-01")
    labels = np.where(np.isnan(data[:, 1]), "", np.where(data[:, 1] > 2.5, "upper", "lower"))
    return pd.DataFrame({"a": data[:, 0], "b": data[:, 2], "day": days.astype(object), "label": labels.astype(object)})


def test_open_ranges_and_categories():
    def release(data):
        return profile(
            typed(data), bounds={"b": BOX[2]}, numeric=["a"], dates=["day"], categories=["label"], epsilon=4, delta=1e-3
        )

    rng = np.random.default_rng(4)
    crowd = np.column_stack([rng.normal(4, 1, 600), rng.uniform(0, 5, 600), rng.uniform(100, 101, 600)])
    pairs = chosen_pairs("add-remove")[:2]
    pairs += [Pair("a crowd and one far away", crowd, np.vstack([crowd, [[1e9, 4.0, 100.5]]]))]
    report = replay(release, pairs)
    assert report.passed, str(report)
    # powers of two, perhaps cells of ranges, one histogram, pilot and counts
    assert [pair.calls for pair in report.pairs][::2] == [4, 5]


@pytest.mark.parametrize("relation", RELATIONS)
def test_declared_categories_and_dates(relation):
    ranges = {"a": BOX[0], "b": BOX[2], "day": ("2019-01-01", "2021-01-01")}

    def release(data):
        lists = {"label": ["lower", "upper"]}
        given = {"dates": ["day"], "categories": lists, "epsilon": 1.0, "neighbours": relation}
        return profile(typed(data), bounds=ranges, **given)

    report = replay(release, chosen_pairs(relation)[:3])
    assert report.passed, str(report)


def test_units_are_cut():
    """Neighbours differ in all records of one person."""

    def release(frame):
        given = {"epsilon": 1.0, "unit": "person", "max_contributions": 2}
        return profile(frame, bounds={"a": BOX[0], "b": BOX[1]}, **given)

    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(20.0), 3)
    data = np.column_stack([rng.uniform(-3, 10, 60), np.where(rng.random(60) < 0.3, np.nan, 1.0), people])
    both = [data, np.vstack([data, [[1.0, np.nan, 99.0]] * 7])]
    pair = Pair("a person with seven records", *(pd.DataFrame(rows, columns=["a", "b", "person"]) for rows in both))
    report = replay(release, [pair])
    assert report.passed, str(report)
    assert report.largest_ratio == 1.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_pairs_of_columns(relation):
    """The third stage counts pairs: all of them move at once, by what the query declares."""
    report = replay(releaser(relation, pairs="all"), chosen_pairs(relation))
    assert report.passed, str(report)
    assert {pair.calls for pair in report.pairs} == {3}
    assert report.largest_ratio == 1.0
    bell = replay(gaussian(relation, pairs=["x1", "x3"], pairs_share="1/3"), chosen_pairs(relation)[:3])
    assert bell.passed, str(bell)


def test_pairs_of_dates_and_categories_with_units():
    def release(frame):
        given = {"epsilon": 1.0, "unit": "person", "max_contributions": 2, "pairs": "all"}
        ranges = {"a": BOX[0], "b": BOX[2], "day": ("2019-01-01", "2021-01-01")}
        return profile(frame, bounds=ranges, dates=["day"], categories={"label": ["lower", "upper"]}, **given)

    rng = np.random.default_rng(0)
    data = np.column_stack([rng.uniform(-3, 10, 60), rng.uniform(0, 5, 60), rng.uniform(100, 101, 60)])
    both = [typed(data), typed(np.vstack([data, [[1.0, np.nan, 100.5]] * 7]))]
    for frame in both:
        frame["person"] = [*np.repeat(np.arange(20), 3), *[99] * (len(frame) - 60)]
    report = replay(release, [Pair("a person with seven records", *both)])
    assert report.passed, str(report)


# -- mutants -------------------------------------------------------------------------------------------------


def a_column_not_paid(patch):
    """The first column comes for free."""
    real = column_counts.ColumnsQuery.l1_sensitivity
    patch.setattr(
        column_counts.ColumnsQuery,
        "l1_sensitivity",
        lambda self, *who: real(self, *who) * (len(self.parts) - 1) / len(self.parts),
    )


def a_root_forgotten(patch):
    """Gaussian noise of one column for all of them."""
    patch.setattr(column_counts.ColumnsQuery, "sensitivity", lambda self, relation, c: float(c))


def a_partition_of_raw_counts(patch):
    """The second stage is planned from what the tables hold, not from what was released of them."""
    real = profile_release._Stages.counted

    def counted(self, plans):
        coder = profile_release.CellCoder(plans)
        seen = []

        def plan(spec, pilot, noise):
            if not seen:
                seen.extend(self._tables(coder, [plan.cells for plan in plans]))
            exact = bucket_counts.bucket_counts(seen[0][: spec.n_leaves], pilot.boxes) if spec == plans[0].spec else 0
            return real_plan(spec, dataclasses.replace(pilot, counts=pilot.counts * 0 + 3000 * exact), noise)

        real_plan = profile_release.plan_partition
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(profile_release, "plan_partition", plan)
            return real(self, plans)

    patch.setattr(profile_release._Stages, "counted", counted)


def a_column_counted_twice(patch):
    """Every record is in two cells of the first column."""
    real = column_counts.ColumnTables.add

    def add(self, cells):
        real(self, cells)
        self.counts[0] += np.bincount(cells[:, 0], minlength=len(self.counts[0]))

    patch.setattr(column_counts.ColumnTables, "add", add)


def shares_beyond_one(patch):
    real = profile_release.plan_shares
    patch.setattr(profile_release, "plan_shares", lambda *given: {**real(*given), "counts": Fraction(1)})


def an_unpaid_stage(patch):
    """The counts take the whole budget, and the pilot its share on top."""
    real = profile_release._Account.budget

    def budget(self, name, columns):
        return float(self._whole) if name == "counts" else real(self, name, columns)

    patch.setattr(profile_release._Account, "budget", budget)


def replaced_as_if_added(patch):
    real = column_counts.rows_moved
    patch.setattr(column_counts, "rows_moved", lambda _, c: real("add-remove", c))


def a_pair_not_paid(patch):
    real = pair_counts.PairsQuery.l1_sensitivity
    patch.setattr(pair_counts.PairsQuery, "l1_sensitivity", lambda self, *who: real(self, *who) - 1)


def pairs_on_top(patch):
    """The columns keep their shares, and the pairs come on top."""
    real = profile_release.plan_shares
    patch.setattr(
        profile_release,
        "plan_shares",
        lambda plans, paired=None: {**real(plans), "pairs": paired.share} if paired else real(plans),
    )


def groups_of_raw_counts(patch):
    """The groups are chosen from what the records hold, not from what was released of them."""
    real = profile_release._Stages.paired

    def paired(self, found, plan):
        tables = self._tables(profile_release.CellCoder([found[0][0]]), [found[0][0].cells])
        exact = int(tables[0].sum())
        real_groups = profile_release.plan_groups

        def groups(*given):
            cut = real_groups(*given)
            return dataclasses.replace(cut, of_cell=(cut.of_cell + exact) % cut.size)

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(profile_release, "plan_groups", groups)
            return real(self, found, plan)

    patch.setattr(profile_release._Stages, "paired", paired)


def paired(relation, **more):
    return releaser(relation, pairs="all", **more)


MUTANTS = [
    (a_pair_not_paid, paired, "add-remove", "times the declared sensitivity apart"),
    (pairs_on_top, paired, "add-remove", "raised RuntimeError"),
    (groups_of_raw_counts, paired, "add-remove", "times the declared sensitivity apart"),
    (a_column_not_paid, releaser, "add-remove", "times the declared sensitivity apart"),
    (a_root_forgotten, gaussian, "add-remove", "times the declared sensitivity apart"),
    (a_partition_of_raw_counts, releaser, "add-remove", "call differs in"),
    (a_column_counted_twice, releaser, "add-remove", "times the declared sensitivity apart"),
    (shares_beyond_one, releaser, "add-remove", "raised RuntimeError"),
    (an_unpaid_stage, releaser, "add-remove", "the calls cost more than the epsilon and delta of the guarantee"),
    (replaced_as_if_added, releaser, "replace", "times the declared sensitivity apart"),
]


@pytest.mark.parametrize(("mutate", "make", "relation", "words"), MUTANTS, ids=[m[0].__name__ for m in MUTANTS])
def test_mutants_are_seen(mutate, make, relation, words, monkeypatch):
    mutate(monkeypatch)
    first_failure(make(relation), chosen_pairs(relation)[:3], words)


# -- attack --------------------------------------------------------------------------------------------------

WORST = {
    "add-remove": (np.zeros((0, 3)), np.array([[10.0, 5.0, 101.0]])),
    "replace": (np.array([[-3.0, 0.0, 100.0]]), np.array([[10.0, 5.0, 101.0]])),
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_likelihood_ratio_of_all_columns_stays_below_the_claim_and_comes_near(relation):
    report = stage_attack(releaser(relation, epsilon=3.0), *WORST[relation], runs=60_000, confidence=0.999)
    assert not report.broken
    assert 0.6 * 3.0 <= report.epsilon_lower <= 3.0


def test_the_attack_sees_a_column_that_is_not_paid(monkeypatch):
    a_column_not_paid(monkeypatch)
    report = stage_attack(releaser("add-remove", epsilon=3.0), *WORST["add-remove"], runs=60_000)
    assert report.broken
