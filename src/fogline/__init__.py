"""Fogline: the shape of sensitive data, under differential privacy.

One noisy release of a density, from which everything else is read at no further cost. Start with
:func:`~fogline.release`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fogline import audit, datasets, federation, units
    from fogline.accounting import Budget, Guarantee, PrivacyWarning
    from fogline.density.named_densities import Releases
    from fogline.density.private_density import PrivateDensity
    from fogline.estimators import (
        IntegralSampler,
        PrivateGaussianMixture,
        PrivateHellinger,
        PrivateModalRegression,
        PrivateModeClustering,
        PrivateModes,
        check_pipeline,
        one_cluster,
        private_bounds,
        private_gaussian,
        private_pca,
        private_spherical_gaussian,
        private_strata,
        profile,
        terrific_ball,
    )
    from fogline.ledger import Ledger
    from fogline.releases.density_sketch import DensitySketch
    from fogline.releases.table_release import release
    from fogline.sources.registry import table

__all__ = [
    "Budget",
    "DensitySketch",
    "Guarantee",
    "IntegralSampler",
    "Ledger",
    "PrivacyWarning",
    "PrivateDensity",
    "PrivateGaussianMixture",
    "PrivateHellinger",
    "PrivateModalRegression",
    "PrivateModeClustering",
    "PrivateModes",
    "Releases",
    "__version__",
    "audit",
    "check_pipeline",
    "datasets",
    "federation",
    "one_cluster",
    "private_bounds",
    "private_gaussian",
    "private_pca",
    "private_spherical_gaussian",
    "private_strata",
    "profile",
    "release",
    "table",
    "terrific_ball",
    "units",
]

__version__ = "0.2.0"

_HOMES = {
    "Budget": "fogline.accounting",
    "DensitySketch": "fogline.releases",
    "Guarantee": "fogline.accounting",
    "IntegralSampler": "fogline.estimators",
    "Ledger": "fogline.ledger",
    "PrivacyWarning": "fogline.accounting",
    "PrivateDensity": "fogline.density",
    "PrivateGaussianMixture": "fogline.estimators",
    "PrivateHellinger": "fogline.estimators",
    "PrivateModalRegression": "fogline.estimators",
    "PrivateModeClustering": "fogline.estimators",
    "PrivateModes": "fogline.estimators",
    "Releases": "fogline.density.named_densities",
    "check_pipeline": "fogline.estimators",
    "one_cluster": "fogline.estimators",
    "private_bounds": "fogline.estimators",
    "private_gaussian": "fogline.estimators",
    "private_pca": "fogline.estimators",
    "private_strata": "fogline.estimators",
    "private_spherical_gaussian": "fogline.estimators",
    "profile": "fogline.estimators",
    "release": "fogline.releases.table_release",
    "table": "fogline.sources",
    "terrific_ball": "fogline.estimators",
}
_MODULES = ("audit", "datasets", "federation", "units")
_GONE = {
    "contenders": "fogline_research.baselines",
    "metrics": "fogline_research.metrics",
    "published": "fogline_research.as_published",
}
"""Modules that left in 0.2. Where ``fogline-research`` is installed, their old names work until 0.3."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``fogline --help`` needs none of them."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"fogline.{name}")
    if name in _GONE:
        return _moved_module(name)
    raise AttributeError(f"module 'fogline' has no attribute {name!r}")


def _moved_module(name: str) -> Any:
    """Import a module that went to ``fogline_research``, and say so."""
    from fogline._validation.process import warn_deprecated

    new = _GONE[name]
    try:
        module = importlib.import_module(new)
    except ModuleNotFoundError:
        words = f"fogline.{name} is {new} now, of the distribution fogline-research, which is not installed"
        raise AttributeError(words) from None
    warn_deprecated(f"fogline.{name}", since="0.2", removed_in="0.3", instead=new)
    return module


def __dir__() -> list[str]:
    return sorted(__all__)
