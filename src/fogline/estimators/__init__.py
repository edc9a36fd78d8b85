"""The scikit-learn face of fogline: ``fit`` releases once and reads; a fitted estimator holds released values only."""

from fogline.estimators.modes import PrivateModes

__all__ = ["PrivateModes"]
