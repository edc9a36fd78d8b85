"""Families fitted to the leaf masses of a released density."""

import numpy as np
import pytest

from fogline import DensitySketch, PrivateHellinger
from fogline.density.hellinger.family_fit import FitAssumption
from fogline.density.hellinger.leaf_fit import LEAF_FIT
from fogline.density.hellinger.minimum_distance import leaf_probabilities
from fogline.families import Beta, Gamma, MultivariateNormal, Poisson, family_named
from fogline.testing import seeded_noise

N = 8000


def released(x, bounds, seed=1, epsilon=1.0, **options):
    x = np.asarray(x, dtype=float)
    x = x[:, None] if x.ndim == 1 else x
    with seeded_noise(seed):
        return DensitySketch(bounds, features="leaves", **options).update(x).release(epsilon=epsilon)


def covers(fit, theta, slack=1.0):
    """Whether intervals, stretched by a slack around the estimates, hold the true parameters."""
    for name, value in theta.items():
        low, high = fit.intervals[name]
        middle = fit.params[name]
        if not middle - slack * (middle - low) <= value <= middle + slack * (high - middle):
            return False
    return True


def test_probabilities_of_cells():
    edges = np.linspace(0, 10, 41)
    q = leaf_probabilities(Gamma(), np.array([2.0, 1.5]), [edges])
    inside = np.diff(Gamma().cdf([2.0, 1.5], edges))
    assert q == pytest.approx(inside / inside.sum())
    # a cell holds its lower end: the zeros of a zero-inflated family lie in the first cell
    zeros = leaf_probabilities(family_named("zero-inflated gamma"), np.array([0.4, 2.0, 1.5]), [edges])
    assert zeros[0] == pytest.approx((0.4 + 0.6 * inside[0]) / (0.4 + 0.6 * inside.sum()))
    counts = leaf_probabilities(Poisson(), np.array([2.0]), [np.arange(-0.5, 20)])
    assert counts == pytest.approx(Poisson().pdf([2.0], np.arange(20.0)), abs=1e-9)
    # in two columns the mean over a cell, by the variance of the cell
    axes = [np.linspace(-4, 4, 33)] * 2
    both = leaf_probabilities(MultivariateNormal(2), np.array([0, 0, 1, 1, 0.0]), axes)
    one = leaf_probabilities(family_named("normal"), np.array([0, 1.0]), axes[:1])
    assert both == pytest.approx(np.outer(one, one).ravel(), abs=2e-6)


@pytest.mark.parametrize(
    ("family", "theta", "bounds", "options", "draw"),
    [
        ("gamma", {"shape": 3.0, "scale": 2.0}, (0, 40), {}, lambda r: r.gamma(3, 2, N)),
        ("lognormal", {"mu": 1.0, "sigma": 0.6}, (0, 60), {}, lambda r: r.lognormal(1, 0.6, N)),
        ("lomax", {"shape": 3.0, "scale": 4.0}, (0, 60), {}, lambda r: 4 * r.pareto(3, N)),
        ("poisson", {"rate": 3.0}, (0, 40), {"steps": 1}, lambda r: r.poisson(3.0, N)),
        ("negative binomial", {"mean": 4.0, "size": 2.0}, (0, 60), {"steps": 1},
         lambda r: r.negative_binomial(2, 2 / 6, N)),
        ("zero-inflated gamma", {"zero": 0.3, "shape": 2.0, "scale": 3.0}, (0, 60), {},
         lambda r: np.where(r.random(N) < 0.3, 0, r.gamma(2, 3, N))),
        (Beta(0, 100), {"a": 2.0, "b": 5.0}, (0, 100), {}, lambda r: 100 * r.beta(2, 5, N)),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)  # fmt: skip
def test_parameters_within_their_errors(family, theta, bounds, options, draw):
    density = released(draw(np.random.default_rng(3)), [bounds], **options)
    fit = density.fit(family)
    assert covers(fit, theta, slack=2.0), (fit.params, fit.intervals)  # four standard errors
    for name, value in theta.items():
        # a few records that nobody saw may lie in the empty tail, where they say most about a Lomax law
        assert fit.standard_errors[name] < (0.2 if family == "lomax" else 0.15) * max(value, 0.3)
    assert fit.share > 0.97
    assert fit.share_error < 0.03
    assert np.all(np.linalg.eigvalsh(fit.covariance) >= -1e-12)
    assert density.fit(family).params == fit.params  # the same release gives the same answer


def test_normal_in_two_columns_and_one_of_them():
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal([3, -1], [[1, 0.6], [0.6, 1.5]], N)
    density = released(x, [(-3, 9), (-7, 5)])
    theta = {"mu_1": 3.0, "mu_2": -1.0, "sigma_1": 1.0, "sigma_2": 1.5**0.5, "corr_12": 0.6 / 1.5**0.5}
    both = density.fit("bivariate normal")
    assert all(abs(both.params[name] - value) < 0.1 for name, value in theta.items())
    one = density.fit("normal", 1)
    assert one.columns == ("x2",)
    assert abs(one.params["mu"] + 1) < 0.1
    with pytest.raises(ValueError, match="column must be one of"):
        density.fit("normal")
    with pytest.raises(ValueError, match="column: the 2-dim"):
        density.fit("bivariate normal", 0)
    with pytest.raises(ValueError, match="family: the 3-dim"):
        density.fit("trivariate normal")


def test_contamination_is_left_out_found_or_told():
    rng = np.random.default_rng(5)
    clean = rng.gamma(3, 2, N)
    theta = {"shape": 3.0, "scale": 2.0}
    far = np.where(rng.random(N) < 0.15, rng.normal(30, 1, N), clean)
    fit = released(far, [(0, 40)]).fit("gamma")
    assert covers(fit, theta, slack=2.0)
    assert abs(fit.share - 0.85) < 0.03
    group = np.where(rng.random(N) < 0.15, rng.normal(11, 1.5, N), clean)
    fit = released(group, [(0, 40)]).fit("gamma")
    assert not fit.assumption.holds
    assert covers(fit, theta)
    assert "does not fit" in str(fit.assumption)
    assert fit.share < 0.98


def test_what_holds_most_of_the_records_is_never_left_out():
    rng = np.random.default_rng(0)
    x = rng.lognormal(1, 0.6, 10_000)
    far = rng.random(len(x)) < 0.15
    x[far] = rng.uniform(15, 60, far.sum())
    box = {"mu": (-2, 4), "sigma": (0.05, 2)}
    fit = released(x, [(0, 3000)]).fit("lognormal", parameter_bounds=box)
    assert abs(fit.params["mu"] - 1) < 0.15
    # the same of a release of Fourier sums by the estimator, which once fitted the contamination
    with seeded_noise(1):
        model = PrivateHellinger(family="lognormal", parameter_bounds=box, epsilon=1.0, delta=1e-6).fit(x)
    assert abs(model.params_["mu"] - 1) < 0.05
    assert abs(model.params_["sigma"] - 0.6) < 0.05
    assert sum(lump.share for lump in model.explained_.lumps) < LEAF_FIT.most_cut


def test_an_assumption_says_what_cannot_be_promised():
    sure = FitAssumption(holds=True, p_value=0.5, hidden=0.01, shift=0.2, breakdown=2.0)
    assert "promise" not in str(sure)
    unsure = FitAssumption(holds=True, p_value=0.5, hidden=0.04, shift=2.0, breakdown=2.0)
    assert "4% of other records" in str(unsure)
    assert "no promise" in str(unsure)


@pytest.mark.parametrize("records", [0, 1, 30])
def test_hardly_any_records(records):
    x = np.random.default_rng(0).gamma(2, 2, records)
    fit = released(x, [(0, 40)], seed=7).fit("gamma", parameter_bounds={"shape": (0.2, 10), "scale": (0.2, 20)})
    for name, (low, high) in fit.intervals.items():
        assert low <= fit.params[name] <= high
    assert fit.message


def test_one_value_and_all_at_the_wall():
    for x in (np.full(2000, 5.0), np.zeros(2000)):
        fit = released(x, [(0, 40)]).fit("gamma", parameter_bounds={"shape": (0.2, 10), "scale": (0.2, 20)})
        assert np.all(np.isfinite(list(fit.params.values())))


def test_the_estimator_reads_a_release():
    rng = np.random.default_rng(1)
    x = rng.gamma(2, 3, N)
    for options, terms in (({"features": "leaves"}, {}), ({"features": "grid"}, {"delta": 1e-6})):
        with seeded_noise(2):
            density = DensitySketch([(0, 60)], **options).update(x[:, None]).release(epsilon=1.0, **terms)
        model = PrivateHellinger(family="gamma", confidence=0.9).read(density)
        assert model.density_ is density
        assert model.guarantee_ == density.guarantee
        assert abs(model.params_["shape"] - 2) < 0.35
        inner, outer = model.confidence_interval(0.5)["shape"], model.confidence_intervals_["shape"]
        assert outer[0] < inner[0] < inner[1] < outer[1]
        robust = model.robust_intervals_["shape"]
        assert robust[0] <= outer[0] < outer[1] <= robust[1]
        assert "shape" in str(model.summary())
    with pytest.raises(TypeError, match="density"):
        PrivateHellinger(family="gamma").read(x)
    with pytest.raises(TypeError, match="family"):
        PrivateHellinger().read(density)


def test_atoms_are_not_for_descents():
    model = PrivateHellinger(family="poisson", parameter_bounds={"rate": (1, 9)}, method="gradient", hdp=0.2)
    with pytest.raises(ValueError, match="method"):
        model.fit(np.ones((50, 1)))


def test_counts_by_the_release_of_fourier_sums():
    x = np.random.default_rng(2).poisson(4.0, 4000).astype(float)
    box = {"rate": (0.5, 20)}
    with seeded_noise(3):
        model = PrivateHellinger(family="poisson", parameter_bounds=box, bounds=[(0, 40)], steps=1, epsilon=1.0,
                                 delta=1e-6).fit(x)  # fmt: skip
    assert abs(model.params_["rate"] - 4) < 0.2


def test_many_zeros_are_told_with_the_family_that_has_them():
    stay = np.where(np.arange(N) % 4 == 0, 0.0, np.random.default_rng(5).gamma(2.0, 3.0, N))
    density = released(stay, [(0, 60)])
    assert "% of the records are at 0" in density.fit("gamma").message
    assert "'zero-inflated gamma'" in density.fit("gamma").message
    assert "records are at 0" not in density.fit("zero-inflated gamma").message
