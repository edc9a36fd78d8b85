"""PrivateModes of more than three columns: found, private, honest about what it cannot see."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from fogline import PrivateModes
from fogline.audit import canary_pairs, replay
from fogline.datasets.simulated import Mixture
from fogline.planning.modes import expected_mode_error
from fogline.testing import seeded_noise

BOX = [(-8, 8)] * 5
TWO = Mixture.of([0.6, 0.4], [[-3.0] * 5, [3.0] * 5], [1.0, 1.0])


def planned(**changed):
    return PrivateModes(**{"epsilon": 1.0, "delta": 1e-5, "bounds": BOX, **changed})


@pytest.fixture(scope="module")
def found():
    with seeded_noise(0):
        return planned().fit(TWO.sample(5000, np.random.default_rng(0))[0])


def test_two_clusters_in_five_columns(found):
    assert found.modes_ == pytest.approx(TWO.centers, abs=0.25)
    assert found.n_features_in_ == 5
    assert np.all(found.standard_errors_ < 0.2)
    assert np.all(found.p_values_ < 0.01)
    assert np.all(np.linalg.eigvalsh(found.covariances_) > 0)
    assert found.covariances_ == pytest.approx(found.privacy_covariances_ + found.sampling_covariances_)
    assert found.message_ == ""
    assert "Gaussian noise" in found.guarantee_.mechanism


def test_errors_are_near_the_limit_of_sampling():
    X = TWO.sample(40_000, np.random.default_rng(1))[0]
    with seeded_noise(1):
        modes = planned().fit(X).modes_
    error = np.sqrt(np.mean(np.sum((modes - TWO.centers) ** 2, axis=1)))
    assert error < 2.5 * np.sqrt(np.mean(5 / (40_000 * TWO.weights)))


def test_the_release_answers_more_questions_for_free(found):
    density = found.density_
    assert density.modes(2).positions == pytest.approx(found.modes_, abs=0.2)
    drawn = density.sample(500, random_state=0)
    assert np.mean(drawn[:, 0] < 0) == pytest.approx(0.6, abs=0.12)
    with pytest.raises(ValueError, match="grid"):
        density.grid()


def test_a_pickle_holds_the_release_and_no_search(found):
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.modes_, found.modes_)
    assert again.density_ == found.density_
    assert len(pickle.dumps(found)) < 16 * found.density_.spec.n_coefficients + 2**16


def test_what_cannot_be_seen_says_what_it_needs():
    X = TWO.sample(200, np.random.default_rng(0))[0]
    with seeded_noise(0):
        nothing = planned().fit(X)
        some = planned(n_modes=2).fit(X)
    assert nothing.modes_.shape == (0, 5)
    assert nothing.covariances_.shape == (0, 5, 5)
    assert "times the epsilon" in nothing.message_
    assert "records" in nothing.message_
    assert len(some.modes_) == 2
    assert some.p_values_.max() > 0.05


def test_more_modes_than_there_are_peaks():
    with seeded_noise(0):
        model = planned(n_modes=400, bandwidth=0.3).fit(TWO.sample(5000, np.random.default_rng(0))[0])
    assert len(model.modes_) < 400
    assert f"only {len(model.modes_)} of 400 peaks" in model.message_


@pytest.mark.parametrize("rows", [np.zeros((0, 5)), np.full((3, 5), np.nan), np.full((3, 5), 99.0), np.zeros((1, 5))])
def test_any_table_is_fine(rows):
    with seeded_noise(0):
        model = planned(bandwidth=0.3).fit(rows)
    assert model.modes_.shape == (0, 5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bandwidth": 2.0}, "bandwidth"),
        ({"bandwidth": [1.0, 2.0]}, "bandwidth"),
        ({"level": 0.0}, "level"),
        ({"n_modes": 0}, "n_modes"),
        ({"bounds": [(0, 1)] * 4}, "columns"),
        ({"epsilon": 0.0}, "epsilon"),
    ],
)
def test_bad_input_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        planned(**changed).fit(np.zeros((10, 5)))


def test_expected_error_tells_what_a_fit_makes(found):
    expected = expected_mode_error(planned(), 5000, shape=TWO, epsilons=[0.02, 1.0], runs=1)
    assert expected.rows[0].detected.sum() < 2
    assert expected.rows[1].detected.tolist() == [1.0, 1.0]
    assert expected.rows[1].noise_scale == pytest.approx(found.density_.noise_scale, rel=1e-6)
    assert expected.rows[1].errors == pytest.approx(found.standard_errors_, rel=0.5)
    assert 0 < expected.rows[1].smallest_share < expected.rows[0].smallest_share <= 1


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_replay(relation):
    """The search reads released numbers only: on a neighbour, with the same answers, all is the same."""
    box = [(-8.0, 8.0)] * 4 + [(0.0, 3.0)]
    pairs = canary_pairs(box, neighbours=relation, n=30, block=None)
    chosen = [*pairs[::18], pairs[-1]]
    report = replay(planned(bounds=box, neighbours=relation, bandwidth=0.4, n_modes=1), chosen)
    assert report.passed, str(report)
    assert 0.4 < report.largest_ratio <= 1
    assert {pair.calls for pair in report.pairs} == {1}


def test_replay_with_the_defaults():
    pairs = canary_pairs(BOX, neighbours="add-remove", n=30, block=None)
    report = replay(planned(), pairs[:1])
    assert report.passed, str(report)
