r"""A family fitted to the leaf masses of a posterior: least Hellinger distance, and every error from the draws.

With :math:`p_i` the estimated mass of leaf i and :math:`q_i(\theta)` the family's, cut to the box, the fit minimises

.. math:: \sum_{i \in K} \Big(\sqrt{p_i} - \sqrt{\kappa\, q_i(\theta)}\Big)^2

over the parameters and the share :math:`\kappa`. K is what is kept: windows that hold clearly more than the family
are left out, never more than half of the records. A leaf far from the family has no say (:math:`q_i` is 0 there), and a
heap in one leaf has little, since its root is small.

**Errors.** The minimum moves by :math:`\sum_i w_i (p'_i - p_i)` when the masses move to :math:`p'`; the draws of the
posterior are such masses, with privacy, sampling and smoothing in them. The weights w are also a record's influence, so
that sampling alone has the variance :math:`\sum_i w_i^2 p_i / n`. An error is never less than this and the spread of
the draws of the *records* together: a smooth prior makes the draws of the population a little too sure.

**Goodness of fit.** On cells that are equally likely under the family, the residuals :math:`r = p - q` have the
covariance C of the draws, fit included; :math:`r^\top C^{+} r` is compared with a chi-squared law. What the family
explains is one minus half of the absolute residuals, less what noise alone would give.

**Contamination.** Nobody sees from a density whether a part of it belongs to the family. Two cases are told apart:

* The family fits. Contamination of mass :math:`\eta` in cell g moves the residuals by :math:`\eta u_g`; it is found
  with a power of 80% if :math:`\eta^2 u_g^\top C^{+} u_g` is large enough. The largest shift :math:`\eta_g |w_g|` of a
  smaller contamination is stated beside the interval, which does not contain it.
* It does not fit. Then the records are not all of the family, and the interval is widened to all parameters whose
  distance to the records, in total variation, is at most `breakdown` times that of the best ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.components.leaf_cells import joined_groups
from fogline.density.counted_records import is_nothing
from fogline.density.hellinger.family_fit import FamilyFit, FitAssumption, parameter_intervals
from fogline.density.hellinger.minimum_distance import leaf_probabilities
from fogline.density.hellinger.outliers import ExcessMass, hidden_directions
from fogline.density.posterior.masses import LeafMasses
from fogline.density.posterior.posterior import Posterior
from fogline.families import Family

__all__ = [
    "LEAF_FIT",
    "LeafFitTuning",
    "fit_column",
    "fit_posterior",
]


@dataclass(frozen=True)
class LeafFitTuning:
    """What is tuned of a fit to leaf masses.

    Attributes
    ----------
    grouped : mapping by dimension
        Leaves per axis that are put together, by dimension: three columns have more leaves than a fit needs.
    difference : float
        Step of a numerical derivative, as a part of the parameter's range.
    lattice_points : int
        Size of the lattice of parameters on which a start is looked for, up to three parameters.
    starts : int
        How many of the best starts are followed.
    cells : tuple of int
        Numbers of cells for the goodness of fit, finest first; the first whose contents are known well is taken.
    known : float
        Relative error of a cell's content, in the middle, that counts as known well.
    level : float
        Chance that a family that is right is found not to fit.
    informed : float
        Directions of residuals count if they have this part of the sampling variance in the draws.
    inflation : float
        The covariance of the residuals is multiplied by this: draws of a posterior are not draws of the noise.
    excess, excess_sd, least_excess : float
        A window is left out if it holds this many times the family's share, this many deviations above it, and so much
        more in all.
    most_cut : float
        Neither the records nor the family lose more than this part.
    windows : tuple of int
        Widths of windows, in parts of the range.
    breakdown : float
        Where the family does not fit: the true parameters are taken to be at most this many times as far from the
        records as the best ones.
    most_contamination : float
        Undetected contamination is taken to be at most this share.
    power : float
        Noncentrality beyond which contamination counts as detected, in deviations: the test of the fit then finds it
        in about nine of ten releases.
    single_values : float
        Where point masses hold more than this part of the records, a family has nothing to be fitted to.
    many_zeros : float
        From this share of zeros on, a message names a family that has one.
    few : float
        With fewer records than this a message says that errors are rough.
    error_factor : float
        Errors are multiplied by this: a smooth field bends the density at walls by more than its draws tell.
    crossing : float
        Cells of one column end where buckets with at most this part of the cell's content reach across: how records
        spread inside buckets, the family says better than the field does.
    """

    grouped: Mapping[int, int] = field(default_factory=lambda: {1: 1, 2: 1, 3: 2})
    difference: float = 1e-4
    lattice_points: int = 216
    starts: int = 3
    cells: tuple[int, ...] = (32, 24, 16, 12, 8)
    known: float = 0.3
    level: float = 0.01
    informed: float = 0.4
    inflation: float = 1.0
    excess: float = 2.5
    excess_sd: float = 5.0
    least_excess: float = 0.01
    most_cut: float = 0.5
    windows: tuple[int, ...] = (16, 32, 64, 128, 256, 512)
    breakdown: float = 2.0
    most_contamination: float = 0.2
    power: float = 5.0
    single_values: float = 0.9
    many_zeros: float = 0.02
    few: float = 100.0
    error_factor: float = 1.12
    crossing: float = 0.2


LEAF_FIT = LeafFitTuning()


class _Cells:
    """Masses of a posterior beside the family's probabilities, flat."""

    def __init__(self, posterior: Posterior, family: Family, box: FloatArray) -> None:
        self.family, self.box, self.axes = family, box, posterior.axes
        masses, group = posterior.masses(), LEAF_FIT.grouped[posterior.d]
        grouped = all(len(axis.centres) % group == 0 for axis in self.axes)
        self.edges = [axis.edges[:: group if grouped else 1] for axis in self.axes]
        if posterior.d == 1 and hasattr(family, "cdf"):
            self.edges = [posterior.resolved_edges(LEAF_FIT.crossing)]
        self.starts = [np.searchsorted(a.edges, e[:-1]) for a, e in zip(self.axes, self.edges, strict=True)]
        self.shape = tuple(len(e) - 1 for e in self.edges)
        flat: LeafMasses = masses.map(self._coarse)
        self.p, self.draws, self.even = flat.estimate, flat.draws, flat.even
        self.count = float(posterior.count.value)
        records = posterior.masses("records")
        self.records, self.records_mean = self._coarse(records.draws), self._coarse(records.estimate)

    def _coarse(self, part: FloatArray) -> FloatArray:
        d = len(self.shape)
        lead = part.shape[: part.ndim - d]
        return np.asarray(joined_groups(part, self.starts).reshape(*lead, -1))

    def q(self, theta: FloatArray) -> FloatArray:
        """Probabilities of the cells under the family."""
        return leaf_probabilities(self.family, theta, self.edges)

    @property
    def steps(self) -> FloatArray:
        """Steps of numerical derivatives."""
        return np.asarray(LEAF_FIT.difference * (self.box[:, 1] - self.box[:, 0]))

    def scales(self, theta: FloatArray) -> FloatArray:
        """Steps of numerical derivatives at a point: relative for positive parameters, whose boxes may be wide."""
        positive = np.array([limit[0] == 0.0 for limit in self.family.limits])
        # A step must not drown in the rounding of numbers as large as dates in seconds.
        most = max(1e-3, *(1e-6 * (axis.bounds[1] - axis.bounds[0]) for axis in self.axes))
        return np.where(positive, 1e-4 * np.maximum(np.abs(theta), 1e-12), np.minimum(self.steps, most))

    def root_jacobian(self, theta: FloatArray) -> FloatArray:
        """Derivatives of the roots of the probabilities in the parameters, shape (cells, m)."""
        columns = []
        for j, step in enumerate(self.scales(theta)):
            move = np.zeros(len(theta))
            move[j] = step
            low, high = np.maximum(theta - move, self.box[:, 0]), np.minimum(theta + move, self.box[:, 1])
            columns.append((np.sqrt(self.q(high)) - np.sqrt(self.q(low))) / max(float((high - low)[j]), 1e-300))
        return np.stack(columns, axis=1)


def _root_share(p: FloatArray, q: FloatArray, kept: BoolArray) -> float:
    """Root of the share of the family that is nearest to what is kept."""
    return float(np.sqrt(p[kept] * q[kept]).sum() / max(float(q[kept].sum()), 1e-300))


def _distance(cells: _Cells, theta: FloatArray, kept: BoolArray) -> float:
    q = cells.q(theta)
    return float(np.sum((np.sqrt(cells.p[kept]) - _root_share(cells.p, q, kept) * np.sqrt(q[kept])) ** 2))


def _minimise(cells: _Cells, start: FloatArray, kept: BoolArray) -> tuple[FloatArray, float]:
    from scipy.optimize import least_squares

    width = cells.box[:, 1] - cells.box[:, 0]
    root = np.sqrt(cells.p[kept])
    scale = np.maximum(cells.scales(start) * 1e4, 1e-3 * width)

    def residuals(theta: FloatArray) -> FloatArray:
        q = cells.q(theta)
        return np.asarray(root - _root_share(cells.p, q, kept) * np.sqrt(q[kept]))

    def derivatives(theta: FloatArray) -> FloatArray:
        columns = []
        for j, step in enumerate(cells.scales(theta)):
            move = np.zeros(len(theta))
            move[j] = step
            low, high = np.maximum(theta - move, cells.box[:, 0]), np.minimum(theta + move, cells.box[:, 1])
            columns.append((residuals(high) - residuals(low)) / max(float((high - low)[j]), 1e-300))
        return np.stack(columns, axis=1)

    inside = np.clip(start, cells.box[:, 0] + 1e-9 * width, cells.box[:, 1] - 1e-9 * width)
    bounds = (cells.box[:, 0], cells.box[:, 1])
    found = least_squares(residuals, inside, derivatives, bounds=bounds, x_scale=scale, xtol=1e-8, max_nfev=80)
    return np.asarray(found.x), 2.0 * float(found.cost)


# -- starts -------------------------------------------------------------------------------------------------------


def _moments(cells: _Cells, mass: FloatArray) -> tuple[Any, Any]:
    centres = [np.clip((e[1:] + e[:-1]) / 2, *axis.bounds) for e, axis in zip(cells.edges, cells.axes, strict=True)]
    points = np.stack([g.ravel() for g in np.meshgrid(*centres, indexing="ij")], axis=1)
    mass = mass / max(float(mass.sum()), 1e-300)
    mean = mass @ points
    variance = (mass[:, None] * (points - mean)).T @ (points - mean)
    return (mean[0], variance[0, 0]) if len(mean) == 1 else (mean, variance)


def _starts(cells: _Cells) -> list[FloatArray]:
    """Parameters with the moments of all, of the denser half and of the middle; and a lattice of parameters."""
    family, box, p = cells.family, cells.box, cells.p
    order = np.argsort(-p, kind="stable")
    dense = np.zeros(len(p))
    dense[order[: 1 + int(np.searchsorted(np.cumsum(p[order]), 0.75))]] = 1.0
    found = [family.moment_start(*_moments(cells, part), box) for part in (p, p * dense)]
    if len(cells.shape) == 1:
        below = np.cumsum(p)
        found.append(family.moment_start(*_moments(cells, p * ((below > 0.02) & (below < 0.85))), box))
    m = len(box)
    if m <= 3:
        size = max(2, int(LEAF_FIT.lattice_points ** (1.0 / m) + 1e-9))
        axes = [
            np.geomspace(low, high, size + 2)[1:-1] if limit[0] == 0.0 else np.linspace(low, high, size + 2)[1:-1]
            for (low, high), limit in zip(box.tolist(), family.limits, strict=True)
        ]
        found.extend(np.array(theta) for theta in itertools.product(*axes))
    else:
        found.append(family.start(box))
    return [np.asarray(theta, dtype=np.float64) for theta in found]


def _best(cells: _Cells) -> FloatArray:
    kept = np.ones(len(cells.p), dtype=bool)
    starts = sorted(_starts(cells), key=lambda theta: _distance(cells, theta, kept))[: LEAF_FIT.starts]
    return min((_minimise(cells, theta, kept) for theta in starts), key=lambda found: found[1])[0]


# -- what is left out ---------------------------------------------------------------------------------------------


def _windows(cells: _Cells) -> list[tuple[IntArray, int]]:
    """Labels of windows, from wide to narrow, and how many there are: blocks of all axes in several columns."""
    found = []
    for parts in LEAF_FIT.windows:
        per_axis = max(2, round(parts ** (1.0 / len(cells.shape))))
        if any(per_axis > size for size in cells.shape):
            break
        labels = [_even_parts(edges, per_axis) for edges in cells.edges]
        grid = np.meshgrid(*labels, indexing="ij")
        flat = np.ravel_multi_index(tuple(g.ravel() for g in grid), (per_axis,) * len(cells.shape))
        found.append((np.asarray(flat), per_axis ** len(cells.shape)))
    return found


def _even_parts(edges: FloatArray, parts: int) -> IntArray:
    """Which of so many equal parts of the range the middle of each cell lies in."""
    place = ((edges[1:] + edges[:-1]) / 2 - edges[0]) / (edges[-1] - edges[0])
    return np.asarray(np.minimum(place * parts, parts - 1), dtype=np.int64)


def _summed(label: IntArray, size: int, part: FloatArray) -> FloatArray:
    rows = [np.bincount(label, row, minlength=size) for row in np.atleast_2d(part)]
    return np.asarray(np.stack(rows) if part.ndim > 1 else rows[0], dtype=np.float64)


def _excess(cells: _Cells, theta: FloatArray, kept: BoolArray) -> BoolArray:
    """Cells in windows that hold clearly more than the family puts there, by the fit to what is kept."""
    q = cells.q(theta)
    share = _root_share(cells.p, q, kept) ** 2
    high = np.zeros(len(q), dtype=bool)
    for label, size in _windows(cells):
        seen, wanted = _summed(label, size, cells.p), share * _summed(label, size, q)
        sd = _summed(label, size, cells.draws).std(axis=0)
        clear = (seen > LEAF_FIT.excess * wanted) & (seen - wanted > LEAF_FIT.excess_sd * sd)
        high |= (clear & (seen - wanted > LEAF_FIT.least_excess))[label]
    return high


def _without_excess(cells: _Cells, theta: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Leave out what is in excess and fit again; never half of the records, nor half of the family."""
    kept = np.ones(len(cells.p), dtype=bool)
    for _ in range(4):
        high = _excess(cells, theta, kept)
        if np.array_equal(~high, kept):
            break
        if max(float(cells.p[high].sum()), float(cells.q(theta)[high].sum())) > LEAF_FIT.most_cut:
            break
        fitted = _minimise(cells, theta, ~high)[0]
        if float(cells.q(fitted)[high].sum()) > LEAF_FIT.most_cut:
            break
        theta, kept = fitted, ~high
    return theta, kept


def _lumps(cells: _Cells, theta: FloatArray, kept: BoolArray) -> tuple[ExcessMass, ...]:
    from scipy.ndimage import find_objects, label

    q = cells.q(theta)
    beyond = (cells.p - _root_share(cells.p, q, kept) ** 2 * q).reshape(cells.shape)
    numbered, _ = label(~kept.reshape(cells.shape))
    found = []
    for number, place in enumerate(find_objects(numbered), start=1):
        share = float(beyond[numbered == number].sum())
        ends = [(e[s.start], e[s.stop]) for e, s in zip(cells.edges, place, strict=True)]
        low, high = (tuple(float(pair[k]) for pair in ends) for k in (0, 1))
        if share > 0:
            found.append(ExcessMass(low, high, share))
    return tuple(sorted(found, key=lambda lump: -lump.share))


# -- errors -------------------------------------------------------------------------------------------------------


def _influence(cells: _Cells, theta: FloatArray, kept: BoolArray) -> FloatArray:
    """How far the parameters move per mass in each cell, shape (cells, m); the mean over the records is zero."""
    q = cells.q(theta)
    share = _root_share(cells.p, q, kept)
    jacobian = np.where(kept[:, None], share * cells.root_jacobian(theta), 0.0)
    full = np.column_stack([jacobian, np.where(kept, np.sqrt(q), 0.0)])
    # In units of their own slopes: parameters of dates in seconds move the roots by a millionth of what a share does.
    size = np.linalg.norm(full, axis=0)
    unit = np.where(size > 1e-100, 1 / np.maximum(size, 1e-100), 0.0)
    inverse = np.linalg.pinv((full * unit).T @ (full * unit), rcond=1e-13, hermitian=True) * np.multiply.outer(
        unit, unit
    )
    # Where the records are fewer than the family, a root has a steep slope that belongs to noise alone.
    slope = np.where(kept, 0.5 / np.sqrt(np.maximum(np.maximum(cells.p, share**2 * q), 1e-300)), 0.0)
    weights = (full * slope[:, None]) @ inverse[:, :-1]
    return np.asarray(weights - cells.p @ weights)


@dataclass(frozen=True, eq=False)
class _Misfit:
    """Residuals on cells of equal probability, what they could be by noise, and what follows for the parameters."""

    residual: FloatArray
    covariance_inverse: FloatArray
    tangent: FloatArray
    probability: FloatArray
    influence: FloatArray
    statistic: float
    degrees: int
    noise: FloatArray


def _equal_cells(cells: _Cells, theta: FloatArray, kept: BoolArray, number: int) -> IntArray:
    """Label of an about equally likely cell for each cell of the grid, -1 where nothing is kept."""
    q = np.where(kept, cells.q(theta), 0.0)
    q = q / max(float(q.sum()), 1e-300)
    if len(cells.shape) == 1:
        label = np.minimum((np.cumsum(q) - q / 2) * number, number - 1).astype(np.int64)
    else:
        mean, variance = _moments(cells, q)
        centres = [(e[1:] + e[:-1]) / 2 for e in cells.edges]
        points = np.stack([g.ravel() for g in np.meshgrid(*centres, indexing="ij")], axis=1) - mean
        white = points @ np.linalg.inv(np.linalg.cholesky(variance + 1e-12 * np.eye(len(mean)))).T
        corner = ((white > 0) * 2 ** np.arange(len(mean))).sum(axis=1)
        shells = max(2, number // 2 ** len(mean))
        order = np.argsort((white**2).sum(axis=1), kind="stable")
        rank = np.empty(len(q))
        rank[order] = np.cumsum(q[order]) - q[order] / 2
        label = np.minimum(rank * shells, shells - 1).astype(np.int64) * 2 ** len(mean) + corner
    used = np.unique(label[kept & (q > 0)])
    label = np.searchsorted(used, label).clip(0, len(used) - 1)
    return np.where(kept, label, -1)


def _misfit(cells: _Cells, theta: FloatArray, kept: BoolArray, influence: FloatArray) -> _Misfit:
    q = cells.q(theta)
    moved = (cells.draws - cells.p) @ influence
    for number in LEAF_FIT.cells:
        label = _equal_cells(cells, theta, kept, number)
        size, inside = int(label.max()) + 1, label >= 0
        p, wanted, drawn = (_summed(label[inside], size, part[..., inside]) for part in (cells.p, q, cells.draws))
        if np.median(drawn.std(axis=0) / np.maximum(p, 1e-12)) <= LEAF_FIT.known:
            break
    # conditional on what is kept
    drawn = drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-300)
    p, wanted = p / max(float(p.sum()), 1e-300), wanted / max(float(wanted.sum()), 1e-300)
    slopes = []
    for j, step in enumerate(cells.scales(theta)):
        move = np.zeros(len(theta))
        move[j] = 10 * step
        low, high = np.maximum(theta - move, cells.box[:, 0]), np.minimum(theta + move, cells.box[:, 1])
        ends = []
        for at in (low, high):
            part = _summed(label[inside], size, cells.q(at)[inside])
            ends.append(part / max(float(part.sum()), 1e-300))
        slopes.append((ends[1] - ends[0]) / max(float((high - low)[j]), 1e-300))
    tangent = np.stack(slopes, axis=1)
    noise = drawn - p - moved @ tangent.T
    inverse, degrees = _informed_inverse(noise, wanted, cells.count, len(theta))
    residual = p - wanted
    mean_influence = _summed(label[inside], size, (influence.T * q)[:, inside]).T
    mean_influence /= np.maximum(_summed(label[inside], size, q[inside]), 1e-300)[:, None]
    statistic = float(residual @ inverse @ residual)
    return _Misfit(residual, inverse, tangent, wanted, mean_influence, statistic, degrees, noise)


def _informed_inverse(noise: FloatArray, wanted: FloatArray, count: float, parameters: int) -> tuple[FloatArray, int]:
    """Inverse of the covariance of residuals in directions that the posterior tells from the records, and their number.

    A smooth prior leaves less than sampling error in residuals that change from cell to cell: there its bias would be
    taken for misfit. Such directions have a small part of the sampling variance, and are left out.
    """
    root = np.sqrt(np.maximum(wanted, 1e-12) / count)
    scaled = noise / root
    covariance = scaled.T @ scaled / len(noise)
    values, vectors = np.linalg.eigh(covariance)
    told = np.argsort(-values)[: max(1, len(wanted) - 1 - parameters)]
    told = told[(values[told] >= LEAF_FIT.informed) | (told == told[0])]
    inverse = (vectors[:, told] / np.maximum(values[told], 1e-12)) @ vectors[:, told].T
    return np.asarray(inverse / np.outer(root, root) / LEAF_FIT.inflation), len(told)


def _hidden(misfit: _Misfit, errors: FloatArray) -> tuple[FloatArray, float]:
    r"""Largest shift of each parameter by contamination that would not be found, and its share of the records.

    A share :math:`g_c \ge 0` of other records in each cell moves a parameter by :math:`a^\top g` and is found where the
    noncentrality :math:`g^\top Q g` of the residuals that it leaves exceeds `power`, squared. The largest
    :math:`a^\top g` below that is in the direction of

    .. math:: \arg\min_{g \ge 0} \tfrac12 g^\top Q g - a^\top g,

    a problem of nonnegative least squares: spread over many cells, contamination hides best. Single cells are looked at
    too, since no share may exceed `most_contamination`.
    """
    size = len(misfit.residual)
    moved = np.eye(size) - misfit.probability[:, None]
    # What the fit follows does not show: residuals after the parameters have moved.
    moved = moved - misfit.tangent @ misfit.influence.T
    seen = moved.T @ misfit.covariance_inverse @ moved
    power = np.sqrt(np.maximum(np.diag(seen), 1e-300))
    alone = np.diag(np.minimum(LEAF_FIT.power / power, LEAF_FIT.most_contamination))
    tried = np.concatenate(
        [alone, hidden_directions(seen, misfit.influence, LEAF_FIT.power, LEAF_FIT.most_contamination)]
    )
    shifts = np.abs(tried @ misfit.influence)
    worst = int(np.argmax((shifts / np.maximum(errors, 1e-300)).max(axis=1)))
    return np.asarray(shifts.max(axis=0)), float(tried[worst].sum())


def _widening(misfit: _Misfit) -> FloatArray:
    """How far each parameter may lie below and above the estimate where the family does not fit, shape (m, 2).

    The largest and least move for which half of the absolute residuals stays within `breakdown` times what it is at the
    estimate: linear programmes.
    """
    from scipy.optimize import linprog

    size, m = misfit.tangent.shape
    scale = np.maximum(np.abs(misfit.tangent).sum(axis=0), 1e-300)
    tangent = misfit.tangent / scale
    limit = LEAF_FIT.breakdown * float(np.abs(misfit.residual).sum())
    # |residual - tangent move| <= slack, sum of slack <= limit
    upper = np.block([[-tangent, -np.eye(size)], [tangent, -np.eye(size)], [np.zeros((1, m)), np.ones((1, size))]])
    right = np.concatenate([-misfit.residual, misfit.residual, [limit]])
    ends = np.zeros((m, 2))
    for j, side in itertools.product(range(m), (0, 1)):
        goal = np.zeros(m + size)
        goal[j] = 1.0 if side == 0 else -1.0
        found = linprog(goal, upper, right, bounds=[(None, None)] * m + [(0, None)] * size)
        ends[j, side] = abs(found.x[j]) / scale[j] if found.status == 0 else np.inf
    return ends


def _explained(misfit: _Misfit, cells: _Cells, kept: BoolArray) -> tuple[float, float]:
    """Share of the records that the family explains, and its standard error."""
    inside = float(cells.p[kept].sum())
    # Residuals of noise alone have this mean in absolute value.
    noise = math.sqrt(2 / math.pi) * misfit.noise.std(axis=0)
    apart = 0.5 * float(np.maximum(np.abs(misfit.residual) - noise, 0.0).sum())
    drawn = 0.5 * np.abs(misfit.residual + misfit.noise).sum(axis=1)
    error = math.hypot(inside * float(drawn.std()), float(cells.draws[:, kept].sum(axis=1).std()))
    return min(max(inside * (1 - apart), 0.0), 1.0), error


# -- the fit ------------------------------------------------------------------------------------------------------


def _default_box(posterior: Posterior, family: Family) -> FloatArray:
    """Wide bounds of the parameters around those with the released moments: post-processing, and so free."""
    # As far as the column reaches and no less than the box of old: dates in seconds are beyond 1e9.
    far = max(1e9, *(10 * abs(end) for axis in posterior.axes for end in axis.bounds))
    positive = [min(1e-6, far / 1e15), max(1e6, far / 1e3)]
    wide = np.array(
        [
            positive if low == 0.0 and high == math.inf else [max(low, -far), min(high, far)]
            for low, high in family.limits
        ]
    )
    cells = _Cells(posterior, family, wide)
    theta = family.moment_start(*_moments(cells, cells.p), wide)
    widths = [axis.bounds[1] - axis.bounds[0] for axis in posterior.axes]
    rows = []
    for value, (low, high) in zip(theta, family.limits, strict=True):
        if low == 0.0 and high == math.inf:
            rows.append((value / 10.0, value * 10.0))
        elif math.isfinite(low) and math.isfinite(high):
            margin = 1e-4 * (high - low)
            rows.append((low + margin, high - margin))
        else:
            rows.append((value - max(widths), value + max(widths)))
    return np.array(rows)


def fit_posterior(
    posterior: Posterior,
    family: Family | str,
    *,
    parameter_bounds: Any = None,
    level: float = 0.95,
) -> FamilyFit:
    """Fit a family to a posterior of one column, or a normal to one of up to three; free.

    Parameters
    ----------
    posterior : Posterior
    family : Family or str
    parameter_bounds : mapping from parameter name to (low, high), optional
        By default a wide range around parameters with the released moments.
    level : float
        Of the intervals.

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> fit = fit_posterior(example_posterior(), "gamma")
    >>> sorted(fit.params)
    ['scale', 'shape']
    """
    from fogline._validation import check_level
    from fogline.families import family_named, parameter_box

    known = family_named(family)
    level = check_level(level, "level")
    if known.dimension != posterior.d:
        raise ValueError(f"family: the {known.name} family has {known.dimension} columns, the density {posterior.d}")
    box = _default_box(posterior, known) if parameter_bounds is None else parameter_box(known, parameter_bounds)
    cells = _Cells(posterior, known, box)
    with np.errstate(all="ignore"):
        theta, kept = _without_excess(cells, _best(cells))
        influence = _influence(cells, theta, kept)
        drawn = (cells.draws - cells.p) @ influence
        covariance = np.atleast_2d(drawn.T @ drawn / len(drawn))
        sampling = (influence * cells.p[:, None]).T @ influence / cells.count
        even = np.atleast_2d(np.cov(((cells.even - cells.p) @ influence).T))
        table = ((cells.records - cells.records_mean) @ influence).var(axis=0)
        least = np.diag(sampling) + table
        factor = np.sqrt(np.maximum(1.0, least / np.maximum(np.diag(covariance), 1e-300))) * LEAF_FIT.error_factor
        covariance, even = (part * np.outer(factor, factor) for part in (covariance, even))
        misfit = _misfit(cells, theta, kept, influence)
    return _result(posterior, cells, theta, kept, (covariance, sampling, even), misfit, level)


def fit_column(
    posterior: Posterior, family: Family | str, column: str | int | None = None, **options: Any
) -> FamilyFit:
    """Fit a family to one column of a posterior, or to all of them where the family has as many; free.

    Parameters
    ----------
    posterior : Posterior
    family : Family or str
    column : str or int, optional
        Needed where the family has one column and the posterior more.
    **options
        As in :func:`fit_posterior`.

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> fit_column(example_posterior(), "exponential", "stay").columns
    ('stay',)
    """
    from fogline.families import family_named

    known = family_named(family)
    if known.dimension == 1 and (posterior.d > 1 or column is not None):
        if column is None:
            raise ValueError(f"column must be one of {', '.join(posterior.columns)}")
        posterior = posterior.marginal(column)
    elif known.dimension > 1 and column is not None:
        raise ValueError(f"column: the {known.name} family is fitted to all columns")
    return fit_posterior(posterior, known, **options)


def _result(
    posterior: Posterior,
    cells: _Cells,
    theta: FloatArray,
    kept: BoolArray,
    parts: tuple[FloatArray, FloatArray, FloatArray],
    misfit: _Misfit,
    level: float,
) -> FamilyFit:
    from scipy.special import chdtrc

    covariance, sampling, even = parts
    errors = np.sqrt(np.diag(covariance))
    p_value = float(chdtrc(misfit.degrees, misfit.statistic))
    holds = p_value >= LEAF_FIT.level
    shifts, hidden = _hidden(misfit, errors)
    untold = _untold(posterior, cells, errors)
    own = np.zeros((len(theta), 2)) if holds else _widening(misfit)
    if untold:
        holds, own = False, np.full((len(theta), 2), np.inf)
    robust = np.maximum(own, shifts[:, None])
    shift = float((shifts / np.maximum(errors, 1e-300)).max())
    share, share_error = _explained(misfit, cells, kept)
    family, names = cells.family, cells.family.parameters
    return FamilyFit(
        family=family,
        columns=posterior.columns,
        params=dict(zip(names, theta.tolist(), strict=True)),
        standard_errors=dict(zip(names, errors.tolist(), strict=True)),
        intervals=parameter_intervals(family, theta, errors, own, cells.box, level),
        robust_intervals=parameter_intervals(family, theta, errors, robust, cells.box, level),
        level=level,
        covariance=covariance,
        sampling_covariance=sampling,
        smoothing_covariance=np.maximum(np.diag(np.diag(covariance - even)), 0.0),
        share=share,
        share_error=share_error,
        lumps=_lumps(cells, theta, kept),
        assumption=FitAssumption(holds, p_value, hidden, shift, LEAF_FIT.breakdown, untold),
        message=_message(posterior, cells, theta, share),
        box=cells.box,
        widening=own,
        robust_widening=robust,
    )


def _untold(posterior: Posterior, cells: _Cells, errors: FloatArray) -> str:
    """Why the records cannot tell the parameters of the family; empty where they can."""
    if len(cells.p) <= len(errors):
        return f"a column of {len(cells.p)} values does not tell {len(errors)} parameters"
    if posterior.d == 1 and "zero" not in cells.family.parameters:
        atoms = sum(float(atom.share.value) for atom in posterior.atoms)
        if atoms > LEAF_FIT.single_values:
            return f"{100 * min(atoms, 1.0):.0f}% of the records are single values, and a family has no shape there"
    if posterior.d == 1 and posterior.is_coarse and float(posterior.variance().value) <= posterior.bucket_side(0) ** 2:
        return f"the column is no wider than the cells of the release ({posterior.bucket_side(0):.2g})"
    if not np.all(np.isfinite(errors) & (errors > 0)):
        return "the family is nowhere near the records"
    return ""


def _message(posterior: Posterior, cells: _Cells, theta: FloatArray, share: float) -> str:
    """What to beware of, from released values."""
    count = posterior.count
    if is_nothing(float(count.value), float(count.standard_error)):
        return "the estimates may be of noise alone"
    told = [_zeros_told(posterior, cells.family)]
    if cells.count < LEAF_FIT.few:
        told.append(f"there are only about {cells.count:.0f} records: errors are rough")
    width = cells.box[:, 1] - cells.box[:, 0]
    ends = (theta < cells.box[:, 0] + 1e-3 * width) | (theta > cells.box[:, 1] - 1e-3 * width)
    low = np.array([limit[0] == 0.0 for limit in cells.family.limits]) & (theta > 1.01 * cells.box[:, 0])
    at_bound = [n for n, end, inner in zip(cells.family.parameters, ends, low, strict=True) if end and not inner]
    if at_bound and share > 0.9:
        told.append(f"{' and '.join(at_bound)} lies at the end of parameter_bounds: widen them, if that is plausible")
    elif at_bound:
        told.append(
            f"{' and '.join(at_bound)} lies at the end of parameter_bounds and the family fits badly: try another"
        )
    return "; ".join(filter(None, told))


def _zeros_told(posterior: Posterior, family: Family) -> str:
    """Name the family that has a share of zeros, where one on positive numbers meets many of them."""
    if posterior.d != 1 or family.name not in ("gamma", "lognormal", "exponential", "weibull"):
        return ""
    zeros = sum(float(atom.share.value) for atom in posterior.atoms if atom.value == 0.0)
    if zeros < LEAF_FIT.many_zeros:
        return ""
    better = family.name if family.name in ("gamma", "lognormal") else "gamma"
    return (
        f"{100 * zeros:.0f}% of the records are at 0, where the {family.name} family has none: "
        f"'zero-inflated {better}' has a share of zeros"
    )
