"""The one verb: any source in, a density out; what is wrong is told before anything is spent."""

import itertools
import traceback
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import fogline
from fogline import DensitySketch, Ledger, PrivateDensity, Releases, release, units
from fogline.accounting import zcdp
from fogline.accounting.analytic_gaussian import UNIT_DISTANCE
from fogline.audit import RecordingProvider, canary_pairs, replay
from fogline.density.leaves import LeafSpec
from fogline.density.random_spec import RandomSpec
from fogline.mechanisms import use_provider
from fogline.mechanisms.errors import ReleaseFailed
from fogline.releases.joint_release import JointPart, part_terms, settle_parts
from fogline.releases.terms import ReleaseTerms
from fogline.sources.registry import table
from fogline.sources.tables import Source
from fogline.testing import SeededProvider, seeded_noise

BOUNDS = {"age": "age", "stay": (0, 60)}


def visits(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {
            "person": rng.integers(0, n // 2, n),
            "age": age,
            "stay": np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2.0, 3.0, n)),
            "cost": rng.lognormal(6, 1, n),
        }
    )


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(
        tmp_path / "budget", dataset="visits", epsilon=3.0, delta=1e-6, high_water=tmp_path / "marks"
    ) as found:
        yield found


# -- sources -------------------------------------------------------------------------------------------------


def sources(tmp_path):
    import sqlite3

    import duckdb
    import polars as pl
    import pyarrow as pa

    frame = visits()
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",")
    frame.to_parquet(tmp_path / "v.parquet")
    connection = sqlite3.connect(tmp_path / "v.db")
    frame.to_sql("visits", connection, index=False)
    connection.commit()
    columns = {"columns": ["age", "stay"]}
    return {
        "frame": (frame, {}),
        "polars": (pl.from_pandas(frame), {}),
        "lazy": (pl.from_pandas(frame).lazy(), {}),
        "arrow": (pa.Table.from_pandas(frame), {}),
        "array": (frame[["age", "stay"]].to_numpy(), columns),
        "list": (frame[["age", "stay"]].to_numpy().tolist(), columns),
        "csv": (tmp_path / "v.csv", {}),
        "text": (tmp_path / "german.csv", {"decimal": ",", "delimiter": ";"}),
        "parquet": (str(tmp_path / "v.parquet"), {}),
        "relation": (duckdb.from_df(frame), {}),
        "connection": (connection, {"query": "SELECT * FROM visits"}),
        "address": (f"sqlite:///{tmp_path}/v.db", {"query": "visits"}),
        "table": (fogline.table(frame, ["age", "stay"]), {}),
    }


def test_every_source_gives_the_same_release(tmp_path):
    with seeded_noise(3):
        expected = release(visits(), bounds=BOUNDS, epsilon=1.0)
    assert (expected.columns, expected.units) == (("age", "stay"), ("years", ""))
    assert isinstance(expected.spec, LeafSpec)
    for name, (source, options) in sources(tmp_path).items():
        with seeded_noise(3):
            found = release(source, bounds=BOUNDS, epsilon=1.0, **options)
        assert found.columns == ("age", "stay"), name
        assert found.leaves == expected.leaves, name


def test_a_unit_is_cut_and_the_guarantee_says_so():
    found = release(visits(), bounds=BOUNDS, epsilon=1.0, unit="person", max_contributions=2)
    assert (found.guarantee.unit, found.guarantee.max_contributions, found.guarantee.enforced) == ("person", 2, True)
    ids = visits()["person"].to_numpy()
    array = release(visits()[["stay"]].to_numpy(), bounds=[(0, 60)], epsilon=1.0, unit=ids)
    assert (array.guarantee.unit, array.guarantee.enforced, array.columns) == ("unit", True, None)


# -- bounds, steps, units ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "steps", "expected"),
    [
        ({"stay": (0, 60), "age": "age"}, None, ((0.0, 125.0), 1.0, "years")),
        (["age", (0, 60)], None, ((0.0, 125.0), 1.0, "years")),
        ([units.age(), (0, 60)], {"age": None}, ((0.0, 125.0), 0.0, "years")),
        ([(0, 100), (0, 60)], [2, None], ((0.0, 100.0), 2.0, None)),
        (np.array([(0, 100), (0, 60)]), {"age": 1}, ((0.0, 100.0), 1.0, None)),
    ],
)
def test_bounds_and_steps_in_every_form(bounds, steps, expected):
    found = release(visits(), columns=["age", "stay"], bounds=bounds, steps=steps, epsilon=1.0)
    pair, step, unit = expected
    assert (found.spec.bounds[0], found.spec.steps[0]) == (pair, step)
    assert (None if found.units is None else found.units[0]) == unit
    assert found.spec.bounds[1] == (0.0, 60.0)


def test_one_range_serves_all_columns_and_a_name_one_column():
    assert release(visits(), columns=["age", "stay"], bounds=(0, 100), epsilon=1.0).spec.bounds == ((0.0, 100.0),) * 2
    assert release(visits()["age"].to_numpy(), bounds="age", epsilon=1.0).units == ("years",)
    assert release([3.0, 4.0], bounds=(0, 10), epsilon=1.0).spec.d == 1


WRONG = {
    "no bounds": ({"bounds": None}, TypeError, "bounds must be given"),
    "no budget": ({"epsilon": None}, TypeError, "epsilon"),
    "infinite budget": ({"epsilon": float("inf")}, ValueError, "epsilon"),
    "column that is not there": ({"columns": ["agee"], "bounds": [(0, 1)]}, ValueError, "no column 'agee'"),
    "bounds of no column": ({"columns": ["age"], "bounds": {"agee": "age"}}, ValueError, "did you mean 'age'"),
    "bounds of too few": ({"columns": ["age", "stay"], "bounds": {"age": "age"}}, ValueError, "'stay' has no range"),
    "unknown range": ({"bounds": {"age": "years"}}, ValueError, "no public range named 'years'"),
    "too many ranges": ({"columns": ["age"], "bounds": [(0, 1), (0, 1)]}, ValueError, "2 ranges, but there are 1"),
    "step of no column": ({"steps": {"agee": 1}}, ValueError, "steps: there is no column 'agee'"),
    "four columns": ({"columns": ["person", "age", "stay", "cost"], "bounds": (0, 9e3)}, ValueError, "up to 3 columns"),
    "random without delta": ({"features": "random"}, ValueError, "delta .* features needs it"),
    "features": ({"features": "leafs"}, ValueError, "features must be"),
    "ledger": ({"ledger": "budget"}, TypeError, "ledger must be"),
    "expectation": ({"expect_records": 0}, ValueError, "expect_records"),
    "shares of one": ({"shares": {"age": 1}}, ValueError, "shares: are for several"),
    "reading options": ({"decimal": ","}, (TypeError, ValueError), "decimal"),
    "query": ({"query": "SELECT 1"}, TypeError, "query is for databases"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_before_anything_is_spent(name, ledger):
    options, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        release(visits(50), **{"bounds": BOUNDS, "epsilon": 1.0, "ledger": ledger, **options})
    assert [entry.kind for entry in ledger.history()].count("reserve") == 0


def test_names_of_an_array_are_all_or_none():
    with pytest.raises(ValueError, match="name all its 2 columns, got 1"):
        release(np.zeros((5, 2)), columns=["a"], bounds=[(0, 1)] * 2, epsilon=1.0)
    with pytest.raises(ValueError, match="none twice"):
        release(np.zeros((5, 2)), columns=["a", "a"], bounds=[(0, 1)] * 2, epsilon=1.0)
    with pytest.raises(TypeError, match="a table already"):
        release(fogline.table(visits()), bounds=BOUNDS, unit="person", epsilon=1.0)


def test_more_columns_by_random_features():
    bounds = {"age": "age", "stay": (0, 60), "cost": (0, 9000), "person": (0, 1000)}
    found = release(visits(), bounds=bounds, epsilon=1.0, delta=1e-6, features="random")
    assert isinstance(found.spec, RandomSpec)
    assert found.columns == tuple(bounds)
    assert found.guarantee.delta == 1e-6
    grid = release(visits(), columns=["stay"], bounds=[(0, 60)], epsilon=1.0, delta=1e-6, features="grid")
    assert (grid.columns, grid.leaves) == (("stay",), None)


def test_a_count_far_from_what_is_expected_is_told():
    found = release(visits(), bounds=BOUNDS, epsilon=1.0, expect_records=100_000)
    assert "of the 100000 records that you expect" in found.message
    assert release(visits(), bounds=BOUNDS, epsilon=1.0, expect_records=2000).message == ""
    assert "which may be none" in release([], bounds=[(0, 1)], epsilon=1.0).message


# -- ledgers -------------------------------------------------------------------------------------------------


def test_asked_again_it_is_answered_from_the_ledger(ledger, tmp_path):
    visits().to_csv(tmp_path / "v.csv", index=False)
    first = release(tmp_path / "v.csv", bounds=BOUNDS, epsilon=1.0, ledger=ledger)
    (tmp_path / "v.csv").write_text("person,age,stay,cost\n")  # the answer is not read from the records any more
    again = release(tmp_path / "v.csv", bounds=[(0, 125), (0, 60)], columns=["age", "stay"], steps=[1, None],
                    epsilon=1.0, ledger=ledger)  # fmt: skip
    assert again.leaves == first.leaves
    assert (again.receipt, again.columns) == (first.receipt, ("age", "stay"))
    assert (first.receipt["currency"], first.receipt["amount"]) == ("pure", 10**12)
    assert [entry.kind for entry in ledger.history()].count("reserve") == 1


# -- several densities ---------------------------------------------------------------------------------------

GROUPS = [["age", "stay"], ["cost"]]
RANGES = {"age": "age", "stay": (0, 60), "cost": (0, 9000)}


def test_several_densities_of_one_budget(ledger):
    found = release(visits(), columns=GROUPS, bounds=RANGES, epsilon=1.0, steps={"cost": 0.01},
                    shares={"age+stay": "2/3", "cost": "1/3"}, ledger=ledger)  # fmt: skip
    assert isinstance(found, Releases)
    assert list(found) == ["age+stay", "cost"]
    assert found.shares == {"age+stay": Fraction(2, 3), "cost": Fraction(1, 3)}
    assert (found["age+stay"].columns, found["age+stay"].units) == (("age", "stay"), ("years", ""))
    assert (found["cost"].spec.steps, found["cost"].units) == ((0.01,), None)
    assert found.guarantee.epsilon == found["cost"].guarantee.epsilon == 1.0
    assert "of 2 densities" in str(found.guarantee)
    assert found.receipt["amount"] == 10**12
    again = release(visits(50), columns=dict(zip(found, GROUPS, strict=True)), bounds=RANGES, epsilon=1.0,
                    steps={"cost": 0.01}, shares={"age+stay": "2/3", "cost": "1/3"}, ledger=ledger)  # fmt: skip
    assert [again[name].leaves for name in again] == [found[name].leaves for name in found]
    assert Releases.from_bytes(found.to_bytes()).shares == found.shares
    with pytest.raises(TypeError):
        found["cost"] = found["age+stay"]


def test_a_record_pays_for_all_densities():
    """A column may be in two of them; each is read by itself."""
    found = release(visits(), columns={"a": ["stay"], "b": ["stay", "age"]}, bounds=BOUNDS, epsilon=1.0)
    laplace = [density.leaves.counts.noise.scale for density in found.values()]
    alone = release(visits(), columns=["stay"], bounds=[(0, 60)], epsilon=0.5).leaves.counts.noise.scale
    assert laplace == [alone, alone]


def test_with_a_delta_many_densities_have_gaussian_noise():
    spec = LeafSpec.plan([(0, 1)])
    terms = ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1)
    few, many = ([JointPart(str(k), ("x",), spec, Fraction(1, n)) for k in range(n)] for n in (2, 100))
    assert settle_parts(few, terms).pure
    assert not settle_parts(many, terms).pure
    rho = [Fraction(part_terms(terms, part.share).rho) for part in many]
    assert 0.99 * terms.rho < sum(rho) <= Fraction(terms.rho)
    assert settle_parts(many, ReleaseTerms.checked(1.0, 0, "add-remove", 1, allow_pure=True)).pure


@pytest.mark.parametrize("accounting", ["zcdp", "gaussian"])
def test_the_parts_of_many_densities_stay_within_mu_and_distance_of_the_whole(accounting):
    spec = LeafSpec.plan([(0, 1)])
    parts = [JointPart(str(k), ("x",), spec, Fraction(1, 100)) for k in range(100)]
    terms = replace(ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1), accounting=accounting)
    settled = settle_parts(parts, terms)
    assert (settled.pure, settled.accounting) == (False, accounting)
    shares = [part_terms(settled, part.share) for part in parts]
    assert sum(share.distance for share in shares) <= UNIT_DISTANCE
    assert 0.99 * terms.rho < sum(Fraction(share.rho) for share in shares) <= Fraction(terms.rho)


def test_many_densities_by_the_curve_have_less_noise(monkeypatch):
    table = pd.DataFrame({f"c{k}": np.linspace(0, 1, 300) for k in range(24)})
    groups, bounds = [[name] for name in table], dict.fromkeys(table, (0, 1))
    found = release(table, columns=groups, bounds=bounds, epsilon=1.0, delta=1e-6)
    density = found["c0"]
    assert density.guarantee.gaussian
    assert density.leaves.counts.noise.kind == "gaussian"
    monkeypatch.setattr("fogline.releases.terms.DEFAULT_ACCOUNTING", "zcdp")
    by_zcdp = release(table, columns=groups, bounds=bounds, epsilon=1.0, delta=1e-6)["c0"]
    ratio = density.leaves.counts.noise.scale / by_zcdp.leaves.counts.noise.scale
    assert ratio == pytest.approx((zcdp.rho_of(1.0, 1e-6) / density.guarantee.rho) ** 0.5, rel=0.01)
    assert 0.91 < ratio < 0.94


WRONG_GROUPS = {
    "shares": ({"shares": {"age+stay": "1/2", "cost": "1/3"}}, ValueError, "shares: .* sum to exactly 1"),
    "names of shares": ({"shares": {"cost": 1}}, ValueError, "shares must name each of the densities"),
    "bounds": ({"bounds": [(0, 1)]}, TypeError, "bounds: for several densities"),
    "features": ({"features": "random"}, ValueError, "features: several densities"),
    "twice": ({"columns": [["cost"], ["cost"]], "bounds": {"cost": (0, 1)}}, ValueError, "two densities named 'cost'"),
    "none": ({"columns": [[], ["cost"]]}, ValueError, "at least one column"),
    "step": ({"steps": {"costs": 1}}, ValueError, "steps: there is no column 'costs'"),
}


@pytest.mark.parametrize("name", WRONG_GROUPS)
def test_what_is_wrong_with_groups(name, ledger):
    options, error, words = WRONG_GROUPS[name]
    with pytest.raises(error, match=words):
        release(visits(50), **{"columns": GROUPS, "bounds": RANGES, "epsilon": 1.0, "ledger": ledger, **options})
    assert [entry.kind for entry in ledger.history()].count("reserve") == 0


def test_several_densities_of_a_stream_are_one_pass():
    import pyarrow as pa

    groups = {"columns": [["age", "stay"], ["cost"]], "bounds": {**BOUNDS, "cost": (0, 9000)}, "epsilon": 1.0}
    found = []
    for source in (visits(500), pa.Table.from_pandas(visits(500)).to_reader()):
        with seeded_noise(3):
            found.append(release(source, **groups))
    for name in found[0]:
        assert np.array_equal(found[0][name].leaves.counts.counts, found[1][name].leaves.counts.counts)


def test_a_unit_is_cut_once_for_several_densities():
    """At most c records of each, the same ones in every density; a missing cost does not take a record out of age."""
    frame = visits(3000)
    frame.loc[::7, "cost"] = np.nan
    reads = []

    with seeded_noise(0), pytest.warns(fogline.PrivacyWarning):
        found = release(
            table(frame, ["age", "stay", "cost"], unit="person", progress=reads.append),
            columns=[["age"], ["cost"], ["stay"]],
            bounds={**BOUNDS, "cost": (0, 1e6)},
            max_contributions=2,
            epsilon=1e5,
        )
    assert reads[-1] == 3000
    assert sum(later <= earlier for earlier, later in itertools.pairwise(reads)) == 0
    kept = frame.groupby("person").size().clip(upper=2).sum()
    counts = {name: round(density.count) for name, density in found.items()}
    assert counts["age"] == counts["stay"] == kept
    assert kept * 0.75 < counts["cost"] < kept * 0.95
    assert (found.guarantee.unit, found.guarantee.enforced) == ("person", True)


def test_groups_need_names():
    with pytest.raises(TypeError, match="columns have names"):
        release(np.zeros((5, 2)), columns=[["a"], ["b"]], bounds={"a": (0, 1), "b": (0, 1)}, epsilon=1.0)


def test_files_of_several(tmp_path):
    found = release(visits(), columns=GROUPS, bounds=RANGES, epsilon=1.0)
    paths = found.save(tmp_path / "shapes")
    assert [path.name for path in paths] == ["age+stay.fog", "cost.fog"]
    assert [PrivateDensity.load(path) for path in paths] == list(found.values())


# -- replay --------------------------------------------------------------------------------------------------

BOX = {"x": (-3.0, 10.0), "y": (0.0, 5.0)}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("options", "calls"),
    [({}, 2), ({"columns": [["x"], ["x", "y"]], "shares": {"x": "1/5", "x+y": "4/5"}}, 4)],
    ids=["one", "two"],
)
def test_replays(options, calls, relation):
    def run(data):
        frame = pd.DataFrame(np.asarray(data), columns=["x", "y"])
        return release(frame, bounds=BOX, epsilon=1.0, neighbours=relation, **options)

    report = replay(run, canary_pairs(list(BOX.values()), neighbours=relation, n=40, block=None)[::9])
    assert report.passed, str(report)
    assert {pair.calls for pair in report.pairs} == {calls}
    assert report.largest_ratio == 1.0


def test_an_overspent_share_would_be_noticed(monkeypatch):
    """Both parts take the whole budget."""
    from fogline.releases import joint_release

    monkeypatch.setattr(joint_release, "part_terms", lambda terms, share: terms)

    def run(data):
        frame = pd.DataFrame(np.asarray(data), columns=["x", "y"])
        return release(frame, columns=[["x"], ["y"]], bounds=BOX, epsilon=1.0)

    pairs = canary_pairs(list(BOX.values()), neighbours="add-remove", n=40, block=None)[:1]
    assert not replay(run, pairs, until_failure=True).passed


# -- isolation -----------------------------------------------------------------------------------------------

HOSTILE = [
    '3,"41',
    '"3\n41",7',
    "3,41,5,6,7",
    "3",
    "\x00,\x00",
    "nan,inf",
    "1e999,-1e999",
    "3;41",
    "3,\ufeff41",
    "3," + "9" * 100_000,
    "-0x1p3,4_1",
    "=cmd(),41",
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_line_touches_no_other_record(line, tmp_path):
    """Exact counts with and without it differ by one record at most, per line that its author wrote."""
    rows = [f"{k % 9},{k % 40}" for k in range(60)]

    def exact(lines):
        (tmp_path / "v.csv").write_text("\n".join(["a,b", *lines, ""]), encoding="utf-8")
        with use_provider(RecordingProvider(SeededProvider(1))) as provider:
            release(tmp_path / "v.csv", bounds={"a": (0, 9), "b": (0, 50)}, epsilon=1.0)
        return provider.steps[0].exact

    before, after = exact(rows), exact([*rows[:30], line, *rows[30:]])
    assert before.sum() == 60
    assert np.abs(after - before).sum() <= line.count("\n") + 1


@pytest.mark.parametrize("columns", [["x"], [["x"], ["x", "y"]]], ids=["one", "several"])
def test_an_error_leads_to_no_record(columns, monkeypatch):
    frame = pd.DataFrame({"x": np.full(99, 4.125), "y": np.full(99, 4.125)})

    def fail(self, *_, **__):
        raise MemoryError("4.125 is one too many")

    monkeypatch.setattr(DensitySketch, "add_state", fail)
    with pytest.raises(ReleaseFailed) as caught:
        release(
            frame, columns=columns, bounds={"x": (0, 9), "y": (0, 9)} if len(columns) > 1 else [(0, 9)], epsilon=1.0
        )
    error = caught.value
    assert (error.__cause__, error.__context__) == (None, None)
    frames = [found for found, _ in traceback.walk_tb(error.__traceback__) if "fogline" in found.f_code.co_filename]
    own = [found for found in frames if found.f_code.co_filename != __file__]
    assert own
    for found in own:
        assert not [name for name, value in found.f_locals.items() if value is frame or isinstance(value, Source)]
