"""What the searches for roots do at the ends of what floats hold, and under libraries that round otherwise."""

import math
from fractions import Fraction

import pytest

from fogline.accounting import _rounding, zcdp
from fogline.accounting import divergences as divergence_noise
from fogline.accounting.costs import _costs
from fogline.accounting.events import GaussianEvent
from fogline.accounting.guarantee import Guarantee


@pytest.mark.parametrize("ulps", [-3, 0, 3])
def test_a_root_does_not_depend_on_how_the_library_rounds(monkeypatch, ulps):
    values = [Fraction(2), Fraction(9, 4), Fraction(1, 3), Fraction(10**40 + 1, 7)]
    expected = [_rounding.square_root_up(value) for value in values]

    class Otherwise:
        ldexp, nextafter, inf = math.ldexp, math.nextafter, math.inf

        @staticmethod
        def sqrt(value):
            root = math.sqrt(value)
            for _ in range(abs(ulps)):
                root = math.nextafter(root, math.copysign(math.inf, ulps))
            return root

    monkeypatch.setattr(_rounding, "math", Otherwise)
    assert [_rounding.square_root_up(value) for value in values] == expected


def test_rho_steps_down_until_the_round_trip_holds(monkeypatch):
    plain, real = zcdp.rho_of(1.0, 1e-5), zcdp.epsilon_of
    monkeypatch.setattr(zcdp, "epsilon_of", lambda rho, delta: real(rho, delta) * (1 + 1e-9))
    careful = zcdp.rho_of(1.0, 1e-5)
    assert careful < plain
    assert zcdp.epsilon_of(careful, 1e-5) <= 1.0
    assert careful == pytest.approx(plain, rel=1e-6)


def test_a_bracket_without_a_float_inside_is_the_root():
    above = math.nextafter(1.0, 2.0)
    assert zcdp._root(lambda t: t - 1.0, low=1.0, high=above) == above


def test_an_event_has_one_cost():
    with pytest.raises(ValueError, match="GaussianEvent has a cost already"):
        _costs(GaussianEvent)(lambda event: None)


def test_divergences_beyond_floats_are_infinite():
    assert divergence_noise.divergence_of(1.0, 1000.0) == math.inf
    assert divergence_noise.laplace_bound(1.0, 701.0) == math.inf
    assert divergence_noise.laplace_divergence(1.0, 701.0) == math.inf
    assert divergence_noise.laplace_bound(1.0, 600.0) < math.inf


def test_the_largest_safe_number_is_found_far_below_its_ceiling():
    for limit in (1e-7, 1e-100):
        found = divergence_noise._largest(lambda m, limit=limit: m <= limit, 1.0)
        assert limit * (1 - 1e-12) <= found <= limit
    assert 0.0 < divergence_noise._largest(lambda m: m <= 1e-170, 1e-167) <= 1e-170  # products of floats are zero there
    with pytest.raises(ValueError, match="epsilon is too small"):
        divergence_noise._largest(lambda m: False, 1.0)


def test_a_guarantee_of_nothing_says_zero():
    told = Guarantee.certified_release(
        rho=1e-300, delta=1e-5, neighbours="add-remove", mechanism="noise", proof="a.proof.md"
    )
    assert told.epsilon == 0.0
    assert "exp(0) = 1.00" in str(told)


def test_a_record_that_is_declared_is_said_to_be():
    plain, declared = (
        Guarantee.certified_release(
            epsilon=1.0, delta=1e-5, neighbours="add-remove", mechanism="noise", proof="a.proof.md", enforced=enforced
        )
        for enforced in (True, False)
    )
    assert "removing one record changes" in str(plain)
    assert "removing one record (as declared, not enforced) changes" in str(declared)
    assert "not checked" not in plain.explain()
    assert "stands in for another was declared by the data's owner and not checked" in declared.explain()
