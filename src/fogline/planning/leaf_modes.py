"""What a fit of modes without a delta would show: the release counts records on leaves, and its promise is pure.

As in :mod:`fogline.planning.modes`, records are drawn from a public guess and read as after a real fit; the noise is
that of both stages of the release, from a seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fogline.density.leaves import LeafSpec
from fogline.density.modes.from_leaves import search_leaves
from fogline.density.modes.search import SmallestShare
from fogline.density.modes.tables import ModeTable
from fogline.density.private_density import PrivateDensity
from fogline.planning.density import simulated_release
from fogline.planning.modes import (
    SEED,
    ExpectedError,
    at_epsilon,
    expectation,
    expected_mode_error,
    planned_fit,
    tried_epsilons,
)
from fogline.planning.scenarios import NO_GUARANTEE, ModeSettings, Setting, ShapeLike
from fogline.queries.exact_counts import exact_counts
from fogline.releases.leaf_release import settle_terms
from fogline.releases.terms import ReleaseTerms

__all__ = ["expected_modes"]

RUNS = {1: 6, 2: 2, 3: 1}
"""Simulated fits per epsilon, by dimension: a reading of leaves takes longer than one of Fourier sums."""

MOST_COLUMNS = 3
"""Of a release on leaves."""


def expected_modes(
    estimator: ModeSettings,
    n: int,
    *,
    shape: ShapeLike = None,
    epsilons: Sequence[float] | None = None,
    runs: int | None = None,
) -> ExpectedError:
    """Return what fits of `estimator` to n records would show, with the release that it would make; free.

    With a delta that is :func:`fogline.planning.modes.expected_mode_error`, whose parameters these are. Without one
    the release counts on leaves, as :class:`fogline.PrivateModes` does by default.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> from fogline.datasets.simulated import Mixture
    >>> guess = Mixture.of([0.6, 0.4], [[3.0], [7.0]], [0.8, 0.8])
    >>> expected = expected_modes(PrivateModes(bounds=[(0, 10)]), 2000, shape=guess, epsilons=[1.0], runs=1)
    >>> expected.delta, expected.rows[0].detected.tolist()
    (0.0, [1.0, 1.0])
    """
    if estimator.delta:
        return expected_mode_error(estimator, n, shape=shape, epsilons=epsilons, runs=runs)
    setting, guess = planned_fit(estimator, n, 0.0, shape, runs, RUNS)
    if setting.spec.d > MOST_COLUMNS or setting.bandwidth != "auto":
        words = f"up to {MOST_COLUMNS} columns" if setting.spec.d > MOST_COLUMNS else "no bandwidth"
        raise ValueError(f"delta must be given: a pure release counts on leaves, which take {words}")
    tried = tried_epsilons(epsilons, estimator.epsilon)
    spec = LeafSpec.plan(setting.spec.bounds, estimator.steps)
    chosen = (setting.neighbours, setting.max_contributions)
    terms = [settle_terms(spec, ReleaseTerms.checked(each, 0.0, *chosen, allow_pure=True)) for each in tried]
    first: list[PrivateDensity] = []
    tables: list[list[ModeTable]] = [[] for _ in tried]
    for run in range(setting.runs):
        counted = exact_counts(spec)
        counted.add_rows(guess.draw(setting.n, np.random.default_rng([SEED, run])))
        table = np.asarray(counted.table()).reshape(spec.leaves)
        for each, read in zip(terms, tables, strict=True):
            # the same coins at every epsilon, so that rows can be compared
            release = simulated_release(spec, table, each, np.random.default_rng([SEED, run, 1]))
            density = PrivateDensity.from_leaves(release, guarantee=NO_GUARANTEE)
            read.append(setting.read(density))
            if run == 0:
                first.append(density)
    rows = [
        at_epsilon(guess.modes, epsilon, math.nan, density, read, _smallest_share(setting, density))
        for epsilon, density, read in zip(tried, first, tables, strict=True)
    ]
    return expectation(setting, guess, rows)


def _smallest_share(setting: Setting, density: PrivateDensity) -> SmallestShare:
    """Return the smallest part of the records that would be seen in the densest place, at the best of the scales."""
    search = search_leaves(density)
    found = []
    for test in search.tests:
        unit = test.needed(setting.level) / test.counts.volume * test.counts.count / density.count
        prominence = float(unit * test.sd.ravel()[int(np.argmax(test.released))])
        bandwidth = np.asarray(test.grid.bandwidth)
        found.append(
            SmallestShare(prominence, bandwidth, prominence * float(np.prod(math.sqrt(2 * math.pi) * bandwidth)))
        )
    best = min(found, key=lambda entry: entry.share)
    return best._replace(share=min(best.share, 1.0))
