"""Terms without a delta: what they promise and cost, and who may have them."""

import json
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline import PrivacyWarning, PrivateModes
from fogline.accounting import Cost, Guarantee, PureCost
from fogline.accounting.costs import RHO_UNITS, gaussian_release
from fogline.releases.terms import ReleaseTerms


def pure(epsilon=1.0, delta=None, neighbours="add-remove", c=1, **options):
    return ReleaseTerms.checked(epsilon, delta, neighbours, c, allow_pure=True, **options)


@pytest.mark.parametrize("delta", [None, 0, 0.0, -0.0, np.float32(0)])
def test_no_delta_is_pure_where_it_is_allowed(delta):
    terms = pure(0.1, delta)
    assert terms.pure
    assert terms.delta == 0.0
    assert terms.cost() == PureCost(Fraction(1, 10))
    assert terms.charge().cost == terms.cost()
    assert terms.question()["delta"] == 0.0


def test_a_delta_is_taken_where_pure_is_allowed():
    terms = pure(0.5, 1e-6)
    assert not terms.pure
    assert terms.cost() == ReleaseTerms.checked(0.5, 1e-6, "add-remove", 1).cost()
    assert terms.cost() == gaussian_release(0.5, 1e-6)
    with pytest.raises(RuntimeError, match="have a delta"):
        _ = terms.exact_epsilon


@given(st.floats(1e-15, 1e3))
def test_the_noise_uses_no_more_than_epsilon_and_whole_units(epsilon):
    exact = pure(epsilon).exact_epsilon
    assert 0 < exact <= Fraction(epsilon)
    assert exact >= Fraction(epsilon) - Fraction(1, RHO_UNITS)
    assert exact < Fraction(1, RHO_UNITS) or (exact * RHO_UNITS).denominator == 1


@pytest.mark.parametrize("delta", [None, 0, 0.0])
def test_gaussian_noise_demands_a_delta_and_says_so(delta):
    with pytest.raises((TypeError, ValueError), match=r"^delta must.*: discrete Gaussian noise needs it$"):
        ReleaseTerms.checked(1.0, delta, "add-remove", 1)
    with pytest.raises((TypeError, ValueError), match=r"^delta must.*: a stable histogram needs it$"):
        ReleaseTerms.checked(1.0, delta, "add-remove", 1, mechanism="a stable histogram")
    with pytest.raises((TypeError, ValueError), match=r"delta.*discrete Gaussian noise"):
        PrivateModes(epsilon=1.0, delta=delta, bounds=[(0, 1)], features="grid").fit([[0.5]] * 9)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, float("nan"), "0", False, [0]])
def test_deltas_that_make_no_sense(delta):
    with pytest.raises((TypeError, ValueError), match="delta"):
        pure(1.0, delta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), None, "1"])
def test_epsilons_that_make_no_sense(epsilon):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        pure(epsilon)


def test_a_budget_in_rho_is_not_pure():
    terms = ReleaseTerms.checked(None, None, "add-remove", 1, rho=0.125, allow_pure=True)
    assert not terms.pure
    assert terms.cost() == Cost(0.125)


def test_pure_terms_have_no_rho():
    with pytest.raises(RuntimeError, match="paid for in epsilon"):
        _ = pure().rho


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_guarantee_is_pure(neighbours):
    guarantee = pure(0.5, neighbours=neighbours, c=3).guarantee("laplace-noise")
    assert (guarantee.epsilon, guarantee.delta, guarantee.rho) == (0.5, 0.0, None)
    assert guarantee.certified
    assert "epsilon-DP (pure)" in str(guarantee)
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


def test_warnings_know_no_delta():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        pure(1.0).warn()
        pure(11.0).warn()
    assert [(warning.category, "delta" in str(warning.message)) for warning in found] == [(PrivacyWarning, False)]
