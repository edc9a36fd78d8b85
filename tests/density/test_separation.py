"""Whether two fitted clusters are two, or one with a tail."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from fogline.density.components.pursuit import Features, number_of_groups

NOISE = 0.01


def features(points, seed=0):
    """Characteristic function of points in the plane, blurred by half a unit, with noise."""
    rng = np.random.default_rng(seed)
    frequencies = rng.normal(size=(300, 2))
    phases = frequencies @ points.T
    fading = np.exp(-0.125 * np.sum(frequencies**2, axis=1))
    cosines, sines = fading * np.cos(phases).mean(axis=1), fading * np.sin(phases).mean(axis=1)
    noise = NOISE * rng.normal(size=(2, 300))
    return Features(frequencies, cosines + noise[0], sines + noise[1], NOISE**2)


def groups(points, centres, seed=0):
    weights = np.full(len(centres), 1 / len(centres))
    return number_of_groups(features(points, seed), weights, np.array(centres), 0.3, level=0.05, worth=25.0)


@pytest.mark.parametrize("tail", [True, False])
def test_slopes_are_those_of_the_loss(tail):
    rng = np.random.default_rng(1)
    flat = rng.normal(size=1 + 3 + 6 + (3 if tail else 0))
    data = features(rng.normal(size=(5, 2)))
    error = check_grad(lambda p: data.loss(p, 3, tail=tail)[0], lambda p: data.loss(p, 3, tail=tail)[1], flat)
    assert error < 1e-5 * np.linalg.norm(data.loss(flat, 3, tail=tail)[1])


def test_a_tail_of_no_length_is_a_cluster():
    flat = np.array([-1.0, 0.4, 0.3, 0.2])
    more = np.array([-1.0, 0.1, 0.3, 0.2, 0.3, 1e-9, 0.0])
    data = features(np.zeros((1, 2)))
    assert data.loss(flat, 1)[0] == pytest.approx(data.loss(more, 1, tail=True)[0])


@pytest.mark.parametrize("seed", range(5))
def test_two_places_are_two_and_what_lies_between_makes_them_one(seed):
    ends = [[-1.5, 0.0], [1.5, 0.0]]
    assert groups(np.array(ends), ends, seed) == 2
    line = np.column_stack([np.linspace(-2, 2, 81), np.zeros(81)])
    assert groups(line, ends, seed) == 1
    falling = np.column_stack([-1.5 + 4 * np.linspace(0, 1, 81) ** 2, np.zeros(81)])
    assert groups(falling, ends, seed) == 1


def test_a_cluster_that_explains_nothing_is_taken_out():
    place = np.array([[1.0, 0.5]])
    assert groups(place, [[1.0, 0.5], [1.1, 0.6], [-2.0, 1.0]]) == 1
    assert groups(place, [[1.0, 0.5]]) == 1
    assert number_of_groups(features(place), np.zeros(0), np.zeros((0, 2)), 0.3, level=0.05, worth=25.0) == 0
