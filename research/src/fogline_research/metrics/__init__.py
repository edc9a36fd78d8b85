"""Numbers that say how good an answer is: modes against true modes, densities against the density of the data."""

from fogline_research.metrics.cell_masses import (
    CellYardstick,
    block_sums,
    interval_coverage,
    quantiles_of_cells,
    rank_errors,
)
from fogline_research.metrics.densities import (
    Quadrature,
    best_in_mollifier,
    kl_divergence,
    mode_coverage,
    negative_log_likelihood,
)
from fogline_research.metrics.mixtures import (
    MixtureErrors,
    gaussian_norms,
    gaussian_tv,
    log_likelihood_gap,
    mixture_errors,
    mixture_log_pdf,
)
from fogline_research.metrics.modes import ellipse_covers, matching_mse, nearest_mode_mse, penalised_mse

__all__ = [
    "CellYardstick",
    "MixtureErrors",
    "Quadrature",
    "best_in_mollifier",
    "block_sums",
    "ellipse_covers",
    "gaussian_norms",
    "gaussian_tv",
    "interval_coverage",
    "kl_divergence",
    "log_likelihood_gap",
    "matching_mse",
    "mixture_errors",
    "mixture_log_pdf",
    "mode_coverage",
    "nearest_mode_mse",
    "negative_log_likelihood",
    "penalised_mse",
    "quantiles_of_cells",
    "rank_errors",
]
