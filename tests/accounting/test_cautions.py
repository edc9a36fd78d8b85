"""Budgets that promise little: warned of once per fit, before anything is spent, and said wherever they are shown."""

import warnings

import numpy as np
import pytest

from fogline import DensitySketch, IntegralSampler, Ledger, PrivacyWarning, PrivateModes, private_bounds, private_strata
from fogline.accounting import Guarantee, IntegralBudget
from fogline.accounting.cautions import budget_cautions, delta_caution, release_cautions
from fogline.accounting.guarantee import IntegralGuarantee

X = np.random.default_rng(0).normal(5.0, 1.0, size=(3000, 1))
BOX = [(0.0, 10.0)]
BASE = {"neighbours": "add-remove", "mechanism": "m", "proof": "a.proof.md"}


def caught(release):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = release()
    assert all(warning.category is PrivacyWarning for warning in found)
    return result, found


RELEASES = {
    "modes": lambda **budget: PrivateModes(bounds=BOX, **budget).fit(X),
    "sketch": lambda **budget: DensitySketch(BOX).update(X).release(**budget),
    "strata": lambda **budget: private_strata(X, ["a"] * len(X), categories=["a"], bounds=BOX, **budget),
    "bounds": lambda **budget: private_bounds(X, **budget),
}


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [
        (10.0, 1e-5, []),
        (10.5, 1e-5, ["epsilon = 10.5 is above 10"]),
        (1.0, 0.01, ["delta = 0.01 is above 0.001"]),
        (20.0, 0.01, ["epsilon = 20 is above 10", "delta = 0.01 is above 0.001"]),
    ],
)
def test_each_is_said_once_per_release(name, epsilon, delta, words):
    _, found = caught(lambda: RELEASES[name](epsilon=epsilon, delta=delta))
    assert [str(warning.message).partition(":")[0] for warning in found] == words


@pytest.mark.parametrize("name", ["modes", "strata", "bounds"])
def test_delta_above_one_over_the_released_count(name):
    result, found = caught(lambda: RELEASES[name](epsilon=1.0, delta=9e-4))
    (warning,) = found
    assert str(warning.message).startswith("delta = 0.0009 is above 1/")
    message = result.message_ if name == "modes" else result.message
    assert str(warning.message) in message


def test_the_warning_points_at_the_line_of_the_user():
    _, found = caught(lambda: RELEASES["modes"](epsilon=11.0, delta=1e-5))
    assert found[0].filename == __file__


def test_a_warning_that_is_an_error_costs_nothing(tmp_path):
    places = {"dataset": "d", "high_water": tmp_path / "marks"}
    sketch = DensitySketch(BOX).update(X)
    with Ledger.create(tmp_path / "books", epsilon=9.0, delta=1e-5, **places) as ledger:
        for release in (
            lambda: PrivateModes(epsilon=12.0, delta=1e-5, bounds=BOX, ledger=ledger).fit(X),
            lambda: private_bounds(X, epsilon=12.0, delta=1e-5, ledger=ledger),
            lambda: sketch.release(epsilon=12.0, delta=1e-5, ledger=ledger),
        ):
            with pytest.raises(PrivacyWarning, match="epsilon = 12"):  # the suite makes errors of warnings
                release()
        assert not any(entry.kind == "reserve" for entry in ledger.history())
    assert sketch.release(epsilon=1.0, delta=1e-5).guarantee.certified  # not yet claimed


def test_a_cap_that_promises_little_is_said_once_and_before_it_is_written(tmp_path):
    books, places = tmp_path / "books", {"high_water": tmp_path / "marks"}
    with pytest.raises(PrivacyWarning, match="epsilon = 20 is above 10"):  # the suite makes errors of warnings
        Ledger.create(books, dataset="d", epsilon=20.0, delta=1e-6, **places)
    assert not books.exists()
    ledger, found = caught(lambda: Ledger.create(books, dataset="d", epsilon=20.0, delta=0.01, **places))
    assert [str(warning.message).partition(":")[0] for warning in found] == [
        "epsilon = 20 is above 10",
        "delta = 0.01 is above 0.001",
    ]
    assert found[0].filename == __file__
    with ledger:
        for change in (
            lambda: ledger.add_dataset("e", epsilon=11.0, delta=0.0),
            lambda: ledger.set_cap(dataset="d", epsilon=12.0, delta=1e-6),
            lambda: ledger.add_analyst("ana", epsilon=13.0, delta=1e-6),
        ):
            assert len(caught(change)[1]) == 1
        assert caught(lambda: ledger.set_cap(dataset="d", epsilon=10.0, delta=1e-6))[1] == []


def test_draws_are_judged_together():
    def fit(draws):
        given = {"learner": "boosting", "schedule": "full", "rounds": 1, "training_draws": 20}
        return IntegralSampler(epsilon=1.0, max_samples=draws, **given).fit(X[:50])

    few, none = caught(lambda: fit(10))
    many, one = caught(lambda: fit(11))
    assert (few.message_, none) == ("", [])
    assert many.message_ == str(one[0].message)
    assert many.message_.startswith("epsilon = 11 is above 10")


def test_explanations_say_it_in_plain_words():
    modest = Guarantee.certified_release(epsilon=10.0, delta=1e-3, **BASE)
    loose = Guarantee.certified_release(epsilon=100.0, delta=0.01, **BASE)
    assert "Beware" not in modest.explain()
    assert "Beware: epsilon = 100 is above 10" in loose.explain()
    assert "delta = 0.01 is above 0.001" in loose.explain()
    assert "Beware: epsilon = 20" in IntegralGuarantee.of(1.0, draws=20, mechanism="m", proof="p.proof.md").explain()
    assert IntegralBudget(1.0).repeated(20).epsilon == 20.0


def test_words_at_the_limits():
    assert budget_cautions(10.0, 1e-3) == ()
    assert delta_caution(1e-5, 1e5) == ""
    assert "publishing one record drawn at random" in delta_caution(1e-5, 1.1e5)
    assert len(release_cautions(11.0, 0.01, 5000.0)) == 2  # of delta one sentence
    assert "1/5000" in release_cautions(11.0, 0.01, 5000.0)[1]
