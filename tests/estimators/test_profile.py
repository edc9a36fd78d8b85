"""A profile: what is declared, what is found, what is read, what is paid, what is refused."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from fogline import Ledger, PrivateDensity, profile, units
from fogline.density.columns import CategoryColumn, NumberColumn, plan_shares
from fogline.density.profile import DECILES, Profile
from fogline.ledger import LedgerRefused
from fogline.releases.profile import ProfileTerms, settle_terms
from fogline.testing import seeded_noise

N = 4000


def visits(n=N, seed=0):
    rng = np.random.default_rng(seed)
    stay = np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2, 3, n))
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 90, n)),
            "stay": np.where(rng.random(n) < 0.05, 99.0, stay),
            "sex": rng.choice(["f", "m"], n, p=[0.6, 0.4]),
            "ward": rng.choice(["north", "south", *(f"w{k}" for k in range(200))], n, p=[0.5, 0.3, *[0.001] * 200]),
            "day": pd.Series(pd.to_datetime("2018-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")),
        }
    )


DECLARED = {
    "bounds": {"age": "age", "stay": (0, 60), "day": ("2015-01-01", "2024-12-31")},
    "categories": {"sex": ["f", "m"], "ward": None},
}


@pytest.fixture(name="found", scope="module")
def _found():
    with seeded_noise(0):
        return profile(visits(), **DECLARED, epsilon=3.0, delta=1e-6)


def test_kinds_and_shares(found):
    assert {name: column.kind for name, column in found.items()} == {
        "age": "integer",
        "stay": "number",
        "sex": "category",
        "ward": "category",
        "day": "date",
    }
    assert found.count == pytest.approx(N, abs=5 * found.count_sd)
    frame = visits()
    shares = {
        "missing": (found["age"].missing, frame["age"].isna().mean()),
        "above": (found["stay"].above, (frame["stay"] > 60).mean()),
        "below": (found["stay"].below, 0.0),
        "zeros": (found["stay"].zeros, (frame["stay"] == 0).mean() / (frame["stay"] <= 60).mean()),
        "sex": (dict(found["sex"].categories)["f"], (frame["sex"] == "f").mean()),
        "rest": (found["ward"].rest, frame["ward"].str.startswith("w").mean()),
    }
    for name, (share, true) in shares.items():
        assert share.low - 0.01 <= true <= share.high + 0.01, name
    assert found["sex"].below is None
    assert found["sex"].rest.value < 0.02
    assert found["day"].zeros is None
    assert found["sex"].density is None
    with pytest.raises(ValueError, match="categories, which have no values"):
        found["sex"].quantile(0.5)
    with pytest.raises(KeyError, match="not in this profile"):
        found["weight"]


def test_found_categories_and_their_rest(found):
    assert [label for label, _ in found["ward"].categories] == ["north", "south"]
    total = sum(share.value for _, share in found["ward"].categories) + found["ward"].rest.value
    assert total == pytest.approx(1, abs=0.05)


def test_zeros_and_walls_have_leaves_of_their_own():
    """However much noise there is, a heap at zero or at a wall is seen as one, not as a slope."""
    rng = np.random.default_rng(2)
    stay = np.where(rng.random(9000) < 0.2, 0.0, rng.gamma(2, 3, 9000))
    change = np.where(rng.random(9000) < 0.3, 0.0, rng.normal(0, 20, 9000))
    capped = np.minimum(rng.exponential(30, 9000), 60)
    with seeded_noise(3):
        found = profile(np.column_stack([stay, change, capped]), bounds=[(0, 60), (-100, 100), (0, 60)], epsilon=0.4)
    assert found["x1"].zeros.low < (stay == 0).mean() < found["x1"].zeros.high
    assert found["x2"].zeros.low < (change == 0).mean() < found["x2"].zeros.high
    (wall,) = [atom for atom in found["x3"].atoms if atom.value == 60]
    assert wall.share.low < (capped == 60).mean() < wall.share.high


def test_quantiles_are_near_those_of_the_records(found):
    frame = visits()
    inside = np.sort(frame["stay"][frame["stay"] <= 60])
    ranks = np.searchsorted(inside, found["stay"].deciles.value, side="right") / len(inside)
    assert np.all(ranks >= np.array(DECILES) - 0.05)
    median = found["age"].quantile(0.5)
    assert median.low - 2 <= frame["age"].median() <= median.high + 2
    assert found["age"].quantile(0.5).value == round(found["age"].quantile(0.5).value), "integers stay integers"
    days = found["day"].quartiles.value
    assert found["day"].text(days[1]).startswith(("2018-1", "2019-0"))


def test_files_frames_and_documents_say_the_same(found, tmp_path):
    path = tmp_path / "profile.npz"
    found.save(path)
    again = Profile.load(path)
    assert again.to_dict() == found.to_dict()
    document = json.loads(found.to_json())
    assert document["format"] == "fogline-profile-1"
    assert [column["name"] for column in document["columns"]] == list(found)
    frame = found.to_frame().set_index("column")
    assert list(frame.index) == list(found)
    assert frame.loc["stay", "q50"] == found["stay"].quartiles.value[1]
    assert "north" in frame.loc["ward", "categories"]
    assert str(found.summary()).count("\n") > len(found)
    assert "north" in str(found.summary())
    assert found.report(tmp_path / "page.html").read_text(encoding="utf-8").count("<article") == len(found)
    assert len(found.plot()) == len(found)
    found["stay"].density.save(tmp_path / "stay.fog")
    assert PrivateDensity.load(tmp_path / "stay.fog").quantile(0.5).value == found["stay"].quantile(0.5).value
    for content in (b"not a profile", path.read_bytes()[:500]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a profile"):
            Profile.load(path)


def test_shares_of_the_budget_sum_to_one_and_pay_for_what_is_open():
    closed, numbers, texts = NumberColumn("a", (0.0, 1.0)), NumberColumn("b"), CategoryColumn("c")
    for plans in ([closed], [numbers], [texts], [closed, numbers, texts] * 5, [closed] * 99 + [texts]):
        shares = plan_shares(
            [p if k < 3 else type(p)(f"{p.name}{k}", *([p.bounds] if p is closed else [])) for k, p in enumerate(plans)]
        )
        assert sum(shares.values()) == 1
        assert min(shares.values()) > 0
    assert 1 - sum(plan_shares([closed] * 99 + [texts])[name] for name in ("pilot", "counts")) == Fraction(1, 200)


@pytest.mark.parametrize("columns", [1, 5, 40])
def test_the_law_of_the_noise_is_the_one_with_less_of_it(columns):
    plans = [NumberColumn(f"x{j}", (0.0, 1.0)) for j in range(columns)]
    terms = ProfileTerms(1.0, 1e-6, "add-remove", 1)
    settled = settle_terms(plans, terms)
    laplace, normal = 2 * columns**2, columns / (2 * terms.rho)
    assert settled.pure == (laplace <= normal)
    assert settle_terms(plans, ProfileTerms(1.0, 0.0, "add-remove", 1)).pure


def test_ranges_that_are_found_hold_the_values():
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.normal(500, 20, 5000), rng.integers(1950, 2010, 5000), np.full(5000, np.nan)])
    with seeded_noise(1):
        found = profile(table, epsilon=2.0, delta=1e-6, steps={"x2": 1})
    low, high = found["x1"].bounds
    assert low < 460 < 540 < high < 1100
    assert found["x2"].kind == "integer"
    assert found["x2"].bounds[0] <= 1951 <= 2008 <= found["x2"].bounds[1]
    assert found["x3"].missing.value > 0.95, "no range stood out, and the missing values were counted all the same"
    with seeded_noise(1):
        pure = profile(table, epsilon=2.0)
    assert pure.guarantee.delta == 0
    assert abs(pure["x1"].quantile(0.5).value - 500) < 20


def test_a_ledger_pays_once(tmp_path):
    given = {"bounds": {"age": "age"}, "columns": ["age"], "epsilon": 1.0}
    with Ledger.create(tmp_path / "ledger", epsilon=1.5, delta=0, dataset="visits") as ledger:
        first = profile(visits(), **given, ledger=ledger)
        again = profile(visits(), **given, ledger=ledger)
        assert first.to_dict() == again.to_dict()
        assert first.receipt["commit"] == again.receipt["commit"]
        with pytest.raises(LedgerRefused):
            profile(visits(), **{**given, "bounds": {"age": (0, 90)}}, ledger=ledger)


def test_pairs_are_paid_a_share_and_kept_in_files(tmp_path):
    """The share is public, the pairs are part of the question, and a file holds them."""
    given = {"bounds": {"age": "age", "stay": (0, 60)}, "columns": ["age", "stay", "sex"], "epsilon": 1.0}
    given["categories"] = {"sex": ["f", "m"]}
    with Ledger.create(tmp_path / "ledger", epsilon=2.5, delta=0, dataset="visits") as ledger:
        first = profile(visits(), **given, pairs=[("age", "stay")], ledger=ledger)
        again = profile(visits(), **given, pairs=[("stay", "age")], ledger=ledger)
        assert first.to_dict() == again.to_dict(), "an order within a pair makes no other question"
        other = profile(visits(), **given, pairs=["age", "stay", "sex"], pairs_share=0.5, ledger=ledger)
        assert other.receipt["commit"] != first.receipt["commit"]
    assert len(first.pairs) == 1
    assert len(other.pairs) == 3
    assert other["age"].cells.variance > first["age"].cells.variance, "columns have what the pairs leave"
    first.save(tmp_path / "profile.npz")
    stored = Profile.load(tmp_path / "profile.npz")
    assert stored.to_dict() == first.to_dict()
    assert "pairs" not in profile(visits(), **given).to_dict()


def test_one_hostile_record_moves_one_cell_of_a_pair():
    """Whatever a row holds, the exact table of a pair changes by one count in one cell, or not at all."""
    from fogline.density.column_pairs import CellGroups
    from fogline.queries.pair_counts import PairTables
    from fogline.sources.typed_cells import GroupCoder, integers

    plans = [NumberColumn("a", (0.0, 9.0), 1.0), CategoryColumn.of("b", ["x", "y"])]
    cuts = [CellGroups("a", np.repeat([0, 1, 2], [5, 5, 3]), ("low", "high"), True),
            CellGroups("b", np.array([0, 1, 1, 2]), ("x", "other"), False)]  # fmt: skip
    coder = GroupCoder(plans, cuts)
    rows = [(3.0, "x"), (7.0, "y"), (2.0, "z")]

    def table(*more):
        found, every = PairTables([2, 2]), [*rows, *more]
        found.add(integers(coder.code(np.array([[a] for a, _ in every]), [[b for _, b in every]])))
        return found.table(0, 1)

    hostile = [(np.nan, "x"), (np.inf, "x"), (-np.inf, None), (1e300, "x" * 10_000), (-0.0, "x\0"), (9.0, object()),
               (9.0000001, "x"), (4.5, b"x"), (4.0, float("nan")), (3.0, True), (5.0, "\ud800")]  # fmt: skip
    for row in hostile:
        change = table(row) - table()
        assert change.min() >= 0, row
        assert change.sum() <= 1, row
    assert (table((3.0, "x")) - table()).tolist() == [[1, 0], [0, 0]]


def test_a_unit_is_cut():
    frame = pd.DataFrame({"age": [30.0] * 900 + [60.0] * 100, "person": [1] * 900 + list(range(100, 200))})
    with seeded_noise(0):
        found = profile(frame, bounds={"age": (0, 100)}, unit="person", epsilon=9.0, max_contributions=2)
    assert found.count == pytest.approx(102, abs=6 * found.count_sd)
    assert found.count_sd < 10
    assert (found.guarantee.unit, found.guarantee.max_contributions, found.guarantee.enforced) == ("person", 2, True)


EACH = {"numeric": ["age", "stay"], "dates": ["day"], "categories": ["sex", "ward"]}

REFUSED = [
    ({"bounds": {"agee": (0, 1)}}, ValueError, "no column 'agee'.*did you mean 'age'"),
    ({"bounds": {"age": (5, 1)}}, ValueError, "bounds: column 'age'"),
    ({"bounds": {"age": "shoe_size"}}, ValueError, "no public range"),
    ({"bounds": {"day": ("2020-01-01", "x")}}, ValueError, "two dates"),
    ({"bounds": {"sex": (0, 1)}, "categories": {"sex": ["f"]}}, ValueError, "holds categories"),
    ({"categories": {"sex": "fm"}}, TypeError, "must be a list"),
    ({"categories": {"sex": ["f", "f"]}}, ValueError, "different texts"),
    ({"categories": "sex"}, TypeError, "list of names"),
    ({"columns": ["agee"]}, ValueError, "no column 'agee'"),
    ({"steps": {"age": -1}}, ValueError, "steps"),
    ({"neighbours": "replace"}, ValueError, "categories: finding them"),
    ({"delta": None}, TypeError, "delta"),
    ({"epsilon": None}, TypeError, "epsilon"),
    ({"query": "visits"}, TypeError, "query is for databases"),
    ({"bounds": [(0, 1)]}, TypeError, "bounds must be a mapping"),
    ({"pairs": "some"}, ValueError, 'pairs must be "all"'),
    ({"pairs": []}, TypeError, 'pairs must be "all"'),
    ({"pairs": [("age", "agee")]}, ValueError, "pairs: there is no column 'agee'.*did you mean 'age'"),
    ({"pairs": [("age", "age")]}, ValueError, "two different columns"),
    ({"pairs": [("age", "stay"), ("stay", "age")]}, ValueError, "each pair once"),
    ({"pairs": [("age", "stay", "sex")]}, ValueError, "two names"),
    ({"pairs": "all", "pairs_share": 1.0}, ValueError, "pairs_share"),
    ({"pairs": "all", "pairs_share": "a half"}, ValueError, "pairs_share"),
]


@pytest.mark.parametrize(("given", "kind", "words"), REFUSED, ids=[words for *_, words in REFUSED])
def test_what_is_refused_before_anything_is_spent(given, kind, words):
    with pytest.raises(kind, match=words):
        profile(visits(5), **{**EACH, "epsilon": 1.0, "delta": 1e-6, **given})


def test_a_frame_of_pandas_declares_nothing_by_types_that_its_cells_decided(tmp_path):
    """One missing age, or one truth value that is missing, must not change how the column is treated, nor fail it."""
    whole = pd.DataFrame({"age": [30, 40, 50], "flag": [True, False, True]})
    gap = pd.DataFrame({"age": [30, 40, None], "flag": [True, False, None]})
    lists = {"flag": ["false", "true"]}
    for frame in (whole, gap):
        with pytest.raises(ValueError, match="nothing says what 'age', 'flag' hold"):
            profile(frame, epsilon=1.0)
    with seeded_noise(0):
        found = [profile(frame, bounds={"age": (0, 99)}, categories=lists, epsilon=1.0) for frame in (whole, gap)]
    assert found[0]["age"].kind == found[1]["age"].kind == "number"
    for k, frame in enumerate((whole, gap)):
        frame.to_parquet(tmp_path / f"{k}.parquet")
        with pytest.raises(ValueError, match="nothing says what 'age', 'flag' hold"):
            profile(tmp_path / f"{k}.parquet", epsilon=1.0)
    declared = whole.astype({"age": "Int64", "flag": "boolean"})
    assert profile(declared, bounds={"age": (0, 99)}, epsilon=1.0)["age"].kind == "integer"


def test_a_csv_file_declares_nothing(tmp_path):
    path = tmp_path / "visits.csv"
    visits(50).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"nothing says what 'age', 'sex', 'ward', 'day' hold; give numbers a range"):
        profile(path, bounds={"stay": (0, 60)}, epsilon=1.0)
    lists = {"sex": ["f", "m"], "ward": ["north"]}
    found = profile(path, bounds=DECLARED["bounds"], dates=["day"], categories=lists, epsilon=1.0)
    assert found["day"].kind == "date"
    assert found.guarantee.unit == "line of the file"


def test_no_rows_and_one_column():
    found = profile(np.zeros((0, 1)), bounds=[units.percent()], epsilon=1.0, expect_records=1000)
    assert found.count < 60
    assert "1000 records that you expect" in found.message or "may be none" in found.message
    assert 0 <= found["x1"].missing.value <= 1
