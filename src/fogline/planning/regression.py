r"""What a modal regression would show, before any budget is spent: from the exact noise level and a public guess.

Nothing here has seen a private record. Records are drawn from the guess, summed as a fit would sum them, and noise of
exactly the scale that the budget implies is added; branches are then read as after a real fit. The noise comes from a
seed, since it protects nobody. The same draws serve every epsilon, and rows that chance has put in the wrong order are
pooled: a plan never advises to spend less in order to know more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from fogline import _validation
from fogline._typing import BandwidthLike, FloatArray
from fogline.accounting.costs import release_rho
from fogline.density.branches.branch_map import Branches, BranchMap, branches_at
from fogline.density.branches.branches import grid_places, read_branches
from fogline.density.spec import SketchSpec, as_bandwidth
from fogline.mechanisms.discrete_gaussian import gaussian_scale
from fogline.planning.density import falling
from fogline.planning.modes import EPSILONS, MOST_RECORDS
from fogline.planning.scenarios import Setting
from fogline.queries.fourier_sums import lattice_sensitivity

__all__ = ["BranchesAtEpsilon", "ExpectedBranches", "expected_branches"]


RUNS = {1: 6, 2: 2}
"""Simulated fits per epsilon, by the number of axes of x."""

PLACES = {1: 41, 2: 9}
"""Places an axis at which the branches are compared with those of the guess."""

NEAR = 1.5
"""A mode found within this many bandwidths of y of a true one, or four standard errors, is that one."""

WIDTH = 0.05
"""Standard deviation around a branch where none is given, in widths of the range of y."""

REFERENCE = 50_000
"""Records drawn to find the branches of a public sample."""

SEED = 1202056903


@dataclass(frozen=True)
class BranchesAtEpsilon:
    """What to expect at one epsilon.

    Attributes
    ----------
    epsilon, rho : float
    noise_scale : float
        Standard deviation of the noise on a sum, in lattice steps.
    shown : float
        Share of the simulated fits in which any branch stood above the fog.
    detected : float
        Share of the modes of the guess, over places and fits, that were found.
    spurious : float
        Modes found, a place, that belong to none of the guess.
    privacy_error, sampling_error : float
        Root mean square of the two parts of the standard error of a mode, by privacy noise and by the sampling of the
        records; NaN if none was found. What smoothing moves is in neither.
    """

    epsilon: float
    rho: float
    noise_scale: float
    shown: float
    detected: float
    spurious: float
    privacy_error: float
    sampling_error: float

    @property
    def error(self) -> float:
        """Standard error of a mode."""
        return float(np.hypot(self.privacy_error, self.sampling_error))


@dataclass(frozen=True)
class ExpectedBranches:
    """What a modal regression would show, by epsilon; free, and as good as the guess.

    Attributes
    ----------
    n : int
    shape : str
        The guess, in words.
    runs : int
        Simulated fits per epsilon.
    rows : tuple of BranchesAtEpsilon
    """

    n: int
    shape: str
    runs: int
    rows: tuple[BranchesAtEpsilon, ...]

    def __str__(self) -> str:
        lines = [
            f"Expected for {self.n} records, {self.shape} ({self.runs} simulated fits each; no data were touched)",
            f"{'epsilon':>8} {'shown':>6} {'found':>6} {'false':>6}  {'privacy error':<14} {'sampling error':<14}",
        ]
        for row in self.rows:
            lines.append(
                f"{row.epsilon:8.3g} {row.shown:6.0%} {row.detected:6.0%} {row.spurious:6.2f}  "
                f"{row.privacy_error:<14.3g} {row.sampling_error:<14.3g}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class _Guess:
    """How to draw records, and the modes at the places x, a list of arrays; None if they must be read from a draw."""

    words: str
    draw: Callable[[int, np.random.Generator], FloatArray]
    modes: FloatArray | None


class BranchSettings(Protocol):
    """Parameters of an estimator of which fits are simulated, and its plan of the release."""

    epsilon: float | None
    delta: float | None
    level: float
    bandwidth: BandwidthLike
    neighbours: str
    max_contributions: int

    def _spec(self, width: int | None) -> SketchSpec: ...


def expected_branches(
    estimator: BranchSettings, n: int, *, shape: ArrayLike = 1, epsilons: Sequence[float] | None = None
) -> ExpectedBranches:
    """Return what fits of `estimator` to n records would show, by epsilon. Free: no data are touched.

    Examples
    --------
    >>> from fogline import PrivateModalRegression
    >>> planned = PrivateModalRegression(delta=1e-5, x_bounds=(0, 1), y_bounds=(0, 4))
    >>> expected = expected_branches(planned, 1000, shape=2, epsilons=[0.01, 0.5])
    >>> [round(row.detected) for row in expected.rows]
    [0, 1]
    >>> expected.rows[1].error < 0.1
    True
    """
    size = _validation.check_count(n, "n")
    if size > MOST_RECORDS:
        raise ValueError(f"n must be at most {MOST_RECORDS}: with more records errors only shrink, got {n}")
    delta = _validation.check_delta(estimator.delta)
    level = _validation.check_level(estimator.level)
    relation = _validation.check_neighbours(estimator.neighbours)
    contributions = _validation.check_max_contributions(estimator.max_contributions)
    own = () if estimator.epsilon is None else (estimator.epsilon,)
    # In order, so that a table reads from little to much.
    tried = sorted({_validation.check_epsilon(e) for e in ((*EPSILONS, *own) if epsilons is None else epsilons)})
    if not tried:
        raise ValueError("epsilons must hold at least one epsilon")
    wide = np.shape(shape)[1] - 1 if np.ndim(shape) == 2 else None
    spec = estimator._spec(wide)
    fixed = None if isinstance(estimator.bandwidth, str) else as_bandwidth(estimator.bandwidth, spec.widths)
    runs = RUNS[spec.d - 1]
    setting = Setting(spec, size, delta, level, relation, contributions, None, "auto", runs)
    guess = _guess_of(shape, setting)
    # Errors are those at places x, since a branch as a whole has no single error.
    places = grid_places(tuple(np.linspace(lo, hi, PLACES[spec.d - 1]) for lo, hi in spec.bounds[:-1]))
    true = _true_modes(guess, setting, fixed, places)
    sensitivity = lattice_sensitivity(spec, relation, contributions)
    rhos = [release_rho(epsilon, delta) for epsilon in tried]
    scales = [gaussian_scale(sensitivity, rho) for rho in rhos]
    maps: list[list[BranchMap]] = [[] for _ in tried]
    for run in range(runs):
        rng = np.random.default_rng([SEED, run])
        exact = setting.sums(guess.draw(size, rng))
        noise = rng.standard_normal(spec.n_coefficients)
        for scale, read in zip(scales, maps, strict=True):
            read.append(read_branches(setting.density(exact, noise, scale), level, fixed))
    rows = [_row(*found, places, true) for found in zip(tried, rhos, scales, maps, strict=True)]
    return ExpectedBranches(size, guess.words, runs, _pooled(rows))


def _guess_of(shape: ArrayLike, setting: Setting) -> _Guess:
    spec = setting.spec
    lower, upper = np.array(spec.bounds).T
    if np.ndim(shape) == 2:
        rows = np.asarray(shape, dtype=np.float64)
        if rows.shape[1] != spec.d:
            raise ValueError(f"shape: a public sample has {spec.d} columns here, y last, got {rows.shape[1]}")
        rows = rows[np.all((rows >= lower) & (rows <= upper), axis=1)]
        if len(rows) < 2:
            raise ValueError("shape: a public sample needs at least two rows within the bounds")
        blur = np.asarray(spec.planned)[0] / 2
        return _Guess(
            f"like {len(rows)} public ones",
            lambda n, rng: rows[rng.integers(len(rows), size=n)] + blur * rng.standard_normal((n, spec.d)),
            None,
        )
    # One number is a number of branches; two are that and their width.
    is_pair = np.ndim(shape) == 1 and np.size(shape) == 2
    count, width = cast("tuple[int, float]", shape) if is_pair else (shape, WIDTH * (upper - lower)[-1])
    branches = _validation.check_count(count, "shape")
    spread = _validation.check_positive(width, "shape")
    centres = lower[-1] + (upper - lower)[-1] * (np.arange(branches) + 0.5) / branches

    def draw(n: int, rng: np.random.Generator) -> FloatArray:
        rows = rng.uniform(lower, upper, (n, spec.d))
        rows[:, -1] = rng.choice(centres, n) + spread * rng.standard_normal(n)
        return rows

    return _Guess(f"{branches} level branch{'es' if branches > 1 else ''} of width {spread:.3g}", draw, centres)


def _true_modes(guess: _Guess, setting: Setting, fixed: FloatArray | None, places: FloatArray) -> list[FloatArray]:
    """Modes of the guess at the places: as it was made, or as read from a large draw with next to no noise."""
    if guess.modes is not None:
        return [guess.modes] * len(places)
    rng = np.random.default_rng(SEED)
    exact = setting.sums(guess.draw(max(setting.n, REFERENCE), rng))
    density = setting.density(exact, np.zeros(setting.spec.n_coefficients), 1.0)
    found = branches_at(read_branches(density, setting.level, fixed), places)
    return [found.positions[found.rows == row] for row in range(len(places))]


def _row(
    epsilon: float, rho: float, scale: float, maps: list[BranchMap], places: FloatArray, true: list[FloatArray]
) -> BranchesAtEpsilon:
    matched, found, shown = 0, 0, 0
    errors: list[FloatArray] = []
    for read in maps:
        here = branches_at(read, places)
        shown += bool(len(here.rows))
        found += len(here.rows)
        errors.append(np.column_stack([here.privacy_errors, here.sampling_errors]))
        matched += sum(_matches(here, row, modes, read.bandwidth[-1]) for row, modes in enumerate(true))
    together = np.concatenate(errors)
    parts = np.sqrt(np.mean(together**2, axis=0)) if len(together) else np.full(2, np.nan)
    wanted = max(1, len(maps) * sum(map(len, true)))
    return BranchesAtEpsilon(
        epsilon,
        rho,
        scale,
        shown / len(maps),
        matched / wanted,
        (found - matched) / (len(maps) * len(places)),
        float(parts[0]),
        float(parts[1]),
    )


def _pooled(rows: list[BranchesAtEpsilon]) -> tuple[BranchesAtEpsilon, ...]:
    """Rows in which more epsilon is never worse: neighbours that chance has put in the wrong order share their mean.

    Examples
    --------
    >>> rows = [BranchesAtEpsilon(e, e, 1.0, 1.0, found, 0.0, 0.1, 0.1) for e, found in ((1.0, 0.9), (2.0, 0.8))]
    >>> [round(row.detected, 2) for row in _pooled(rows)]
    [0.85, 0.85]
    """
    changed: dict[str, FloatArray] = {}
    for name, sign in (("shown", -1.0), ("detected", -1.0), ("spurious", 1.0), ("privacy_error", 1.0)):
        values = np.array([getattr(row, name) for row in rows])
        known = np.isfinite(values)
        values[known] = sign * falling(sign * values[known]) if known.any() else values[known]
        changed[name] = values
    return tuple(
        replace(row, **{name: float(values[k]) for name, values in changed.items()}) for k, row in enumerate(rows)
    )


def _matches(found: Branches, row: int, modes: FloatArray, bandwidth: float) -> int:
    """How many of the true modes at a place were found; each found one counts once, nearest pairs first."""
    own = found.rows == row
    reach = np.maximum(NEAR * bandwidth, 4 * found.standard_errors[own])
    distance = np.abs(modes[:, None] - found.positions[own]) / reach
    pairs = sorted((float(distance[i, j]), i, j) for i, j in np.ndindex(*distance.shape) if distance[i, j] <= 1)
    true_taken: set[int] = set()
    found_taken: set[int] = set()
    for _, i, j in pairs:
        if i not in true_taken and j not in found_taken:
            true_taken.add(i)
            found_taken.add(j)
    return len(true_taken)
