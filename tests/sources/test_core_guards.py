"""Guards of the code that counts records: what is refused before a record is read, and rules that hold cell by cell."""

from __future__ import annotations

import sqlite3
from fractions import Fraction

import numpy as np
import pytest

from fogline import profile, release, table
from fogline.accounting.guarantee import IntegralGuarantee
from fogline.density.columns import NumberColumn
from fogline.density.leaves import LeafSpec, Noise
from fogline.ledger.accounts import Account, Caps
from fogline.ledger.view import promise
from fogline.queries.column_counts import ColumnAnswer, ColumnTables
from fogline.releases.joint_release import JointPart, release_parts
from fogline.releases.origins import make_durable
from fogline.releases.terms import ReleaseTerms
from fogline.sources import typed_cells
from fogline.sources.contributions import cells_alone
from fogline.sources.typed_cells import GroupCoder, RangeCoder, TypedPasses, declared_kinds, typed_source
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
