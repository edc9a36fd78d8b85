"""The released count speaks in every estimator, from released values alone; no word goes into a ledger's question."""

import pickle

import numpy as np
import pytest

from fogline import (
    DensitySketch,
    Ledger,
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
    one_cluster,
    private_bounds,
    private_strata,
)
from fogline.density.counted_records import count_words, is_nothing, release_message
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SPEND_MORE = ("times the epsilon", "more epsilon", "larger epsilon", "more records", "times the records")
LAW = {"family": "normal", "parameter_bounds": {"mu": (-5, 15), "sigma": (0.5, 6)}}

ESTIMATORS = {
    "modes": (lambda **o: PrivateModes(bounds=[(0, 10)], **BUDGET, **o), 1),
    "modes of 4 columns": (lambda **o: PrivateModes(bounds=[(0, 10)] * 4, **BUDGET, **o), 4),
    "clusters": (lambda **o: PrivateModeClustering(bounds=[(0, 10)] * 2, **BUDGET, **o), 2),
    "2 clusters": (lambda **o: PrivateModeClustering(bounds=[(0, 10)] * 2, n_clusters=2, **BUDGET, **o), 2),
    "clusters of 5 columns": (lambda **o: PrivateModeClustering(bounds=[(0, 10)] * 5, **BUDGET, **o), 5),
    "regression": (lambda **o: PrivateModalRegression(x_bounds=[(0, 10)], y_bounds=(0, 10), **BUDGET, **o), 2),
    "fit": (lambda **o: PrivateHellinger(**LAW, **BUDGET, **o), 1),
    "mixture": (lambda **o: PrivateGaussianMixture(n_components=2, radius=10.0, steps=1, **BUDGET, **o), 2),
}
MISTAKES = {
    "no rows": lambda d: np.empty((0, d)),
    "text": lambda d: np.full((500, d), np.nan),
    "8 rows": lambda d: np.random.default_rng(0).normal(5, 1, (8, d)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_hardly_a_record_is_said_and_no_advice_to_spend_more(name, mistake):
    make, d = ESTIMATORS[name]
    with seeded_noise(1):
        found = make().fit(MISTAKES[mistake](d))
    assert "the release counts " in found.message_
    assert "which may be none" in found.message_
    assert found.message_.endswith("right?")
    assert found.message_.count("the release counts") == 1
    assert not any(advice in found.message_ for advice in SPEND_MORE)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "mixture"])
def test_bounds_that_miss_the_data(name):
    make, d = ESTIMATORS[name]
    with seeded_noise(2):
        found = make().fit(np.random.default_rng(0).normal(5000, 1, (2000, d)))
    assert "which may be none" in found.message_
    assert not any(advice in found.message_ for advice in SPEND_MORE)


@pytest.mark.parametrize("name", ["modes", "clusters of 5 columns", "fit"])
def test_what_was_expected_is_compared(name):
    make, d = ESTIMATORS[name]
    X = np.random.default_rng(0).normal(5, 1, (3000, d))
    seen = {}
    for expect in (None, 3000, 90_000, 700):
        with seeded_noise(3):
            seen[expect] = make(expect_records=expect).fit(X).message_
    assert seen[None] == seen[3000]
    assert "of the 90000 records that you expect" in seen[90_000]
    assert "far more than the 700 that you expect" in seen[700]


@pytest.mark.parametrize("wrong", [0, 2.5])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_wrong_expectation_is_refused_before_anything_is_paid(name, wrong, tmp_path):
    make, d = ESTIMATORS[name]
    places = {"dataset": "d", "high_water": tmp_path / "marks"}
    with Ledger.create(tmp_path / "books", epsilon=2.0, delta=1e-6, **places) as ledger:
        with pytest.raises((TypeError, ValueError), match="expect_records"):
            make(expect_records=wrong, ledger=ledger).fit(np.zeros((9, d)))
        assert not any(entry.kind == "reserve" for entry in ledger.history())


@pytest.mark.parametrize("name", ["modes", "clusters", "clusters of 5 columns", "regression", "fit", "mixture"])
def test_an_expectation_is_no_part_of_the_question(name, tmp_path):
    make, d = ESTIMATORS[name]
    X = np.random.default_rng(0).normal(5, 1, (3000, d))
    places = {"dataset": "d", "high_water": tmp_path / "marks"}
    with Ledger.create(tmp_path / "books", epsilon=1.01, delta=1e-6, **places) as ledger:
        plain, told = (make(expect_records=expect, ledger=ledger).fit(X) for expect in (None, 100_000))
        assert sum(entry.kind == "reserve" for entry in ledger.history()) == 1
    assert "of the 100000" in told.message_
    assert "100000" not in plain.message_
    told.ledger = None
    assert pickle.loads(pickle.dumps(told)).message_ == told.message_


def test_functions_ask_a_ledger_the_same_question_too(tmp_path):
    X = np.random.default_rng(0).normal(5, 1, (2000, 1))
    places = {"dataset": "d", "high_water": tmp_path / "marks"}
    with Ledger.create(tmp_path / "books", epsilon=2.01, delta=1e-6, **places) as ledger:
        for expect in (None, 90_000):
            ranges = private_bounds(X, expect_records=expect, ledger=ledger, **BUDGET)
            strata = private_strata(X, bounds=[(0, 10)], expect_records=expect, ledger=ledger, **BUDGET)
        assert sum(entry.kind == "reserve" for entry in ledger.history()) == 2
    assert "of the 90000 records that you expect" in ranges.messages[0]
    assert "of the 90000 records that you expect" in strata.message
    assert pickle.loads(pickle.dumps(strata)).message == strata.message
    assert pickle.loads(pickle.dumps(strata)) == strata


def test_a_release_that_was_read_again_speaks_too():
    with seeded_noise(0):
        density = DensitySketch([(0, 10)]).update(np.full((30, 1), np.nan)).release(**BUDGET)
    assert "which may be none" in density.modes().message
    assert "which may be none" in PrivateModes().read(density).message_
    few = PrivateModes(expect_records=8).read(density).message_
    assert few.endswith("at this budget the 8 that you expect are no more than noise")
    assert few.count("the release counts") == 1


def test_wrong_category_names_are_asked_about():
    rng = np.random.default_rng(0)
    labels = rng.choice(["f", "m"], 3000)
    X = rng.normal(5, 1, (3000, 1))
    with seeded_noise(0):
        wrong = private_strata(X, labels, categories=["F", "M"], bounds=[(0, 10)], **BUDGET)
        right = private_strata(X, labels, categories=["f", "m"], bounds=[(0, 10)], **BUDGET)
        nothing = private_strata(X + 5000, labels, categories=["f", "m"], bounds=[(0, 10)], **BUDGET)
    assert right.message == ""  # none beside the categories is as it should be
    assert "no more records than noise in 'F'" in wrong.message
    assert "'M'" in wrong.message
    assert "check that these categories are spelled as in the data" in wrong.message
    assert abs(wrong.count - 3000) < 5 * wrong.count_sd
    assert nothing.message.endswith("are the decimal mark and the bounds right?")
    assert "spelled" not in nothing.message
    assert not any(advice in table.message for table in wrong.modes().values() for advice in SPEND_MORE)


def test_weights_are_no_records():
    X = np.ones((5, 1))
    with pytest.raises(ValueError, match="expect_records: with weights"):
        private_strata(X, weights=np.ones(5), weight_bound=2.0, bounds=[(0, 9)], expect_records=5, **BUDGET)


def test_a_descent_has_no_count_to_compare():
    with pytest.raises(ValueError, match="expect_records: method='newton' releases no count"):
        PrivateHellinger(**LAW, **BUDGET, method="newton", expect_records=50).fit(np.ones((50, 1)))


def test_bounds_of_a_column_that_is_no_number():
    with seeded_noise(4):
        found = private_bounds(np.column_stack([np.full(900, np.nan), np.full(900, 7.0)]), **BUDGET)
        few = private_bounds(np.full((150, 1), 3.0), epsilon=8.0, delta=1e-6)
    assert "which may be none: is the column numeric, is the decimal mark right?" in found.messages[0]
    assert not any(advice in found.messages[0] for advice in SPEND_MORE)
    assert found.messages[1] == ""
    assert abs(found.counts[1] - 900) < 5 * found.count_standard_errors[1]
    assert not few.messages[0] or "which may be none" not in few.messages[0]


def test_a_search_for_a_ball_gives_no_advice_on_nothing():
    with seeded_noise(0):
        found, _ = one_cluster(np.full((40, 2), np.nan), radius=10.0, radius_min=0.1, **BUDGET)
    assert not found
    assert "which may be none" in str(found)
    assert not any(advice in str(found) for advice in SPEND_MORE)


def test_the_words_follow_from_released_numbers():
    assert is_nothing(48.0, 16.0)
    assert not is_nothing(49.0, 16.0)
    assert count_words(49.0, 16.0) == ""
    assert count_words(15_950.0, 16.0, 20_000).endswith("are the bounds right?")
    assert count_words(15_960.0, 16.0, 20_000) == ""  # four fifths, within the noise
    assert "2808 ± 27 of the 5000" in count_words(2808.0, 27.0, 5000)  # thousands separators void the larger half
    assert count_words(40_040.0, 16.0, 20_000) == ""
    assert "repeated" in count_words(40_060.0, 16.0, 20_000)
    guarantee = DensitySketch([(0, 1)]).release(epsilon=1.0, delta=1e-6).guarantee
    plain = count_words(2.0, 16.0)
    assert release_message(f"nothing; {plain}", guarantee, 2.0, 16.0) == f"nothing; {plain}"
