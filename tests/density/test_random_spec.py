"""The public side of random features: frequencies, weights, bandwidths, agreement."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.density import random_spec
from fogline.density.random_spec import (
    COORDINATE_BITS,
    FEWEST,
    MAX_AXES,
    MAX_FREQUENCIES,
    MOST,
    RandomSpec,
    plan_spec,
    spec_from_dict,
    standard_frequencies,
)
from fogline.density.spec import COUNT_WEIGHT, SketchSpec

BOX = [(0.0, 10.0)] * 5


def kernel(spec, bandwidth, differences):
    """The kernel that a reading makes, in multiples of its height."""
    return np.cos(differences @ spec.angular.T) @ spec.importance(np.asarray(bandwidth))


# -- which features ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "features", "kind"),
    [
        (1, "auto", SketchSpec),
        (3, "auto", SketchSpec),
        (4, "auto", RandomSpec),
        (2, "grid", SketchSpec),
        (2, "random", RandomSpec),
        (2, 700, RandomSpec),
        (6, np.int64(700), RandomSpec),
    ],
)
def test_the_grid_serves_up_to_three_axes_and_features_overrides(d, features, kind):
    spec = plan_spec([(0, 1)] * d, features=features)
    assert isinstance(spec, kind)
    if not isinstance(features, str):
        assert spec.n_features == 700


@pytest.mark.parametrize(
    ("features", "match"),
    [
        ("fourier", "features"),
        (None, "features"),
        (1.5, "features"),
        (True, "features"),
        (0, "features"),
        (-3, "features"),
        (MAX_FREQUENCIES + 1, "features"),
        ("grid", "5 axes"),
    ],
)
def test_wrong_features_are_named(features, match):
    with pytest.raises(ValueError, match=match):
        plan_spec(BOX, features=features)


def test_too_many_axes_are_told_to_project():
    with pytest.raises(ValueError, match="project"):
        plan_spec([(0, 1)] * (MAX_AXES + 1))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"bounds": None}, "bounds"),
        ({"bounds": [(0, 1)] * 3 + [(2, 1)]}, "bounds"),
        ({"bounds": [(0, 1e-4)] * 128}, "bounds"),
        ({"bounds": BOX, "bandwidths": "best"}, "bandwidths"),
        ({"bounds": BOX, "bandwidths": []}, "bandwidths"),
        ({"bounds": BOX, "bandwidths": -0.1}, "bandwidths"),
        ({"bounds": BOX, "bandwidths": [[1, 1]]}, "bandwidths"),
        ({"bounds": BOX, "bandwidths": [[1] * 5, [2, 1, 1, 1, 1]]}, "bandwidths"),
        ({"bounds": BOX, "bandwidths": 1e-6}, "bandwidths are too small"),
        ({"bounds": BOX, "bandwidths": [0.1, 0.2], "shares": [1.0]}, "shares"),
        ({"bounds": BOX, "steps": [1]}, "steps"),
    ],
)
def test_bad_wishes_name_their_parameter(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        plan_spec(**options)


# -- frequencies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "d"), [(64, 4), (100, 7), (33, 50)])
def test_blocks_of_frequencies_are_orthogonal(size, d):
    frequencies = standard_frequencies(size, d, 5)
    assert frequencies.shape == (size, d)
    block = frequencies[: min(size, d)]
    lengths = np.linalg.norm(block, axis=1)
    assert np.allclose(block @ block.T, np.diag(lengths**2), atol=1e-9)


def test_frequencies_are_standard_normal():
    frequencies = standard_frequencies(40_000, 5, 1)
    covariance = np.cov(frequencies.T)
    assert np.abs(frequencies.mean(axis=0)).max() < 0.03
    assert np.abs(covariance - np.eye(5)).max() < 0.04
    assert np.abs((frequencies**4).mean(axis=0) - 3).max() < 0.2


def test_the_same_frequencies_everywhere():
    """Integers that were written down once: another machine or library must come to the same."""
    spec = RandomSpec.plan([(0, 1)] * 4, 0.2, n_features=16, seed=3)
    assert spec.digest == "4fff9f024f2664145e63c42028c51e76"


def test_quotas_follow_the_shares():
    spec = RandomSpec.plan(BOX, [0.1, 0.2], shares=[0.3, 0.7], n_features=1001)
    assert spec.quotas.tolist() == [300, 701]
    assert spec.quotas.sum() == len(spec.frequencies)


def test_weights_are_those_of_a_unit_vector_with_a_floor_for_the_count():
    spec = plan_spec(BOX)
    assert spec.feature_weights.sum() == pytest.approx(1, abs=1e-12)
    assert spec.feature_weights[0] == pytest.approx(COUNT_WEIGHT, rel=1e-4)
    assert spec.squared_norm == spec.count_unit**2 + spec.n_features * random_spec.UNIT**2


def test_phases_stay_exact():
    for d, bandwidth in ((4, 0.01), (20, 0.05), (128, 0.3)):
        spec = plan_spec([(0, 1)] * d, bandwidth, features=256)
        assert np.abs(spec.frequencies).sum(axis=1).max() * 2 ** (COORDINATE_BITS - 1) < 2**31


# -- kernel and bandwidths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 4, 10, 30])
def test_every_readable_bandwidth_reads_the_gaussian_kernel(d):
    spec = plan_spec([(0, 1)] * d, features=4096)
    rng = np.random.default_rng(d)
    low, high = spec.readable
    for h in np.geomspace(low, high, 5):
        differences = rng.normal(size=(200, d)) * h * rng.uniform(0, 3, size=(200, 1)) / np.sqrt(d)
        truth = np.exp(-0.5 * np.sum((differences / h) ** 2, axis=1))
        sd = np.sqrt(np.sum(spec.importance(h) ** 2) / 2)
        errors = kernel(spec, h, differences) - truth
        assert np.abs(errors).max() < 5 * sd
        assert np.sqrt(np.mean(errors**2)) < 1.3 * sd
    assert kernel(spec, h, np.zeros((1, d))) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("d", [4, 8, 20, 64])
def test_automatic_bandwidths_leave_no_gap(d):
    spec = plan_spec([(0, 1)] * d)
    planned = [float(np.sum(spec.importance(h) ** 2)) * spec.n_features for h in spec.planned]
    between = [
        float(np.sum(spec.importance(h) ** 2)) * spec.n_features for h in np.sqrt(spec.planned[1:] * spec.planned[:-1])
    ]
    assert max(between) < max(planned)
    for inflation, share in zip(planned, spec.shares, strict=True):
        assert inflation < 1.3 / share
    assert spec.planned[0, 0] >= 0.03
    assert spec.planned[-1, 0] <= 0.7


def test_bandwidths_far_apart_are_bridged():
    spec = plan_spec(BOX, [0.08, 0.4])
    assert len(spec.planned) > 3
    assert spec.planned[0] == pytest.approx([0.8] * 5)
    assert spec.planned[-1] == pytest.approx([4.0] * 5)
    assert sum(spec.shares) == pytest.approx(1)


def test_bandwidths_of_each_axis():
    h = [0.5, 1.0, 2.0, 1.5, 3.0]
    spec = plan_spec(BOX, [h])
    assert spec.planned.tolist() == [h]
    spread = np.sqrt(np.mean(spec.angular**2, axis=0))
    assert spread * np.array(h) == pytest.approx(np.ones(5), rel=0.05)


def test_steps_lift_bandwidths_that_are_too_fine():
    assert plan_spec(BOX, 0.05, [1] * 5).planned.min() == pytest.approx(0.75)


def test_readable_bandwidths():
    spec = plan_spec(BOX)
    low, high = spec.readable
    for h in (low, high, spec.planned[0]):
        spec.require_readable(h)
    for h in (0.9 * low, 1.1 * high):
        with pytest.raises(ValueError, match="h_now"):
            spec.require_readable(h, name="h_now")


def test_the_number_of_features_grows_with_the_task():
    sizes = [plan_spec([(0, 1)] * d, 0.25).n_features for d in (4, 8, 32)]
    assert sizes == sorted(sizes)
    assert FEWEST <= sizes[0] < sizes[-1] <= MOST
    assert plan_spec(BOX, 0.6).n_features < plan_spec(BOX, 0.05).n_features


# -- agreement --------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    d=st.integers(1, 9),
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    bandwidth=st.floats(0.05, 0.9),
    size=st.integers(1, 300),
)
def test_a_specification_survives_json_and_pickle(d, low, width, bandwidth, size):
    spec = plan_spec([(low, low + width)] * d, bandwidth, features=size)
    again = spec_from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec == pickle.loads(pickle.dumps(spec))
    assert np.array_equal(again.frequencies, spec.frequencies)


def test_a_pickle_holds_fields_alone():
    spec = plan_spec(BOX)
    before = pickle.dumps(dataclasses.replace(spec))
    assert spec.digest
    assert pickle.dumps(spec) == before


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("features", {"features": "grid"}),
        ("bounds", {"bounds": [(0, 11)] * 2}),
        ("scales", {"bandwidths": 0.3}),
        ("n_features", {"features": 600}),
    ],
)
def test_unlike_specifications_name_the_field(field, change):
    given = {"bounds": [(0, 10)] * 2, "bandwidths": 0.2, "features": 512}
    mine = plan_spec(**given)
    with pytest.raises(ValueError, match=field):
        mine.require_same(plan_spec(**(given | change)))
    mine.require_same(plan_spec(**given))


def test_another_seed_is_another_specification():
    with pytest.raises(ValueError, match="seed"):
        RandomSpec.plan(BOX, seed=1).require_same(RandomSpec.plan(BOX, seed=2))


def test_a_machine_that_draws_other_frequencies_refuses(monkeypatch):
    spec = RandomSpec.plan(BOX, 0.2, n_features=64)
    saved = spec.to_dict()
    honest = random_spec.standard_frequencies
    monkeypatch.setattr(random_spec, "standard_frequencies", lambda *given: honest(*given) * (1 + 1e-3))
    with pytest.raises(ValueError, match="digest"):
        spec_from_dict(saved)
    with pytest.raises(ValueError, match="digest"):
        spec.require_same(dataclasses.replace(spec))


def test_features_of_an_unknown_kind_are_refused():
    with pytest.raises(ValueError, match="wavelets"):
        spec_from_dict(plan_spec(BOX).to_dict() | {"features": "wavelets"})
