"""A specification from a file is checked like a plan: what no plan could have made is refused by name."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fogline.density.random_spec import COORDINATE_BITS, RandomSpec, plan_spec, spec_from_dict

RANDOM = RandomSpec(bounds=((0.0, 1.0),) * 4, scales=((0.1,) * 4,), shares=(1.0,), n_features=64, seed=1)
GRID = plan_spec([(0.0, 1.0)], [0.1, 0.2])
BAD_BOXES = [(0.0, math.nan), (-math.inf, math.inf), (-1e308, 1e308), (1.0, 0.0), (1.0, 1.0), (0.0, 5e-324)]


def as_file(spec, **changes):
    """Content of a file with other fields; that of random features with the digest that belongs to them."""
    return json.loads(json.dumps(dataclasses.replace(spec, **changes).to_dict()))


@pytest.mark.parametrize("bounds", BAD_BOXES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_bounds_are_named(bounds):
    for spec in (RANDOM, GRID):
        with pytest.raises(ValueError, match="bounds"):
            spec_from_dict(as_file(spec, bounds=(bounds,) * spec.d))


@pytest.mark.parametrize("scale", [1e-40, 5e-20, -0.1, 0.0, math.nan, math.inf, 1e300])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_scales_are_named(scale):
    with pytest.raises(ValueError, match="scales"):
        spec_from_dict(as_file(RANDOM, scales=((0.1, 0.1, 0.1, scale),)))
    with pytest.raises(ValueError, match="scales"):
        spec_from_dict(as_file(GRID, scales=((scale,),), shares=(1.0,)))


@pytest.mark.parametrize("shares", [(5.0,), (-1.0,), (math.nan,), (0.5, 0.5), ()])
def test_bad_shares_are_named(shares):
    for spec in (RANDOM, dataclasses.replace(GRID, scales=((0.1,),), shares=(1.0,))):
        saved = spec.to_dict() | {"shares": list(shares)}
        with pytest.raises(ValueError, match="shares"):
            spec_from_dict(saved)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"steps": [math.nan]}, "steps"),
        ({"steps": [-1.0]}, "steps"),
        ({"steps": []}, "steps"),
        ({"scales": []}, "scales"),
        ({"scales": [[0.1, 0.1], [0.2, 0.2]]}, "scales"),
        ({"scales": [[0.2], [0.1]]}, "scales"),
        ({"bounds": []}, "bounds"),
        ({"bounds": [[0.0, 1.0]] * 4, "scales": [[0.1] * 4, [0.2] * 4], "steps": [0.0] * 4}, "axes"),
    ],
)
def test_other_bad_fields_of_a_grid_are_named(changes, name):
    with pytest.raises(ValueError, match=name):
        spec_from_dict(GRID.to_dict() | changes)


@pytest.mark.parametrize(
    ("changes", "name"),
    [({"n_features": 0}, "n_features"), ({"n_features": 64.5}, "n_features"), ({"seed": -1}, "seed")],
)
def test_bad_counts_are_named(changes, name):
    with pytest.raises((TypeError, ValueError), match=name):
        spec_from_dict(RANDOM.to_dict() | changes)


@pytest.mark.parametrize("scale", [1e-9, 1e-12])
def test_frequencies_beyond_the_limit_do_not_wrap_round_it(scale):
    """Integers of the sum could wrap and look small; the doubles that they are made from cannot."""
    with pytest.raises(ValueError, match="too small"):
        spec_from_dict(as_file(RANDOM, scales=((scale,) * 4,)))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="too small"):
        dataclasses.replace(RANDOM, scales=((scale * 1e-30,) * 4,))._check_size()


@settings(max_examples=50, deadline=None)
@given(
    d=st.integers(1, 6),
    bandwidth=st.floats(1e-3, 1.0),
    low=st.floats(-1e6, 1e6),
    width=st.floats(1.0, 1e6),
    step=st.none() | st.floats(0.001, 0.9),
)
def test_every_plan_survives_its_file(d, bandwidth, low, width, step):
    bounds = [(low, low + width * (j + 1)) for j in range(d)]
    try:
        spec = plan_spec(
            bounds, bandwidth, None if step is None else [step * width] + [None] * (d - 1), features="auto"
        )
    except ValueError:
        reject()
    assert spec_from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    if isinstance(spec, RandomSpec):
        assert int(np.abs(spec.frequencies).sum(axis=1).max()) << (COORDINATE_BITS - 1) < 2**31
