r"""What a fit would show, before any budget is spent: from the exact noise level and a public guess of the shape.

Nothing here has seen a private record. Data are drawn from the guess, summed on the grid that the estimator's
parameters imply, and noise of exactly the scale that its budget implies is added; the modes are then read as after
a real fit. A run uses the same draws at every epsilon, so that rows can be compared. The noise comes from a seed,
since it protects nobody.

Where the guess is flat there is no mode to locate, and what matters is the fogline: with :math:`F(h)` the
prominence that noise reaches with probability `level` at bandwidth h, a share p of the records in one narrow place
makes a peak of height :math:`p / \prod_j \sqrt{2\pi}\,h_j`, so the smallest share that would be seen is
:math:`\min_h F(h) \prod_j \sqrt{2\pi}\,h_j`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from fogline import _validation, units
from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.accounting.costs import release_rho
from fogline.density.modes.on_grid import ModeTable, make_scale_space
from fogline.density.modes.search import SmallestShare, search_of
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import plan_spec
from fogline.density.spec import as_bandwidth
from fogline.mechanisms.discrete_gaussian import gaussian_scale
from fogline.planning.scenarios import Guess, ModeSettings, Setting, ShapeLike, guess_of, width_of
from fogline.queries.fourier_sums import lattice_sensitivity

__all__ = [
    "EPSILONS",
    "AtEpsilon",
    "ExpectedError",
    "expected_mode_error",
    "monotone",
    "never_worse",
    "tried_epsilons",
]


EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Tried where none are given."""

RUNS = {1: 16, 2: 6, 3: 3}
"""Simulated fits per epsilon, by dimension; in more dimensions as many as in three."""

MOST_RECORDS = 5_000_000
"""Records that are drawn at most in one run."""

NEAR = 2.0
"""A mode found within this many of its bandwidths of a true one, or four of its standard errors, is that one."""

SEED = 1202056903


@dataclass(frozen=True, eq=False)
class AtEpsilon:
    """What to expect at one epsilon.

    Attributes
    ----------
    epsilon, rho : float
    noise_scale, count_error : float
        Standard deviation of the privacy noise on a weighted sum, and on the released count, in records; neither
        sampling nor smoothing is in it.
    detected : array of shape (k,)
        Share of the runs in which each mode was found.
    privacy_errors, sampling_errors : arrays of shape (k, d)
        The two parts of the standard error of each position, over the runs that found it; NaN if none did. Privacy
        noise is in the first; the sampling of the records, and what smoothing may have moved, in the second.
    spurious : float
        Modes found, a run, that belong to no true one.
    fogline, bandwidth : float, array of shape (d,)
        The prominence that noise reaches with probability `level` in the densest place, where it hides least.
    smallest_share : float
        Share of the records that, gathered in one narrow place there, would just stand above the fog.
    """

    epsilon: float
    rho: float
    noise_scale: float
    count_error: float
    detected: FloatArray
    privacy_errors: FloatArray
    sampling_errors: FloatArray
    spurious: float
    fogline: float
    bandwidth: FloatArray
    smallest_share: float

    @property
    def errors(self) -> FloatArray:
        """Standard error of each position, shape (k, d)."""
        return np.asarray(np.hypot(self.privacy_errors, self.sampling_errors))


@dataclass(frozen=True, eq=False)
class ExpectedError:
    """What a fit would show, by epsilon; free, and as good as the guess of the shape.

    Attributes
    ----------
    n : int
    shape : str
        The guess, in words.
    modes : array of shape (k, d)
        The modes of the guess, highest first.
    bounds : tuple of (float, float)
    delta, level : float
    neighbours : str
    runs : int
        Simulated fits per epsilon.
    rows : tuple of AtEpsilon
        More epsilon never looks worse: rows that say so by chance are pooled (:func:`never_worse`).
    """

    n: int
    shape: str
    modes: FloatArray
    bounds: tuple[tuple[float, float], ...]
    delta: float
    level: float
    neighbours: str
    runs: int
    rows: tuple[AtEpsilon, ...]

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilons, smallest first."""
        return tuple(row.epsilon for row in self.rows)

    def table(self) -> list[dict[str, Any]]:
        """Return one record for each epsilon and mode, or for each epsilon where there is no mode; plain values.

        Errors of a mode that no run found are None.
        """
        return [record for row in self.rows for record in self._records(row)]

    def _records(self, row: AtEpsilon) -> list[dict[str, Any]]:
        common = {
            "epsilon": row.epsilon,
            "count_error": row.count_error,
            "spurious": row.spurious,
            "fogline": row.fogline,
            "bandwidth": row.bandwidth.tolist(),
            "smallest_share": row.smallest_share,
        }
        if not len(self.modes):
            return [{**common, "mode": None}]
        return [
            {
                **common,
                "mode": k + 1,
                "position": position.tolist(),
                "detected": float(row.detected[k]),
                "privacy_errors": _known(row.privacy_errors[k]),
                "sampling_errors": _known(row.sampling_errors[k]),
                "standard_errors": _known(row.errors[k]),
            }
            for k, position in enumerate(self.modes)
        ]

    def __str__(self) -> str:
        heading = (
            f"Expected for {self.n} records, {self.shape}, delta {self.delta:g}, {self.neighbours} "
            f"({self.runs} simulated fits per epsilon; no data were touched)"
        )
        lines = [heading, f"{'epsilon':>8} {'mode':>5} {'found':>6}  {'privacy error':<18}  {'sampling error':<18}"]
        if not len(self.modes):
            lines[1] = f"{'epsilon':>8} {'smallest share':>15} {'false modes':>12}"
        for record in self.table():
            lines.append(f"{record['epsilon']:8.3g} {_words(record)}")
        return "\n".join(lines)


def expected_mode_error(
    estimator: ModeSettings,
    n: int,
    *,
    shape: ShapeLike = None,
    epsilons: Sequence[float] | None = None,
    runs: int | None = None,
) -> ExpectedError:
    """Return what fits of `estimator` to n records would show, by epsilon. Free: no data are touched.

    Parameters
    ----------
    estimator : PrivateModes
        Its parameters but epsilon and ledger; not fitted, not changed.
    n : int
        Number of records, as you guess it.
    shape : "uniform", Mixture or array of shape (m, d), optional
        A guess of the density: no shape at all (the default), a mixture, or a *public* sample that looks like the
        data. Never the data.
    epsilons : sequence of float, optional
        By default a few from 0.1 to 5, and the estimator's own.
    runs : int, optional
        Simulated fits per epsilon.

    Returns
    -------
    ExpectedError

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> from fogline.datasets.simulated import Mixture
    >>> guess = Mixture.of([0.6, 0.4], [[3.0], [7.0]], [0.8, 0.8])
    >>> planned = PrivateModes(delta=1e-6, bounds=[(0, 10)])
    >>> expected = expected_mode_error(planned, 2000, shape=guess, epsilons=[0.02, 1.0], runs=4)
    >>> [row.detected.tolist() for row in expected.rows]
    [[0.0, 0.0], [1.0, 1.0]]
    >>> bool((expected.rows[1].errors < 0.3).all())
    True
    """
    delta = _validation.check_delta(estimator.delta)
    tried = tried_epsilons(epsilons, estimator.epsilon)
    return _simulated(*planned_fit(estimator, n, delta, shape, runs, RUNS), tried)


def planned_fit(
    estimator: ModeSettings, n: int, delta: float, shape: ShapeLike, runs: int | None, usual: Mapping[int, int]
) -> tuple[Setting, Guess]:
    """Check the parameters of a planned fit, and return what a simulation needs: its setting and the guessed shape.

    Parameters
    ----------
    estimator, n, shape, runs
        As for :func:`expected_mode_error`.
    delta : float
        Of the fit.
    usual : mapping of int to int
        Runs by dimension, where their number is not given.
    """
    size = _validation.check_count(n, "n")
    if size > MOST_RECORDS:
        raise ValueError(f"n must be at most {MOST_RECORDS}: with more records errors only shrink, got {n}")
    level = _validation.check_level(estimator.level)
    relation = _validation.check_neighbours(estimator.neighbours)
    contributions = _validation.check_max_contributions(estimator.max_contributions)
    n_modes = None if estimator.n_modes is None else _validation.check_count(estimator.n_modes, "n_modes")
    # A shape of another width than the bounds is a mistake that a simulation would hide.
    width = width_of(shape)
    bounds = units.resolve_bounds(estimator.bounds, width=width)
    if width is not None and width != len(bounds):
        raise ValueError(f"shape has {width} columns, but bounds has {len(bounds)} pairs")
    fixed = None
    if not isinstance(estimator.bandwidth, str):
        fixed = as_bandwidth(estimator.bandwidth, bounds[:, 1] - bounds[:, 0])
    spec = plan_spec(bounds, estimator.bandwidth if fixed is None else [fixed], estimator.steps)
    if fixed is not None:
        spec.require_readable(fixed)
    # More dimensions take longer per fit.
    repeats = usual[min(spec.d, 3)] if runs is None else _validation.check_count(runs, "runs")
    bandwidth = "auto" if fixed is None else tuple(fixed.tolist())
    setting = Setting(spec, size, delta, level, relation, contributions, n_modes, bandwidth, repeats)
    return setting, guess_of(shape, setting)


# -- the simulation ------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _simulated(setting: Setting, guess: Guess, epsilons: tuple[float, ...]) -> ExpectedError:
    sensitivity = lattice_sensitivity(setting.spec, setting.neighbours, setting.max_contributions)
    rhos = [release_rho(epsilon, setting.delta) for epsilon in epsilons]
    scales = [gaussian_scale(sensitivity, rho) for rho in rhos]
    first: list[PrivateDensity] = []
    tables: list[list[ModeTable]] = [[] for _ in epsilons]
    for run in range(setting.runs):
        # The same draws at every epsilon: rows differ by the noise alone, and a plan is repeatable.
        rng = np.random.default_rng([SEED, run])
        exact = setting.sums(guess.draw(setting.n, rng))
        noise = rng.standard_normal(setting.spec.n_coefficients)
        for scale, read in zip(scales, tables, strict=True):
            density = setting.density(exact, noise, scale)
            read.append(setting.read(density))
            if run == 0:
                first.append(density)
    rows = [
        at_epsilon(guess.modes, epsilon, rho, density, read, _smallest_share(setting, density))
        for epsilon, rho, density, read in zip(epsilons, rhos, first, tables, strict=True)
    ]
    return expectation(setting, guess, rows)


def expectation(setting: Setting, guess: Guess, rows: Sequence[AtEpsilon]) -> ExpectedError:
    """Put a plan together from what was simulated at each epsilon."""
    return ExpectedError(
        n=setting.n,
        shape=guess.words,
        modes=guess.modes,
        bounds=setting.spec.bounds,
        delta=setting.delta,
        level=setting.level,
        neighbours=setting.neighbours,
        runs=setting.runs,
        rows=never_worse(rows),
    )


def never_worse(rows: Sequence[AtEpsilon]) -> tuple[AtEpsilon, ...]:
    """Rows of rising epsilon in which nothing gets worse: a few simulated fits say otherwise only by chance.

    With more epsilon the same release can be made noisier by anybody, so that what is expected cannot get worse. Rows
    that contradict this are pooled (isotonic regression).

    Parameters
    ----------
    rows : sequence of AtEpsilon
        By rising epsilon.
    """
    if not rows:
        return ()
    detected = -monotone(-np.array([row.detected for row in rows]))
    privacy = np.sqrt(monotone(np.square([row.privacy_errors for row in rows])))
    sampling = np.sqrt(monotone(np.square([row.sampling_errors for row in rows])))
    spurious = monotone(np.array([row.spurious for row in rows]))
    shares = monotone(np.array([row.smallest_share for row in rows]))
    return tuple(
        replace(
            row,
            detected=detected[k],
            privacy_errors=privacy[k],
            sampling_errors=sampling[k],
            spurious=float(spurious[k]),
            smallest_share=float(shares[k]),
        )
        for k, row in enumerate(rows)
    )


def monotone(values: FloatArray) -> FloatArray:
    """Nearest values that do not rise along the first axis; missing ones stay missing.

    Examples
    --------
    >>> monotone(np.array([3.0, 1.0, 2.0, np.nan, 0.5])).tolist()
    [3.0, 1.5, 1.5, nan, 0.5]
    """
    out = np.asarray(values, dtype=np.float64).copy()
    columns = out.reshape(len(out), -1)
    for column in columns.T:
        known = np.flatnonzero(np.isfinite(column))
        blocks: list[tuple[float, int]] = []
        for value in column[known].tolist():
            blocks.append((value, 1))
            while len(blocks) > 1 and blocks[-1][0] > blocks[-2][0]:
                (last, size), (before, more) = blocks.pop(), blocks.pop()
                blocks.append(((last * size + before * more) / (size + more), size + more))
        column[known] = [value for value, size in blocks for _ in range(size)]
    return columns.reshape(out.shape)


def at_epsilon(
    modes: FloatArray,
    epsilon: float,
    rho: float,
    density: PrivateDensity,
    tables: list[ModeTable],
    smallest: SmallestShare,
) -> AtEpsilon:
    """Say what simulated fits at one epsilon found of the modes of a guess.

    Parameters
    ----------
    modes : array of shape (k, d)
    epsilon, rho : float
    density : PrivateDensity
        Of the first fit.
    tables : list of ModeTable
        What each fit found.
    smallest : SmallestShare
        What just stands above the fog of the first fit.
    """
    matches = [_matched(modes, table) for table in tables]
    seen = np.array([found >= 0 for found in matches]).reshape(len(tables), len(modes))
    parts = [np.full((len(tables), *modes.shape), np.nan) for _ in range(2)]
    for run, (table, found) in enumerate(zip(tables, matches, strict=True)):
        for part, covariances in zip(parts, (table.privacy_covariances, table.sampling_covariances), strict=True):
            part[run, found >= 0] = np.einsum("kii->ki", covariances[found[found >= 0]])
    spurious = np.mean(
        [len(table.positions) - np.sum(found >= 0) for table, found in zip(tables, matches, strict=True)]
    )
    level, bandwidth, share = smallest
    return AtEpsilon(
        epsilon=epsilon,
        rho=rho,
        noise_scale=density.noise_scale,
        count_error=density.count_sd,
        detected=seen.mean(axis=0),
        privacy_errors=_root_mean(parts[0], seen),
        sampling_errors=_root_mean(parts[1], seen),
        spurious=float(spurious),
        fogline=level,
        bandwidth=bandwidth,
        smallest_share=share,
    )


def _matched(modes: FloatArray, table: ModeTable) -> IntArray:
    """Return for each true mode the found one that belongs to it, or -1; nearest pairs first, each once."""
    matched = np.full(len(modes), -1)
    if not len(modes) or not len(table.positions):
        return matched
    apart = modes[:, None] - table.positions[None]
    # A true mode within the bandwidth, or within the stated error, has been found.
    reach = np.maximum(NEAR * table.bandwidths, 4 * table.standard_errors)
    distance = np.linalg.norm(apart / reach, axis=-1)
    # Greedy by distance: an optimal assignment would pair far ones to please a sum.
    for pair in np.argsort(distance, axis=None, kind="stable"):
        true, found = np.unravel_index(pair, distance.shape)
        if distance[true, found] <= 1 and matched[true] < 0 and found not in matched:
            matched[true] = found
    return matched


def _root_mean(variances: FloatArray, seen: BoolArray) -> FloatArray:
    """Root mean square over the runs that saw each mode; NaN where none did."""
    runs = seen.sum(axis=0)[:, None]
    total = np.where(seen[:, :, None], variances, 0.0).sum(axis=0)
    return np.where(runs > 0, np.sqrt(total / np.maximum(runs, 1)), np.nan)


def _smallest_share(setting: Setting, density: PrivateDensity) -> SmallestShare:
    """Return the fogline where it hides the smallest share, the bandwidth there, and that share."""
    fixed = setting.bandwidth if isinstance(setting.bandwidth, str) else np.array(setting.bandwidth)
    return search_of(setting.spec).smallest_share(density, make_scale_space(density, fixed), setting.level)


# -- words ---------------------------------------------------------------------------------------------------


def tried_epsilons(given: Sequence[float] | None, own: float | None) -> tuple[float, ...]:
    """Epsilons of a plan, smallest first: those given, or a few and the estimator's own."""
    if given is None:
        extra = () if own is None else (_validation.check_epsilon(own),)
        return tuple(sorted({*EPSILONS, *extra}))
    tried = tuple(sorted({_validation.check_epsilon(epsilon) for epsilon in given}))
    if not tried:
        raise ValueError("epsilons must hold at least one epsilon")
    return tried


def _known(values: FloatArray) -> list[float] | None:
    return None if np.isnan(values).any() else [float(value) for value in values]


def _words(record: dict[str, Any]) -> str:
    """Return a line of the table without its epsilon."""
    if record["mode"] is None:
        return f"{100 * record['smallest_share']:14.3g}% {record['spurious']:12.2f}"
    errors = [record[part] for part in ("privacy_errors", "sampling_errors")]
    told = ["-" if error is None else ", ".join(f"{value:.2g}" for value in error) for error in errors]
    return f"{record['mode']:5d} {record['detected']:6.0%}  {told[0]:<18}  {told[1]:<18}".rstrip()
