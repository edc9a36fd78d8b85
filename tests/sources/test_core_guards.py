"""Guards of the code that counts records: what is refused before a record is read, and rules that hold cell by cell."""

from __future__ import annotations

import sqlite3
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from fogline import PrivacyWarning, private_strata, profile, release, table
from fogline.accounting.guarantee import IntegralGuarantee
from fogline.density.columns import NumberColumn
from fogline.density.leaves import LeafSpec, Noise
from fogline.density.random_spec import plan_spec
from fogline.ledger.accounts import Account
from fogline.ledger.caps import Caps
from fogline.ledger.view import promise
from fogline.queries.column_counts import ColumnAnswer, ColumnTables
from fogline.queries.strata import StrataCounts
from fogline.releases import profile as profile_release
from fogline.releases import table_release
from fogline.releases.joint_release import JointPart, release_parts
from fogline.releases.origins import make_durable
from fogline.releases.terms import ReleaseTerms
from fogline.sources import contributions, typed_cells
from fogline.sources.contributions import ContributionBound, PlainSampler, cells_alone
from fogline.sources.frames import ListTable
from fogline.sources.passes import LabelledPass, label_text
from fogline.sources.tables import Source
from fogline.sources.typed_cells import CellCoder, GroupCoder, RangeCoder, TypedPasses, declared_kinds, typed_source
from fogline.testing import seeded_noise

pd = pytest.importorskip("pandas")


def test_cells_must_belong_to_their_tables():
    with pytest.raises(ValueError, match="one column for each table"):
        ColumnTables([3, 2]).add(np.zeros((4, 3), dtype=np.int64))


def test_noise_of_a_total_is_that_of_all_its_counts():
    answer = ColumnAnswer(None, np.array([3, 4, 5]), Noise("laplace", 2.0))
    assert answer.total == 12
    assert answer.total_variance == 3 * answer.noise.variance


def test_shares_of_named_densities_must_be_whole():
    part = JointPart("a", ("a",), LeafSpec.plan([(0, 1)]), Fraction(1, 2))
    made = table(pd.DataFrame({"a": [1.0]}), ["a"])
    with pytest.raises(ValueError, match="sum to exactly 1"):
        release_parts(made, [part], ReleaseTerms.checked(1.0, 0, "add-remove", 1, allow_pure=True))


def test_a_mark_beside_a_file_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "marks").write_text("a file", encoding="utf-8")
    with pytest.raises(NotADirectoryError, match="no folder"):
        make_durable(tmp_path / "marks")


def test_integral_privacy_is_for_any_number_of_records():
    found = IntegralGuarantee.of(epsilon=1.0, draws=3, neighbours="replace", mechanism="", proof="", reason="a test")
    assert found.steps_of(100) == 1


def test_a_ledger_names_the_cap_of_integral_draws():
    assert "epsilon 2 for integrally private draws" in promise(Account(Caps(epsilon=1.0, delta=1e-6, integral=2.0)))


def test_a_table_takes_its_unit_where_it_is_made():
    frame = pd.DataFrame({"age": [1.0], "person": [1]})
    made = table(frame, ["age"], unit="person")
    with pytest.raises(TypeError, match="is a table already"):
        release(made, columns=["age"], bounds=[(0, 9)], epsilon=1.0, unit="person")
    with pytest.raises(TypeError, match="is a table already"):
        typed_source(made, ["age"], ["sex"])
    assert typed_source(made, ["age"], []).columns == ("age",)
    assert declared_kinds(made) == {"age": "number"}
    with pytest.raises(ValueError, match="at least one column"):
        release(frame, columns={}, bounds={"age": (0, 9)}, epsilon=1.0)


def test_ids_of_typed_cells_are_named():
    with sqlite3.connect(":memory:") as database, pytest.raises(TypeError, match="name of a column"):
        typed_source(database, ["age"], ["day"], unit=[1], query="select 1 as age, 2 as day")


def test_kinds_that_a_database_declares():
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t (a integer, b varchar, c datetime, d boolean, e blob, f real)")
        kinds = declared_kinds(database, query="select * from t")
    assert kinds == {"a": "integer", "b": "text", "c": "date", "d": "boolean", "e": None, "f": "number"}
    with pytest.raises(TypeError, match="query is for databases"):
        declared_kinds(pd.DataFrame({"a": [1.0]}), query="select 1")
    found = [typed_cells._database_kind(kind) for kind in (16, 20, 701, 1082, 25)]
    assert found == ["boolean", "integer", "number", "date", "text"]
    assert [typed_cells._duckdb_kind(kind) for kind in ("VARCHAR", "DATE", "BLOB")] == ["text", "date", None]
    with pytest.raises(TypeError, match="must be an array, a frame"):
        typed_cells._frame_kinds(object())


def test_groups_must_tell_every_cell():
    plan = NumberColumn("age", (0.0, 9.0), 1.0)
    from fogline.density.column_pairs import CellGroups

    with pytest.raises(ValueError, match="every cell"):
        GroupCoder([plan], [CellGroups("age", np.zeros(3, dtype=np.int64), ("all",), True)])


def test_days_have_cells_of_a_coarse_range():
    coder = RangeCoder([NumberColumn("day", kind="date")], [(0.0, 40000.0)])
    cells = coder.code(np.zeros((2, 0)), [["2020-01-01", "no day"]])
    assert cells[:, 0].tolist() == [58.0, 128.0]


def test_the_memory_of_a_rule_is_bounded(monkeypatch):
    monkeypatch.setattr(typed_cells, "MOST_REMEMBERED", 2)
    rule = typed_cells._Remembered(str.upper)
    assert [rule.each([word]) for word in ("a", "b", "c", "d")] == [["A"], ["B"], ["C"], ["D"]]
    assert len(rule._known) <= 3


def test_passes_that_are_over_read_nothing():
    passes = TypedPasses(typed_source(np.zeros((1, 1)), [], []), ["a"], 1)
    assert passes.rereadable
    passes.forget()
    assert not passes.rereadable
    with pytest.raises(RuntimeError, match="over"):
        passes.run(None, None)


@pytest.mark.parametrize("place", ["together", "alone"])
def test_an_interrupt_is_no_cell(place):
    def interrupt(*_):
        raise KeyboardInterrupt

    def fail():
        raise ValueError

    with pytest.raises(KeyboardInterrupt):
        cells_alone(interrupt if place == "together" else fail, [1], interrupt)


def test_a_profile_of_which_nothing_is_seen_has_the_unknown_range():
    with seeded_noise(0):
        found = profile(pd.DataFrame({"a": [np.nan, np.nan]}), numeric=["a"], epsilon=1.0, delta=1e-6)
    assert "a" in str(found.summary())


def test_shares_of_a_profile_must_be_whole(monkeypatch):
    monkeypatch.setattr(profile_release, "plan_shares", lambda *_: {"a": Fraction(1, 2)})
    with pytest.raises(RuntimeError, match="sum to exactly 1"):
        profile_release._Account([], profile_release.ProfileTerms(1.0, 0.0, "add-remove", 1))


def test_tails_of_gaussian_noise_are_its_own():
    assert profile_release._tail_scale(Noise("gaussian", 3.0)) == 3.0
    assert profile_release._tail_scale(Noise("laplace", 3.0)) > 3.0


def test_frames_are_read_without_narwhals(monkeypatch):
    def missing(*_, **__):
        raise ImportError("narwhals")

    frame = pd.DataFrame({"age": [1.0], "person": [1]})
    monkeypatch.setattr(table_release, "table", missing)
    how = {"query": None}
    assert table_release._table(frame, None, None, how) is frame
    assert table_release._table(frame, ["age"], None, how).columns.tolist() == ["age"]
    with pytest.raises(ImportError):
        table_release._table(frame, ["age"], "person", how)


def test_a_large_delta_was_told_before():
    told = []
    for delta in (0.5, 1e-4):
        density = SimpleNamespace(guarantee=SimpleNamespace(delta=delta), count=100.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table_release.warn_of_count(density)
        told.append(len(caught))
    density = SimpleNamespace(guarantee=SimpleNamespace(delta=1e-4), count=1e6)
    with pytest.warns(PrivacyWarning, match="delta"):
        table_release.warn_of_count(density)
    assert told == [0, 0]


def test_a_pure_epsilon_never_costs_more_than_its_rho():
    terms = ReleaseTerms(1.0, 1e-6, "add-remove", 1)
    for k in range(1, 60):
        rho = k / 97
        assert Fraction(terms.pure_epsilon(rho)) ** 2 <= 2 * Fraction(rho)


def test_names_of_columns_belong_to_a_source_with_names():
    with pytest.raises(TypeError, match="query needs by or weights"):
        private_strata(
            np.zeros((2, 1)), ["a", "b"], categories=["a"], bounds=[(0, 1)], epsilon=1.0, delta=1e-6, query="a"
        )


def test_a_pass_over_labels_is_run_once():
    made = table(pd.DataFrame({"age": [1.0], "ward": ["a"]}), ["age"], unit="ward")
    labelled = LabelledPass(made, StrataCounts(plan_spec([(0, 10)], [0.1], None), 1, None), ["a"], False)
    labelled.run()
    labelled.forget()
    with pytest.raises(RuntimeError, match="over"):
        labelled.run()


def test_typed_records_are_told_of_as_they_come():
    told = []
    frame = pd.DataFrame({"age": [1.0, 2.0], "day": ["2020-01-01", "2020-01-02"]})
    source = typed_source(frame, ["age"], ["day"], progress=told.append)
    TypedPasses(source, ["age"], 1).run(CellCoder([NumberColumn("age", (0.0, 9.0), 1.0)]), lambda _: None)
    assert told == [2]
    with pytest.raises(NotImplementedError):
        Source._scan_typed(SimpleNamespace(texts=("day",)), None)


def test_records_in_parts_are_those_of_the_whole():
    """The plain twin of the compiled choice, asked for one part of two at a time."""
    rng = np.random.default_rng(0)
    rows, ids, spec = rng.uniform(0, 10, (400, 1)), rng.integers(0, 50, 400), plan_spec([(0, 10)], [0.1], None)
    bound = ContributionBound.draw(2)
    taken = [PlainSampler(bound).add_cells(ids, rows, spec, part, 2) for part in (0, 1)]
    assert sum(taken) == PlainSampler(bound).add_cells(ids, rows, spec, 0, 1) == 400
    assert min(taken) > 0


def test_an_interrupt_is_no_label_and_no_id():
    class Interrupting(float):
        def is_integer(self):
            raise KeyboardInterrupt

        __int__ = is_integer

    for rule in (label_text, contributions._identity):
        with pytest.raises(KeyboardInterrupt):
            rule(Interrupting(2.0))


def test_typed_records_may_come_untold():
    found = []
    frame = pd.DataFrame({"age": [1.0, 2.0], "day": ["2020-01-01", "2020-01-02"]})
    typed_source(frame, ["age"], ["day"]).each_typed_batch(lambda rows, texts, _: found.append((rows, texts)))
    assert [len(rows) for rows, _ in found] == [0, 2]


def test_an_empty_list_whose_width_nobody_said_hands_over_nothing():
    found = []
    ListTable([]).each_unit_batch(lambda rows, _: found.append(rows))
    ListTable([]).each_typed_batch(lambda rows, *_: found.append(rows))
    assert found == []


def test_a_cluster_frame_declares_numbers():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(pd.DataFrame({"age": [1.0, 2.0]}), npartitions=1)
    assert declared_kinds(frame) == {"age": "number"}
