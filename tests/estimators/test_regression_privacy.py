"""PrivateModalRegression under replay: nothing but the release sees the records; mutants are caught."""

from __future__ import annotations

import numpy as np
import pytest
from canaries import by_turns

from fogline import PrivateModalRegression
from fogline.audit import Pair, canary_pairs, random_pairs, replay
from fogline.estimators import regression
from fogline.mechanisms.randomness import current_provider
from fogline.releases import density_sketch

BOX = [(-3.0, 10.0), (0.0, 5.0)]
RELATIONS = ["add-remove", "replace"]
FIXED = [2.6, 1.0]


class Joint(PrivateModalRegression):
    """Takes rows (x, y), as the canaries are, and gives the response apart: the usual way in."""

    def __init__(self, neighbours="add-remove", bandwidth=FIXED, max_contributions=1):
        super().__init__(
            epsilon=1.0,
            delta=1e-5,
            x_bounds=BOX[0],
            y_bounds=BOX[1],
            neighbours=neighbours,
            bandwidth=bandwidth,
            max_contributions=max_contributions,
        )

    def fit(self, X, y=None):
        rows = np.asarray(X, dtype=float)
        return super().fit(rows[:, :1], rows[:, 1])


@pytest.mark.parametrize("relation", RELATIONS)
def test_all_canaries(relation):
    pairs = canary_pairs(BOX, neighbours=relation, n=60, block=None)
    assert len(pairs) >= 20
    report = replay(Joint(relation), by_turns(pairs, relation))
    assert report.passed, str(report)
    assert 0.9999 < report.largest_ratio <= 1
    assert {pair.calls for pair in report.pairs} == {1}


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_default_bandwidth_and_random_pairs(relation):
    pairs = canary_pairs(BOX, neighbours=relation, n=60, block=None)[::12]
    report = replay(Joint(relation, "auto"), pairs)
    assert report.passed, str(report)
    drawn = random_pairs(BOX, neighbours=relation, pairs=6, seed=1, max_contributions=2)
    report = replay(Joint(relation, max_contributions=2), list(drawn))
    assert report.passed, str(report)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_response_as_the_last_column(relation):
    estimator = PrivateModalRegression(
        epsilon=1.0, delta=1e-5, x_bounds=BOX[0], y_bounds=BOX[1], neighbours=relation, bandwidth=FIXED
    )
    report = replay(estimator, canary_pairs(BOX, neighbours=relation, n=60, block=None)[::8])
    assert report.passed, str(report)


# -- mutants -------------------------------------------------------------------------------------------------


def audited(estimator=None, relation="add-remove"):
    crowd = np.random.default_rng(0).uniform([-3, 0], [10, 5], (60, 2))
    odd = [[9.9, 0.1], [0.0, np.nan], [np.inf, 2.0], [2.0, 1e9]]
    pairs = [Pair(f"odd {i}", crowd, np.append(crowd, [row], axis=0), "add-remove") for i, row in enumerate(odd)]
    if relation == "replace":
        corners = [np.append(crowd, [corner], axis=0) for corner in ([-3.0, 0.0], [10.0, 5.0])]
        pairs = [Pair("corners", *corners, "replace")]
    return replay(estimator or Joint(relation), pairs, until_failure=True)


def response_clipped(patch):
    """A response outside its bounds is moved inside: it counts although it should not, which is still private."""
    real = regression.joined
    patch.setattr(regression, "joined", lambda *args: np.clip(real(*args), -3, 5))


def half_the_sensitivity(patch):
    real = density_sketch.lattice_sensitivity
    patch.setattr(density_sketch, "lattice_sensitivity", lambda *args: real(*args) / 2)


def rows_without_response_shift_the_others(patch):
    """Missing responses are dropped and the rest pushed together: one record changes the partner of every other."""

    def joined(X, y, width):
        kept = np.sort(y[np.isfinite(y)])
        return np.column_stack([X[: len(kept)], kept])

    patch.setattr(regression, "joined", joined)


def bounds_from_the_data(patch):
    real = regression.joined

    def joined(X, y, width):
        rows = real(X, y, width)
        middle = np.nanmean(np.where(np.isfinite(rows), rows, np.nan), axis=0)
        return rows - middle + [3.5, 2.5]

    patch.setattr(regression, "joined", joined)


def a_message_with_the_count(patch):
    real = regression.joined

    def joined(X, y, width):
        rows = real(X, y, width)
        patch.setattr(regression.PrivateModalRegression, "__repr__", lambda self: f"fitted to {len(rows)} rows")
        return rows

    patch.setattr(regression, "joined", joined)


def branches_from_raw_records(patch):
    real_join, real_read = regression.joined, regression.read_branches
    held = []

    def joined(*args):
        held[:] = [real_join(*args)]
        return held[0]

    def read(density, level, fixed):
        found = real_read(density, level, fixed)
        object.__setattr__(found, "message", found.message + str(np.nansum(np.nan_to_num(held[0], posinf=0, neginf=0))))
        return found

    patch.setattr(regression, "joined", joined)
    patch.setattr(regression, "read_branches", read)


def noise_that_looks_at_the_number_of_rows(patch):
    real = regression.release_source

    def release(source, spec, terms, ledger):
        current_provider().generator("rows").random(len(source))
        for _ in range(len(source) % 2):
            current_provider().generator("odd").random()
        return real(source, spec, terms, ledger)

    patch.setattr(regression, "release_source", release)


MUTANTS = [
    half_the_sensitivity,
    rows_without_response_shift_the_others,
    bounds_from_the_data,
    a_message_with_the_count,
    branches_from_raw_records,
    noise_that_looks_at_the_number_of_rows,
]


@pytest.mark.parametrize("relation", RELATIONS)
def test_without_a_mutant_the_audit_passes(relation):
    report = audited(relation=relation)
    assert report.passed, str(report)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_caught(monkeypatch, mutant):
    mutant(monkeypatch)
    assert not audited().passed


def test_a_harmless_change_is_not_blamed(monkeypatch):
    response_clipped(monkeypatch)
    assert audited().passed
