"""Fogline: the shape of sensitive data, under differential privacy.

One noisy release of a density, from which modes are read at no further cost. Start with
:class:`~fogline.PrivateModes`; :class:`~fogline.DensitySketch` is the release alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fogline import audit, contenders, datasets, federation, metrics, published, units
    from fogline.accounting import Budget, Guarantee, PrivacyWarning
    from fogline.sources.registry import table
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
        terrific_ball,
    )
    from fogline.ledger import Ledger
    from fogline.release.density_sketch import DensitySketch
    from fogline.density.private_density import PrivateDensity

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
    "__version__",
    "audit",
    "check_pipeline",
    "contenders",
    "datasets",
    "federation",
    "metrics",
    "one_cluster",
    "private_bounds",
    "private_gaussian",
    "private_pca",
    "private_spherical_gaussian",
    "private_strata",
    "published",
    "table",
    "terrific_ball",
    "units",
]

__version__ = "0.2.0"

_HOMES = {
    "Budget": "fogline.accounting",
    "DensitySketch": "fogline.release",
    "Guarantee": "fogline.accounting",
    "IntegralSampler": "fogline.estimators",
    "Ledger": "fogline.ledger",
    "PrivacyWarning": "fogline.accounting",
    "PrivateDensity": "fogline.release",
    "PrivateGaussianMixture": "fogline.estimators",
    "PrivateHellinger": "fogline.estimators",
    "PrivateModalRegression": "fogline.estimators",
    "PrivateModeClustering": "fogline.estimators",
    "PrivateModes": "fogline.estimators",
    "check_pipeline": "fogline.estimators",
    "one_cluster": "fogline.estimators",
    "private_bounds": "fogline.estimators",
    "private_gaussian": "fogline.estimators",
    "private_pca": "fogline.estimators",
    "private_strata": "fogline.estimators",
    "private_spherical_gaussian": "fogline.estimators",
    "table": "fogline.sources",
    "terrific_ball": "fogline.estimators",
}
_MODULES = ("audit", "contenders", "datasets", "federation", "metrics", "published", "units")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``fogline --help`` needs none of them."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"fogline.{name}")
    raise AttributeError(f"module 'fogline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
