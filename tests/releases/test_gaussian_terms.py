"""Releases paid for in the Gaussian lane: less noise for the same promise, within it, and old answers kept."""

import importlib
import math
from dataclasses import replace
from fractions import Fraction

import gdp
import numpy as np
import pytest

from fogline import (
    DensitySketch,
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
)
from fogline.accounting import Cost, GaussianCost, zcdp
from fogline.accounting.analytic_gaussian import UNIT_DISTANCE, pure_of, rounding_distance, slack_of
from fogline.accounting.costs import gaussian_release, release_rho
from fogline.audit import canary_pairs, replay
from fogline.audit.noise_laws import MechanismStep
from fogline.audit.replay import RecordingProvider
from fogline.density.leaves import LeafSpec
from fogline.estimators import private_bounds, private_gaussian, private_pca, private_strata
from fogline.ledger import Charge, Ledger
from fogline.mechanisms.randomness import use_provider
from fogline.queries.lattice import RecordLattice
from fogline.queries.moments import SpreadQuery
from fogline.releases.curator import Curator
from fogline.releases.leaf_release import plan_stages, settle_terms
from fogline.releases.terms import FALLS_BACK, ReleaseTerms
from fogline.testing import seeded_noise

RECORDS = np.linspace(20, 60, 400)[:, None]
BOX = {"epsilon": 1.0, "delta": 1e-5, "bounds": [(0, 100)]}


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(
        tmp_path / "budget", dataset="x", epsilon=3.0, delta=1e-4, lane="gaussian", high_water=tmp_path / "marks"
    )
    with made:
        yield made


def gaussian(epsilon=1.0, delta=1e-5, neighbours="add-remove", c=1):
    return replace(ReleaseTerms.checked(epsilon, delta, neighbours, c), accounting="gaussian")


def test_the_lane_of_a_ledger_decides(ledger, tmp_path):
    assert ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1, ledger=ledger).accounting == "gaussian"
    assert ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1, ledger=ledger.on()).question()["accounting"] == "gaussian"
    for wish in ({"delta": 0, "allow_pure": True}, {"epsilon": None, "rho": 0.01}, {"delta": 1e-17}):
        options = {"epsilon": 1.0, "delta": 1e-5, **wish}
        epsilon, delta = options.pop("epsilon"), options.pop("delta")
        assert ReleaseTerms.checked(epsilon, delta, "add-remove", 1, ledger=ledger, **options).accounting == "zcdp"
    with Ledger.create(tmp_path / "old", dataset="x", epsilon=1.0, delta=1e-5, high_water=tmp_path / "marks") as other:
        terms = ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1, ledger=other)
        assert terms.accounting == "zcdp"
        assert "accounting" not in terms.question()
        assert (
            PrivateModes(**BOX, ledger=other).fit(RECORDS).guarantee_.mu is None
        )  # the whole of an old cap still fits
    keeper = type("Keeper", (), {"ask": lambda self, *_, **__: None})()
    assert ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1, ledger=keeper).accounting == "zcdp"
    with pytest.raises(TypeError, match="ledger"):
        ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1, ledger="budget")


def test_a_release_has_less_noise_for_the_same_promise(ledger):
    found = PrivateModes(**BOX, ledger=ledger).fit(RECORDS)
    plain = PrivateModes(**BOX).fit(RECORDS)
    promise = found.guarantee_
    assert (promise.epsilon, promise.delta, promise.certified, promise.gaussian) == (1.0, 1e-5, True, True)
    assert promise.mu == pytest.approx(gdp.mu_of(1.0, 1e-5), rel=1e-6)
    ratio = found.density_.noise_scale / replaced(plain.density_.noise_scale, plain.guarantee_)
    assert ratio == pytest.approx(3.7306 / 4.0451, rel=1e-3)
    receipt = found.density_.receipt if hasattr(found.density_, "receipt") else None
    assert receipt is None or receipt["currency"] == "gaussian"
    assert PrivateModes(**BOX, ledger=ledger).fit(RECORDS).density_.coefficients.tolist() == (
        found.density_.coefficients.tolist()
    )


def replaced(scale, guarantee):
    """What the scale would be by zCDP, whichever accounting is the default."""
    return scale * 4.0451 / 3.7306 if guarantee.gaussian else scale


@pytest.mark.parametrize(("neighbours", "c"), [("add-remove", 1), ("add-remove", 3), ("replace", 1), ("replace", 2)])
def test_stages_stay_within_their_terms(neighbours, c):
    terms = gaussian(neighbours=neighbours, c=c)
    query = SpreadQuery(RecordLattice.of([(-1, 1)] * 2))
    curator = Curator(np.zeros((900, 2)), terms, width=2)
    with seeded_noise(0):
        curator.ask(query, Fraction(1, 3), "scale")
        curator.ask(query, Fraction(2, 3), "again")
    scales = [scale for _, _, scale in curator.transcript]
    moved = query.sensitivity(neighbours, c)
    spent = sum(moved**2 / (2 * (scale**2 - 1 / 6)) for scale in scales)
    assert spent <= terms.rho * (1 + 1e-6)
    assert 0 <= curator._distance < UNIT_DISTANCE
    with pytest.raises(RuntimeError, match="would cost more"):
        curator.ask(query, Fraction(1, 100), "more")


def test_a_pure_stage_costs_what_it_is_in_gdp():
    terms = gaussian()
    assert terms.pure_epsilon(0.01) == pure_of(0.01) < math.sqrt(0.02)
    assert replace(terms, accounting="zcdp").pure_epsilon(0.01) <= math.sqrt(0.02)
    assert terms.cost() == GaussianCost(terms.rho, terms.cost().distance)
    assert replace(terms, accounting="zcdp").cost() == Cost(replace(terms, accounting="zcdp").rho)


def test_noise_of_a_share():
    terms = gaussian()
    with seeded_noise(1):
        noisy = terms.add_noise(lambda: np.zeros(2, int), size=2, sensitivity=1.0, rho=terms.rho / 2)
    assert noisy.scale == pytest.approx(math.sqrt(1 / terms.rho + 1 / 12))
    assert terms.noise_scale(1.0, terms.rho / 2) == noisy.scale
    assert terms.noise_scale(1.0) == pytest.approx(math.sqrt(0.5 / terms.rho + 1 / 12))
    old = replace(terms, accounting="zcdp")
    with seeded_noise(1):
        assert old.add_noise(lambda: np.zeros(2, int), size=2, sensitivity=1.0).price is None
    assert old.noise_scale(1.0) > terms.noise_scale(1.0)


def test_leaves_choose_by_the_variance_and_stay_within():
    spec = LeafSpec.plan([(0, 1)])
    many = gaussian(epsilon=0.02, delta=1e-2, c=60)
    settled = settle_terms(spec, many)
    first, second = plan_stages(spec, replace(many, promise=None))
    assert first.budget + second.budget <= many.rho * (1 + 1e-12)
    assert (settled.accounting, settled.pure) in {("zcdp", True), ("gaussian", False)}


def test_staged_fits_in_the_lane(ledger):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 0.4, (300, 2)) for m in (-2, 2)])
    options = {"n_components": 2, "epsilon": 1.0, "delta": 1e-5, "radius": 6.0, "sigma_min": 0.2, "sigma_max": 2.0}
    fitted = PrivateGaussianMixture(**options, ledger=ledger).fit(X)
    assert fitted.guarantee_.mu == pytest.approx(gdp.mu_of(1.0, 1e-5), rel=1e-6)
    assert ledger.history()[-2].content["currency"] == "gaussian"
    assert ledger.plan(PrivateModes(**BOX, ledger=ledger)).fits


SPREAD = np.random.default_rng(0).normal(0, 0.3, (300, 5)).clip(-1, 1)
DEFAULTS = {
    **{
        f"a sketch of {d} columns": lambda terms, d=d: (
            DensitySketch([(-1, 1)] * d).update(SPREAD[:, :d]).release(**terms)
        )
        for d in (1, 2, 3, 5)
    },
    "bounds": lambda terms: private_bounds(SPREAD[:, :1], **terms),
    "principal components": lambda terms: private_pca(SPREAD, components=2, bounds=(-1, 1), **terms),
    "a Gaussian": lambda terms: private_gaussian(SPREAD[:, :2], radius=2.0, **terms),
    "a mixture": lambda terms: PrivateGaussianMixture(n_components=2, bounds=[(-1, 1)] * 2, **terms).fit(SPREAD[:, :2]),
    "strata": lambda terms: private_strata(
        SPREAD[:, :1], np.arange(300) % 2, categories=[0, 1], bounds=[(-1, 1)], **terms
    ),
    "clusters": lambda terms: PrivateModeClustering(bounds=(-1, 1), n_clusters=2, **terms).fit(SPREAD),
    **{
        f"a minimum Hellinger fit, {method}": lambda terms, method=method: PrivateHellinger(
            family="normal", method=method, parameter_bounds={"mu": (-1, 1), "sigma": (0.1, 1)}, **terms
        ).fit(SPREAD[:, 0])
        for method in ("sketch", "gradient", "newton")
    },
    "modal regression": lambda terms: PrivateModalRegression(x_bounds=(-1, 1), y_bounds=(-1, 1), **terms).fit(
        SPREAD[:, :1], SPREAD[:, 1]
    ),
    **{
        f"a mixture of parts, {method}": lambda terms, method=method: PrivateGaussianMixture(
            method=method, n_components=2, radius=2.0, sigma_min=0.1, sigma_max=0.5, **terms
        ).fit(SPREAD[:, :2])
        for method in ("spherical", "recursive")
    },
}


@pytest.mark.parametrize("name", list(DEFAULTS))
def test_the_slack_of_every_default_is_far_below_one_percent_of_delta(name):
    """Reckoned anew from the noise that is drawn: distances of all numbers of all stages."""
    provider = RecordingProvider()
    with use_provider(provider):
        DEFAULTS[name]({"epsilon": 1.0, "delta": 1e-6})
    steps = [step for step in provider.steps if isinstance(step, MechanismStep)]
    assert {step.call.mechanism for step in steps} == {"gaussian"}
    distance = sum(step.exact.size * rounding_distance(step.call.event.scale) for step in steps)
    assert 0 < distance <= UNIT_DISTANCE
    assert slack_of(1.0, distance) <= 0.01 * 1e-6
    assert slack_of(1.0, UNIT_DISTANCE) <= 0.01 * 1e-6  # what the accounting sets aside, whatever is used


# -- where nobody pays ------------------------------------------------------------------------------------------


def test_without_a_ledger_the_curve_is_the_default():
    terms = ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1)
    assert (terms.accounting, terms.cost()) == ("gaussian", gaussian_release(1.0, 1e-5))
    assert terms.rho == release_rho(1.0, 1e-5)
    assert "mu = 0.269" in str(terms.guarantee())  # 0.2681, rounded up
    assert ReleaseTerms.checked(None, None, "add-remove", 1, rho=0.01).accounting == "zcdp"


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-17), (30.0, 1e-6), (200.0, 1e-3)])
def test_a_delta_smaller_than_the_slack_falls_back_and_says_so(epsilon, delta, ledger):
    terms = ReleaseTerms.checked(epsilon, delta, "add-remove", 1)
    assert (terms.accounting, terms.rho) == ("zcdp", release_rho(epsilon, delta))
    assert FALLS_BACK in str(terms.guarantee())
    assert zcdp.epsilon_of(terms.rho, delta) <= epsilon
    paid = ReleaseTerms.checked(epsilon, delta, "add-remove", 1, ledger=ledger)
    assert "remark" not in paid.question()  # the lane of the ledger refuses it, and says why


def test_the_sensitivity_of_add_remove_does_not_do_for_replace(monkeypatch):
    """A mutant of the release by the curve: the noise of one relation under the promise of the other."""
    module = importlib.import_module("fogline.releases.density_sketch")
    real = module.lattice_sensitivity
    pairs = canary_pairs([(0, 10)], neighbours="replace", n=60, block=None)[:6]

    def release(X):
        sketch = DensitySketch([(0, 10)], bandwidths=[0.1]).update(X)
        return sketch.release(epsilon=1.0, delta=1e-5, neighbours="replace")

    report = replay(release, pairs)
    assert report.passed, str(report)
    monkeypatch.setattr(module, "lattice_sensitivity", lambda spec, neighbours, c: real(spec, "add-remove", c))
    assert not replay(release, pairs, until_failure=True).passed


def test_a_plan_of_an_estimator_without_a_ledger_is_that_of_the_ledger(ledger, tmp_path):
    estimator = PrivateModes(**BOX)
    assert estimator.cost() == gaussian_release(BOX["epsilon"], BOX["delta"])
    assert ledger.plan(estimator).charge.currency == "gaussian"
    with Ledger.create(tmp_path / "rho", dataset="x", epsilon=3.0, delta=1e-5, high_water=tmp_path / "marks") as other:
        planned = other.plan(estimator)
        assert planned.charge == Charge.of(PrivateModes(**BOX, ledger=other).cost())
        assert planned.charge.currency == "zcdp"
    assert estimator.ledger is None
