"""The page of modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fogline.report.bars import share_bar, standing_chart
from fogline.report.figures import figures
from fogline.report.findings import Findings
from fogline.report.frame import frame_content, listed, p_value
from fogline.report.svg import HUES, plus_minus, significant, tick_label

__all__ = ["modes_content"]


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
