"""What the analytic curve gains for modes: squared errors by the curve over those by zCDP, paired.

    python benchmarks/curve_gain.py

Simulated fits on the two mixtures of the modes table, with the same records and the same draws of noise for both kinds
of accounting, so that the noise differs by its scale alone. The privacy part of the squared error should fall by the
ratio of the two rhos.
"""

from __future__ import annotations

from unittest import mock

import numpy as np

import fogline.planning.modes as planning
from common import write_csv
from fogline.accounting import zcdp
from fogline.accounting.costs import release_rho
from fogline.datasets.simulated import gaussian_mixture4, t_mixture5
from fogline.estimators.mode_fit import ModeFit
from fogline.planning.modes import ExpectedError

DELTA, RUNS, EPSILONS = 1e-5, 3, (0.5, 1.0, 5.0)
MIXTURES = {"gaussian4": (gaussian_mixture4, 10.0), "t5": (t_mixture5, 12.0)}


def simulated(name: str, n: int, *, by_curve: bool) -> ExpectedError:
    """Return what fits would show, with the noise of one kind of accounting."""
    make, half = MIXTURES[name]
    sample = make(4000, random_state=1).X
    planning._simulated.cache_clear()
    with mock.patch.object(planning, "release_rho", release_rho if by_curve else zcdp.rho_of):
        fit = ModeFit(bounds=[(-half, half)] * sample.shape[1], delta=DELTA)
        return planning.expected_mode_error(fit, n, shape=sample, epsilons=EPSILONS, runs=RUNS)


def main() -> None:
    """Measure, and write docs/benchmarks/curve_gain.csv."""
    rows = []
    for name in MIXTURES:
        for n in (1000, 5000):
            before, now = (simulated(name, n, by_curve=by_curve) for by_curve in (False, True))
            for old, new in zip(before.rows, now.rows, strict=True):
                parts = [
                    float(np.nanmean(getattr(new, part) ** 2) / np.nanmean(getattr(old, part) ** 2))
                    for part in ("privacy_errors", "errors")
                ]
                theory = zcdp.rho_of(old.epsilon, DELTA) / release_rho(old.epsilon, DELTA)
                row = {"mixture": name, "n": n, "epsilon": old.epsilon, "privacy": parts[0], "all": parts[1]}
                rows.append({**row, "theory": theory})
    write_csv("curve_gain", rows)


if __name__ == "__main__":
    main()
