"""Which noise suits one release, and which a year of them."""

import math

import gdp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.planning.noise import noise_choice

pytestmark = pytest.mark.quick


def test_one_release_and_a_year_of_them():
    once, weekly = (noise_choice(epsilon=1.0, delta=1e-6, releases=k) for k in (1, 52))
    assert once.laplace == pytest.approx(math.sqrt(2))
    assert once.gaussian == pytest.approx(1 / gdp.mu_of(1.0, 1e-6), rel=1e-3)
    assert once.gaussian < once.zcdp
    assert (once.best, weekly.best) == ("laplace", "gaussian")
    assert weekly.gaussian == pytest.approx(math.sqrt(52) * once.gaussian)
    assert weekly.laplace == pytest.approx(52 * once.laplace)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 5.0), st.sampled_from([1e-9, 1e-6, 1e-3]), st.floats(1.0, 40.0))
def test_the_turn_is_where_the_better_law_changes(epsilon, delta, l1):
    turn = noise_choice(epsilon=epsilon, delta=delta, l1=l1).turn
    after = noise_choice(epsilon=epsilon, delta=delta, l1=l1, releases=turn)
    assert after.gaussian <= after.laplace
    if turn > 1:
        before = noise_choice(epsilon=epsilon, delta=delta, l1=l1, releases=turn - 1)
        assert before.laplace <= before.gaussian * (1 + 1e-12)


def test_a_hierarchy_of_many_levels_is_for_gaussian_noise():
    assert noise_choice(epsilon=1.0, delta=1e-6, l1=3.0).best == "laplace"
    assert noise_choice(epsilon=1.0, delta=1e-6, l1=12.0).best == "gaussian"
    assert noise_choice(epsilon=1.0, delta=1e-6, l1=12.0, l2=12.0).best == "laplace"
    assert "from 1 release on" in str(noise_choice(epsilon=1.0, delta=1e-6, l1=12.0))


def test_where_the_curve_does_not_suit_it_is_zcdp():
    found = noise_choice(epsilon=1.0, delta=1e-17)
    assert found.gaussian == found.zcdp


@pytest.mark.parametrize(
    ("options", "match"),
    [({"releases": 0}, "releases"), ({"l1": 0.0}, "l1"), ({"l2": -1.0}, "l2"), ({"delta": 0.0}, "delta")],
)
def test_bad_input_names_its_parameter(options, match):
    with pytest.raises(ValueError, match=match):
        noise_choice(**{"epsilon": 1.0, "delta": 1e-6, **options})
