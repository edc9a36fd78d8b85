"""What the analytic curve gains for modes: the 40 cells of the modes table by the curve and by zCDP, paired.

    python benchmarks/curve_gain.py [runs per cell]

Run r of a cell has the same records and the same standard normal draws under both kinds of accounting, so that the
noise differs by its scale alone; a third fit of the same records has next to no noise. The squared error has a part of
privacy, which should fall by the ratio of the two rhos as long as errors are small beside the modes' distances, and
a part of sampling, which stays. Seeds are not those of the modes table.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from common import write_csv
from fogline._typing import IntArray
from fogline.accounting import zcdp
from fogline.accounting.costs import release_rho
from fogline.estimators.mode_fit import ModeFit
from fogline.mechanisms.randomness import Call, Query, Sample, use_provider
from fogline.releases import terms
from fogline_research.experiments.modes import MIXTURES, Cell, paper_cells
from fogline_research.metrics import matching_mse

DELTA, SEED, RUNS, UNSEEN = 1e-5, 20261117, 20, 1e-9
"""Delta of the table, seed, runs per cell, and the scale of noise that is next to none."""


@dataclass(frozen=True)
class ScaledDraws:
    """A door whose Gaussian noise is a fixed vector of standard normal draws times the scale that is asked for."""

    seed: tuple[int, ...]
    factor: float = 1.0
    certified: bool = field(default=False, init=False)
    reason: str = field(default="the noise was seeded", init=False)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return draws that are proportional to the scale, rounded to the lattice, whose steps are far smaller."""
        draws = np.random.default_rng(self.seed).standard_normal(size)
        return np.rint(self.factor * scale * draws).astype(np.int64)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Refuse: the study is of Gaussian noise."""
        raise NotImplementedError

    def bytes(self, size: int) -> bytes:
        """Refuse: nothing is chosen at random."""
        raise NotImplementedError

    def answer(self, call: Call, query: Query, sample: Sample) -> Any:  # noqa: ARG002
        """Return the noisy answer."""
        return sample(self)(query())

    def generator(self, purpose: str) -> np.random.Generator:  # noqa: ARG002
        """Return the generator of what is random beside noise."""
        return np.random.default_rng((*self.seed, 1))


def modes_of(cell: Cell, X: Any, accounting: str, noise: ScaledDraws) -> Any:
    """Return the modes of one fit by one kind of accounting."""
    _, k, half = MIXTURES[cell.mixture]
    fit = ModeFit(epsilon=cell.epsilon, delta=DELTA, bounds=[(-half, half)] * 2, n_modes=k)
    with mock.patch.object(terms, "DEFAULT_ACCOUNTING", accounting), use_provider(noise):
        return np.asarray(fit.fit(X).modes_)


def errors_of(cell: Cell, run: int) -> list[float]:
    """Squared errors of one run: by zCDP, by the curve, without noise; then of the first two beside the last."""
    stream = (SEED, cell.n, list(MIXTURES).index(cell.mixture), run)
    sample = MIXTURES[cell.mixture][0](cell.n, random_state=np.random.default_rng(stream))
    before, now = (modes_of(cell, sample.X, how, ScaledDraws((*stream, 2))) for how in ("zcdp", "gaussian"))
    still = modes_of(cell, sample.X, "gaussian", ScaledDraws((*stream, 2), UNSEEN))
    whole = [matching_mse(sample.centers, found) for found in (before, now, still)]
    return [*whole, *(matching_mse(still, found) for found in (before, now))]


def row_of(cell: Cell, errors: list[list[float]]) -> dict[str, Any]:
    """Mean squared errors of one cell, in all and beside the fits without noise."""
    old, new, still, old_part, new_part = np.mean(errors, axis=0)
    # The median over runs: where one of two fits takes another peak for a mode, that run alone decides the mean.
    each = np.median([after / before for *_, before, after in errors])
    theory = zcdp.rho_of(cell.epsilon, DELTA) / release_rho(cell.epsilon, DELTA)
    named = {"mixture": cell.mixture, "n": cell.n, "epsilon": cell.epsilon, "runs": len(errors)}
    parts = {"zcdp_mse": old, "curve_mse": new, "no_noise_mse": still, "all": new / old}
    expected = (still + theory * old_part) / (still + old_part)
    return {
        **named,
        **parts,
        "all_expected": expected,
        "privacy": new_part / old_part,
        "median": each,
        "theory": theory,
    }


def main() -> None:
    """Measure, and write docs/benchmarks/curve_gain.csv."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    rows = [row_of(cell, [errors_of(cell, run) for run in range(runs)]) for cell in paper_cells()]
    write_csv("curve_gain", rows)
    for name in ("all", "all_expected", "privacy", "median", "theory"):
        print(name, round(float(np.exp(np.mean([np.log(row[name]) for row in rows]))), 4))


if __name__ == "__main__":
    main()
