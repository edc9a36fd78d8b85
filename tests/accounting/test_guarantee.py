"""A guarantee says what it means, and survives JSON."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.accounting import Guarantee
from fogline.accounting.zcdp import epsilon_of
from fogline.mechanisms.randomness import provider_reason
from fogline.testing import seeded_noise

BASE = {"delta": 1e-6, "neighbours": "add-remove", "mechanism": "discrete Gaussian", "proof": "a.proof.md"}


def test_epsilon_comes_from_rho():
    assert Guarantee.certified_release(rho=0.1, **BASE).epsilon == epsilon_of(0.1, 1e-6)


@given(
    st.floats(1e-6, 100),
    st.floats(0, 0.5),
    st.one_of(st.none(), st.floats(1e-9, 10)),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(1, 9),
    st.text(min_size=1),
)
def test_json_round_trip_is_lossless(epsilon, delta, rho, neighbours, contributions, reason):
    guarantee = Guarantee.uncertified(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbours=neighbours,
        max_contributions=contributions,
        reason=reason,
    )
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    assert str(guarantee).startswith("Not certified (")
    assert "NOT certified" in guarantee.explain()


def test_one_sentence_for_each_kind():
    record = str(Guarantee.certified_release(rho=0.1, **BASE))
    assert record.startswith("Certified: adding or removing one record")
    assert record.endswith(".")
    person = Guarantee.certified_release(rho=0.1, unit="person", max_contributions=3, **BASE)
    assert "one person (at most 3 records, as declared, not enforced)" in str(person)
    assert not person.enforced
    enforced = Guarantee.certified_release(rho=0.1, unit="person", max_contributions=1, enforced=True, **BASE)
    assert "one person (at most 1 record, enforced)" in str(enforced)
    pure = Guarantee.certified_release(epsilon=1.0, **{**BASE, "delta": 0.0, "neighbours": "replace"})
    assert "except with probability" not in str(pure)
    assert "replacing one record" in str(pure)
    assert "up to 4 records" in str(Guarantee.certified_release(rho=0.1, max_contributions=4, **BASE))


def test_odds_are_those_that_hold():
    """Presence is one step under add-remove, another content two: two noisy counts reach both bounds exactly."""
    epsilon, k = 1.0, np.arange(-20, 21)
    law = lambda shift: np.exp(-epsilon * np.abs(k - shift)) * (1 - np.exp(-epsilon)) / (1 + np.exp(-epsilon))  # noqa: E731
    first, second, none = (np.outer(law(a), law(b)) for a, b in ((1, 0), (0, 1), (0, 0)))
    assert (first / none).max() == pytest.approx(np.exp(epsilon))
    assert (first / second).max() == pytest.approx(np.exp(2 * epsilon))
    pure = {**BASE, "delta": 0.0}
    text = Guarantee.certified_release(epsilon=epsilon, **pure).explain()
    assert "odds that a given record is in the data by a factor of at most 2.72" in text
    assert "the odds between two guesses of what the data of that record are by at most 7.39" in text
    other = Guarantee.certified_release(epsilon=epsilon, **{**pure, "neighbours": "replace"}).explain()
    assert "odds between two guesses of what the data of a record are by a factor of at most 2.72" in other
    assert "odds" not in Guarantee.certified_release(rho=0.1, **BASE).explain()


def test_explanation_covers_what_is_and_is_not_promised():
    text = Guarantee.certified_release(rho=0.1, unit="person", max_contributions=2, **BASE).explain()
    for phrase in ("certified", "person", "times as likely", "at most", "not promised", "not checked", "1e-06"):
        assert phrase in text
    assert "without exception" in Guarantee.certified_release(epsilon=1.0, **{**BASE, "delta": 0.0}).explain()
    assert "more than 10^13" in str(Guarantee.certified_release(epsilon=99.0, **BASE))


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 2.3, 10.0, 29.0])
def test_printed_factor_is_an_upper_bound(epsilon):
    text = str(Guarantee.certified_release(epsilon=epsilon, **BASE))
    shown = float(text.split(" = ")[1].split(",")[0])
    assert math.exp(epsilon) * (1 - 1e-9) <= shown <= math.exp(epsilon) * 1.02


@given(st.floats(1e-12, 29.0))
def test_printed_epsilon_is_not_below_the_true_one(epsilon):
    text = str(Guarantee.certified_release(epsilon=epsilon, **BASE))
    shown = float(text.split("exp(")[1].split(")")[0])
    assert epsilon * (1 - 1e-8) <= shown <= epsilon * 1.011


def test_seeded_noise_is_never_certified():
    with seeded_noise(1):
        guarantee = Guarantee.certified_release(rho=0.1, reason=provider_reason(), **BASE)
    assert not guarantee.certified
    assert "seed" in guarantee.reason
    assert Guarantee.certified_release(rho=0.1, reason=provider_reason(), **BASE).certified


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": -1.0},
        {"epsilon": float("inf")},
        {"delta": 1.0},
        {"rho": 0.0},
        {"neighbours": "both"},
        {"unit": ""},
        {"max_contributions": 0},
        {"certified": True, "reason": "a gap"},
        {"certified": False, "reason": ""},
        {"proof": ""},
        {"certified": 1},
    ],
)
def test_contradictions_are_refused(change):
    fields = {**Guarantee.certified_release(rho=0.1, **BASE).to_dict(), **change}
    with pytest.raises((ValueError, TypeError)):
        Guarantee.from_dict(fields)


def test_unknown_fields_are_refused_and_rho_or_epsilon_is_needed():
    with pytest.raises(ValueError, match="exactly the fields"):
        Guarantee.from_dict({**Guarantee.certified_release(rho=0.1, **BASE).to_dict(), "extra": 1})
    with pytest.raises(TypeError, match="rho and epsilon"):
        Guarantee.certified_release(**BASE)


def test_a_rho_near_nothing_gives_epsilon_zero():
    assert Guarantee.certified_release(rho=1e-30, **BASE).epsilon == 0.0
