"""The page of modes.

Modes in more axes than a grid can have: what a page or a JSON document says of them.

The map shows the two columns in which the modes differ most, for their ranges. There are no basins, hence no shares,
and no fogline for the whole box: each peak was tested where it is, and its p-value says how that went.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fogline.estimators.mode_fit import ModeFit
from fogline.report._plots import (
    MOST_COLUMNS,
    Plane,
    Space,
    figures,
    plane_map,
    read_plane,
    share_bar,
    standing_chart,
    telling_columns,
)
from fogline.report._svg import HUES, plus_minus, significant, tick_label
from fogline.report.console import ConsoleTable, count_words, left_out_words, values_with_errors
from fogline.report.findings import Findings, column_names, estimator_document, mode_values
from fogline.report.frame import frame_content, listed, p_value

__all__ = [
    "WideFindings",
    "find_wide_modes",
    "modes_content",
    "modes_title",
    "wide_modes_content",
    "wide_modes_document",
    "wide_modes_table",
    "wide_modes_title",
]


def modes_content(findings: Findings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator, density = findings.estimator, findings.estimator.density_
    rest = 1 - float(findings.basins.shares.sum())
    return {
        **frame_content(estimator, density),
        "d": findings.d,
        "k": findings.k,
        "columns": findings.columns,
        "bounds": [(tick_label(low), tick_label(high)) for low, high in findings.bounds],
        "steps": [tick_label(s) if s else "" for s in density.spec.steps],
        "modes": [_mode(findings, k) for k in range(findings.k)],
        "known": estimator.n_modes is not None,
        "bandwidth": listed(
            [f"{significant(h)} ({name})" for h, name in zip(findings.bandwidth, findings.columns, strict=True)]
        ),
        "rest": f"{100 * min(max(rest, 0.0), 1.0):.0f}%",
        "other": None if findings.standings.other is None else significant(findings.standings.other.ratio, 2),
        "figures": figures(findings),
        "chart": standing_chart(findings),
        "bar": share_bar(findings),
    }


def modes_title(findings: Findings) -> str:
    """Return the title of a page that was given none."""
    return f"The shape of {listed(findings.columns)}"


def _mode(findings: Findings, k: int) -> dict[str, Any]:
    estimator, standing = findings.estimator, findings.standings.modes[k]
    privacy = np.sqrt(np.diag(estimator.privacy_covariances_[k]))
    sampling = np.sqrt(np.diag(estimator.sampling_covariances_[k]))
    where = [
        plus_minus(*pair)
        for pair in zip(
            estimator.modes_[k].tolist(),
            zip(estimator.standard_errors_[k].tolist(), privacy.tolist(), sampling.tolist(), strict=True),
            strict=True,
        )
    ]
    return {
        "number": k + 1,
        "hue": HUES[k % len(HUES)],
        "where": where,
        "height": significant(float(estimator.heights_[k])),
        "p_value": p_value(float(estimator.p_values_[k])),
        "bandwidth": " × ".join(significant(float(h), 2) for h in estimator.bandwidth_[k]),
        "ratio": significant(standing.ratio, 2),
        "above": standing.ratio >= 1,
        "share": f"{100 * float(np.clip(findings.basins.shares[k], 0, 1)):.0f}",
        "share_error": f"{100 * float(findings.basins.share_errors[k]):.1f}".removesuffix(".0"),
    }


FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WideFindings:
    """What was released, and a map of it.

    Attributes
    ----------
    estimator : ModeFit
        Fitted.
    columns : tuple of str
    picture : Plane
    """

    kind: ClassVar[str] = "wide modes"
    estimator: ModeFit
    columns: tuple[str, ...]
    picture: Plane

    @property
    def k(self) -> int:
        """Number of modes."""
        return len(self.estimator.modes_)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public range of each column."""
        return tuple((float(low), float(high)) for low, high in self.estimator.density_.spec.bounds)

    @property
    def shown(self) -> list[int]:
        """Columns of a table."""
        return telling_columns(self.estimator.modes_, np.asarray(self.bounds), MOST_COLUMNS)


def find_wide_modes(estimator: ModeFit, columns: Sequence[str] | None = None) -> WideFindings:
    """Read what a page shows from a fitted estimator; costs no privacy."""
    density, modes = estimator.density_, estimator.modes_
    names = column_names(estimator, columns)
    bandwidth = np.min(estimator.bandwidth_, axis=0) if len(modes) else density.bandwidth
    first, second = telling_columns(modes, np.asarray(density.spec.bounds), 2)

    def label(places: FloatArray) -> IntArray:
        offset = (places[:, None] - modes) / bandwidth
        return np.asarray(np.argmin(np.sum(offset**2, axis=2), axis=1))

    space = Space(density, names, modes, estimator.covariances_, (first, second), label)
    return WideFindings(estimator, names, read_plane(space, bandwidth))


def wide_modes_document(findings: WideFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    found = [mode_values(findings.estimator, k) for k in range(findings.k)]
    bounds = [list(pair) for pair in findings.bounds]
    return estimator_document(findings.estimator, findings.columns, bounds, found, command, scales=[])


def wide_modes_content(findings: WideFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator, shown = findings.estimator, findings.shown
    rows = []
    for k in range(findings.k):
        where = zip(estimator.modes_[k, shown], estimator.standard_errors_[k, shown], strict=True)
        rows.append(
            {
                "number": k + 1,
                "hue": HUES[k % len(HUES)],
                "where": [plus_minus(float(value), [float(error)]) for value, error in where],
                "height": significant(float(estimator.heights_[k])),
                "p_value": p_value(float(estimator.p_values_[k])),
            }
        )
    return {
        **frame_content(estimator, estimator.density_),
        "k": findings.k,
        "columns": [findings.columns[j] for j in shown],
        "left_out": len(findings.columns) - len(shown),
        "bounds": [tuple(map(tick_label, findings.bounds[j])) for j in shown],
        "modes": rows,
        "known": estimator.n_modes is not None,
        "figures": [plane_map(findings.picture)],
    }


def wide_modes_title(findings: WideFindings) -> str:
    """Return the title of a page that was given none."""
    return f"The shape of {len(findings.columns)} columns"


def wide_modes_table(findings: WideFindings) -> ConsoleTable:
    """Modes with their errors in the columns that tell most, the count, the guarantee, and what would help."""
    estimator, shown, rows = findings.estimator, findings.shown, []
    for k in range(findings.k):
        where = values_with_errors(estimator.modes_[k, shown], estimator.standard_errors_[k, shown])
        height = [significant(float(estimator.heights_[k])), p_value(float(estimator.p_values_[k]))]
        rows.append((str(k + 1), *where, *height))
    return ConsoleTable(
        "Modes, highest first",
        ("mode", *(findings.columns[j] for j in shown), "density", "p-value"),
        tuple(rows),
        left_out=left_out_words(findings.columns, shown),
        sentences=count_words(estimator),
    )
