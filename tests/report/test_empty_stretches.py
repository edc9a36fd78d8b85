"""Stretches in which hardly anyone is: few, long, and never the whole range."""

import numpy as np
import pytest

from fogline.density.posterior.estimates import Band, Estimate
from fogline.report.density import _empty

pytestmark = pytest.mark.quick


class Margin:
    """A column of which only the share of a stretch is asked for."""

    def probability(self, box):
        return Estimate(0.0, 0.0, 0.0, 0.0, 0.95, "population", 0.0, 0.0, 0.0)


@pytest.mark.parametrize("points", [32, 42, 64, 256])
def test_a_coarse_curve_with_empty_ends_has_no_stretch_that_is_all_of_it(points):
    """With few cells what adjoins two stretches is everything, and nothing is left to be a third one."""
    x = (np.arange(points) + 0.5) * 125 / points
    value = np.where((x > 18) & (x < 95), 1 / 77, 1e-6)
    band = Band(x=x, value=value, low=value, high=value, pointwise_low=value, pointwise_high=value, level=0.95)
    found = [(low, high) for low, high, _ in _empty(Margin(), band, (0.0, 125.0))]
    assert (0.0, 125.0) not in found
    assert found
    for low, high in found:
        assert value[(x > low) & (x < high)].max() < 1e-3
