"""Strata of arrays, frames and files: labels of all kinds, weights, ledgers, replay, mutants, an attack."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from fogline import Ledger, private_strata
from fogline.audit import Pair, attack, replay
from fogline.density.strata import Strata
from fogline.ledger import LedgerRefused
from fogline.mechanisms.errors import ReleaseFailed
from fogline.queries import strata as strata_counts
from fogline.releases import strata as strata_module
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
BOX = {"bounds": [(0, 10)], "bandwidths": [0.1]}


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m", "x", ""], n, p=[0.5, 0.3, 0.1, 0.1])
    return rng.normal(np.where(sex == "f", 3.0, 7.0), 1.0), sex


def seeded(*args, seed=0, **options):
    with seeded_noise(seed):
        return private_strata(*args, **{**BUDGET, **BOX, **options})


def counts(strata):
    return {name: strata[name].count for name in strata}


# -- labels --------------------------------------------------------------------------------------------------


def test_each_category_has_the_density_of_its_records():
    x, sex = people(6000)
    found = seeded(x, sex, categories=["f", "m", "nobody"])
    assert list(found) == ["f", "m", "nobody", "other"]
    wanted = {"f": (sex == "f").sum(), "m": (sex == "m").sum(), "nobody": 1, "other": np.isin(sex, ["x", ""]).sum()}
    for name, count in wanted.items():
        assert abs(found[name].count - count) < 80
    modes = found.modes(1)
    assert abs(modes["f"].positions[0, 0] - 3) < 0.5
    assert abs(modes["m"].positions[0, 0] - 7) < 0.5
    assert found.compare("f", "m", simulations=99).p_value == 0.01
    with pytest.raises(KeyError, match="no stratum 'q'"):
        found.compare("f", "q")
    assert found.guarantee.certified is False  # seeded
    assert "4 strata" in found.guarantee.mechanism


def test_others_may_contribute_nothing():
    x, sex = people()
    found = seeded(x, sex, categories=["f", "m"], others=None)
    assert list(found) == ["f", "m"]
    assert found["f"] == seeded(x[sex != "x"], sex[sex != "x"], categories=["f", "m"], others=None)["f"]


def test_labels_of_all_kinds_are_the_same():
    x = np.random.default_rng(0).uniform(0, 10, 1000)
    whole = np.random.default_rng(1).integers(0, 4, 1000)
    first = seeded(x, whole, categories=[1, 2])
    for labels in (
        whole.astype(float),
        whole.astype(str),
        [str(v) if v % 2 else int(v) for v in whole],
        np.where(whole == 0, np.nan, whole.astype(float)),
        np.array([None if v == 3 else v for v in whole], dtype=object),
        [[] if v == 3 else f" {v} " for v in whole],
    ):
        assert seeded(x, labels, categories=["1", "2"]) == first


def test_frames_files_and_arrays_agree(tmp_path):
    pd = pytest.importorskip("pandas")
    x, sex = people(500)
    frame = pd.DataFrame({"sex": sex, "x": x, "w": np.linspace(0, 3, 500)})
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    for weights in ({}, {"weights": "w", "weight_bound": 2.0}):
        arrays = {**weights, "weights": frame["w"].to_numpy()} if weights else {}
        first = seeded(x, sex, categories=["f", "m"], **arrays)
        for source in (frame, tmp_path / "p.csv", tmp_path / "p.parquet", str(tmp_path / "p.csv")):
            found = seeded(source, "sex", categories=["f", "m"], columns=["x"], **weights)
            for name in first:
                assert np.array_equal(found[name]._released, first[name]._released), (name, source)
    every = seeded(tmp_path / "p.csv", "sex", categories=["f"], weights="w", weight_bound=2.0)
    assert len(every) == 2
    assert every.guarantee.unit == "line of the file"


def test_weights_without_categories():
    x = np.random.default_rng(0).uniform(0, 10, 4000)
    found = seeded(x, weights=np.where(x < 5, 1.0, 3.0), weight_bound=3.0)
    assert list(found) == ["all"]
    assert found["all"].pdf([[7.5]])[0] / found["all"].pdf([[2.5]])[0] == pytest.approx(3, rel=0.3)
    assert found.weight_bound == 3.0


def test_more_than_three_columns():
    X = np.random.default_rng(0).uniform(0, 10, (400, 5))
    labels = np.arange(400) % 3
    found = seeded(X, labels, categories=[0, 1], bounds=[(0, 10)] * 5, bandwidths="auto", features=64)
    assert abs(found["0"].count - 134) < 60


@pytest.mark.parametrize("d", [1, 2])
def test_plots(d):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    x, sex = people(1000)
    found = seeded(np.column_stack([x] * d), sex, categories=["f", "m"], bounds=[(0, 10)] * d)
    figure = found.plot()
    assert len(figure.axes) >= 1
    assert found.plot(names=["f"], bandwidth=0.2) is not None
    with pytest.raises(ValueError, match="names must be strata"):
        found.plot(names=["q"])
    plt.close("all")


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"categories": None}, "categories must be a list of public labels"),
        ({"categories": "fm"}, "categories"),
        ({"categories": []}, "categories"),
        ({"categories": ["f", "f "]}, "categories"),
        ({"categories": [1.5]}, "categories"),
        ({"categories": ["f", "other"]}, "others"),
        ({"others": ""}, "others"),
        ({"by": None}, "by must be given"),
        ({"by": ["f", "m"]}, "by must have one"),
        ({"weights": [1.0] * 3000}, "weight_bound"),
        ({"weight_bound": 1.0}, "weight_bound"),
        ({"weights": [1.0], "weight_bound": 1.0}, "weights must have one"),
        ({"weights": [1.0] * 3000, "weight_bound": 0.0}, "weight_bound"),
        ({"weights": "w", "weight_bound": 1.0}, "weights and by"),
        ({"epsilon": None}, "epsilon"),
        ({"bounds": None}, "bounds"),
        ({"bounds": [(0, 1), (0, 1)]}, "columns: there are 1 columns, but bounds has 2 axes"),
        ({"ledger": 3}, "ledger"),
    ],
)
def test_bad_parameters_are_named(options, word):
    x, sex = people()
    arguments = {"by": sex, "categories": ["f", "m"], **BUDGET, **BOX, **options}
    with pytest.raises((ValueError, TypeError), match=word):
        private_strata(x, **arguments)


def test_bad_schemas_are_named(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "p.csv").write_text("sex,x\nf,1\n")
    with pytest.raises(ValueError, match="'gender'"):
        private_strata(tmp_path / "p.csv", "gender", categories=["f"], **BUDGET, **BOX)
    with pytest.raises(FileNotFoundError):
        private_strata(tmp_path / "q.csv", "sex", categories=["f"], **BUDGET, **BOX)
    with pytest.raises(ValueError, match="columns: 'sex' is given as by"):
        private_strata(tmp_path / "p.csv", "sex", categories=["f"], columns=["sex", "x"], **BUDGET, **BOX)
    from fogline.sources.registry import table

    with pytest.raises(TypeError, match="pass the source itself"):
        private_strata(table(np.ones((3, 1))), "sex", categories=["f"], **BUDGET, **BOX)
    with pytest.raises(TypeError, match="name its unit here"):
        private_strata(table(np.ones((3, 1)), unit=np.arange(3)), "sex", categories=["f"], **BUDGET, **BOX)


# -- units ---------------------------------------------------------------------------------------------------


def visits_of_people(n=2000):
    x, sex = people(n)
    return pd.DataFrame({"who": np.random.default_rng(5).integers(0, n // 4, n), "sex": sex, "x": x})


@pytest.mark.filterwarnings("ignore:epsilon = 1e.06 is above 10")
def test_a_unit_counts_at_most_c_records_over_all_strata(tmp_path):
    frame = visits_of_people()
    frame.loc[::50, "who"] = -1  # one person with many
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_parquet(tmp_path / "v.parquet")
    inside = frame[(frame.x >= 0) & (frame.x <= 10)]
    kept = inside.groupby("who").size().clip(upper=2).sum()
    options = {
        "categories": ["f", "m"],
        "unit": "who",
        "max_contributions": 2,
        "epsilon": 1e6,
        "features": "leaves",
        "bandwidths": "auto",
    }
    found = []
    for source in (frame, tmp_path / "v.csv", tmp_path / "v.parquet"):
        found.append(seeded(source, "sex", columns=["x"], **options))
    found.append(seeded(frame[["x"]].to_numpy(), frame.sex.to_numpy(), **{**options, "unit": frame.who.to_numpy()}))
    for strata in found:
        assert sum(round(count) for count in counts(strata).values()) == kept
        assert counts(strata) == counts(found[0])  # the same draw by the same key, whatever the source
    assert (found[0].guarantee.unit, found[0].guarantee.enforced) == ("who", True)


@pytest.mark.filterwarnings("ignore:epsilon = 1e.06 is above 10")
def test_weights_and_units_together():
    frame = visits_of_people()
    frame["w"] = np.where(np.arange(len(frame)) % 3, 1.0, 0.0)  # a record without weight does not compete
    strata = seeded(
        frame, None, columns=["x"], weights="w", weight_bound=1.0, unit="who", max_contributions=1, epsilon=1e6
    )
    inside = frame[(frame.x >= 0) & (frame.x <= 10) & (frame.w > 0)]
    assert round(strata["all"].count) == inside.who.nunique()


def test_replay_with_a_unit():
    """Two persons' worlds that differ in one of them: the exact answers are as near as the noise allows for."""
    frame = visits_of_people(300)

    def fit(rows):
        return private_strata(
            rows, "sex", categories=["f", "m"], columns=["x"], unit="who", max_contributions=3, **BUDGET, **BOX
        )

    mine = pd.DataFrame({"who": 10_000, "sex": ["f", "m", "x"] * 3, "x": np.linspace(0, 10, 9)})
    fit(frame)  # compiled loops are loaded once
    report = replay(fit, [Pair("a person of nine records", frame, pd.concat([frame, mine]))])
    assert report.passed
    assert 0.3 < report.largest_ratio <= 1


def test_units_that_cannot_be():
    frame = visits_of_people(20)
    with pytest.raises(TypeError, match="all be names"):
        seeded(frame, "sex", categories=["f"], columns=["x"], unit=np.arange(20))
    with pytest.raises(ValueError, match="different columns"):
        seeded(frame, "sex", categories=["f"], columns=["x"], unit="sex")
    with pytest.raises(ValueError, match="is given as unit"):
        seeded(frame, "sex", categories=["f"], columns=["x", "who"], unit="who")
    with pytest.raises(ValueError, match="one entry for each record"):
        seeded(np.ones((3, 1)), ["f"] * 3, categories=["f"], unit=[1, 2])


def test_one_range_serves_all_columns():
    x, sex = people()
    two = private_strata(np.column_stack([x, x]), sex, categories=["f"], **BUDGET, **BOX)
    assert two.spec.d == 2


def test_a_failing_pass_says_nothing(monkeypatch):
    def fail(*args):
        raise ValueError("record 17 is odd")

    monkeypatch.setattr(strata_counts.StrataCounts, "add", fail)
    with pytest.raises(ReleaseFailed) as caught:
        private_strata(*people(), categories=["f"], **BUDGET, **BOX)
    assert "odd" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_ledger_pays_for_all_strata_as_for_one(tmp_path):
    x, sex = people(500)
    with Ledger.create(
        tmp_path / "budget", dataset="people", epsilon=1.0, delta=1e-6, high_water=tmp_path / "marks"
    ) as ledger:
        first = private_strata(x, sex, categories=["f", "m"], **BUDGET, **BOX, ledger=ledger)
        again = private_strata(x[:3], sex[:3], categories=["f", "m"], **BUDGET, **BOX, ledger=ledger)
        assert again == first
        assert first.receipt["commit"] == again.receipt["commit"]
        assert first["f"].receipt == first.receipt
        assert Strata.from_bytes(first.to_bytes()) == first
        with pytest.raises(LedgerRefused):  # the budget of one release is spent
            private_strata(x, sex, categories=["f"], **BUDGET, **BOX, ledger=ledger)


# -- privacy -------------------------------------------------------------------------------------------------


def pairs(relation, c=1):
    """Neighbours whose person changes the label, the value, both, or is odd altogether."""
    x, sex = people(60)
    crowd = [(float(value), str(label), 1.0) for value, label in zip(x, sex, strict=True)]
    odd = [
        (5.0, "f", 1.0),
        (5.0, "m", 2.0),
        (np.nan, "f", 1.0),
        (5.0, "nowhere", 1.0),
        (0.0, None, 1.0),
        (10.0, "f", 1e9),
        (10.0, "m", -1.0),
        (3.0, "f", np.nan),
        (1e300, "m", np.inf),
        (0.0, "f", np.inf),
    ]
    for (i, one), (j, two) in itertools.product(enumerate(odd), repeat=2):
        if i < j:
            before = crowd if relation == "add-remove" else [*crowd, *([one] * c)]
            yield Pair(f"{i} and {j}", before, [*crowd, *([two] * c)], relation)


def release_of(relation, c=1, **options):
    def release(rows):
        values, labels, weights = (list(column) for column in zip(*rows, strict=True))
        extra = {"weights": np.array(weights), "weight_bound": 2.0} if options.get("weighted") else {}
        return private_strata(
            values,
            labels,
            categories=["f", "m"],
            neighbours=relation,
            max_contributions=c,
            **BUDGET,
            **BOX,
            **extra,
        )

    return release


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [1, 2])
def test_replay_of_people_who_change(relation, weighted, c):
    report = replay(release_of(relation, c, weighted=weighted), list(pairs(relation, c))[::2])
    assert report.passed, str(report)
    assert 0.99 < report.largest_ratio <= 1
    assert {pair.calls for pair in report.pairs} == {1}


def broken(relation, **options):
    return not replay(release_of(relation, **options), list(pairs(relation))[::3], until_failure=True).passed


def test_mutants_fail(monkeypatch):
    real = strata_module.strata_sensitivity
    with monkeypatch.context() as patch:  # gap 10: only one stratum pays under replace
        patch.setattr(strata_module, "strata_sensitivity", lambda spec, k, relation, c: real(spec, k, "add-remove", c))
        assert not broken("add-remove")
        assert broken("replace")
    with monkeypatch.context() as patch:
        patch.setattr(strata_module, "strata_sensitivity", lambda *args: real(*args) / 2)
        assert broken("add-remove")
    with monkeypatch.context() as patch:  # weights that are not cut at their bound
        patch.setattr(strata_counts, "weight_parts", lambda w, bound: np.nan_to_num(w / bound * 1024).astype(np.int64))
        assert broken("add-remove", weighted=True)


def test_the_category_of_a_record_is_not_told():
    """A record moves from one small category to another; the counts do not tell beyond the claim."""
    x, sex = people(200)
    crowd = [(float(v), str(s), 1.0) for v, s in zip(x, sex, strict=True)]
    before, after = [*crowd, (5.0, "f", 1.0)], [*crowd, (5.0, "m", 1.0)]
    seeds = itertools.count()

    def release(rows):
        with seeded_noise(next(seeds)):
            return release_of("replace")(rows)

    claim = release(before).guarantee
    score = {
        "counts": lambda found: found["m"].coefficients[0].real - found["f"].coefficients[0].real,
        "density": lambda found: float((found["m"].pdf([[5.0]]) - found["f"].pdf([[5.0]]))[0]),
    }
    report = attack(release, before, after, claim=claim, score=score, runs=150)
    assert not report.broken
    exact = lambda rows: sum(label == "m" for _, label, _ in rows)  # noqa: E731
    assert attack(exact, before, after, claim=claim, score=float, runs=150).broken
    assert claim.epsilon == 1.0
    assert math.isclose(claim.delta, 1e-6)


def test_long_names_fit_into_a_ledger(tmp_path):
    names = [f"{i:03d}" + "\U0001f33f" * 197 for i in range(60)]  # none of which is in the data
    with Ledger.create(
        tmp_path / "budget", dataset="people", epsilon=1.0, delta=1e-6, high_water=tmp_path / "marks"
    ) as ledger:
        strata = private_strata(*people(50), categories=names, **BUDGET, **BOX, ledger=ledger)
    assert list(strata) == [*names, "other"]


def test_columns_that_are_not_there_are_named():
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    labels = ["f"]
    with pytest.raises(ValueError, match=r"columns: there is no column 'c'"):
        private_strata(frame, labels, categories=["f"], columns=["c"], **BUDGET, **BOX)
    with pytest.raises(TypeError, match="columns: an array has no names"):
        private_strata(np.zeros((1, 1)), labels, categories=["f"], columns=["c"], **BUDGET, **BOX)
