"""Everything a page or a JSON document says of a fitted estimator: released values and public configuration."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fogline
from fogline.estimators import PrivateModes
from fogline.report.standing import Standings, standings
from fogline.sketch.basins import Basins, basins
from fogline.sketch.landscape import find_peaks

__all__ = [
    "Findings",
    "column_names",
    "estimator_document",
    "find_modes",
    "mode_values",
    "modes_document",
    "python_call",
    "versions",
]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Findings:
    """What was released, read at one bandwidth for the picture.

    Attributes
    ----------
    estimator : PrivateModes
        Fitted.
    columns : tuple of str
    bandwidth : array of shape (d,)
        At which the picture is read: the finest at which a mode was located, or the clearest peak if none was.
    basins : Basins
    standings : Standings
    noise_sd : float
        Privacy noise of the picture.
    sampling_sd : array of the grid's shape
        Noise of the draw of the records.
    fog_base, fog_height : arrays of the grid's shape
        From where a peak is measured, and how far above it must rise.
    """

    estimator: PrivateModes
    columns: tuple[str, ...]
    bandwidth: FloatArray
    basins: Basins
    standings: Standings
    noise_sd: float
    sampling_sd: FloatArray
    fog_base: FloatArray
    fog_height: FloatArray

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def k(self) -> int:
        """Number of modes."""
        return len(self.modes)

    @property
    def modes(self) -> FloatArray:
        """Positions, shape (k, d)."""
        return np.asarray(self.estimator.modes_)

    @property
    def covariances(self) -> FloatArray:
        """Error of each position, shape (k, d, d)."""
        return np.asarray(self.estimator.covariances_)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public range of each column."""
        return tuple((float(low), float(high)) for low, high in self.estimator.density_.spec.bounds)


def find_modes(estimator: PrivateModes, columns: Sequence[str] | None = None) -> Findings:
    """Read what a page shows from a fitted estimator; costs no privacy."""
    density = estimator.density_
    names = column_names(estimator, columns)
    seen = standings(density, estimator.modes_, level=estimator.level, bandwidth=estimator.bandwidth)
    bandwidth = _picture_bandwidth(estimator, seen)
    reading = density.reading(bandwidth)
    found = basins(density, estimator.modes_, bandwidth)
    squared = 1 / float(np.prod(2 * np.sqrt(np.pi) * bandwidth))
    values = found.grid.values
    base, height = _fog(estimator, found, bandwidth, seen) if len(names) == 1 else (0 * values, 0 * values)
    return Findings(
        estimator=estimator,
        columns=names,
        bandwidth=bandwidth,
        basins=found,
        standings=seen,
        noise_sd=reading.noise_sd,
        sampling_sd=np.sqrt(squared * np.maximum(values, 0) / density.count),
        fog_base=base,
        fog_height=height,
    )


def _picture_bandwidth(estimator: PrivateModes, seen: Standings) -> FloatArray:
    if len(estimator.modes_):
        return np.asarray(np.min(estimator.bandwidth_, axis=0))
    return estimator.density_.bandwidth if seen.other is None else np.array(seen.other.bandwidth)


def _fog(
    estimator: PrivateModes, found: Basins, bandwidth: FloatArray, seen: Standings
) -> tuple[FloatArray, FloatArray]:
    """Where the fog begins and how thick it is, along one column: it lies in the passes between the peaks.

    Without a mode all is fog, up to where the highest summit would have to rise.
    """
    values, axis = found.grid.values, found.grid.axes[0]
    if not len(estimator.modes_):
        missing = 0.0 if seen.other is None else max(seen.other.fogline - seen.other.prominence, 0.0)
        base = np.full(values.shape, min(float(values.min()), 0.0))
        return base, float(values.max()) + missing - base
    peaks = find_peaks(values[None])
    base = (peaks.height - peaks.prominence)[peaks.basin[0]]
    for k, mode in enumerate(estimator.modes_):
        home = peaks.basin[0][int(np.argmin(np.abs(axis - mode[0])))]
        base[found.labels == k] = peaks.height[home] - peaks.prominence[home]
    return np.maximum(base, 0.0), np.asarray(estimator.density_.fogline(bandwidth, estimator.level, at=axis[:, None]))


def column_names(estimator: Any, columns: Sequence[str] | None = None) -> tuple[str, ...]:
    """Names given, else those of the fitted frame or file, else x1, x2, ..."""
    d = int(estimator.n_features_in_)
    if columns is None:
        columns = [str(n) for n in getattr(estimator, "feature_names_in_", [f"x{j + 1}" for j in range(d)])]
    names = tuple(str(name) for name in columns)
    if len(names) != d:
        raise ValueError(f"columns must name the {d} column{'' if d == 1 else 's'} of the release, got {len(names)}")
    return names


def python_call(estimator: Any) -> str:
    """Return the call that makes such an estimator; parameters only, the data is X, or X and y.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> python_call(PrivateModes(epsilon=1.0, delta=1e-6, bounds=[(0, 1)]))
    'PrivateModes(epsilon=1.0, delta=1e-06, bounds=[(0, 1)]).fit(X)'
    """
    defaults = type(estimator)().get_params(deep=False)
    first = [name for name in ("epsilon", "delta", "bounds", "x_bounds", "y_bounds") if name in defaults]
    shown = []
    for name in (*first, *(n for n in defaults if n not in first)):
        value = getattr(estimator, name)
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if repr(value) != repr(defaults[name]):
            shown.append(f"{name}={'...' if name == 'ledger' else repr(value)}")
    data = "X, y" if "y_bounds" in defaults else "X"
    return f"{type(estimator).__name__}({', '.join(shown)}).fit({data})"


def versions() -> dict[str, str]:
    """Versions of what made the numbers.

    Examples
    --------
    >>> sorted(versions())
    ['fogline', 'numpy', 'opendp', 'python', 'scipy']
    """
    found = {"fogline": fogline.__version__}
    found |= {name: metadata.version(name) for name in ("numpy", "scipy", "opendp")}
    return found | {"python": platform.python_version()}


def modes_document(findings: Findings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    estimator = findings.estimator
    scales = [{"bandwidth": list(h), "prominence": value} for h, value in findings.standings.scales]
    found = []
    for k, standing in enumerate(findings.standings.modes):
        beside = {
            "prominence": standing.prominence,
            "fogline": standing.fogline,
            "share": float(findings.basins.shares[k]),
            "share_error": float(findings.basins.share_errors[k]),
        }
        found.append({**mode_values(estimator, k), **beside})
    bounds = [list(pair) for pair in findings.bounds]
    return estimator_document(estimator, findings.columns, bounds, found, command, scales=scales)


def estimator_document(
    estimator: PrivateModes,
    columns: Sequence[str],
    bounds: list[list[float]],
    found: list[dict[str, Any]],
    command: str | None,
    *,
    scales: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the document of modes that are described already."""
    density = estimator.density_
    low, high = density.bandwidth_range
    return {
        "format": "fogline-modes-1",
        "command": command or python_call(estimator),
        "columns": list(columns),
        "bounds": bounds,
        "modes": found,
        "message": estimator.message_,
        "count": {"value": density.count, "standard_error": density.count_sd},
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "fogline": {"level": estimator.level, "scales": scales},
        "bandwidths": {
            "planned": density.spec.planned.tolist(),
            "smallest": low.tolist(),
            "largest": high.tolist(),
            "steps": list(density.spec.steps),
        },
        "versions": versions(),
    }


def mode_values(estimator: PrivateModes, k: int) -> dict[str, Any]:
    """Return one mode as plain values."""
    return {
        "position": estimator.modes_[k].tolist(),
        "standard_errors": estimator.standard_errors_[k].tolist(),
        "privacy_errors": np.sqrt(np.diag(estimator.privacy_covariances_[k])).tolist(),
        "sampling_errors": np.sqrt(np.diag(estimator.sampling_covariances_[k])).tolist(),
        "covariance": estimator.covariances_[k].tolist(),
        "height": float(estimator.heights_[k]),
        "p_value": float(estimator.p_values_[k]),
        "bandwidth": estimator.bandwidth_[k].tolist(),
    }
