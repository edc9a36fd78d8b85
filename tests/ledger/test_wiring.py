"""A certified mechanism paid for by a ledger, as estimators do it."""

import numpy as np
import pytest

from fogline import testing
from fogline.accounting import Cost, cost
from fogline.accounting.zcdp import rho_of
from fogline.ledger import Ledger, LedgerRefused, Question
from fogline.ledger.shared_cap import UNITS
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.randomness import provider_reason


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(
        tmp_path / "ledger", dataset="patients", epsilon=1.0, delta=1e-6, high_water=tmp_path / "marks"
    ) as made:
        yield made


def noisy_counts(ledger, data, *, epsilon=0.5, delta=1e-6):
    """Be an estimator: everything public first, the data only inside the release."""
    rho = ledger.rho_of(epsilon, delta)
    events = []

    def release():
        vector = add_gaussian(lambda: np.bincount(data, minlength=4), size=4, sensitivity=1.0, rho=rho)
        events.append(vector.event)
        return vector.values.astype("<i8").tobytes()

    answer = ledger.ask(
        "noisy counts",
        code_version="1",
        parameters={"epsilon": epsilon, "delta": delta, "bins": 4},
        cost=Cost(rho),
        neighbours="add-remove",
        certified=not provider_reason(),
        release=release,
        max_payload=4 * 8,
    )
    return np.frombuffer(answer.payload, "<i8"), answer, events


def test_what_is_charged_is_what_was_done(ledger):
    values, answer, events = noisy_counts(ledger, [0, 1, 1, 3])
    assert values.shape == (4,)
    charged = answer.receipt.amount / UNITS
    assert cost(events[0]).rho <= charged <= rho_of(0.5, 1e-6)
    again, repeated, none = noisy_counts(ledger, [0, 1, 1, 3])
    assert repeated.cached
    assert not none
    assert np.array_equal(values, again)
    _, other, _ = noisy_counts(ledger, [0, 1, 1, 3], epsilon=0.25)
    assert not other.cached


def test_a_budget_of_one_allows_for_its_own_epsilon(ledger):
    noisy_counts(ledger, [], epsilon=1.0)
    assert ledger.remaining().rho == 0.0
    assert not ledger.plan(Cost(1e-12)).fits
    with pytest.raises(LedgerRefused):
        noisy_counts(ledger, [], epsilon=0.1)


def test_seeded_noise_never_spends(ledger):
    with testing.seeded_noise(0), pytest.raises(LedgerRefused, match="certified"):
        noisy_counts(ledger, [])
    assert len(ledger.history()) == 2


def test_a_neighbour_gives_the_same_entries(tmp_path):
    """What the ledger says of a release does not depend on the data, its size and hash of noise aside."""
    told = []
    for name, data in (("a", []), ("b", [0])):
        with Ledger.create(
            tmp_path / name, dataset="patients", epsilon=1.0, delta=1e-6, high_water=tmp_path / "marks"
        ) as ledger:
            noisy_counts(ledger, data)
            kept = [{**entry.content, "time": ""} for entry in ledger.history()[1:]]
            told.append([{key: value for key, value in entry.items() if key != "payload"} for entry in kept])
    assert told[0] == told[1]


def test_a_failed_query_says_nothing(ledger):
    with pytest.raises(RuntimeError, match="reservation is spent") as caught:
        ledger.spend(
            Question("patients", "1", "m", "1"),
            cost=Cost(0.001),
            neighbours="add-remove",
            certified=True,
            release=lambda: np.linalg.inv(np.zeros((2, 2))).tobytes(),
        )
    assert caught.value.__context__ is None
