"""Risk in plain numbers: against attacks that are carried out, and against what the closed forms must satisfy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fogline.accounting import Guarantee, IntegralGuarantee, Risk
from fogline.accounting.risk import BEFORE, success_after

pytestmark = pytest.mark.quick

LEVELS = st.floats(1e-6, 1 - 1e-6)


def promised(neighbours="add-remove", **options):
    facts = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "Gaussian noise", "proof": "gaussian-noise", **options}
    return Guarantee.certified_release(neighbours=neighbours, **facts)


GAUSSIAN = {"rho": 0.02831, "gaussian": True}


@settings(max_examples=200, deadline=None)
@given(LEVELS, st.floats(1e-3, 5.0))
def test_zcdp_and_the_curve_bound_gaussian_noise(p, mu):
    exact = norm.cdf(norm.ppf(p) + mu)
    assert success_after(p, mu=mu) == pytest.approx(exact, abs=1e-9)
    assert exact <= success_after(p, rho=mu**2 / 2) + 1e-9
    assert success_after(p, mu=mu, rho=mu**2 / 2) <= success_after(p, rho=mu**2 / 2)


@settings(max_examples=200, deadline=None)
@given(LEVELS, st.floats(0.01, 8.0))
def test_randomised_response_reaches_what_pure_epsilon_allows(p, epsilon):
    """Its best test at level p, in closed form: the bound is reached, and not exceeded."""
    low = 1 / (1 + math.exp(epsilon))
    power = math.exp(epsilon) * p if p <= low else 1 - math.exp(-epsilon) * (1 - p)
    assert success_after(p, epsilon=epsilon) == pytest.approx(power, abs=1e-9)
    assert power <= success_after(p, rho=epsilon**2 / 2) + 1e-9


@pytest.mark.parametrize("values", [2, 10, 100])
def test_a_guess_about_a_record_stays_below(values):
    """A secret with `values` equally likely values, each moving the sums by a step in a direction of its own."""
    rng, mu, runs = np.random.default_rng(values), 0.8, 20_000
    secret = rng.integers(values, size=runs)
    seen = rng.normal(size=(runs, values))
    seen[np.arange(runs), secret] += mu
    right = float(np.mean(seen.argmax(axis=1) == secret))
    assert right <= success_after(1 / values, mu=mu) + 4 * math.sqrt(0.25 / runs)
    opposite = np.mean((rng.normal(size=runs) + np.where(secret % 2, mu, -mu) > 0) == secret % 2)
    if values == 2:  # two values at twice the step reach it
        assert float(opposite) == pytest.approx(success_after(0.5, mu=mu), abs=0.015)


def test_presence_and_content_of_a_release():
    found = promised(**GAUSSIAN).risk(0.1)
    mu = math.sqrt(2 * GAUSSIAN["rho"])
    assert isinstance(found, Risk)
    assert found.content == found.presence == pytest.approx(norm.cdf(norm.ppf(0.1) + mu), rel=1e-6)
    assert found.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-6)
    hidden = promised("replace", **GAUSSIAN).risk(0.1)
    assert (hidden.presence, hidden.advantage, hidden.content) == (None, None, found.content)


def test_more_is_known_the_less_is_risked():
    whole, rho, plain = (promised(**options).risk(0.01) for options in (GAUSSIAN, {"rho": GAUSSIAN["rho"]}, {}))
    assert whole.content < rho.content < plain.content
    assert whole.advantage < rho.advantage < plain.advantage


@pytest.mark.parametrize("options", [GAUSSIAN, {"rho": 0.028}, {}, {"delta": 0.0}])
def test_a_person_with_more_records_is_at_more_risk(options):
    risks = [promised(**options, max_contributions=2, unit="person").risk(0.1, records=n) for n in (1, 2, 3, 4, 40)]
    assert risks[0].content == risks[1].content < risks[2].content == risks[3].content < risks[4].content
    assert [risk.records for risk in risks] == [1, 2, 3, 4, 40]
    assert promised(**options).risk(0.1, records=10_000).content == 1.0


def test_group_privacy_of_gaussian_noise():
    assert promised(**GAUSSIAN).risk(0.2, records=3).content == pytest.approx(
        norm.cdf(norm.ppf(0.2) + 3 * math.sqrt(2 * GAUSSIAN["rho"])), rel=1e-6
    )


def test_a_rho_near_nothing_tells_nothing():
    found = promised(epsilon=0.0, rho=1e-12).risk(0.5, records=2)
    assert 0.5 <= found.content < 0.50001


def test_it_is_said_in_plain_words():
    told = promised(**GAUSSIAN).explain()
    for before, risk in [(before, promised(**GAUSSIAN).risk(before)) for before in BEFORE]:
        assert (
            f"right with {100 * before:g}% before is right with at most" in told or f" {100 * before:g}% before" in told
        )
        shown = [float(word.rstrip("%")) for word in told.replace(",", " ").split() if word.rstrip(".").endswith("%")]
        assert any(100 * risk.content <= value <= 100 * risk.content * 1.006 for value in shown)
    assert "more of those who are than of those who are not" in told
    assert "more of those" not in promised("replace", **GAUSSIAN).explain()
    assert "in numbers" not in IntegralGuarantee.of(0.5, draws=2, mechanism="MBDE", proof="sampler").explain().lower()


@pytest.mark.parametrize(
    ("before", "records", "match"), [(0.0, None, "before"), (1.0, None, "before"), (0.1, 0, "records")]
)
def test_bad_input_names_its_parameter(before, records, match):
    with pytest.raises(ValueError, match=match):
        promised().risk(before, records=records)


def test_gaussian_guarantees_need_a_rho_and_an_epsilon():
    with pytest.raises(ValueError, match="must have a rho"):
        promised(gaussian=True)
    with pytest.raises(TypeError, match="epsilon must be given"):
        promised(epsilon=None, rho=0.1, gaussian=True)
    kept = promised(**GAUSSIAN)
    assert Guarantee.from_dict(kept.to_dict()) == kept
    assert kept.to_dict()["gaussian"] is True
    assert "gaussian" not in promised().to_dict()
    assert "mu = 0.238" in str(kept)
    assert promised().mu is None
    with pytest.raises(TypeError, match="true or false"):
        Guarantee.from_dict({**kept.to_dict(), "gaussian": 1})
