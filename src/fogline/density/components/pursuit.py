r"""A mixture of round clusters that explains released random features: greedy pursuit of the residual.

The released sums, divided by the count, are the characteristic function of the records at the drawn frequencies plus
noise of known size. A cluster of weight :math:`w`, centre :math:`\mu` and variance :math:`s^2` contributes

.. math:: w\,e^{-s^2|\omega|^2/2}\,e^{-i\omega\cdot\mu}.

Clusters are added one at a time where the residual is best explained, all are fitted together after each (least
squares, L-BFGS), the lightest is taken out and sought anew, and of several starts the least residual is kept [1]_.
Everything reads released numbers, so it is free; the starts are pseudo-random with a fixed seed, so that the same
release gives the same answer.

References
----------
.. [1] N. Keriven, A. Bourrier, R. Gribonval, P. Perez, "Sketching for large-scale learning of mixture models",
   Information and Inference 7, 2018.

Whether two fitted clusters are two: against one cluster with a tail of records that reaches to the other.

A mixture of round clusters fits any smooth shape if it has enough of them, so their number says little. Two of them
are two *clusters* if the density falls and rises again from one to the other. If it does not, it is unimodal along the
segment between them, a mixture of uniform laws that begin at one end [1]_. The simplest such law is a cluster there
and a tail: the uniform law from there to beyond the other, blurred by the clusters' width, of characteristic function

.. math:: w\,e^{-s^2|\omega|^2/2}\,e^{-i\omega\cdot(a + h)}\,\frac{\sin \omega\cdot h}{\omega\cdot h}

from a to a + 2h. It has as many parameters as the second cluster that it replaces. Both explanations are fitted to the
released features with all the other clusters, and T is how much better the two clusters are, in squared residuals over
the variance of the noise. If cluster and tail are the truth and lie at a squared distance D from the best two
clusters, T is normal with mean -D and variance 4D, so whatever D is

.. math:: P(T > t) = Q\Bigl(\frac{t + D}{2\sqrt D}\Bigr) \le Q(\sqrt t),

Q being the upper tail of the normal law. Clusters that cannot be told from a cluster with a tail are joined.

References
----------
.. [1] A. Y. Khintchine, "On unimodal distributions", Izvestiya Nauchno-Issledovatel'skogo Instituta Matematiki i
   Mekhaniki, Tomsk 2, 1938.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from fogline._typing import FloatArray
from fogline.density.private_density import PrivateDensity

__all__ = [
    "PURSUIT",
    "ClusterPrior",
    "Features",
    "PursuitTuning",
    "SphericalComponents",
    "count_separable",
    "matching_pursuit",
    "number_of_groups",
]


@dataclass(frozen=True)
class PursuitTuning:
    """What is tuned of the pursuit of spherical components.

    Attributes
    ----------
    iterations : int
        Most steps of a fit.
    wider : float
        A fit changes the log variance by no more than this.
    weights : tuple
        Range of a weight.
    tail : float
        A tail is first tried with this many times the distance of the two clusters.
    neighbours : int
        A cluster is compared with this many of the nearest others.
    candidates : int
        Places at which a new cluster is tried.
    widths : int
        Widths at which a new cluster is tried.
    restarts, swaps : int
        How often the whole pursuit is begun anew, and the lightest cluster sought anew.
    even_weights : float
        How strongly weights are expected to be even where their number is given: as by a Dirichlet law of
        parameter 5.
    least_weight, even : float
        Weight, a frequency, of the pull of all widths to their common mean.
    """

    iterations: int = 60
    wider: float = 3.0
    weights: tuple[float, float] = (0.0, 1.5)
    tail: float = 1.3
    neighbours: int = 5
    candidates: int = 768
    widths: int = 3
    restarts: int = 3
    swaps: int = 3
    even_weights: float = 4.0
    least_weight: float = 1e-3
    even: float = 1e-3


PURSUIT = PursuitTuning()


@dataclass(frozen=True, eq=False)
class Features:
    """Released characteristic function: real part and minus the imaginary part, with the variance of each.

    Attributes
    ----------
    frequencies : array of shape (m, d)
    cosines, sines : arrays of shape (m,)
    variance : float
    """

    frequencies: FloatArray
    cosines: FloatArray
    sines: FloatArray
    variance: float

    @property
    def d(self) -> int:
        """Number of axes."""
        return int(self.frequencies.shape[1])

    def loss(self, flat: FloatArray, k: int, *, tail: bool = False) -> tuple[float, FloatArray]:
        """Half the squared residual of k clusters of one width, over its variance, and its slope.

        Parameters are the log variance, k weights, k centres and, where the first cluster has a tail, the tail's weight
        and half of its segment.
        """
        w, d, end = self.frequencies, self.d, k + 1 + k * self.d
        weights, centres = flat[1 : k + 1], flat[k + 1 : end].reshape(k, d)
        if tail:
            weights, centres = np.append(weights, flat[end]), np.vstack([centres, centres[0] + flat[end + 1 :]])
        squares = np.sum(w**2, axis=1)
        fading = np.exp(-0.5 * squares * np.exp(flat[0]))[:, None]
        phases = w @ centres.T
        cosine, sine = fading * np.cos(phases), fading * np.sin(phases)
        if tail:
            turns, plain = w @ flat[end + 1 :], (cosine[:, -1].copy(), sine[:, -1].copy())
            # A tail is a cluster drawn out along a segment, whose transform is a sinc.
            shape = np.sinc(turns / np.pi)
            cosine[:, -1] *= shape
            sine[:, -1] *= shape
        even, odd = cosine @ weights - self.cosines, sine @ weights - self.sines
        along = cosine * even[:, None] + sine * odd[:, None]
        across = ((cosine * odd[:, None] - sine * even[:, None]) * weights).T @ w
        by_weight = along.sum(axis=0)
        slope = np.empty_like(flat)
        slope[0] = -0.5 * float(squares @ (along @ weights)) * np.exp(flat[0])
        slope[1 : k + 1] = by_weight[:k]
        if tail:
            across[0] += across[-1]
            flatter = weights[-1] * ((plain[0] * even + plain[1] * odd) * _sinc_slope(turns, shape)) @ w
            slope[end], slope[end + 1 :] = by_weight[-1], across[-1] + flatter
        slope[k + 1 : end] = across[:k].ravel()
        return 0.5 * float(even @ even + odd @ odd) / self.variance, slope / self.variance

    def fit(self, start: FloatArray, k: int, *, tail: bool = False) -> tuple[float, FloatArray]:
        """Squared residual of the best fit from a start, over its variance, and its parameters."""
        free: list[tuple[float | None, float | None]] = [(None, None)]
        bounds = [
            (float(start[0]) - PURSUIT.wider, float(start[0]) + PURSUIT.wider),
            *[PURSUIT.weights] * k,
            *free * (k * self.d),
        ]
        found = minimize(
            lambda flat: self.loss(flat, k, tail=tail),
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, PURSUIT.weights, *free * self.d] if tail else bounds,
            options={"maxiter": PURSUIT.iterations},
        )
        return 2 * float(found.fun), np.asarray(found.x)


def _sinc_slope(turns: FloatArray, shape: FloatArray) -> FloatArray:
    """Slope of sin(t)/t, whose values are given."""
    # The series, where the quotient would lose all digits.
    small = np.abs(turns) < 1e-4
    return np.asarray(np.where(small, -turns / 3, (np.cos(turns) - shape) / np.where(small, 1.0, turns)))


def number_of_groups(
    features: Features, weights: FloatArray, centres: FloatArray, variance: float, *, level: float, worth: float
) -> int:
    """How many groups fitted clusters form: those that cannot be told from a cluster with a tail are one.

    Parameters
    ----------
    features : Features
    weights, centres : arrays of shape (k,) and (k, d)
        Fitted clusters; centres are relative to where all phases are zero.
    variance : float
        Their common variance along every axis.
    level : float
        Chance of keeping apart, anywhere, what is a cluster with a tail.
    worth : float
        Drop of the squared residual, over its variance, that a cluster must bring to be there at all.

    Returns
    -------
    int
    """
    if len(weights) < 2:
        return len(weights)
    start = np.concatenate([[np.log(variance)], weights, centres.ravel()])
    apart, best = _without_idle(features, start, len(weights), worth)
    k = (len(best) - 1) // (features.d + 1)
    if k < 2:
        return k
    # Only neighbours can be two parts of one cluster with a tail.
    pairs = _near_pairs(best[k + 1 :].reshape(k, -1))
    needed = float(ndtri(level / (2 * len(pairs)))) ** 2
    joined = np.zeros((k, k), dtype=bool)
    for a, b in pairs:
        # The tail may belong to either end; the better explanation counts, in favour of one cluster.
        tails = [features.fit(_with_tail(best, k, *ends), k - 1, tail=True)[0] for ends in ((a, b), (b, a))]
        joined[a, b] = min(tails) - apart < needed
    return int(connected_components(joined, directed=False)[0])


def _without_idle(features: Features, start: FloatArray, k: int, worth: float) -> tuple[float, FloatArray]:
    """Fit all clusters, and take out those that explain no more than noise: greedy growth leaves some behind."""
    value, best = features.fit(start, k)
    while k > 1:
        fewer = []
        for j in range(k):
            # A cluster that is not needed is best missed by its nearest neighbour.
            distance = [math.inf if i == j else _distance(best, k, i, j) for i in range(k)]
            fewer.append(features.fit(_merged(best, k, int(np.argmin(distance)), j), k - 1))
        least = min(fewer, key=lambda entry: entry[0])
        if least[0] - value > worth:
            break
        k, (value, best) = k - 1, least
    return value, best


def _centre(flat: FloatArray, k: int, j: int) -> FloatArray:
    return np.asarray(flat[k + 1 :].reshape(k, -1)[j])


def _distance(flat: FloatArray, k: int, a: int, b: int) -> float:
    return float(np.linalg.norm(_centre(flat, k, a) - _centre(flat, k, b)))


def _merged(flat: FloatArray, k: int, a: int, b: int) -> FloatArray:
    """Put one cluster, the first of k - 1, in the place of two."""
    weights, centres = flat[1 : k + 1], flat[k + 1 :].reshape(k, -1)
    others = [j for j in range(k) if j not in (a, b)]
    total = max(float(weights[a] + weights[b]), 1e-9)
    middle = (weights[a] * centres[a] + weights[b] * centres[b]) / total
    return np.concatenate([flat[:1], [total], weights[others], middle, centres[others].ravel()])


def _with_tail(flat: FloatArray, k: int, a: int, b: int) -> FloatArray:
    """Put a cluster, the first of k - 1, with a tail in the place of two."""
    weights, centres = flat[1 : k + 1], flat[k + 1 :].reshape(k, -1)
    order = [a, *(j for j in range(k) if j not in (a, b))]
    half = PURSUIT.tail / 2 * (centres[b] - centres[a])
    return np.concatenate([flat[:1], weights[order], centres[order].ravel(), [weights[b]], half])


def _near_pairs(centres: FloatArray) -> list[tuple[int, int]]:
    distance = np.linalg.norm(centres[:, None] - centres, axis=2)
    near = np.argsort(distance, axis=1)[:, 1 : PURSUIT.neighbours + 1]
    return sorted({(min(i, int(j)), max(i, int(j))) for i in range(len(centres)) for j in near[i]})


MOST_SPHERICAL_COMPONENTS = 24
"""Most clusters where their number is not given."""


@dataclass(frozen=True, eq=False)
class ClusterPrior:
    """What is known of the clusters before they are sought, from public bounds and other releases.

    Attributes
    ----------
    lower, upper : arrays of shape (d,)
        Box of the centres.
    variance_range : (float, float)
        Smallest and largest variance of a cluster along an axis.
    mean, mean_sd : arrays of shape (d,)
        Released mean of all records, with its noise; an infinite noise says nothing.
    variances, variance_sds : arrays of shape (d,)
        Released variance of all records along each axis, with its noise.
    """

    lower: FloatArray
    upper: FloatArray
    variance_range: tuple[float, float]
    mean: FloatArray
    mean_sd: FloatArray
    variances: FloatArray
    variance_sds: FloatArray

    def typical_variance(self, k: int) -> float:
        """Variance of each of k clusters that fill the whole evenly, within the range."""
        whole = math.exp(float(np.mean(np.log(self.variances))))
        return float(np.clip(whole * k ** (-2 / len(self.variances)), *self.variance_range))

    @classmethod
    def of_box(cls, lower: FloatArray, upper: FloatArray, variance_range: tuple[float, float]) -> ClusterPrior:
        """Frame of a box alone."""
        zero, unknown = np.zeros(len(lower)), np.full(len(lower), np.inf)
        return cls(lower, upper, variance_range, zero, unknown, (upper - lower) ** 2 / 12, unknown)


@dataclass(frozen=True, eq=False)
class SphericalComponents:
    """Round clusters fitted to a release.

    Attributes
    ----------
    weights : array of shape (k,)
        Share of the records in each, not normalised.
    centres : array of shape (k, d)
    variances : array of shape (k,)
        Variance along every axis.
    heights : array of shape (k,)
        Weight of each in standard deviations of the noise that a cluster of its width sees.
    centre_variances : array of shape (k, d)
        Variance of each centre's coordinates from the privacy noise; the draw of the records adds its own.
    weight_sds : array of shape (k,)
        Noise of the weights.
    misfit : float
        Squared residual over what noise alone would leave; near 1 where the clusters explain the release.
    """

    weights: FloatArray
    centres: FloatArray
    variances: FloatArray
    heights: FloatArray
    centre_variances: FloatArray
    weight_sds: FloatArray
    misfit: float


def matching_pursuit(
    density: PrivateDensity, k: int | None, frame: ClusterPrior, *, level: float = 0.05
) -> SphericalComponents:
    """Fit k round clusters to a release by random features.

    Parameters
    ----------
    density : PrivateDensity
        Released by random features.
    k : int or None
        How many; None: as many as can be told apart, see :func:`count_separable`.
    frame : ClusterPrior
        Where centres may lie, and the moments that the clusters together must have.
    level : float
        Chance of telling apart what is one, for ``k=None``.

    Returns
    -------
    SphericalComponents
        Heaviest first.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> from fogline.testing import seeded_noise
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 0.5, size=(4000, 4)) for m in (-2, 2)])
    >>> with seeded_noise(0):
    ...     density = DensitySketch([(-5, 5)] * 4, features=512).update(X).release(epsilon=1.0, delta=1e-6)
    >>> found = matching_pursuit(density, 2, ClusterPrior.of_box(np.full(4, -5.0), np.full(4, 5.0), (0.01, 4.0)))
    >>> np.sort(found.centres[:, 0]).round().tolist()
    [-2.0, 2.0]
    """
    if k is None:
        k = count_separable(density, frame, level=level)
    task = _Task.of(density, frame, known=True)
    best = task.empty(), np.zeros((0, task.d + 2))
    # Greedy growth depends on its candidates: a few draws of them guard against an unlucky one.
    for restart in range(PURSUIT.restarts if k else 0):
        found = _one_pursuit(task, k, _rng(restart))
        if restart == 0 or found[0] < best[0]:
            best = found
    return _described(task, best[1])


def count_separable(
    density: PrivateDensity, frame: ClusterPrior, *, level: float = 0.05, most: int = MOST_SPHERICAL_COMPONENTS
) -> int:
    """How many clusters a release shows, up to `most`.

    Round clusters are added while each lowers the residual by more than noise would anywhere, and are counted by
    groups that have fewer records between them than at their ends: see :mod:`fogline.density.components.pursuit`.

    Parameters
    ----------
    density : PrivateDensity
        Released by random features.
    frame : ClusterPrior
    level : float
        Chance of telling apart what is one.
    most : int

    Returns
    -------
    int
    """
    task = _Task.of(density, frame, known=False)
    _, atoms = _one_pursuit(task, min(most, MOST_SPHERICAL_COMPONENTS), _rng(0), _worth(task, level))
    if not len(atoms):
        return 0
    features = Features(task.frequencies, task.cosines, task.sines, task.unit)
    weights, centres = atoms[:, -1], atoms[:, : task.d]
    # Counting needs one width for all: separate widths would let a wide cluster swallow two narrow ones.
    variance = math.exp(float(np.average(atoms[:, task.d], weights=weights + PURSUIT.least_weight)))
    worth = 2 * _worth(task, level) / task.unit
    return number_of_groups(features, weights, centres, variance, level=level, worth=worth)


def _rng(restart: int) -> np.random.Generator:
    return np.random.default_rng([restart, 20180917])


@dataclass(frozen=True, eq=False)
class _Task:
    """Least squares in units of the noise: rows of an atom table are (centre, log variance, weight)."""

    frequencies: FloatArray
    squares: FloatArray
    cosines: FloatArray
    sines: FloatArray
    noise: float
    sampling: float
    frame: ClusterPrior
    origin: FloatArray
    known: bool

    @classmethod
    def of(cls, density: PrivateDensity, frame: ClusterPrior, *, known: bool) -> _Task:
        sums = density.coefficients[1:] / density.count
        noise = density.noise_scale / math.sqrt(float(density.weights[1])) / density.count
        spec: Any = density.spec
        w, origin = spec.angular, spec.origin
        squares = np.sum(w**2, axis=1)
        return cls(w, squares, sums.real, -sums.imag, noise, 0.5 / density.count, frame, origin, known)

    @property
    def d(self) -> int:
        return int(self.frequencies.shape[1])

    @property
    def unit(self) -> float:
        """Variance of each residual where the clusters explain all."""
        return self.noise**2 + self.sampling

    def empty(self) -> float:
        """Loss without any cluster."""
        return 0.5 * float(self.cosines @ self.cosines + self.sines @ self.sines)

    @property
    def logs(self) -> tuple[float, float]:
        return math.log(self.frame.variance_range[0]), math.log(self.frame.variance_range[1])

    @property
    def reach(self) -> FloatArray:
        return (self.frame.upper - self.frame.lower) / 2

    @property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """Box of the centres, from where every phase is zero."""
        return self.frame.lower - self.origin, self.frame.upper - self.origin

    def moments(self, atoms: FloatArray) -> tuple[float, FloatArray]:
        """Misfit of the clusters' mean and variances to the released ones, in units of the loss, and its slope."""
        unit = self.unit
        centres, variances, weights = atoms[:, : self.d], np.exp(atoms[:, self.d]), atoms[:, -1]
        off = self.frame.mean - self.origin
        # Moments were released with less noise than any frequency, so the clusters together must have them.
        mean = (weights @ (centres - off)) / self.frame.mean_sd
        square = (centres - off) ** 2 + variances[:, None]
        spread = (weights @ square - self.frame.variances) / self.frame.variance_sds
        by_mean, by_spread = unit * mean / self.frame.mean_sd, unit * spread / self.frame.variance_sds
        slope = np.empty_like(atoms)
        slope[:, : self.d] = weights[:, None] * (by_mean + 2 * by_spread * (centres - off))
        slope[:, self.d] = weights * variances * by_spread.sum()
        slope[:, -1] = (centres - off) @ by_mean + square @ by_spread
        return 0.5 * unit * float(mean @ mean + spread @ spread), slope

    def waves(self, atoms: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cosine and sine part of each atom of weight one, shape (frequencies, atoms)."""
        phases = self.frequencies @ atoms[:, : self.d].T
        fading = np.exp(-0.5 * self.squares[:, None] * np.exp(atoms[:, self.d]))
        return fading * np.cos(phases), fading * np.sin(phases)

    def residual(self, atoms: FloatArray) -> tuple[FloatArray, FloatArray]:
        cosine, sine = self.waves(atoms)
        return self.cosines - cosine @ atoms[:, -1], self.sines - sine @ atoms[:, -1]

    def loss(self, flat: FloatArray) -> tuple[float, FloatArray]:
        atoms = flat.reshape(-1, self.d + 2)
        cosine, sine = self.waves(atoms)
        weights, widths = atoms[:, -1], atoms[:, self.d]
        even, odd = cosine @ weights - self.cosines, sine @ weights - self.sines
        uneven = widths - widths.mean()
        # Noise tells widths apart badly: clusters are alike unless the release says otherwise.
        pull = PURSUIT.even * len(self.squares)
        value = 0.5 * float(even @ even + odd @ odd) + 0.5 * pull * float(uneven @ uneven)
        slope = np.empty_like(atoms)
        slope[:, : self.d] = (cosine * odd[:, None] - sine * even[:, None]).T @ self.frequencies * weights[:, None]
        along = cosine * even[:, None] + sine * odd[:, None]
        slope[:, self.d] = -0.5 * (self.squares @ along) * np.exp(widths) * weights + pull * uneven
        slope[:, -1] = along.sum(axis=0)
        beside, tilt = self.moments(atoms)
        before, lean = self.prior(atoms)
        return value + beside + before, (slope + tilt + lean).ravel()

    def prior(self, atoms: FloatArray) -> tuple[float, FloatArray]:
        """Weak expectation, worth a few deviations of the noise: even weights, centres and widths in the frame."""
        unit = self.unit
        slope = np.zeros_like(atoms)
        if not self.known:
            return 0.0, slope
        off, wide = atoms[:, : self.d] - (self.frame.mean - self.origin), self.frame.variances
        weights = np.maximum(atoms[:, -1], PURSUIT.least_weight)
        log_width = atoms[:, self.d] - math.log(self.frame.typical_variance(len(atoms)))
        slope[:, : self.d] = unit * off / wide
        slope[:, self.d] = unit * log_width
        slope[:, -1] = -unit * PURSUIT.even_weights / weights
        value = 0.5 * float(np.sum(off**2 / wide) + log_width @ log_width) - PURSUIT.even_weights * float(
            np.log(weights).sum()
        )
        return unit * value, slope

    def fit(self, atoms: FloatArray, iterations: int) -> tuple[float, FloatArray]:
        """Fit all atoms together, from where they are."""
        bounds = [*zip(*self.box, strict=True), self.logs, (PURSUIT.least_weight if self.known else 0.0, 1.5)] * len(
            atoms
        )
        found = minimize(
            self.loss, atoms.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations}
        )
        return float(found.fun), np.asarray(found.x).reshape(atoms.shape)


def _one_pursuit(task: _Task, k: int, rng: np.random.Generator, worth: float = -math.inf) -> tuple[float, FloatArray]:
    """Grow up to k atoms, as long as each lowers the loss by `worth`."""
    middle = (task.box[0] + task.box[1]) / 2
    # Normal rather than even: in many dimensions the corners of a box hold nearly all of its volume and no records.
    places = middle + np.clip(rng.normal(size=(PURSUIT.candidates, task.d)), -2, 2) / 2 * task.reach
    phases = places @ task.frequencies.T
    waves = np.cos(phases), np.sin(phases)
    atoms = np.zeros((0, task.d + 2))
    value = task.empty()
    while len(atoms) < k:
        after, grown = task.fit(_with_another(task, atoms, places, waves), 25)
        if value - after < worth:
            break
        value, atoms = after, grown
    if not len(atoms):
        return value, atoms
    value, atoms = task.fit(atoms, 100)
    # The lightest atom is often a leftover of early growth: it may be better placed elsewhere.
    for _ in range(PURSUIT.swaps):
        fewer = np.delete(atoms, int(np.argmin(atoms[:, -1])), axis=0)
        after, swapped = task.fit(_with_another(task, fewer, places, waves), 80)
        # Without a real gain the search has ended; a tie would go on for ever.
        if not after < value * (1 - 1e-6):
            break
        value, atoms = after, swapped
    return value, atoms


def _with_another(
    task: _Task, atoms: FloatArray, places: FloatArray, waves: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Add the candidate that explains most of the residual."""
    even, odd = task.residual(atoms)
    best = (-math.inf, 0, 0.0, 1.0)
    for log_variance in np.linspace(*task.logs, PURSUIT.widths + 2)[1:-1]:
        fading = np.exp(-0.5 * task.squares * math.exp(log_variance))
        size = math.sqrt(max(float(fading @ fading), 1e-300))
        # Correlation with the residual over the size of the wave: how much an atom there would explain.
        scores = (waves[0] @ (fading * even) + waves[1] @ (fading * odd)) / size
        i = int(np.argmax(scores))
        best = max(best, (float(scores[i]), i, float(log_variance), size))
    score, i, log_variance, size = best
    added = np.concatenate([places[i], [log_variance, np.clip(score / size, 1e-3, 1.0)]])
    return np.vstack([atoms, added])


def _worth(task: _Task, level: float) -> float:
    """Drop of half the squared residual that noise alone would reach somewhere with probability `level`."""
    looks = math.sqrt(2 * math.log(PURSUIT.candidates * PURSUIT.widths / level)) ** 2 + task.d + 2
    return 0.5 * looks * task.unit


def _described(task: _Task, atoms: FloatArray) -> SphericalComponents:
    atoms = atoms[np.argsort(-atoms[:, -1], kind="stable")]
    even, odd = task.residual(atoms)
    expected = 2 * len(task.squares) * task.unit
    if not len(atoms):
        none = np.zeros(0)
        return SphericalComponents(
            none, np.zeros((0, task.d)), none, none, np.zeros((0, task.d)), none, float(even @ even) / expected
        )
    cosine, sine = task.waves(atoms)
    sizes = np.sqrt(np.sum(cosine**2 + sine**2, axis=0))
    noise = math.sqrt(task.unit)
    jacobian = _jacobian(task, atoms, cosine, sine)
    curvature = jacobian.T @ jacobian
    # Two atoms in one place leave the curvature singular; their errors are then capped below.
    ridge = 1e-9 * np.trace(curvature) / len(curvature) * np.eye(len(curvature))
    variances = task.noise**2 * np.diag(np.linalg.pinv(curvature + ridge)).reshape(len(atoms), -1)
    return SphericalComponents(
        weights=atoms[:, -1],
        centres=task.origin + atoms[:, : task.d],
        variances=np.exp(atoms[:, task.d]),
        heights=atoms[:, -1] * sizes / noise,
        centre_variances=np.minimum(variances[:, : task.d], task.reach**2),
        weight_sds=np.sqrt(np.minimum(variances[:, -1], 1.0)),
        misfit=float(even @ even + odd @ odd) / expected,
    )


def _jacobian(task: _Task, atoms: FloatArray, cosine: FloatArray, sine: FloatArray) -> FloatArray:
    """Derivatives of the model by centres and weights, shape (2 frequencies, atoms * (d + 1))."""
    count, d = len(task.squares), task.d
    result = np.empty((2 * count, len(atoms), d + 1))
    weights = atoms[:, -1]
    result[:count, :, :d] = -(sine * weights)[:, :, None] * task.frequencies[:, None, :]
    result[count:, :, :d] = (cosine * weights)[:, :, None] * task.frequencies[:, None, :]
    result[:count, :, d], result[count:, :, d] = cosine, sine
    return result.reshape(2 * count, -1)
