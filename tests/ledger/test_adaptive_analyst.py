"""An analyst who decides by the answers when to turn from rho to pure epsilon, or to a delta set aside.

Noise is Gaussian, in small steps, so that the privacy loss is a Brownian motion with drift. At any step the analyst
may stop and spend all that a rule still allows: in one randomised response of that epsilon, or in one mechanism that
fails outright with that delta. The best strategy is found by going backwards. Its value is the delta that it reaches
at the epsilon of the cap. It grows with the number of steps: what is found here is reached, and more may be.
"""

import numpy as np
import pytest

from fogline.accounting.zcdp import delta_of, epsilon_of, rho_and_order
from fogline.ledger.accounts import Account, Place
from fogline.ledger.caps import Caps, Charge
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS, SharedCap, Spending

CAPS = [(1.0, 1e-6), (4.0, 1e-6)]


def excess(epsilon, loss):
    """Return what a loss adds to delta."""
    return np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0)))


def randomised_response(epsilon, loss, pure):
    """Return the mean excess after a randomised response, which moves the loss by plus or minus `pure`."""
    agrees = 1.0 / (1.0 + np.exp(-pure))
    return agrees * excess(epsilon, loss + pure) + (1.0 - agrees) * excess(epsilon, loss - pure)


def joint(epsilon, delta, rho, loss):
    """What is not the rule: all pure epsilon for which the sum of both currencies, converted, is within the cap."""
    return randomised_response(epsilon, loss, epsilon - epsilon_of(rho, delta))


def shared(epsilon, delta, rho, loss):
    """What is the rule."""
    left = SharedCap(epsilon, delta).pure_budget(Spending(rho=int(rho * UNITS)))
    return randomised_response(epsilon, loss, left / UNITS)


def set_aside(epsilon, delta, rho, loss):
    """All delta that is not needed for the rho so far."""
    failing = delta - delta_of(rho, epsilon)
    return failing + (1.0 - failing) * excess(epsilon, loss)


def best_delta(epsilon, delta, rest, steps=60):
    """Return the delta that the best strategy reaches."""
    largest, _ = rho_and_order(epsilon, delta)
    rhos = np.concatenate([[0.0], np.geomspace(1e-3 * largest, largest, steps)])
    width = np.sqrt(2.0 * largest)
    losses = np.linspace(-3.0 * width, epsilon + 2.0 * width + 1.0, 3001)
    steps_of_noise = np.linspace(-9.0, 9.0, 361)
    weights = np.exp(-(steps_of_noise**2) / 2.0)
    weights /= weights.sum()
    value = excess(epsilon, losses)
    for rho, spent in zip(rhos[-2::-1], np.diff(rhos)[::-1], strict=True):
        reached = (losses + spent + np.sqrt(2.0 * spent) * z for z in steps_of_noise)
        value = sum(weight * np.interp(loss, losses, value) for weight, loss in zip(weights, reached, strict=True))
        if rho > 0.0:
            value = np.maximum(value, rest(epsilon, delta, rho, losses))
    return float(np.interp(0.0, losses, value))


@pytest.mark.parametrize(("cap", "reached"), list(zip(CAPS, [3.2, 4.5], strict=True)))
def test_the_sum_of_both_currencies_alone_would_not_hold(cap, reached):
    assert best_delta(*cap, joint) / cap[1] == pytest.approx(reached, rel=0.05)


@pytest.mark.parametrize(("cap", "reached"), list(zip(CAPS, [0.31, 0.34], strict=True)))
def test_the_rule_holds_against_the_same_analyst(cap, reached):
    assert best_delta(*cap, shared) / cap[1] == pytest.approx(reached, rel=0.05)


@pytest.mark.parametrize("cap", CAPS)
def test_deltas_that_are_chosen_by_the_answers_cost_more_than_their_sum(cap):
    """Known, and bounded in shared_cap.proof.md: by the largest sum of deltas, twice delta at most."""
    assert 1.1 < best_delta(*cap, set_aside) / cap[1] < 2.0


WHOLE = Place("x", "add-remove")


def allowed_delta(caps, first, rho):
    """Return the largest delta that books with these caps let in after a first release and so much rho in all."""
    account = Account(caps)
    for charge in (first, Charge("zcdp", max(0, int(rho * UNITS) - first.amount))):
        if charge.amount or charge.delta:
            assert account.admits(charge, WHOLE)
            account.add(charge, WHOLE)
    low, high = 0, int(caps.delta * DELTA_UNITS)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if account.admits(Charge("zcdp", 0, middle), WHOLE) else (low, middle - 1)
    return low / DELTA_UNITS


def reached_by_the_books(caps, own=0.0):
    """Return the delta of the best strategy that the books let in: noise, and a failure when it pays.

    The first release has a delta of its `own`, and a thousandth of the rho.
    """
    epsilon, account = caps.epsilon, Account(caps)
    largest = account.budget("zcdp", int(own * DELTA_UNITS))[0] / UNITS
    first = Charge("zcdp", int(1e-3 * largest * UNITS), int(own * DELTA_UNITS))

    def rest(epsilon, _, rho, loss):
        failing = allowed_delta(caps, first, min(rho, largest * (1 - 1e-9)))
        return failing + (1.0 - failing) * excess(epsilon, loss)

    # the noise of the whole: that of a cap whose conversion allows just this rho
    value = best_delta(epsilon, delta_of(largest, epsilon), rest)
    return own + (1.0 - own) * value


@pytest.mark.parametrize("cap", CAPS)
def test_the_books_of_today_hold_against_the_analyst_who_breaks_those_of_before(cap):
    epsilon, delta = cap
    assert reached_by_the_books(Caps(epsilon, delta)) > 1.1 * delta
    for own, caps in [
        (0.0, Caps(epsilon, delta, set_aside=0.0)),
        (0.4 * delta, Caps(epsilon, delta, set_aside=0.0)),
        (0.0, Caps(epsilon, delta, set_aside=0.3 * delta)),
        (0.1 * delta, Caps(epsilon, delta, set_aside=0.3 * delta)),
    ]:
        reached = reached_by_the_books(caps, own)
        assert 0.15 * delta < reached <= delta


def test_a_mutant_whose_split_follows_what_is_spent_is_noticed(monkeypatch):
    monkeypatch.setattr(Caps, "kept", lambda *_: None)
    assert reached_by_the_books(Caps(1.0, 1e-6, set_aside=0.0)) > 1.1e-6


def interleaved(epsilon, delta, pieces=6, steps=24):
    """Return the delta of the best strategy under the rule that mixes noise and responses in any order, many times."""
    largest, order = rho_and_order(epsilon, delta)
    rhos = np.concatenate([[0.0], np.geomspace(3e-3 * largest, largest, steps)])
    width, piece = np.sqrt(2.0 * largest), order * largest / pieces
    losses = np.linspace(-3.0 * width, epsilon + 2.0 * width + 1.0, 1501)
    noise = np.linspace(-9.0, 9.0, 181)
    weights = np.exp(-(noise**2) / 2.0) / np.exp(-(noise**2) / 2.0).sum()
    agrees = 1.0 / (1.0 + np.exp(-piece))
    value = {}
    for i in range(steps, -1, -1):
        for j in range(pieces, -1, -1):
            if order * rhos[i] + j * piece > order * largest * (1 + 1e-9):
                continue
            best = excess(epsilon, losses)
            if (i + 1, j) in value:
                spent = rhos[i + 1] - rhos[i]
                moved = [np.interp(losses + spent + np.sqrt(2.0 * spent) * z, losses, value[i + 1, j]) for z in noise]
                best = np.maximum(best, weights @ np.array(moved))
            if (i, j + 1) in value and i > 0:
                up, down = (np.interp(losses + sign * piece, losses, value[i, j + 1]) for sign in (1, -1))
                best = np.maximum(best, agrees * up + (1.0 - agrees) * down)
            value[i, j] = best
    return float(np.interp(0.0, losses, value[0, 0]))


@pytest.mark.parametrize("cap", CAPS)
def test_the_rule_holds_where_both_currencies_are_mixed_in_any_order(cap):
    assert 0.15 < interleaved(*cap) / cap[1] < 0.6


def kept_aside(epsilon, delta, rho, loss):
    """The rule with a tenth of delta set aside at creation: it is there whatever the rho so far."""
    failing = 0.1 * delta
    return failing + (1.0 - failing) * excess(epsilon, loss)


@pytest.mark.parametrize("cap", CAPS)
def test_deltas_that_are_set_aside_at_creation_hold_against_the_same_analyst(cap):
    epsilon, delta = cap
    largest, _ = rho_and_order(epsilon, 0.9 * delta)
    noise_alone = best_delta(epsilon, 0.9 * delta, lambda epsilon, _, rho, loss: excess(epsilon, loss))
    whole = best_delta(epsilon, 0.9 * delta, lambda epsilon, _, rho, loss: kept_aside(epsilon, delta, rho, loss))
    assert largest < rho_and_order(epsilon, delta)[0]
    assert noise_alone < whole <= delta


def test_half_planes_at_a_smaller_delta_lie_within():
    """What is said of deltas that are set aside: both ends of the half-plane shrink with delta."""
    for epsilon in (1e-3, 0.1, 1.0, 4.0, 20.0):
        for delta in (1e-9, 1e-6, 1e-2, 0.5):
            rho, order = rho_and_order(epsilon, delta)
            for part in (0.999, 0.5, 1e-3):
                less, higher = rho_and_order(epsilon, part * delta)
                assert less <= rho
                assert higher * less <= order * rho


def test_the_order_that_is_returned_is_the_one_that_was_used():
    """Near order 1 (a delta near 1) the order less 1 must not have lost its digits."""
    import mpmath as mp

    with mp.workdps(60):
        for epsilon in (1e-6, 1.0, 400.0):
            for gap in (1e-12, 1e-9, 1e-3):
                rho, order = rho_and_order(epsilon, 1.0 - gap)
                a, r = mp.mpf(order), mp.mpf(rho)
                logarithm = (a - 1) * (a * r - mp.mpf(epsilon)) + a * mp.log1p(-1 / a) - mp.log(a - 1)
                assert logarithm <= mp.log(mp.mpf(1.0 - gap))
