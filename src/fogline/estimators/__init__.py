"""The scikit-learn face of fogline: ``fit`` releases once and reads; a fitted estimator holds released values only."""

from typing import TYPE_CHECKING

from fogline._lazy import lazy_names

if TYPE_CHECKING:
    from fogline.estimators.bounds import private_bounds
    from fogline.estimators.clustering import PrivateModeClustering
    from fogline.estimators.gaussians import private_gaussian, private_spherical_gaussian
    from fogline.estimators.hellinger import PrivateHellinger
    from fogline.estimators.locating import one_cluster, terrific_ball
    from fogline.estimators.mixture import PrivateGaussianMixture
    from fogline.estimators.modes import PrivateModes
    from fogline.estimators.pca import private_pca
    from fogline.estimators.pipelines import check_pipeline
    from fogline.estimators.profiles import profile
    from fogline.estimators.regression import PrivateModalRegression
    from fogline.estimators.sampler import IntegralSampler
    from fogline.estimators.strata import private_strata

__all__ = [
    "IntegralSampler",
    "PrivateGaussianMixture",
    "PrivateHellinger",
    "PrivateModalRegression",
    "PrivateModeClustering",
    "PrivateModes",
    "check_pipeline",
    "one_cluster",
    "private_bounds",
    "private_gaussian",
    "private_pca",
    "private_spherical_gaussian",
    "private_strata",
    "profile",
    "terrific_ball",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "IntegralSampler": "sampler",
        "PrivateGaussianMixture": "mixture",
        "PrivateHellinger": "hellinger",
        "PrivateModalRegression": "regression",
        "PrivateModeClustering": "clustering",
        "PrivateModes": "modes",
        "check_pipeline": "pipelines",
        "one_cluster": "locating",
        "private_bounds": "bounds",
        "private_gaussian": "gaussians",
        "private_pca": "pca",
        "private_spherical_gaussian": "gaussians",
        "private_strata": "strata",
        "profile": "profiles",
        "terrific_ball": "locating",
    },
)
