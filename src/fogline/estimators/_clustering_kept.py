"""What a fitted clustering keeps: released values, by the names of its attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fogline.accounting.guarantee import Guarantee
from fogline.estimators._clustering_grid import GridClusters
from fogline.estimators._clustering_staged import FoundClusters
from fogline.sketch.private_density import PrivateDensity

__all__ = ["grid_attributes", "staged_attributes"]


def grid_attributes(found: GridClusters, density: PrivateDensity) -> dict[str, Any]:
    """Attributes of a fit that read the density of the columns themselves."""
    shares = found.regions.shares
    return {
        "cluster_centers_": found.modes.positions,
        "standard_errors_": found.modes.standard_errors,
        "count_": density.count,
        "count_standard_error_": density.count_sd,
        "weights_": shares,
        "sizes_": shares * density.count,
        "size_standard_errors_": np.hypot(found.regions.share_errors * density.count, shares * density.count_sd),
        "components_": None,
        "mean_": None,
        "projected_centers_": None,
        "projected_covariances_": None,
        "projected_standard_errors_": None,
        "shares_": {"density": 1.0},
        "regions_": found,
        "bandwidth_": found.bandwidth,
        "density_": density,
        "receipt_": density.receipt,
        "guarantee_": density.guarantee,
        "message_": found.modes.message,
    }


def staged_attributes(found: FoundClusters, guarantee: Guarantee, receipt: dict[str, Any] | None) -> dict[str, Any]:
    """Attributes of a fit in stages; centres are cut to the box."""
    clusters, lattice = found.clusters, found.projection.lattice
    count = found.spread.count
    sizes = clusters.weights * count
    drawn = np.einsum("kii->ki", clusters.covariances) / np.maximum(sizes, 1.0)[:, None]
    squares = (found.centre_variances + drawn) @ found.projection.components**2 + found.outside_sd**2
    return {
        "cluster_centers_": np.clip(found.projection.places(clusters.means), lattice.box[:, 0], lattice.box[:, 1]),
        "standard_errors_": np.sqrt(squares) * lattice.half_widths,
        "count_": count,
        "count_standard_error_": found.spread.count_sd,
        "weights_": clusters.weights,
        "sizes_": sizes,
        "size_standard_errors_": np.sqrt(
            (found.weight_sds * count) ** 2 + (clusters.weights * found.spread.count_sd) ** 2 + sizes
        ),
        "components_": found.projection.components,
        "mean_": found.projection.mean,
        "projected_centers_": clusters.means,
        "projected_covariances_": clusters.covariances,
        "projected_standard_errors_": np.sqrt(found.centre_variances + drawn),
        "shares_": {name: float(portion) for name, portion in found.portions.items() if portion},
        "regions_": None,
        "bandwidth_": found.spec.planned[0],
        "density_": PrivateDensity(found.spec, found.released, scale=found.scale, guarantee=guarantee, receipt=receipt),
        "receipt_": receipt,
        "guarantee_": guarantee,
        "message_": found.message,
    }
