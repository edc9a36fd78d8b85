"""Draws by rejection: the law, the clamp in integers, what the door sees, and what an attack can tell."""

import importlib
import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fogline.accounting import IntegralDrawEvent, IntegralGuarantee
from fogline.audit import attack, replay
from fogline.audit.neighbour_pairs import Pair
from fogline.audit.replay import RecordingProvider
from fogline.families.base_measures import NormalBase, ProductBase, UniformBase
from fogline.mechanisms.errors import ReleaseFailed
from fogline.mechanisms.mollified_draws import (
    COIN,
    FALLBACK,
    LOG_STEPS,
    check_drawable,
    least_threshold,
    log_width,
    mollified_draws,
    on_lattice,
    proposals_of,
    thresholds,
)
from fogline.mechanisms.randomness import use_provider
from fogline.testing import seeded_noise

MODULE = importlib.import_module("fogline.mechanisms.mollified_draws")  # its package has a function of that name
NORMAL = NormalBase([0.0], [[1.0]])
LINE = UniformBase([(0, 1)])


def logs(x):
    """A smooth secret, within [-1, 0]."""
    return -0.5 + 0.5 * np.sin(3 * x[:, 0])


# -- the clamp ----------------------------------------------------------------------------------------------------


@given(st.floats(1e-9, 16.0))
def test_the_least_threshold_is_just_above_the_bound(epsilon):
    with mpmath.workdps(60):
        exact = mpmath.exp(-mpmath.mpf(epsilon) / 2) * COIN
        assert exact <= least_threshold(epsilon) <= max(exact + 2, 1)


@given(st.floats(1e-6, 16.0), st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=20))
def test_any_two_acceptance_probabilities_differ_by_no_more_than_half_of_epsilon(epsilon, values):
    steps = on_lattice(np.array(values), log_width(epsilon))
    found = thresholds(steps, epsilon)
    assert found.max() <= COIN
    assert found.min() >= least_threshold(epsilon)
    assert Fraction(int(np.ptp(steps))) <= Fraction(epsilon) / 2 * LOG_STEPS
    wild = thresholds(np.array([-(2**62), 0, 2**62]), epsilon)  # the second clamp stands by itself
    assert wild.min() >= least_threshold(epsilon)
    assert wild.max() <= COIN


def test_proposals_depend_on_epsilon_alone_and_seldom_all_fail():
    for epsilon in (1e-9, 0.1, 1.0, 5.0, 16.0):
        missed = -math.expm1(-epsilon / 2)
        assert missed ** proposals_of(epsilon) <= FALLBACK * (1 + 1e-9)
    with pytest.raises(ValueError, match=r"epsilon=17\.5 per draw leaves no hope"):
        check_drawable(17.5)
    with pytest.raises(ValueError, match="epsilon"):
        mollified_draws(logs, NORMAL, size=1, epsilon=1000.0)


# -- the law ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [NORMAL, LINE, ProductBase([stats.expon()])], ids=["normal", "uniform", "expon"])
def test_draws_follow_the_density(base):
    """Kolmogorov and Smirnov, against the distribution function by quadrature over the base's quantiles."""
    even = base.points(((np.arange(40_000) + 0.5) / 40_000)[:, None])
    weights = np.cumsum(np.exp(np.clip(logs(even), -1.0, 0.0)))
    with seeded_noise(1):
        drawn = mollified_draws(logs, base, size=20_000, epsilon=2.0)[:, 0]
    cdf = lambda x: np.interp(x, even[:, 0], weights / weights[-1])  # noqa: E731
    assert stats.kstest(drawn, cdf).pvalue > 1e-3
    assert stats.kstest(drawn, lambda x: np.interp(x, even[:, 0], np.linspace(0, 1, 40_000))).pvalue < 1e-6


def test_constant_time_gives_the_same_draws():
    with seeded_noise(3):
        soon = mollified_draws(logs, NORMAL, size=500, epsilon=2.0)
    looked = []

    def counted(x):
        looked.append(len(x))
        return logs(x)

    with seeded_noise(3):
        late = mollified_draws(counted, NORMAL, size=500, epsilon=2.0, constant_time=True)
    assert (soon == late).all()
    assert sum(looked) == 500 * proposals_of(2.0)


def test_when_nothing_is_accepted_the_base_speaks(monkeypatch):
    """With one proposal a draw is a mixture, and its law is known: a + (1 - Z)."""
    monkeypatch.setattr(MODULE, "FALLBACK", 0.99)
    step = lambda x: np.where(x[:, 0] < 0.5, -9.0, 0.0)  # noqa: E731
    assert proposals_of(2.0) == 1
    with seeded_noise(5):
        drawn = mollified_draws(step, LINE, size=40_000, epsilon=2.0)[:, 0]
    c = math.exp(-1.0)
    expected = (1 + (1 - (1 + c) / 2)) / 2  # mass of the upper half: a = 1 there, Z = (1 + c)/2
    assert np.mean(drawn >= 0.5) == pytest.approx(expected, abs=0.01)
    assert expected / (1 - expected) < math.exp(1.0)


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"], ids=["least", "greatest"])
def test_the_ends_of_the_grid_are_no_ends_of_the_interval(byte):
    """The greatest of the uniform numbers must not round to 1, where a quantile may be infinite."""
    source = SimpleNamespace(bytes=lambda size: byte * size, certified=False)
    provider = SimpleNamespace(
        certified=False, answer=lambda _call, query, sample: (lambda f: f(query()))(sample(source))
    )
    with use_provider(provider):
        drawn = mollified_draws(logs, NORMAL, size=1, epsilon=1.0)
    assert 8 < abs(drawn.item()) < 9


def test_many_draws_come_in_batches_of_public_size():
    with use_provider(RecordingProvider()) as provider:
        drawn = mollified_draws(logs, NORMAL, size=500, epsilon=12.0)
    counts = [step.call.event for step in provider.steps]
    assert sum(event.count for event in counts) == len(drawn) == 500
    assert counts[0] == IntegralDrawEvent(12.0, 2**20 // proposals_of(12.0))


def test_a_failing_model_says_nothing():
    def bad(x):
        raise ValueError(f"secret {x[0]}")

    with pytest.raises(ReleaseFailed) as caught:
        mollified_draws(bad, NORMAL, size=1, epsilon=1.0)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


# -- audit --------------------------------------------------------------------------------------------------------


def released(shift):
    """Draws for data that say `shift`, as an audit sees them."""
    model = lambda x: 1e6 * (x[:, 0] - shift)  # noqa: E731
    drawn = mollified_draws(model, NORMAL, size=5, epsilon=1.0)
    proof = "mechanisms/mollified_draws.proof.md"
    reason = "the noise was recorded for an audit"
    return SimpleNamespace(
        draws=drawn, guarantee=IntegralGuarantee.of(1.0, draws=5, mechanism="draws", proof=proof, reason=reason)
    )


def test_replay_on_data_that_have_nothing_in_common():
    report = replay(released, [Pair("opposite", -1.0, 1.0), Pair("all and none", -50.0, 50.0)])
    assert report.passed, str(report)
    assert report.largest_ratio == 1.0


def test_without_a_clamp_the_audit_fails(monkeypatch):
    monkeypatch.setattr(MODULE, "on_lattice", lambda logs, _: np.rint(logs * LOG_STEPS).astype(np.int64))
    assert "declared sensitivity apart" in str(replay(released, [Pair("opposite", -1.0, 1.0)]))


def test_a_draw_too_many_is_unpaid(monkeypatch):
    monkeypatch.setattr(MODULE, "IntegralDrawEvent", lambda epsilon, size: IntegralDrawEvent(epsilon, 2 * size))
    assert "cost more" in str(replay(released, [Pair("opposite", -1.0, 1.0)]))


def attacked(epsilon=1.0, runs=6000):
    """Tell a model that sends all to the right from one that sends all to the left, by one draw."""
    claim = IntegralGuarantee.of(1.0, draws=1, mechanism="draws", proof="mechanisms/mollified_draws.proof.md")

    sides = {
        side: iter(mollified_draws(lambda x, side=side: side * 1e6 * x[:, 0], NORMAL, size=2 * runs, epsilon=epsilon))
        for side in (-1, 1)
    }
    return attack(
        lambda side: next(sides[side]), -1, 1, claim, score=lambda x: float(x[0] > 0), threshold=0.5, runs=runs
    )


def test_one_draw_does_not_tell_too_much():
    with seeded_noise(7):
        report = attacked()
    assert not report.broken
    assert report.epsilon_lower > 0.35  # endless runs would show 1/2: the normalisers of these two are alike


def test_one_draw_at_three_times_the_epsilon_does():
    with seeded_noise(7):
        assert attacked(epsilon=3.0).broken
