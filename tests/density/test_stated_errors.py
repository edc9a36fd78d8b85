"""Every stated error says in its docstring what is in it (privacy, sampling, smoothing), and some test measures it."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import fogline
from fogline import DensitySketch
from fogline._results import ReadingResults
from fogline.estimators._base import ReleasedState
from fogline.testing import seeded_noise

TESTS = Path(__file__).resolve().parents[1]

OTHERS = (
    "fogline.algorithms.hellinger_descent.ExpectedFit",
    "fogline.density.branches.branch_map.Branches",
    "fogline.density.hellinger.inference.HellingerFit",
    "fogline.density.hellinger.inference.Explained",
    "fogline.density.modes.peaks.Basins",
    "fogline.density.modes.tables.PointMass",
    "fogline.density.point_masses.Heap",
    "fogline.density.posterior.estimates.Band",
    "fogline.density.posterior.estimates.Estimate",
    "fogline.estimators.bounds.PrivateBounds",
    "fogline.planning.clustering.NoiseAtEpsilon",
    "fogline.planning.density.DensityAtEpsilon",
    "fogline.planning.modes.AtEpsilon",
    "fogline.planning.regression.BranchesAtEpsilon",
)
"""Results that are neither estimators nor readings, those of plans among them."""

HERE = "density/test_stated_errors.py"
MEASURED = {
    "AtEpsilon": "planning/test_expected.py::test_expected_errors_are_those_that_fits_make",
    "Band": "density/test_posterior.py::test_bands_hold_their_curve_and_the_pointwise_intervals",
    "Basins": "density/test_basins.py::test_the_error_of_a_share_is_that_of_repeated_releases",
    "BranchMap": f"{HERE}::test_bands_of_branches_hold_the_modes",
    "Branches": f"{HERE}::test_bands_of_branches_hold_the_modes",
    "BranchesAtEpsilon": "estimators/test_regression.py::test_planned_errors_are_about_those_that_a_fit_states",
    "ClusterReading": f"{HERE}::test_errors_of_clusters_are_as_large_as_they_are_said_to_be",
    "DensityAtEpsilon": "planning/test_density.py::test_the_noise_is_exactly_that_of_a_release",
    "Estimate": "density/test_calibration.py::test_coverage_is_near_its_level",
    "ExpectedFit": "estimators/test_hellinger.py::test_expected_errors_are_those_of_a_fit",
    "Explained": "estimators/test_hellinger.py::test_clean_records_are_all_explained",
    "FamilyFit": f"{HERE}::test_errors_of_a_fit_are_as_large_as_they_are_said_to_be",
    "HellingerFit": "estimators/test_hellinger.py::test_intervals_cover_as_often_as_they_say",
    "NoiseAtEpsilon": "estimators/test_clustering.py::test_the_planned_noise_is_about_that_of_a_fit",
    "PrivateBounds": "estimators/test_bounds.py::test_a_column_is_counted_within_its_noise",
    "Heap": "density/test_point_masses.py::test_shares_agree_within_their_errors",
    "MixtureReading": "density/test_leaf_mixture.py::test_errors_cover_and_grow_with_noise",
    "ModeTable": "density/test_mode_truth.py::test_intervals_hold_and_are_not_far_too_wide",
    "PointMass": "density/test_point_masses.py::test_shares_agree_within_their_errors",
    "PrivateGaussianMixture": "estimators/test_mixture.py::test_errors_are_about_right",
    "PrivateHellinger": "estimators/test_hellinger.py::test_intervals_cover_as_often_as_they_say",
    "PrivateModeClustering": "estimators/test_clustering.py::test_errors_are_as_large_as_they_are_said_to_be",
    "PrivateModes": "density/test_mode_truth.py::test_intervals_hold_and_are_not_far_too_wide",
}
"""Where stated errors are compared with what they are errors of, by class."""


def subclasses(kind):
    for cls in kind.__subclasses__():
        yield cls
        yield from subclasses(cls)


def stating():
    """Estimators, readings and other results, by name."""
    for package in (fogline.density, fogline.estimators):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(found.name)
    classes = {cls for base in (ReadingResults, ReleasedState) for cls in subclasses(base)}
    for name in OTHERS:
        module, _, what = name.rpartition(".")
        classes.add(getattr(importlib.import_module(module), what))
    named = {cls.__name__: cls for cls in classes if not cls.__name__.startswith("_")}
    return {name: cls for name, cls in sorted(named.items()) if entries(cls)}


def entries(cls):
    """Documented attributes that state an error or an interval, with what is said of them."""
    lines = (cls.__doc__ or "").splitlines()
    found = {}
    for i, line in enumerate(lines):
        entry = re.fullmatch(r"( *)((?:\w+, )*\w+) : .*", line)
        if entry and re.search(r"error(?!_factor)|interval|\blow\b|privacy_covariance", entry[2]):
            body = []
            for other in lines[i + 1 :]:
                if other.strip() and len(other) - len(other.lstrip()) <= len(entry[1]):
                    break
                body.append(other.strip())
            found[entry[2]] = " ".join(body).lower()
    return found


STATING = stating()


@pytest.mark.parametrize("name", STATING)
def test_every_docstring_names_the_parts_of_the_error(name):
    unclear = {}
    for attribute, text in entries(STATING[name]).items():
        # the ends of a cell are no interval of an estimate
        words = "" if "ends of the cell" in text else text.replace("draw of the records", "sampling")
        missing = [part for part in ("privacy", "sampling", "smooth") if words and part not in words]
        if (missing and "the same errors" not in text) or not text:
            unclear[attribute] = missing
    assert unclear == {}


def test_stated_errors_are_found():
    assert set(STATING) >= {"ModeTable", "ClusterReading", "PrivateModes", "PrivateHellinger", "Estimate"}
    assert len(entries(STATING["MixtureReading"])) == 3
    assert entries(type("Odd", (), {"__doc__": "\n    a_error : float\n        Of a.\n    b : int"})) == {
        "a_error": "of a."
    }


def test_every_stated_error_is_measured_by_a_test():
    assert sorted(set(STATING) - set(MEASURED)) == []
    for where in MEASURED.values():
        path, _, function = where.partition("::")
        tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, where


# -- measured here -------------------------------------------------------------------------------------------


def released(X, bounds, seed):
    with seeded_noise(seed):
        return DensitySketch(bounds, features="leaves").update(X).release(epsilon=1.0)


def test_errors_of_clusters_are_as_large_as_they_are_said_to_be():
    """Shares and centres of the population in the part that a cluster has, of four releases."""

    def draw(n, rng):
        return np.where(rng.random(n) < 0.6, rng.normal(20, 3, n), rng.normal(42, 4, n))[:, None]

    fresh, off = draw(100_000, np.random.default_rng(99)), []
    for seed in range(4):
        found = released(draw(1500, np.random.default_rng(seed)), [(0, 60)], seed + 1).clusters(2)
        label = found.predict(fresh)
        for k in range(2):
            own = fresh[label == k]
            off.append((len(own) / len(fresh) - found.shares[k]) / found.share_errors[k])
            off.append((own.mean() - found.centres[k, 0]) / found.centre_errors[k, 0])
    # Errors that are half too small would give 2.3 and more, errors twice too large 0.25.
    assert 0.4 < np.mean(np.square(off)) < 2.2


def test_errors_of_a_fit_are_as_large_as_they_are_said_to_be():
    off, lost = [], []
    for seed in range(6):
        x = np.random.default_rng(seed).normal(20, 3, (800, 1))
        found = released(x, [(0, 60)], seed + 1).fit("normal")
        off += [(found.params[name] - true) / found.standard_errors[name] for name, true in (("mu", 20), ("sigma", 3))]
        lost.append((1 - found.share) / found.share_error)  # the share is at most one: an error on one side
    assert 0.2 < np.mean(np.square(off)) < 2.2
    assert np.max(lost) < 3
    assert np.mean(lost) > 0.1


def test_bands_of_branches_hold_the_modes():
    rng = np.random.default_rng(0)
    x = rng.random(5000)
    y = np.sin(2 * np.pi * x) + rng.normal(0, 0.25, 5000)
    found = released(np.column_stack([x, y]), [(0, 1), (-3, 3)], 1).branches()
    true = np.sin(2 * np.pi * found.axes[0][found.place])
    assert len(true) >= 45
    # Neighbouring places share their records: 49 places are about ten intervals.
    assert np.mean((found.low <= true) & (true <= found.high)) > 0.8
    assert np.mean(((found.positions - true) / (found.high - found.low) * 3.92) ** 2) > 0.2
