"""Stages of a curator that choose: the first number above a threshold, frequent keys, numbers that are remembered."""

from __future__ import annotations

import io
import json
from fractions import Fraction

import numpy as np
import pytest

from fogline.algorithms.ball_search import LocatedTerms
from fogline.releases.curator import Curator
from fogline.testing import seeded_noise

ROWS = np.repeat([0.2, 0.6, 0.9], [10, 4000, 3000])[:, None]
HALF = Fraction(1, 2)
QUESTION = {"name": "thirds", "code_version": "1", "parameters": {}, "max_payload": 2**14}


class Thirds:
    """Records in each third of the unit interval; or, as keys, the third of each record."""

    def __init__(self, keys=False):
        self.keys, self.size = keys, 1 if keys else 3

    def sensitivity(self, neighbours, max_contributions):
        return max_contributions * (1.0 if neighbours == "add-remove" else 2.0)

    def exact(self, records):
        rows = np.concatenate(batches(records))
        place = np.minimum((3 * rows[:, 0]).astype(np.int64), 2)
        return place[:, None] if self.keys else np.bincount(place, minlength=3)

    def decode(self, values, noise_scale):
        return values.tolist()


def batches(records):
    found = []
    records.each(found.append)
    return [np.asarray(batch) for batch in found]


def three_stages(curator):
    first = curator.first_above(Thirds(), HALF, "first", threshold=1000)
    found = curator.frequent(Thirds(keys=True), Fraction(1, 4), "keys", aside=Fraction(1))
    kept = curator.remember("sum", lambda: {"of": np.array([sum(count for _, count in found)])})
    return first, sorted(key for key, _ in found), int(kept["of"][0])


def terms():
    return LocatedTerms.located(2.0, 1e-4, "add-remove", 1, "record")


def test_stages_that_choose_are_read_again_from_their_transcript():
    own = terms()
    curator = Curator(ROWS, own, width=1)
    with seeded_noise(3):
        found = three_stages(curator)
    assert found[:2] == ([1], [1, 2])
    assert abs(found[2] - 7000) < 500
    stored = curator.to_bytes(own.guarantee("laplace-noise"))
    known, _ = Curator.from_bytes(own, stored)
    assert three_stages(known) == found
    with pytest.raises(RuntimeError, match="no records"):
        known.release(three_stages, ledger=None, mechanism="thirds", proof="laplace-noise", **QUESTION)
    known, _ = Curator.from_bytes(own, stored)
    with pytest.raises(ValueError, match="another release"):
        known.remember("product", lambda: {})


def test_nothing_above_is_told_as_such():
    with seeded_noise(0):
        assert Curator(ROWS, terms(), width=1).first_above(Thirds(), HALF, "first", threshold=10**6) == [-1]


def test_delta_that_was_not_set_aside_is_not_spent_twice():
    curator = Curator(ROWS, terms(), width=1)
    with seeded_noise(0):
        curator.frequent(Thirds(keys=True), Fraction(1, 4), "keys", aside=Fraction(1))
        with pytest.raises(RuntimeError, match="no delta aside"):
            curator.frequent(Thirds(keys=True), Fraction(1, 4), "more", aside=HALF)


def test_what_is_no_transcript_is_refused():
    file = io.BytesIO()
    np.savez(file, header=np.array(json.dumps({"format": "another"})))
    with pytest.raises(ValueError, match="not stages of format"):
        Curator.from_bytes(terms(), file.getvalue())
