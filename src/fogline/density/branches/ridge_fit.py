r"""Branches located all at once: ridges fitted to the released Fourier sums by least squares.

Local peaks of a faint density must be smoothed over a tenth of the range of x, which flattens curves, loses half of the
kernel at a wall and lets a ridge that ends abruptly fade away slowly. So the branches are fitted together, as ridges

.. math:: f(x, y) = \sum_j p_j(x)\, \varphi_{\tau_j}(y - m_j(x)), \qquad a_j \le x \le b_j,

with splines for the position :math:`m_j` and the mass :math:`p_j` and one width :math:`\tau_j` a branch. The sums of
such a density are known, and so is the noise of the released ones: the fit is weighted least squares (Gauss-Newton),
with penalties on the bends of :math:`m_j` and the steps of :math:`p_j`. How strong they are follows from the data
by restricted maximum likelihood [1]_, which here has no free constant since the variance of the noise is known.
All is in units of the box: x and y run from 0 to 1, and the whole mass is 1.
A skewed ridge is located at its centre rather than at its top, which a faint density could not tell apart.

References
----------
.. [1] S. Wood, M. Fasiolo, "A generalized Fellner-Schall method for smoothing parameter optimization", Biometrics 73,
   2017.

Where fitted branches begin and end, which are one, and which are straight.

A branch that ends abruptly fades slowly in a smoothed density, and is followed too far. In the fit of ``branch_fit``
an end is a step in the mass of a ridge, and the sums say how well each place for it fits: the sum of squares over all
places is a profile likelihood, its minimum the best end, and the range in which it rises by less than `margin` holds
the true end with a confidence of about 99%. Its rise is in units of the noise at that end: sampling noise is where the
records are, along the ridges, and larger there than if it were spread over the box. A branch is claimed up to the near
end of that range only, except where no other branch is: some response must be the likeliest. A wall of x needs no step:
a branch that may well reach it does.

Fits and ends take turns. In between, ridges are cut where they have no mass, ends of two that meet are joined if one
ridge fits as well, and a ridge is made straight if it then fits about as well: noise bends a faint one.

From peaks to fitted branches: what ``branch_fit`` and ``branch_ends`` need, and what they give, in data units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from fogline._typing import BoolArray, ComplexArray, FloatArray, IntArray
from fogline.density.branches.branch_map import BranchMap
from fogline.density.branches.detection import BranchLinks, BranchPoints, by_length
from fogline.density.branches.profiles import Lines, Profiles, mirror_basis
from fogline.density.modes.peaks import find_peaks

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = [
    "RIDGES",
    "FittedRidges",
    "Ridge",
    "RidgeTuning",
    "Solution",
    "Sums",
    "fit_ridges",
    "fitted_branches",
    "real_over_imaginary",
    "solve",
]


@dataclass(frozen=True)
class RidgeTuning:
    """What is tuned of the fit of ridges to the released sums, and of their ends.

    Attributes
    ----------
    knots : float
        Distance of the splines' knots, in bandwidths of x.
    quadrature : int
        Points of the integral over x per knot.
    steps, tolerance : int or float
        Gauss-Newton steps, and the largest last one, in standard errors of what it moves.
    least_signal : float
        Sums whose largest possible value is below this many deviations of their noise are left out.
    penalties, strongest : tuple or float
        Penalties of positions and masses at first, and the strongest, which leaves lines straight and masses
        even.
    charge : float
        Where two fits are compared, a degree of freedom of a position must lower the misfit by this much.
    floor : float
        Relative to the information, what keeps the equations solvable where a branch has no mass.
    widths, typical, known : tuple or float
        Least, largest and typical width of a ridge, in bandwidths of y, and how much the logarithm of its
        square is held to that: a ridge that is free to be thin winds its way through the noise.
    farthest : float
        A step moves a ridge at most so far, and half its width.
    passes : int
        Turns of fitting and looking for ends.
    fine : float
        Ends are tried at this many places per bandwidth.
    reach : float
        They are tried up to this many bandwidths beyond the ridge as it is.
    edge, plateau, least_level : float or tuple
        The mass is taken to be even for `edge` bandwidths inside of an end: as it is between this many bandwidths
        inside, and at least so large a share of what is typical of the ridge.
    margin : float
        How much worse an end may fit and still be possible: two and a half standard errors, squared.
    wall : float
        The same for the wall: a branch ends before it only if that fits better by more than this.
    shortest : float
        A ridge is at least this many bandwidths long.
    waist, seen : float
        Where a ridge has less than this share of its typical mass, or less than this many standard errors of its mass,
        it is cut.
    least_clearness : float
        A ridge whose mass is less than this many standard errors is dropped.
    join_reach, join : tuple or float
        Two ridges may be one if their ends are this many bandwidths of x and y apart, and one scores at most so
        much worse.
    straight : float
        A straight ridge may score worse by this much.
    enough : float
        A branch is lengthened over a place where there is no other if the density of x there is at least this
        share of its mass.
    points_across : int
        Points across a ridge that stand for its records where the noise of sampling is reckoned.
    allowance : float
        Errors are this much larger than the fit by itself says: ends, widths and bends are estimated too.
    ridge_places_per_bandwidth : int
        Places of the grid of x per bandwidth.
    y_per_bandwidth : float
        Grid points per bandwidth of y on which prominences are read.
    """

    knots: float = 0.6
    quadrature: int = 4
    steps: int = 10
    tolerance: float = 0.05
    least_signal: float = 0.7
    penalties: tuple[float, float] = (0.16, 0.16)
    strongest: float = 1e8
    charge: float = 4.5
    floor: float = 1e-6
    widths: tuple[float, float] = (0.05, 2.0)
    typical: float = 0.6
    known: float = 0.25
    farthest: float = 0.025
    passes: int = 3
    fine: float = 20.0
    reach: float = 1.0
    edge: float = 1.0
    plateau: tuple[float, float] = (0.5, 2.5)
    least_level: float = 0.5
    margin: float = 6.25
    wall: float = 4.0
    shortest: float = 0.6
    waist: float = 0.25
    seen: float = 2.0
    least_clearness: float = 4.5
    join_reach: tuple[float, float] = (1.5, 2.5)
    join: float = 6.0
    straight: float = 4.0
    enough: float = 0.5
    points_across: int = 5
    allowance: float = 1.1
    ridge_places_per_bandwidth: int = 20
    y_per_bandwidth: float = 5.0


RIDGES = RidgeTuning()


@dataclass(frozen=True)
class Sums:
    """The released sums that say something, in units of their noise, privacy and sampling together.

    Attributes
    ----------
    observed : complex array of shape (F,)
    scale : array of shape (F,)
        What the sum of a density of mass one is multiplied by.
    privacy : array of shape (F,)
        Share of the privacy noise in the variance.
    angular : array of shape (F, 2)
    origin : array of shape (2,)
    count : float
        Released number of records.
    """

    observed: ComplexArray
    scale: FloatArray
    privacy: FloatArray
    angular: FloatArray
    origin: FloatArray
    count: float

    @classmethod
    def of(cls, density: PrivateDensity) -> Sums:
        """Sums of a release; both parts of one have the variance of half a record each from sampling."""
        noise = density.noise_scale**2 / density.weights
        total = noise + density.count / 2
        # No density has a sum above its count, so these could say nothing, whatever the branches are.
        kept = density.count / np.sqrt(total) >= RIDGES.least_signal
        root = np.sqrt(total[kept])
        return cls(
            density.coefficients[kept] / root,
            density.count / root,
            noise[kept] / total[kept],
            density.spec.angular[kept] * density.spec.widths,
            np.asarray((density.spec.origin - density.spec.lower) / density.spec.widths),
            float(density.count),
        )

    def waves(self, x: FloatArray, y: FloatArray, width: float) -> ComplexArray:
        """Sums of unit masses at points (x, y), spread in y by `width`; shape (F, points)."""
        shape = (self.scale * np.exp(-0.5 * (self.angular[:, 1] * width) ** 2))[:, None]
        return np.asarray(shape * self.axis_waves(0, x) * self.axis_waves(1, y))

    def axis_waves(self, axis: int, places: FloatArray) -> ComplexArray:
        """Waves of one axis at places on it; each of its few different frequencies is computed once."""
        frequencies, index = self._different[axis]
        return np.asarray(np.exp(-1j * np.outer(frequencies, places - self.origin[axis]))[index])

    @cached_property
    def _different(self) -> list[tuple[FloatArray, NDArray[np.intp]]]:
        return [np.unique(column, return_inverse=True) for column in self.angular.T]


@dataclass(frozen=True)
class Ridge:
    """One branch from `low` to `high`: spline coefficients of its position and mass, its width, and its penalties.

    A straight one has the strongest penalty on its bends, whatever the data say.
    """

    low: float
    high: float
    knots: FloatArray
    position: FloatArray
    mass: FloatArray
    width: float
    penalties: tuple[float, float]
    straight: bool = False

    @classmethod
    def through(
        cls, x: FloatArray, y: FloatArray, mass: FloatArray, ends: tuple[float, float], knot: float, width: float
    ) -> Ridge:
        """A ridge between two ends, at least a knot apart, near points (x, y) with the given masses."""
        low, high = ends
        pieces = max(1, round((high - low) / knot))
        knots = np.linspace(low, high, pieces + 1)
        step = (high - low) / pieces
        # Three knots beyond either end make the cubic splines whole up to the ends.
        knots = np.concatenate([low - step * np.arange(3.0, 0.0, -1.0), knots, high + step * np.arange(1.0, 4.0)])
        size = len(knots) - 4
        basis = np.asarray(BSpline(knots, np.eye(size), 3)(x))
        # Splines without a point under them follow their neighbours instead of being undetermined.
        even = 1e-6 * np.diff(np.eye(size), 2, axis=0)
        start = [
            np.linalg.lstsq(np.vstack([basis, even]), np.append(v, np.zeros(size - 2)), rcond=None)[0]
            for v in (y, mass)
        ]
        return cls(low, high, knots, start[0], start[1], width, RIDGES.penalties)

    def straightened(self, width: float) -> Ridge:
        """A straight ridge of another width between the same ends."""
        x = self.points()
        masses = self.masses(x)
        # Weighted by the mass: a tail that holds nobody must not turn the line.
        line = np.polynomial.Polynomial.fit(x, self.positions(x), 1, w=np.sqrt(np.maximum(masses, 0.0) + RIDGES.floor))
        knot = float(self.knots[1] - self.knots[0])
        ridge = Ridge.through(x, line(x), masses, (self.low, self.high), knot, width)
        return replace(ridge, penalties=(RIDGES.strongest, self.penalties[1]), straight=True)

    def between(self, low: float, high: float, knot: float) -> Ridge:
        """The same ridge with other ends."""
        x = np.linspace(low, high, max(8, RIDGES.quadrature * round((high - low) / knot)))
        ridge = Ridge.through(x, self.positions(x), self.masses(x), (low, high), knot, self.width)
        return replace(ridge, penalties=self.penalties, straight=self.straight)

    def basis(self, x: FloatArray, order: int = 0) -> FloatArray:
        """Values or derivatives of the splines at x, shape (points, size)."""
        spline = BSpline(self.knots, np.eye(len(self.position)), 3)
        return np.asarray((spline if order == 0 else spline.derivative(order))(x))

    def positions(self, x: FloatArray) -> FloatArray:
        """Where the ridge is; beyond its ends it goes straight on."""
        within = np.clip(x, self.low, self.high)
        # A cubic runs away beyond its last knot; its tangent does not.
        slope = self.basis(within, 1) @ self.position
        return np.asarray(self.basis(within) @ self.position + (x - within) * slope)

    def masses(self, x: FloatArray) -> FloatArray:
        """Mass of the ridge per unit of x; beyond its ends as at them."""
        return np.asarray(self.basis(np.clip(x, self.low, self.high)) @ self.mass)

    def points(self) -> FloatArray:
        """Points of the integral over x."""
        size = (len(self.knots) - 7) * RIDGES.quadrature
        return np.asarray(self.low + (self.high - self.low) * (np.arange(size) + 0.5) / size)


@dataclass(frozen=True)
class Solution:
    """Ridges as fitted, what is left of the sums, and covariances of all coefficients: whole, and of privacy alone."""

    ridges: list[Ridge]
    residual: ComplexArray
    covariance: FloatArray
    privacy: FloatArray

    @property
    def misfit(self) -> float:
        """Sum of squares: minus twice the log likelihood."""
        return float(np.sum(np.abs(self.residual) ** 2))

    def blocks(self) -> list[slice]:
        """Where the coefficients of the positions of each ridge are; those of its masses follow them."""
        starts = np.cumsum([0, *(2 * len(r.position) + 1 for r in self.ridges)])
        return [slice(int(a), int(a) + len(r.position)) for a, r in zip(starts, self.ridges, strict=False)]

    def freedom(self, k: int) -> float:
        """Degrees of freedom that the position of a ridge uses: 2 for a straight one."""
        own, size = self.blocks()[k], len(self.ridges[k].position)
        penalised = self.ridges[k].penalties[0] * float(np.sum(self.covariance[own, own] * _penalties(size)[0]))
        return size - penalised

    @property
    def score(self) -> float:
        """Misfit, and a charge for each degree of freedom: lower is better."""
        return self.misfit + RIDGES.charge * sum(self.freedom(k) for k in range(len(self.ridges)))

    def clearness(self, k: int) -> float:
        """Mass of a ridge over its standard error."""
        ridge, stop = self.ridges[k], self.blocks()[k].stop
        own = slice(stop, stop + len(ridge.mass))
        share = ridge.basis(ridge.points()).mean(axis=0)
        return float(share @ ridge.mass / np.sqrt(share @ self.covariance[own, own] @ share))

    def mass_errors(self, k: int, x: FloatArray) -> FloatArray:
        """Standard errors of the mass of a ridge at places x."""
        stop, basis = self.blocks()[k].stop, self.ridges[k].basis(x)
        own = slice(stop, stop + len(self.ridges[k].mass))
        return np.asarray(np.sqrt(np.einsum("ki,ij,kj->k", basis, self.covariance[own, own], basis)))


def solve(sums: Sums, ridges: list[Ridge], bandwidth: float) -> Solution:
    """Fit all ridges together by Gauss-Newton steps; `bandwidth`, of y, limits their widths."""
    across = [sums.axis_waves(0, r.points()) for r in ridges]
    bases = [r.basis(r.points()) for r in ridges]
    for _ in range(RIDGES.steps):
        model, jacobian, penalty, coefficients, most = _linearised(
            sums, ridges, across, bases, RIDGES.typical * bandwidth
        )
        residual = sums.observed - model
        design, target = real_over_imaginary(jacobian), real_over_imaginary(residual)
        information = design.T @ design
        # A ridge that has lost its mass says nothing of its position: the floor keeps the step finite.
        floor = np.maximum(np.diag(information), RIDGES.floor * np.median(np.diag(information)) + RIDGES.floor)
        inverse = np.asarray(np.linalg.inv(information + penalty + RIDGES.floor * np.diag(floor)), dtype=np.float64)
        step = inverse @ (design.T @ target - penalty @ coefficients)
        # Sums are periodic in the position: a longer step could land on the next crest of a wave.
        ridges = _moved(ridges, coefficients + np.clip(step, -most, most), bandwidth, inverse)
        if np.max(np.abs(step) / np.sqrt(np.diag(inverse))) < RIDGES.tolerance:
            break
    share = np.tile(sums.privacy, 2)
    # The sandwich with the privacy share alone; the rest of the covariance is the draw and the penalty.
    privacy = np.asarray(inverse @ (design.T * share) @ design @ inverse, dtype=np.float64)
    return Solution(
        ridges,
        sums.observed - _linearised(sums, ridges, across, bases, RIDGES.typical * bandwidth)[0],
        inverse,
        privacy,
    )


def _linearised(
    sums: Sums, ridges: list[Ridge], across: list[ComplexArray], bases: list[FloatArray], typical: float
) -> tuple[ComplexArray, ComplexArray, FloatArray, FloatArray, FloatArray]:
    """Sums of the ridges, derivatives by all coefficients, the penalty, the coefficients, and the largest steps."""
    angular = sums.angular[:, 1]
    model = np.zeros(len(angular), dtype=complex)
    columns, blocks, values, most = [], [], [], []
    for ridge, phase, basis in zip(ridges, across, bases, strict=True):
        mass = basis @ ridge.mass
        waves = phase * sums.axis_waves(1, basis @ ridge.position)
        length = (ridge.high - ridge.low) / len(basis)
        waves *= (length * sums.scale * np.exp(-0.5 * (angular * ridge.width) ** 2))[:, None]
        own = waves @ mass
        model += own
        columns += [-1j * angular[:, None] * ((waves * mass) @ basis), waves @ basis]
        columns.append((-0.5 * angular**2 * own * ridge.width**2)[:, None])
        size = len(ridge.position)
        bend, even = _penalties(size)
        blocks += [ridge.penalties[0] * bend, ridge.penalties[1] * even, np.full((1, 1), RIDGES.known)]
        values += [ridge.position, ridge.mass, np.full(1, 2 * np.log(ridge.width / typical))]
        most += [
            np.full(size, 0.5 * ridge.width + RIDGES.farthest),
            np.full(size, np.abs(ridge.mass).max()),
            np.full(1, 0.3),
        ]
    size = sum(len(block) for block in blocks)
    penalty = np.zeros((size, size))
    place = 0
    for block in blocks:
        penalty[place : place + len(block), place : place + len(block)] = block
        place += len(block)
    return model, np.hstack(columns), penalty, np.concatenate(values), np.concatenate(most)


def real_over_imaginary(values: ComplexArray) -> FloatArray:
    """Real parts above imaginary parts: the same lengths and products in real numbers."""
    return np.concatenate([values.real, values.imag])


def _penalties(size: int) -> tuple[FloatArray, FloatArray]:
    bend, even = (np.diff(np.eye(size), order, axis=0) for order in (2, 1))
    return np.asarray(bend.T @ bend), np.asarray(even.T @ even)


def _moved(ridges: list[Ridge], coefficients: FloatArray, b: float, inverse: FloatArray) -> list[Ridge]:
    """Ridges with other coefficients, and with penalties by restricted maximum likelihood."""
    place, moved = 0, []
    for ridge in ridges:
        size = len(ridge.position)
        parts = [coefficients[place + k * size : place + (k + 1) * size] for k in (0, 1)]
        width = RIDGES.typical * b * float(np.exp(coefficients[place + 2 * size] / 2))
        penalties = []
        for k, (matrix, values) in enumerate(zip(_penalties(size), parts, strict=True)):
            own = slice(place + k * size, place + (k + 1) * size)
            # A penalty on second differences leaves lines free (two degrees), one on first differences levels (one).
            free = max(size - 2 + k - ridge.penalties[k] * float(np.sum(inverse[own, own] * matrix)), 1e-6)
            # Fixed point of restricted likelihood: the roughness that the free coefficients have, each with variance
            # one over the penalty.
            strength = min(free / max(float(values @ matrix @ values), 1e-12), RIDGES.strongest)
            penalties.append(RIDGES.strongest if k == 0 and ridge.straight else strength)
        moved.append(
            replace(
                ridge,
                position=parts[0],
                mass=parts[1],
                width=float(np.clip(width, RIDGES.widths[0] * b, RIDGES.widths[1] * b)),
                penalties=(penalties[0], penalties[1]),
            )
        )
        place += 2 * size + 1
    return moved


@dataclass(frozen=True)
class FittedRidges:
    """Fitted ridges and, for each, its two ends: surely within, best, and surely beyond; in units of the box."""

    solution: Solution
    lower: FloatArray
    upper: FloatArray

    def within(self, x: FloatArray, marginal: FloatArray, reach: float) -> BoolArray:
        """Which ridges are claimed at places x, shape (ridges, places).

        `marginal` is the density of x there, and `reach` how far one is lengthened where there is none.
        """
        tiny = 1e-9
        claimed = (x >= self.lower[:, :1] - tiny) & (x <= self.upper[:, :1] + tiny)
        beyond = np.maximum(np.maximum(self.lower[:, 1:2] - x, x - self.upper[:, 1:2]), 0.0)
        enough = np.stack([marginal >= RIDGES.enough * ridge.masses(x) for ridge in self.solution.ridges])
        possible = (x >= self.lower[:, 2:] - tiny) & (x <= self.upper[:, 2:] + tiny)
        # How far into the range that an end may lie in: of two that may go on, the one that is surer to.
        before, after = ((np.abs(ends[:, 2:] - ends[:, :1]) + tiny) for ends in (self.lower, self.upper))
        risk = np.maximum((self.lower[:, :1] - x) / before, (x - self.upper[:, :1]) / after)
        risk = np.where(possible | (enough & (beyond <= reach)), risk, np.inf)
        surest = np.argmin(risk, axis=0)
        # Some response is the likeliest at every x that has records: the surest ridge is lengthened to it.
        bare = np.flatnonzero(~claimed.any(axis=0) & np.isfinite(risk.min(axis=0)))
        claimed[surest[bare], bare] = True
        return np.asarray(claimed)


def fit_ridges(sums: Sums, starts: list[Ridge], bandwidth: FloatArray) -> FittedRidges | None:
    """Fit ridges and their ends; None if nothing is left of them. The bandwidth is in widths of the box."""
    h, b = float(bandwidth[0]), float(bandwidth[1])
    # More coefficients than released numbers: such a fit would explain the noise.
    if 2 * len(sums.observed) < sum(2 * len(ridge.position) + 1 for ridge in starts):
        return None
    ridges = starts
    for turn in range(RIDGES.passes):
        if turn and ridges:  # at first a ridge may be too short, and its mass pile up at its ends
            ridges = _clear_parts(solve(sums, ridges, b), h)
        if not ridges:
            return None
        solution = solve(sums, ridges, b)
        crowd = _crowd(sums, solution.ridges)
        ends = [_ends(sums, solution, ridge, h, crowd) for ridge in solution.ridges]
        ridges = [
            ridge.between(low[1], high[1], RIDGES.knots * h)
            for ridge, (low, high) in zip(solution.ridges, ends, strict=True)
            if high[1] - low[1] >= RIDGES.shortest * h
        ]
        ridges = _joined(sums, ridges, h, b)
    ridges = _clear_parts(solve(sums, ridges, b), h) if ridges else []
    if not ridges:
        return None
    # Straight lines come last: while ends still move, a bend may be a wrong end.
    solution = _straightened(sums, solve(sums, ridges, b), b)
    # With straight ridges the masses are others: what is no longer seen must not be claimed.
    seen = _clear_parts(solution, h)
    if not seen:
        return None
    if [id(part) for part in seen] != [id(ridge) for ridge in solution.ridges]:
        solution = solve(sums, seen, b)
    crowd = _crowd(sums, solution.ridges)
    lower, upper = zip(*(_ends(sums, solution, ridge, h, crowd) for ridge in solution.ridges), strict=True)
    return FittedRidges(solution, np.array(lower), np.array(upper))


# -- ends ----------------------------------------------------------------------------------------------------


def _crowd(sums: Sums, ridges: list[Ridge]) -> FloatArray:
    """Columns whose outer products add up to the covariance of sampling, if the records lie along the ridges."""
    across, shares = np.polynomial.hermite_e.hermegauss(RIDGES.points_across)
    parts = []
    for ridge in ridges:
        x = ridge.points()
        mass = np.maximum(ridge.masses(x), 0.0) * (ridge.high - ridge.low) / len(x)
        for away, share in zip(across, shares / shares.sum(), strict=True):
            waves = sums.waves(x, ridge.positions(x) + away * ridge.width, 0.0)
            parts.append(real_over_imaginary(waves) * np.sqrt(mass * share / sums.count))
    return np.hstack(parts)


def _ends(
    sums: Sums, solution: Solution, ridge: Ridge, h: float, crowd: FloatArray
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Begin and end of a ridge: each surely within, best, and surely beyond."""
    found = []
    for side in (1, -1):
        wall = 0.0 if side == 1 else 1.0
        places, misfit = _profile(sums, solution, ridge, h, side, crowd)
        best = int(np.argmin(misfit))
        # Near a wall the records simply stop: a ridge that may reach it is taken to reach it.
        if abs(places[0] - wall) < h / RIDGES.fine and misfit[0] - misfit[best] < RIDGES.wall:
            found.append((wall, wall, wall))
        else:
            possible = np.flatnonzero(misfit <= misfit[best] + RIDGES.margin)
            found.append((float(places[possible[-1]]), float(places[best]), float(places[possible[0]])))
    return found[0], found[1]


def _profile(
    sums: Sums, solution: Solution, ridge: Ridge, h: float, side: int, crowd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Places for the lower (side 1) or upper end of a ridge, from outside inwards, and the sum of squares at each."""
    end, wall = (ridge.low, 0.0) if side == 1 else (ridge.high, 1.0)
    step = h / RIDGES.fine
    length = ridge.high - ridge.low
    outside = int(np.floor(min(RIDGES.reach * h, side * (end - wall)) / step + 1e-9))
    innermost = max(length - RIDGES.shortest * h, 0.0)
    cells = np.arange(-outside, int(min(innermost + RIDGES.edge * h, length) / step))
    away = np.asarray((cells + 0.5) * step, dtype=np.float64)
    x = np.asarray(end + side * away, dtype=np.float64)
    mass = ridge.masses(x)
    fitted = np.where(away > 0, mass, 0.0)
    near = (away >= RIDGES.plateau[0] * h) & (away <= RIDGES.plateau[1] * h)
    # The mass near an end is blurred by it, so the plateau behind it says how high the end must be.
    level = max(float(np.median(mass[near if near.any() else away > 0])), RIDGES.least_level * _typical_mass(ridge))
    tried = np.asarray(np.arange(-outside, int(innermost / step) + 1) * step, dtype=np.float64)
    even = np.where(away >= tried[:, None], level, 0.0)
    masses = np.where(away >= tried[:, None] + RIDGES.edge * h, fitted, even)
    waves = real_over_imaginary(sums.waves(x, ridge.positions(x), ridge.width)) * step
    residual = real_over_imaginary(solution.residual)
    change = masses - fitted
    squares = np.einsum("tp,tp->t", change @ (waves.T @ waves), change)  # |r - W c|^2, without W c for every c
    misfit = residual @ residual - 2 * change @ (waves.T @ residual) + squares
    best = int(np.argmin(misfit))
    worse = (misfit - misfit[best]) / _crowding(sums, waves, crowd, change - change[best])
    return np.asarray(end + side * tried, dtype=np.float64), np.asarray(misfit[best] + worse)


def _crowding(sums: Sums, waves: FloatArray, crowd: FloatArray, moved: FloatArray) -> FloatArray:
    r"""Variance of what the noise adds to a misfit, over that of noise which is the same everywhere; at least 1.

    A fit with masses that differ by :math:`m` is compared along :math:`u = Wm`. Privacy noise has the same variance
    along all of them. The noise of sampling has not: it is where the records are, and an end is at the end of a crowd.
    """
    products = [waves.T @ waves, waves.T @ (np.tile(sums.privacy, 2)[:, None] * waves)]
    even, privacy = (np.einsum("tp,tp->t", moved @ product, moved) for product in products)
    sampling = np.sum((moved @ (waves.T @ crowd)) ** 2, axis=1)
    return np.asarray(np.maximum((privacy + sampling) / np.maximum(even, 1e-300), 1.0))


def _typical_mass(ridge: Ridge) -> float:
    """Mean of the mass per unit of x, weighted by itself: a tail without mass does not lower it."""
    mass = np.maximum(ridge.masses(ridge.points()), 0.0)
    return float(np.sum(mass**2) / max(float(np.sum(mass)), 1e-12))


# -- which ridges there are -------------------------------------------------------------------------------------


def _clear_parts(solution: Solution, h: float) -> list[Ridge]:
    """Ridges cut where no mass of theirs is seen, without those that have little at all."""
    parts = []
    for k, ridge in enumerate(solution.ridges):
        x = np.linspace(ridge.low, ridge.high, 4 * len(ridge.points()) + 1)
        least = np.maximum(RIDGES.waist * _typical_mass(ridge), RIDGES.seen * solution.mass_errors(k, x))
        full = ridge.masses(x) >= least
        # Mass within its own error is what the other ridges left over.
        if solution.clearness(k) < RIDGES.least_clearness:
            continue
        if full.all():
            parts.append(ridge)
            continue
        change = np.diff(np.concatenate([[0], full.astype(np.int8), [0]]))
        first, last = np.flatnonzero(change == 1), np.flatnonzero(change == -1) - 1
        parts += [
            ridge.between(float(x[i]), float(x[j]), RIDGES.knots * h)
            for i, j in zip(first, last, strict=True)
            if x[j] - x[i] >= RIDGES.shortest * h
        ]
    return parts


def _straightened(sums: Sums, solution: Solution, b: float) -> Solution:
    """Each ridge in turn made straight, if that fits about as well."""
    for k, ridge in enumerate(solution.ridges):
        if ridge.straight:
            continue
        ridges = [*solution.ridges[:k], ridge.straightened(RIDGES.typical * b), *solution.ridges[k + 1 :]]
        tried = solve(sums, ridges, b)
        if tried.score <= solution.score + RIDGES.straight:
            solution = tried
    return solution


def _joined(sums: Sums, ridges: list[Ridge], h: float, b: float) -> list[Ridge]:
    """Ridges whose ends meet made one, the best pair first, as long as one fits about as well as two."""
    while pairs := _meeting(ridges, h, b):
        before = solve(sums, ridges, b).score
        tried = []
        for i, j in pairs:
            others = [ridge for k, ridge in enumerate(ridges) if k not in (i, j)]
            tried.append(solve(sums, [*others, _bridged(ridges[i], ridges[j], h)], b))
        best = min(tried, key=lambda solution: solution.score)
        # Two ridges that one explains nearly as well are one, which a reader follows more easily.
        if best.score > before + RIDGES.join:
            break
        ridges = best.ridges
    return ridges


def _meeting(ridges: list[Ridge], h: float, b: float) -> list[tuple[int, int]]:
    """Pairs of ridges of which one begins where the other ends."""
    pairs = []
    for i, first in enumerate(ridges):
        for j, second in enumerate(ridges):
            # Side by side is not one after the other: the second must begin and end later.
            ahead = min(second.low - first.low, second.high - first.high)
            follows = i != j and ahead >= RIDGES.shortest * h / 2
            if follows and abs(second.low - first.high) <= RIDGES.join_reach[0] * h:
                middle = np.array([(first.high + second.low) / 2])
                led = float(np.abs(first.positions(middle) - second.positions(middle))[0])
                ends = first.positions(np.array([first.high])) - second.positions(np.array([second.low]))
                if min(led, float(np.abs(ends)[0])) <= RIDGES.join_reach[1] * b:
                    pairs.append((i, j))
    return pairs


def _bridged(first: Ridge, second: Ridge, h: float) -> Ridge:
    """One ridge along two that meet, straight in between."""
    x = np.linspace(first.low, second.high, 200)
    left, right = sorted((first.high, second.low))
    before, after = x <= left - 0.2 * h, x >= right + 0.2 * h
    own = before | after
    columns = [
        np.interp(x, x[own], np.where(before, a, c)[own])
        for a, c in (
            (first.positions(x), second.positions(x)),
            (first.masses(x), second.masses(x)),
        )
    ]
    width = (first.width + second.width) / 2
    return Ridge.through(x, columns[0], columns[1], (first.low, second.high), RIDGES.knots * h, width)


def fitted_branches(
    density: PrivateDensity, profiles: Profiles, x_axis: FloatArray, seen: BranchPoints, branch_links: BranchLinks
) -> BranchMap | None:
    """Fit all branches of one axis of x to the released sums at once; None if nothing is left of them."""
    spec = density.spec
    bandwidth = np.append(profiles.x_bandwidth, profiles.y_bandwidth)
    relative = bandwidth / spec.widths
    h = float(relative[0])
    starts = _starts(profiles, (x_axis[seen.place] - spec.lower[0]) / spec.widths[0], seen, branch_links, relative)
    found = fit_ridges(Sums.of(density), starts, relative)
    if found is None:
        return None
    low, high = spec.bounds[0]
    axis = np.linspace(low, high, int(np.ceil(RIDGES.ridge_places_per_bandwidth / h)) + 1)
    t = (axis - spec.lower[0]) / spec.widths[0]
    level = profiles.marginal(profiles.lines(axis[:, None]))[0] / profiles.inside(axis[:, None])
    branch, place = np.nonzero(found.within(t, level * spec.widths[0], h))
    columns = _columns(found, branch, t[place])
    within = (columns[0] >= 0) & (columns[0] <= 1)
    branch, place, columns = branch[within], place[within], columns[:, within]
    position = spec.lower[1] + columns[0] * spec.widths[1]
    slopes = (columns[1] * spec.widths[1] / spec.widths[0])[:, None]
    lines = profiles.lines(axis[place][:, None], slopes)
    normal = profiles.normal(lines)
    errors = RIDGES.allowance * np.sqrt(columns[2:]) * spec.widths[1]
    return BranchMap(
        axes=(axis,),
        place=place,
        branch=by_length(branch),
        positions=position,
        heights=np.maximum(lines.at(position), 0.0) * normal,
        prominences=_prominences(profiles, lines, position) * normal,
        slopes=slopes,
        privacy_errors=errors[0],
        sampling_errors=errors[1],
        bandwidth=bandwidth,
        message="",
    )


def _starts(
    profiles: Profiles, x: FloatArray, seen: BranchPoints, branch_links: BranchLinks, bandwidth: FloatArray
) -> list[Ridge]:
    """Ridges through the peaks, in units of the box, at least a knot long."""
    spec = profiles.spec
    h, b = map(float, bandwidth)
    y = (seen.position - spec.lower[1]) / spec.widths[1]
    mass = seen.height * float(np.prod(spec.widths)) * np.sqrt(2 * np.pi * (1 + RIDGES.typical**2)) * b
    starts = []
    for branch_points in branch_links.groups():
        # A spline needs one knot of room; what it does not need it loses again when ends are fitted.
        longer = max(RIDGES.knots * h - float(np.ptp(x[branch_points])), 0.0) / 2
        ends = float(x[branch_points].min()) - longer, float(x[branch_points].max()) + longer
        starts.append(
            Ridge.through(
                x[branch_points], y[branch_points], mass[branch_points], ends, RIDGES.knots * h, RIDGES.typical * b
            )
        )
    return starts


def _columns(found: FittedRidges, branch: IntArray, x: FloatArray) -> FloatArray:
    """Position, slope and the two variances, privacy and sampling, of ridges at places x; shape (4, places)."""
    columns = np.zeros((4, len(x)))
    for k, (ridge, own) in enumerate(zip(found.solution.ridges, found.solution.blocks(), strict=True)):
        mine = branch == k
        # Beyond an end the error is that at the end; the tangent adds one that the release says nothing about.
        nearest = np.clip(x[mine], ridge.low, ridge.high)
        basis = ridge.basis(nearest)
        whole, privacy = (
            np.einsum("ki,ij,kj->k", basis, covariance[own, own], basis)
            for covariance in (found.solution.covariance, found.solution.privacy)
        )
        slopes = ridge.basis(nearest, 1) @ ridge.position
        columns[:, mine] = [ridge.positions(x[mine]), slopes, privacy, np.maximum(whole - privacy, 0.0)]
    return columns


def _prominences(profiles: Profiles, lines: Lines, position: FloatArray) -> FloatArray:
    """Prominence of the peak of each profile that is nearest to a position; 0 if none is within a bandwidth."""
    y = profiles.y_axis(RIDGES.y_per_bandwidth)
    peaks = find_peaks(lines.on(mirror_basis(profiles, y))[0])
    away = np.abs(y[peaks.cell] - position[peaks.field])
    order = np.argsort(-away, kind="stable")
    near = order[away[order] <= profiles.y_bandwidth]
    found = np.zeros(len(position))
    found[peaks.field[near]] = peaks.prominence[near]  # of several the last stays: the nearest
    return found
