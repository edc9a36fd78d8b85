"""A ledger in the words of other accountants: both oracles agree with it, within their own looseness."""

import json
from fractions import Fraction

import pytest

from fogline.accounting import Cost, GaussianCost, PureCost, analytic_gaussian, zcdp
from fogline.accounting.costs import gaussian_release
from fogline.ledger import ApproximateCost, IntegralCost, Ledger
from fogline.ledger.exports import dp_events, losses, opendp_text

ASKED = {"code_version": "1", "neighbours": "add-remove", "certified": True, "release": lambda: b"about 90"}


@pytest.fixture
def made(tmp_path):
    opened = []

    def make(costs, parts=None, **options):
        wishes = {"dataset": "x", "epsilon": 3.0, "delta": 1e-5, "high_water": tmp_path / "marks", **options}
        ledger = Ledger.create(tmp_path / f"budget{len(opened)}", **wishes)
        opened.append(ledger)
        ledger.declare_partition("x", "ward", ["a", "b"])
        for number, cost in enumerate(costs):
            part = None if parts is None else ("ward", parts[number])
            ledger.on(partition=part).ask(f"m{number}", parameters={"n": number}, cost=cost, **ASKED)
        return ledger

    yield make
    for ledger in opened:
        ledger.close()


def test_gaussian_noise_agrees_with_privacy_loss_distributions(made):
    pld = pytest.importorskip("dp_accounting.pld", reason="oracle")
    costs = [gaussian_release(epsilon, 1e-6) for epsilon in (0.3, 0.5, 0.7)]
    ledger = made(costs, lane="gaussian")
    accountant = pld.PLDAccountant()
    event, beside = dp_events(ledger)
    accountant.compose(event)
    assert 0 < beside < 1e-15
    rho, delta = sum(cost.rho for cost in costs), 1e-6
    own = analytic_gaussian.epsilon_of(rho, delta)
    assert own <= accountant.get_epsilon(delta) <= own * 1.01


def test_zcdp_agrees_with_renyi_accounting(made):
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    ledger = made([Cost(0.02), GaussianCost(0.03, 1e-18)])
    accountant = rdp.RdpAccountant(neighboring_relation=dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    event, beside = dp_events(ledger)
    accountant.compose(event)
    assert beside == 0.0  # in the lane of zCDP there is no distance to pay for
    own = zcdp.epsilon_of(0.05, 1e-6)
    assert own * (1 - 1e-3) <= accountant.get_epsilon(1e-6) <= own * 1.03


def test_pure_and_approximate_entries_are_there(made):
    pytest.importorskip("dp_accounting")
    costs = [PureCost(Fraction(1, 4)), Cost(0.01, 1e-7), ApproximateCost(0.5, 1e-7), IntegralCost(0.5)]
    ledger = made(costs, approximate=(1.0, 1e-6), integral=2.0)
    event, beside = dp_events(ledger)
    assert [each.rho for each in event.events] == [1 / 32, pytest.approx(0.01)]
    assert beside == pytest.approx(1e-7)
    measures = {part["output_measure"]: part["d_mids"] for part in json.loads(opendp_text(ledger))["measures"]}
    assert measures["MaxDivergence"] == [0.25, 0.5]
    assert [name for name in measures if name.startswith("Approximate")] == [
        "Approximate<ZeroConcentratedDivergence>",
        "Approximate<MaxDivergence>",
    ]


def test_opendp_composes_what_is_exported(made):
    dp = pytest.importorskip("opendp.prelude")
    ledger = made([Cost(0.02), GaussianCost(0.03, 1e-18)])
    (part,) = json.loads(opendp_text(ledger))["measures"]
    assert part["output_measure"] == "ZeroConcentratedDivergence"
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    make = getattr(dp.c, "make_adaptive_composition", None) or dp.c.make_sequential_composition
    whole = make(*space, dp.zero_concentrated_divergence(), d_in=1, d_mids=part["d_mids"])
    assert whole.map(1) == pytest.approx(0.05, rel=1e-9)
    epsilon = dp.c.make_zCDP_to_approxDP(whole).map(1).epsilon(1e-6)
    assert zcdp.epsilon_of(0.05, 1e-6) * (1 - 1e-6) <= epsilon <= zcdp.epsilon_of(0.05, 1e-6) * 1.05
    mus = [entry["mu"] for entry in json.loads(opendp_text(ledger))["entries"]]
    assert mus == [None, pytest.approx(0.06**0.5)]


def test_parts_add_what_they_added(made):
    ledger = made([Cost(0.02), Cost(0.01), Cost(0.015)], parts=["a", "b", "b"])
    found = losses(ledger, "x")
    assert [loss.amount for loss in found] == [pytest.approx(0.02), pytest.approx(0.005)]  # the second adds nothing
    assert sum(loss.amount for loss in found) == pytest.approx(ledger.spending("x").rho / 1e12)


def test_without_dp_accounting_it_says_what_is_missing(made, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match="pip install dp-accounting"):
        dp_events(made([Cost(0.02)]))
