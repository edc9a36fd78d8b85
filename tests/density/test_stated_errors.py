"""Every stated error says in its docstring what is in it: privacy, sampling and smoothing, or that there is none."""

import importlib

import pytest

STATED = [
    "fogline.PrivateGaussianMixture",
    "fogline.PrivateHellinger",
    "fogline.PrivateModalRegression",
    "fogline.PrivateModeClustering",
    "fogline.PrivateModes",
    "fogline.density.branches.branch_map.BranchMap",
    "fogline.density.components.leaf_clusters.ClusterReading",
    "fogline.density.components.leaf_mixture.MixtureReading",
    "fogline.density.hellinger.leaf_fit.FamilyFit",
    "fogline.density.modes.peaks.Basins",
    "fogline.density.modes.tables.ModeTable",
    "fogline.density.modes.tables.PointMass",
    "fogline.density.posterior.estimates.Estimate",
]


@pytest.mark.parametrize("name", STATED)
def test_the_docstring_names_the_parts_of_the_error(name):
    module, _, what = name.rpartition(".")
    text = " ".join((getattr(importlib.import_module(module), what).__doc__ or "").lower().split())
    assert "error" in text
    assert [part for part in ("privacy", "sampling", "smooth") if part not in text] == []
