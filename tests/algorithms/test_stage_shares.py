"""Shares of clusters and mixtures: exact, public, paid for in full, and known to a ledger and to plans."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fogline import Ledger, PrivateGaussianMixture, PrivateModeClustering
from fogline.algorithms import clustering, stage_shares
from fogline.algorithms.clustering import plan_clusters
from fogline.algorithms.mixture_from_density import plan_mixture
from fogline.algorithms.stage_shares import (
    CLUSTERING_SHARES,
    CLUSTERS_BY_LEVEL,
    MIXTURE_SHARES,
    cluster_shares,
    mixture_shares,
    records_over_noise,
)
from fogline.density.components import matching, pursuit
from fogline.testing import seeded_noise

FUNCTIONS = {cluster_shares: CLUSTERING_SHARES, mixture_shares: MIXTURE_SHARES}
BOX = np.array([(0.0, 10.0)] * 5)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(autouse=True)
def _short_search(monkeypatch):
    """What is read from a release is not what is tested here."""
    monkeypatch.setattr(pursuit, "PURSUIT", replace(pursuit.PURSUIT, restarts=1, swaps=1, candidates=64))
    monkeypatch.setattr(matching, "MATCHING", replace(matching.MATCHING, iterations=10))
    monkeypatch.setattr(clustering, "FREQUENCIES", 96)


def exact(shares):
    return {name: Fraction(share) for name, share in shares.items()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the fixture changes nothing here
@given(
    st.sampled_from(list(FUNCTIONS)),
    st.none() | st.integers(1, 10**9),
    st.floats(1e-8, 100.0),
    st.none() | st.integers(1, 60),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(1, 50),
)
def test_shares_are_exact_and_sum_to_one(function, expected, rho, k, neighbours, c):
    shares = function(expected, rho, k, neighbours, c)
    assert list(shares) == list(FUNCTIONS[function])
    assert all(type(share) is Fraction and share > 0 for share in shares.values())
    assert sum(shares.values()) == 1
    if expected is None or k is None:
        assert shares == exact(FUNCTIONS[function])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("k", [1, 3])
def test_only_the_number_over_its_noise_counts(function, k):
    for n in (100, 1000, 10_000, 100_000):
        shares = function(n, 0.02, k)
        assert shares == function(2 * n, 0.005, k) == function(3 * n, 0.02, k, "add-remove", 3)
        assert shares == function(2 * n, 0.02, k, "replace")


def test_few_records_give_the_projection_more():
    levels = [math.floor(below) - 1 for below, _ in CLUSTERS_BY_LEVEL[:-1]] + [10**6]
    chosen = [cluster_shares(level, 0.5, 3) for level in levels]  # at rho = 1/2 the noise of a count is 1
    assert all(few["projection"] > many["projection"] for few, many in pairwise(chosen))
    assert all(few["refinement"] < many["refinement"] for few, many in pairwise(chosen))
    assert CLUSTERS_BY_LEVEL[-1][0] == math.inf


def test_one_gaussian_has_little_to_find_in_a_density():
    assert mixture_shares(10**6, 0.5, 1)["density"] < mixture_shares(10**6, 0.5, 2)["density"]
    assert mixture_shares(10**6, 0.5, 1)["steps"] > mixture_shares(10**6, 0.5, 2)["steps"]
    at = int(stage_shares.ONE_GAUSSIAN_LEVEL)
    assert mixture_shares(at - 1, 0.5, 1) == exact(MIXTURE_SHARES) != mixture_shares(at, 0.5, 1)


def test_several_components_keep_the_fixed_shares():
    """No others were better on data that had not chosen them."""
    for expected in (100, 1000, 10_000, 10**6):
        assert mixture_shares(expected, 0.5, 2) == exact(MIXTURE_SHARES)


@pytest.mark.parametrize("function", [*FUNCTIONS, records_over_noise])
@pytest.mark.parametrize(
    ("given_", "named"),
    [
        ({"expected": 0}, "expected"),
        ({"expected": 10.5}, "expected"),
        ({"expected": "many"}, "expected"),
        ({"rho": 0.0}, "rho"),
        ({"rho": math.nan}, "rho"),
        ({"neighbours": "both"}, "neighbours"),
        ({"max_contributions": 0}, "max_contributions"),
    ],
)
def test_bad_input_is_named(function, given_, named):
    number = {cluster_shares: "n_clusters", mixture_shares: "n_components"}.get(function)
    known = {"expected": 100, "rho": 0.1} | ({number: 2} if number else {})
    with pytest.raises((ValueError, TypeError), match=named):
        function(**known | given_)


# -- what fits and plans take ---------------------------------------------------------------------------------


def clusters(**options):
    return PrivateModeClustering(**BUDGET | {"bounds": BOX, "n_clusters": 2} | options)


def mixture(**options):
    return PrivateGaussianMixture(**BUDGET | {"bounds": BOX, "n_components": 1} | options)


def test_plans_take_the_shares_of_the_number_that_is_expected():
    plan = plan_clusters(clusters(expect_records=300), BOX, 0.05, 0.03)
    assert plan.portions == cluster_shares(300, 0.03, 2)
    assert plan.to_dict()["portions"] == {name: str(share) for name, share in plan.portions.items()}
    assert plan.formerly == {"portions": CLUSTERING_SHARES}
    fitted = plan_mixture(mixture(expect_records=5000), 5, BOX, 0.03)
    assert fitted.portions == mixture_shares(5000, 0.03, 1)
    assert fitted.formerly == {"portions": MIXTURE_SHARES}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"expect_records": 300, "n_clusters": None},
        {"expect_records": 300, "shares": CLUSTERING_SHARES},
    ],
)
def test_without_a_number_or_with_shares_of_ones_own_nothing_changes(options):
    plan = plan_clusters(clusters(**options), BOX, 0.05, 0.03)
    assert plan.portions == exact(CLUSTERING_SHARES)
    assert plan.formerly is None
    own = plan_mixture(mixture(expect_records=5000, shares=MIXTURE_SHARES), 5, BOX, 0.03)
    assert own.portions == exact(MIXTURE_SHARES)
    assert own.formerly is None


@pytest.mark.parametrize("options", [{"refinement": False}, {"projection": "random"}])
def test_stages_that_are_not_made_leave_the_fixed_shares(options):
    alone = plan_clusters(clusters(**options), BOX, 0.05, 0.03)
    assert plan_clusters(clusters(expect_records=300, **options), BOX, 0.05, 0.03).portions == alone.portions


RECORDS = np.random.default_rng(3).normal(5.0, 1.0, (200, 5))
FITS = {
    "clusters": (lambda **options: clusters(refinement=1, **options), 300, cluster_shares, 2),
    "mixture": (lambda **options: mixture(steps=1, **options), 5000, mixture_shares, 1),
}


@pytest.fixture(params=FITS)
def kind(request):
    return FITS[request.param]


def test_the_shares_of_a_fit_are_those_of_the_function_whatever_the_records_are(kind):
    make, expected, function, k = kind
    found = []
    for rows in (RECORDS, RECORDS[:3], np.empty((0, 5))):
        with seeded_noise(1):
            found.append(make(expect_records=expected).fit(rows))
    rho = found[0].guarantee_.mu ** 2 / 2
    told = {name: float(share) for name, share in function(expected, rho, k).items()}
    assert found[0].shares_.keys() == told.keys()
    assert [fit.shares_ for fit in found] == [told] * 3
    assert found[0].shares_ != make().fit(RECORDS).shares_


def test_the_ledger_has_the_shares_and_old_answers_stay_free(kind, tmp_path):
    make, expected, function, k = kind
    with Ledger.create(tmp_path / "books", dataset="x", epsilon=9, delta=1e-4, high_water=tmp_path / "m") as ledger:
        old = make(ledger=ledger).fit(RECORDS)
        again = make(ledger=ledger, expect_records=expected).fit(RECORDS)
        assert again.receipt_["commit"] == old.receipt_["commit"]
        assert again.shares_ == old.shares_  # it is read by the shares that it was made with
        new = make(ledger=ledger, epsilon=0.9, expect_records=expected).fit(RECORDS)
        asked = ledger.answers()[-1].question.parameters["portions"]
        assert asked == {name: str(share) for name, share in function(expected, Ledger.rho_of(0.9, 1e-6), k).items()}
        same = make(ledger=ledger, epsilon=0.9, expect_records=expected + 1).fit(RECORDS)
        assert same.receipt_["commit"] == new.receipt_["commit"]
        assert same.shares_ == new.shares_ != old.shares_


def test_a_stage_left_out_of_the_sum_is_noticed(monkeypatch):
    """The curator refuses shares that would cost more than the terms, whatever function chose them."""
    greedy = dict.fromkeys(CLUSTERING_SHARES, "1/2")
    monkeypatch.setattr(stage_shares, "CLUSTERS_BY_LEVEL", ((math.inf, greedy),))
    with pytest.raises(RuntimeError):
        clusters(expect_records=300, refinement=1).fit(RECORDS)
