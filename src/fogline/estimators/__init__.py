"""The scikit-learn face of fogline: ``fit`` releases once and reads; a fitted estimator holds released values only."""

from fogline.estimators.clustering import PrivateModeClustering
from fogline.estimators.hellinger import PrivateHellinger
from fogline.estimators.modes import PrivateModes
from fogline.estimators.pca import private_pca
from fogline.estimators.regression import PrivateModalRegression

__all__ = ["PrivateHellinger", "PrivateModalRegression", "PrivateModeClustering", "PrivateModes", "private_pca"]
