"""MBDE as published: it learns, it says that it is not certified, and attacks show why (gap 8)."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from fogline.audit import attack
from fogline.families.base_measures import NormalBase, log_ratio_range
from fogline.queries.boosted_density import CLAMP
from fogline_research.as_published import mbde
from fogline_research.as_published.mbde import metropolis

TREE = DecisionTreeClassifier(max_depth=3)
CROWD = np.random.default_rng(0).normal(0.0, 0.3, (200, 1))
QUICK = {"learner": TREE, "training_draws": 200, "chains": 50, "burn_in": 50}


def test_it_learns_and_is_not_certified():
    found = mbde(CROWD + 1.5, epsilon=4.0, n_samples=2000, **QUICK, random_state=0)
    assert found.samples.shape == (2000, 1)
    assert found.samples.mean() > 0.3
    assert found.edges.shape == (3, 2)
    assert (found.edges > 0).all()
    assert not found.guarantee.certified
    for word in ("finite Metropolis chain", "log 2", "density is shown"):
        assert word in found.guarantee.reason
    assert found.guarantee.per_draw == 4.0


def test_the_same_seed_is_the_same_run():
    runs = [mbde(CROWD, epsilon=1.0, n_samples=20, **QUICK, random_state=3).samples for _ in range(2)]
    assert (runs[0] == runs[1]).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"rounds": 0}, "rounds"),
        ({"n_samples": 0}, "n_samples"),
        ({"start": "anywhere"}, "start"),
        ({"walk": 0.0}, "walk"),
        ({"thinning": 0}, "thinning"),
        ({"clamp": -1.0}, "clamp"),
        ({"training_draws": 1}, "training_draws"),
    ],
)
def test_mistakes_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        mbde(CROWD, **({"epsilon": 1.0, "n_samples": 5, **QUICK} | options))


def test_a_long_chain_comes_near_its_law():
    base = NormalBase([1.0, -1.0], [[1.0, 0.3], [0.3, 0.5]])
    rng = np.random.default_rng(0)
    drawn = metropolis(
        lambda x: np.zeros(len(x)), np.zeros((400, 2)), 4000, base=base, burn_in=400, thinning=20, rng=rng
    )
    assert stats.kstest(drawn[:, 0], stats.norm(1, 1).cdf).pvalue > 1e-3


# -- gap 8 --------------------------------------------------------------------------------------------------------


def test_without_a_clamp_the_density_leaves_the_mollifier():
    """The proof needs outputs within log 2; log-odds are not."""
    found = mbde(np.full((100, 1), 2.0), epsilon=1.0, n_samples=1, **QUICK, random_state=0)
    ratios = log_ratio_range(found.log_ratio, [(-4, 4)], cells=800)
    assert ratios.spread > 1.0  # members of the mollifier vary by at most epsilon
    kept = mbde(np.full((100, 1), 2.0), epsilon=1.0, n_samples=1, **QUICK, clamp=CLAMP, random_state=0)
    assert log_ratio_range(kept.log_ratio, [(-4, 4)], cells=800).spread <= 0.5


def chain_attack(runs, **options):
    """Look for a draw near the one record that lies far out; epsilon is claimed to be 0.1 for it."""
    odd = CROWD.copy()
    odd[0] = 6.0
    rng = np.random.default_rng(1)

    def release(X):
        return mbde(X, epsilon=0.1, n_samples=200, clamp=CLAMP, **options, random_state=rng)

    claim = release(CROWD).guarantee
    near = lambda found: float((np.abs(found.samples - 6.0) < 1.0).any())  # noqa: E731
    return attack(release, CROWD, odd, claim, score=near, threshold=0.5, runs=runs)


def test_a_chain_that_starts_at_records_publishes_one():
    """200 draws are claimed to cost 20 in all; even so the outlier can be told, as often as it is a start."""
    short = {"learner": DecisionTreeClassifier(max_depth=1), "training_draws": 20, "chains": 200, "burn_in": 0}
    report = chain_attack(60, **short, start="records", thinning=1, walk=0.1)
    best = max(report.witnesses, key=lambda witness: witness.epsilon_lower)
    assert best.hits_1 >= 25
    assert best.hits_0 == 0  # a draw of the base is there once in 10^7 times


def test_one_draw_near_the_start_breaks_the_claim_for_a_draw():
    """One record, one draw, epsilon = 0.1 claimed: the chain has not left the record yet."""
    rng = np.random.default_rng(2)
    options = {"learner": DecisionTreeClassifier(max_depth=1), "training_draws": 20, "rounds": 1, "burn_in": 20}

    def release(X):
        return mbde(
            X, epsilon=0.1, n_samples=1, clamp=CLAMP, start="records", thinning=1, walk=0.1, **options, random_state=rng
        )

    one, other = np.full((1, 1), 2.5), np.full((1, 1), -2.5)
    claim = release(one).guarantee
    event = lambda found: float(found.samples[0, 0] > 0)  # noqa: E731
    report = attack(release, other, one, claim, score=event, threshold=0.5, runs=60)
    assert report.broken
    assert report.epsilon_lower > 2.0
    assert math.isclose(report.epsilon, 0.1)
