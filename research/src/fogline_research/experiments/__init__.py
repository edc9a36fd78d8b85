"""Rerun tables of the papers: fogline's certified estimators and the published algorithms side by side.

Every method sees the same data in the same run. A seed fixes the data (and the published algorithms, which are
experiments), never the certified noise. delta is 1e-5, for mixtures 1e-6.
"""

from fogline_research.experiments._shared import DELTA
from fogline_research.experiments.clusters import ClusterRow, cluster_cells, reproduce_clusters
from fogline_research.experiments.hellinger import HellingerCell, HellingerRow, hellinger_cells, reproduce_hellinger
from fogline_research.experiments.integral import (
    INTEGRAL_METHODS,
    IntegralCell,
    IntegralRow,
    integral_cells,
    reproduce_integral,
)
from fogline_research.experiments.mixtures import (
    MIXTURE_METHODS,
    RECOVERED_TV,
    MixtureCell,
    MixtureRow,
    mixture_cells,
    ordinary_mixture,
    partition_fit,
    reproduce_mixtures,
)
from fogline_research.experiments.modes import METHODS, Cell, Row, geometric_mean_ratio, paper_cells, reproduce_modes
from fogline_research.experiments.regression import RegressionRow, branch_error, regression_cells, reproduce_regression

__all__ = [
    "DELTA",
    "INTEGRAL_METHODS",
    "METHODS",
    "MIXTURE_METHODS",
    "RECOVERED_TV",
    "Cell",
    "ClusterRow",
    "HellingerCell",
    "HellingerRow",
    "IntegralCell",
    "IntegralRow",
    "MixtureCell",
    "MixtureRow",
    "RegressionRow",
    "Row",
    "branch_error",
    "cluster_cells",
    "geometric_mean_ratio",
    "hellinger_cells",
    "integral_cells",
    "mixture_cells",
    "ordinary_mixture",
    "paper_cells",
    "partition_fit",
    "regression_cells",
    "reproduce_clusters",
    "reproduce_hellinger",
    "reproduce_integral",
    "reproduce_mixtures",
    "reproduce_modes",
    "reproduce_regression",
]
