"""Attacks on the parts that locate: one record more, in the worst place, is not told beyond the claim."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fogline import one_cluster, private_gaussian, private_spherical_gaussian, terrific_ball
from fogline.audit import attack
from fogline.testing import seeded_noise

CROWD = np.random.default_rng(0).normal(0, 0.05, (60, 2))
AFTER = np.append(CROWD, [[1.0, 0.0]], axis=0)
TERMS = {"epsilon": 1.0, "delta": 1e-5, "radius": 1.0}


def seeded(fit):
    """Fit with other noise each time, the same in every run of the tests."""
    seeds = itertools.count()

    def release(X):
        with seeded_noise(next(seeds)):
            return fit(X)

    return release


def ball_scores():
    """What a ball tells: whether there is one, how wide, how full, and where."""
    return {
        "found": lambda found: float(bool(found) or hasattr(found, "radius")),
        "radius": lambda found: getattr(found, "radius", 0.0),
        "count": lambda found: getattr(found, "count", 0.0),
        "place": lambda found: float(found.centre[0]) if hasattr(found, "centre") else 0.0,
    }


@pytest.mark.parametrize("search", [one_cluster, terrific_ball])
def test_a_ball_does_not_tell_who_was_in_it(search):
    options = TERMS | {"radius_min": 0.05, "size": 30}
    claim = search(CROWD, **options)[1]
    report = attack(seeded(lambda X: search(X, **options)[0]), CROWD, AFTER, claim=claim, score=ball_scores(), runs=150)
    assert claim.epsilon == 1.0
    assert not report.broken, str(report)


@pytest.mark.parametrize("learn", [private_gaussian, private_spherical_gaussian])
def test_the_record_that_pulls_the_mean_is_not_told(learn):
    """Without noise the mean tells at once; the same score of the release stays within the claim."""
    claim = learn(CROWD, **TERMS)[1]
    score = {"mean": lambda found: float(found.mean[0]), "count": lambda found: float(found.count)}
    release = seeded(lambda X: learn(X, **TERMS)[0])
    report = attack(release, CROWD, AFTER, claim=claim, score=score, runs=150)
    assert not report.broken, str(report)
    bare = attack(lambda X: X.mean(axis=0), CROWD, AFTER, claim=claim, score=lambda mean: float(mean[0]), runs=400)
    assert bare.broken
