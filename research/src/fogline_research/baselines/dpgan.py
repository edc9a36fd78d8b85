r"""A private generative network: a Wasserstein GAN whose critic learns from clipped, noisy gradients.

A generator turns normal draws into points; a critic with bounded weights learns to score records above generated
points; the generator climbs the critic's scores. Only the critic sees records, and only through sums over a batch of
gradients, each cut to norm C, with Gaussian noise:

.. math:: g = \frac1B\Bigl(\sum_{i \in \text{batch}} \operatorname{cut}_C \nabla_w f_w(x_i) + \mathcal N(0, \sigma^2)
          \Bigr) - \frac1B \sum_{j=1}^B \operatorname{cut}_C \nabla_w f_w(G(z_j)) .

The generator, and any number of its draws, are then post-processing.

Two accountants. ``"zcdp"``: every epoch cuts the records into batches at public places, so that a record takes part in
one sum an epoch and pays for that one; no amplification, certified (``dpgan.proof.md``, beside this file).
``"moments"`` is the paper's: batches are drawn afresh at every step and the cost is that of a subsampled Gaussian. The
formula holds for batches in which every record takes part by a coin of its own, not for batches of fixed size as in
the paper's algorithm, so that this is a claim and not certified.

References
----------
Xie et al. (2018), *Differentially private generative adversarial network*. Mironov, Talwar and Zhang (2019), *Rényi
differential privacy of the sampled Gaussian mechanism*.

The critic of a private GAN, with gradients that are exact a record at a time.

A network with two hidden layers and leaky rectifiers,
:math:`f(u) = w_3 \cdot a(W_2\, a(W_1 u + b_1) + b_2) + b_3`. What a record contributes to a noisy sum must be a
function of that record alone; a product of matrices in floating point is not: its last bits depend on the batch. So
inputs, weights, activations and back-propagated slopes are kept as *whole numbers of small steps*, in doubles: every
product of matrices here stays below 2^53 and is exact, in any order. What follows is done an element at a time.

The generator of a private GAN, and the optimiser of both networks: public from end to end.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from fogline._typing import FloatArray, IntArray
from fogline._validation import check_bounds, check_count, check_delta, check_epsilon, check_positive, records
from fogline.accounting.guarantee import Guarantee
from fogline.accounting.zcdp import rho_of
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.randomness import current_provider, provider_reason

__all__ = ["DPGAN", "LATTICE", "Critic", "Generator", "Optimiser", "sampled_gaussian_epsilon"]


HIDDEN = 32
"""Units of each hidden layer."""

STEPS = 1 << 12
"""Steps to the unit, for inputs, weights and activations."""

SLOPE = 4
"""One over the slope of the rectifier below zero."""

LATTICE = 1 << 20
"""Steps of the lattice to the greatest norm of a record's gradient."""


class Critic:
    """Weights of the critic as one vector, between -clip and clip.

    Parameters
    ----------
    d : int
        Columns of a record.
    clip : float
        Bound on every weight, at most 1: the WGAN's way to a bounded slope.
    rng : Generator
        Of the first weights.

    Examples
    --------
    >>> critic = Critic(2, clip=0.5, rng=np.random.default_rng(0))
    >>> critic.size, critic.gradients(np.zeros((3, 2))).shape
    (1185, (3, 1185))
    """

    def __init__(self, d: int, *, clip: float, rng: np.random.Generator) -> None:
        self.d, self.clip = d, clip
        self.shapes = ((d, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN,), (1,))
        self.size = sum(int(np.prod(shape)) for shape in self.shapes)
        self.weights = rng.uniform(-clip, clip, self.size)

    def _parts(self) -> list[FloatArray]:
        """Weights and offsets of the layers, in whole steps."""
        steps = np.rint(np.clip(self.weights, -self.clip, self.clip) * STEPS)
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(steps, ends), self.shapes, strict=True)]

    def _forward(self, unit: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Inputs, first and second sums, and both activations, in steps; the sums in squared steps."""
        w1, b1, w2, b2, _, _ = self._parts()
        u = np.rint(np.clip(unit, -1.0, 1.0) * STEPS)
        z1 = u @ w1 + b1 * STEPS
        a1 = _activated(z1)
        z2 = a1 @ w2 + b2 * STEPS
        return u, z1, a1, z2, _activated(z2)

    def _pieces(self, unit: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Inputs, activations (in steps) and slopes at both layers (in steps / SLOPE): whole numbers."""
        u, z1, a1, z2, a2 = self._forward(unit)
        _, _, w2, _, w3, _ = self._parts()
        slope2 = w3 * _slope(z2)
        slope1 = np.floor(slope2 @ w2.T / (STEPS * SLOPE)) * _slope(z1)
        return u, a1, a2, slope1, slope2

    def gradients(self, unit: FloatArray) -> FloatArray:
        """Derivative of the critic by its weights, one row a record; each row a function of its record alone.

        Parameters
        ----------
        unit : array of shape (m, d)
            Records scaled to [-1, 1]; no missing values.
        """
        return _outer(*self._pieces(unit))

    def clipped(self, unit: FloatArray, bound: float) -> IntArray:
        """Gradients cut to a norm of `bound`, rounded toward zero to the lattice of bound / LATTICE."""
        pieces = self._pieces(unit)
        factor = LATTICE / np.maximum(_norms(*pieces), bound)
        whole = np.trunc(_outer(*pieces) * factor[:, None]).astype(np.int64)
        # The bound is not left to rounding: a row that passes it after all is dropped.
        kept = (whole * whole).sum(axis=1) <= LATTICE**2
        return np.asarray(whole * kept[:, None])

    def input_slopes(self, unit: FloatArray) -> FloatArray:
        """Derivative of the critic by its input, one row a point: what the generator climbs."""
        _, z1, _, z2, _ = self._forward(unit)
        w1, _, w2, _, w3, _ = (part / STEPS for part in self._parts())
        return np.asarray(((w3 * _slope(z2) / SLOPE) @ w2.T * _slope(z1) / SLOPE) @ w1.T)

    def scores(self, unit: FloatArray) -> FloatArray:
        """Values of the critic."""
        *_, a2 = self._forward(unit)
        *_, w3, b3 = self._parts()
        return np.asarray(a2 @ w3 / STEPS**2 + b3 / STEPS)


def _activated(sums: FloatArray) -> FloatArray:
    """Leaky rectifier of sums in squared steps, rounded down to steps."""
    return np.floor(np.where(sums > 0, sums, sums / SLOPE) / STEPS)


def _slope(sums: FloatArray) -> FloatArray:
    return np.where(sums > 0, float(SLOPE), 1.0)


def _outer(u: FloatArray, a1: FloatArray, a2: FloatArray, slope1: FloatArray, slope2: FloatArray) -> FloatArray:
    """Gradients from the pieces: products, an element at a time."""
    m = len(u)
    back1, back2 = slope1 / (STEPS * SLOPE), slope2 / (STEPS * SLOPE)
    return np.concatenate(
        [
            ((u / STEPS)[:, :, None] * back1[:, None, :]).reshape(m, back1.shape[1] * u.shape[1]),
            back1,
            ((a1 / STEPS)[:, :, None] * back2[:, None, :]).reshape(m, HIDDEN * HIDDEN),
            back2,
            a2 / STEPS,
            np.ones((m, 1)),
        ],
        axis=1,
    )


def _norms(u: FloatArray, a1: FloatArray, a2: FloatArray, slope1: FloatArray, slope2: FloatArray) -> FloatArray:
    """Euclidean norms of the gradients, from sums of squares of whole numbers, which are exact."""
    u2, a1_2, a2_2, slope1_2, slope2_2 = ((piece * piece).sum(axis=1) for piece in (u, a1, a2, slope1, slope2))
    first = (u2 / STEPS**2 + 1.0) * (slope1_2 / (STEPS * SLOPE) ** 2)
    second = (a1_2 / STEPS**2 + 1.0) * (slope2_2 / (STEPS * SLOPE) ** 2)
    return np.asarray(np.sqrt(first + second + (a2_2 / STEPS**2 + 1.0)))


_HIDDEN = 32
_LATENT = 4


@dataclass(frozen=True, eq=False)
class Generator:
    """A network from normal draws to points in [-1, 1]^d: two hidden layers and the output, all with tanh.

    Examples
    --------
    >>> generator = Generator.first(2, np.random.default_rng(0))
    >>> generator.draw(3, np.random.default_rng(1)).shape
    (3, 2)
    """

    layers: tuple[tuple[FloatArray, FloatArray], ...]

    @classmethod
    def first(cls, d: int, rng: np.random.Generator) -> Generator:
        """Draw the weights to start from."""
        widths = (_LATENT, _HIDDEN, _HIDDEN, d)
        return cls(
            tuple((rng.standard_normal((a, b)) / np.sqrt(a), np.zeros(b)) for a, b in itertools.pairwise(widths))
        )

    @property
    def latent(self) -> int:
        """Number of normal draws to a point."""
        return len(self.layers[0][0])

    @property
    def size(self) -> int:
        """Number of weights."""
        return sum(matrix.size + offset.size for matrix, offset in self.layers)

    def __call__(self, latent: FloatArray) -> FloatArray:
        """Points of latent draws."""
        return self._activations(latent)[-1]

    def draw(self, k: int, rng: np.random.Generator) -> FloatArray:
        """Draw k points."""
        return self(rng.standard_normal((k, self.latent)))

    def pulled_back(self, latent: FloatArray, slopes: FloatArray) -> FloatArray:
        """Gradient by the weights of the mean of a function of the points, from its slopes at the points."""
        activations = self._activations(latent)
        back = slopes / len(latent)
        parts: list[FloatArray] = []
        for (matrix, _), before, after in reversed(
            list(zip(self.layers, activations[:-1], activations[1:], strict=True))
        ):
            back = back * (1.0 - after**2)
            parts = [(before.T @ back).ravel(), back.sum(axis=0), *parts]
            back = back @ matrix.T
        return np.concatenate(parts)

    def moved(self, change: FloatArray) -> Generator:
        """Give the generator whose weights differ by `change`."""
        layers, start = [], 0
        for matrix, offset in self.layers:
            middle, end = start + matrix.size, start + matrix.size + offset.size
            layers.append((matrix + change[start:middle].reshape(matrix.shape), offset + change[middle:end]))
            start = end
        return Generator(tuple(layers))

    def _activations(self, latent: FloatArray) -> list[FloatArray]:
        found = [latent]
        for matrix, offset in self.layers:
            found.append(np.tanh(found[-1] @ matrix + offset))
        return found


class Optimiser:
    """Steps of RMSprop: gradients over the root of a running mean of their squares.

    Examples
    --------
    >>> Optimiser(1, rate=0.1).step(np.array([4.0])).round(3)
    array([0.1])
    """

    def __init__(self, size: int, *, rate: float, memory: float = 0.9) -> None:
        self.rate, self.memory = rate, memory
        self.mean, self.weight = np.zeros(size), 0.0

    def step(self, gradient: FloatArray) -> FloatArray:
        """Return the step uphill."""
        self.mean = self.memory * self.mean + (1.0 - self.memory) * gradient**2
        self.weight = self.memory * self.weight + (1.0 - self.memory)
        return np.asarray(self.rate * gradient / (np.sqrt(self.mean / self.weight) + 1e-8))


Accountant = Literal["zcdp", "moments"]

_ORDERS = np.arange(2, 129)
_CRITIC_STEPS = 5
_POISSON = (
    "batches of fixed size are accounted as if every record took part by a coin of its own, as in the paper; "
    "without amplification the cost is higher"
)


@dataclass(frozen=True, eq=False)
class DPGAN:
    """A generator that was trained with noisy gradients. Everything here is released or public.

    Attributes
    ----------
    bounds : ndarray of shape (d, 2)
    generator : Generator
        Its weights are released.
    steps : int
        Noisy gradients that the critic took.
    noise_multiplier : float
        Deviation of the noise on a sum of gradients, over the norm that they are cut to.
    guarantee : Guarantee

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(256, 2))
    >>> model = DPGAN.fit(X, epsilon=10.0, delta=0.1, bounds=[(-4, 4)] * 2, epochs=1)
    >>> model.sample(5, random_state=0).shape, model.steps, model.guarantee.certified
    ((5, 2), 2, True)
    """

    bounds: FloatArray
    generator: Generator
    steps: int
    noise_multiplier: float
    guarantee: Guarantee

    @classmethod
    def fit(
        cls,
        X: object,
        *,
        epsilon: float,
        delta: float,
        bounds: object,
        epochs: int = 30,
        batch_size: int = 128,
        gradient_bound: float = 1.0,
        weight_bound: float = 0.3,
        accountant: Accountant = "zcdp",
    ) -> DPGAN:
        """Train on the records; the number of records is public.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Records that are missing, infinite or outside the bounds contribute nothing, but hold their place.
        epsilon, delta : float
            Of the whole training. The paper takes delta = 0.1, which promises little.
        bounds : sequence of (low, high)
        epochs : int
            Passes over the records, with ``n // batch_size`` noisy gradients each (at least one).
        batch_size : int
        gradient_bound : float
            C, the greatest norm of a record's gradient.
        weight_bound : float
            Greatest weight of the critic, at most 1.
        accountant : {"zcdp", "moments"}

        Returns
        -------
        DPGAN
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        box = check_bounds(bounds)
        passes, size = check_count(epochs, "epochs"), check_count(batch_size, "batch_size")
        bound, limit = check_positive(gradient_bound, "gradient_bound"), check_positive(weight_bound, "weight_bound")
        if limit > 1.0:
            raise ValueError(f"weight_bound must be at most 1, got {limit:g}")
        if accountant not in ("zcdp", "moments"):
            raise ValueError(f'accountant must be "zcdp" or "moments", got {accountant!r}')
        rows = records(X, len(box))
        steps = passes * max(1, len(rows) // size)
        rho, cost = _plan(accountant, epsilon, delta, passes, steps, min(1.0, size / max(1, len(rows))))
        moved = (2 if accountant == "zcdp" else 1) * LATTICE
        rng = current_provider().generator("DPGAN")
        generator, scale = _train(
            lambda places, critic: _real_gradient(rows[places], box, critic, bound),
            bound=bound,
            batches=_batches(accountant, len(rows), size, passes, rng),
            d=len(box),
            size=size,
            rho=rho,
            sensitivity=moved,
            limit=limit,
            rng=rng,
        )
        return cls(box, generator, steps, scale / LATTICE, _guarantee(accountant, epsilon, delta, cost))

    def sample(self, k: int, *, random_state: int | np.random.Generator | None = None) -> FloatArray:
        """Draw k points of the generator; free, and as private as the training."""
        size, rng = check_count(k, "k", minimum=0), np.random.default_rng(random_state)
        low, high = self.bounds.T
        return np.asarray(low + (high - low) * (self.generator.draw(size, rng) + 1.0) / 2.0)


# -- privacy ----------------------------------------------------------------------------------------------------


def sampled_gaussian_epsilon(rate: float, multiplier: float, steps: int, delta: float) -> float:
    r"""Claim of the moments accountant: epsilon of noisy sums over batches drawn at `rate`.

    The Rényi divergence of order :math:`a` of one step is
    :math:`\frac1{a-1}\log\sum_{k=0}^{a} \binom ak (1-q)^{a-k} q^k e^{k(k-1)/2\sigma^2}`, which
    adds over steps; epsilon is the least over the orders 2 to 128 of :math:`D_a + \log(1/\delta)/(a - 1)`.

    Examples
    --------
    >>> sampled_gaussian_epsilon(0.01, 1.0, 1000, 1e-5) < sampled_gaussian_epsilon(0.1, 1.0, 1000, 1e-5)
    True
    """
    divergences = []
    for order in _ORDERS:
        k = np.arange(order + 1)
        ways = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
        with np.errstate(divide="ignore"):
            outside = np.where(k < order, (order - k) * np.log1p(-rate) if rate < 1 else -np.inf, 0.0)
        terms = ways + outside + k * math.log(rate) + k * (k - 1) / (2.0 * multiplier**2)
        divergences.append(float(logsumexp(terms)) / (order - 1))
    return float(np.min(steps * np.array(divergences) + math.log(1.0 / delta) / (_ORDERS - 1)))


def _plan(
    accountant: Accountant, epsilon: float, delta: float, epochs: int, steps: int, rate: float
) -> tuple[float, float]:
    """Zero-concentrated cost of one noisy sum, and that of the whole training."""
    if accountant == "zcdp":
        whole = rho_of(epsilon, delta)
        return whole / epochs, whole

    def excess(log_multiplier: float) -> float:
        return sampled_gaussian_epsilon(rate, math.exp(log_multiplier), steps, delta) - epsilon

    low, high = math.log(0.1), math.log(1e6)
    if excess(high) > 0:
        raise ValueError("epsilon is too small for the moments accountant at this delta")
    multiplier = math.exp(float(brentq(excess, low, high))) if excess(low) > 0 else math.exp(low)
    return 1.0 / (2.0 * multiplier**2), math.nan


def _guarantee(accountant: Accountant, epsilon: float, delta: float, rho: float) -> Guarantee:
    mechanism = "discrete Gaussian on sums of clipped gradients of a critic"
    if accountant == "moments":
        reason = "; ".join(filter(None, [_POISSON, provider_reason()]))
        return Guarantee.uncertified(
            epsilon=epsilon, delta=delta, neighbours="add-remove", mechanism=mechanism, reason=reason
        )
    return Guarantee.certified_release(
        rho=rho,
        delta=delta,
        neighbours="replace",
        mechanism=mechanism,
        proof="dpgan",
        reason=provider_reason(),
    )


def _batches(accountant: Accountant, n: int, size: int, epochs: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Places of the records of each batch; of the number of records and of public randomness only."""
    for _ in range(epochs):
        order = rng.permutation(n)
        for start in range(0, max(1, n // size) * size, size):
            yield order[start : start + size] if accountant == "zcdp" else rng.permutation(n)[:size]


def _real_gradient(rows: FloatArray, box: FloatArray, critic: Critic, bound: float) -> IntArray:
    """Exact sum over a batch of the records' clipped gradients, in steps of the lattice."""
    low, high = box.T
    inside = ((low <= rows) & (high >= rows)).all(axis=1)
    unit = 2.0 * (np.where(inside[:, None], rows, low) - low) / (high - low) - 1.0
    return np.asarray((critic.clipped(unit, bound) * inside[:, None]).sum(axis=0))


# -- training ---------------------------------------------------------------------------------------------------


def _train(
    real: Callable[[IntArray, Critic], IntArray],
    *,
    bound: float,
    batches: Iterator[IntArray],
    d: int,
    size: int,
    rho: float,
    sensitivity: float,
    limit: float,
    rng: np.random.Generator,
) -> tuple[Generator, float]:
    """Let critic and generator play; records are reached through `real` only, inside the mechanism."""
    critic, generator = Critic(d, clip=limit, rng=rng), Generator.first(d, rng)
    critic_optimiser, generator_optimiser = Optimiser(critic.size, rate=2e-3), Optimiser(generator.size, rate=2e-3)
    scale = math.nan
    for step, places in enumerate(batches, start=1):
        query = functools.partial(real, places, critic)
        release = add_gaussian(query, size=critic.size, sensitivity=sensitivity, rho=rho)
        scale = release.scale
        fake = critic.clipped(generator.draw(size, rng), bound).sum(axis=0)
        ascent = (release.values - fake) / (size * LATTICE)
        critic.weights = np.clip(critic.weights + critic_optimiser.step(ascent), -limit, limit)
        if step % _CRITIC_STEPS == 0:
            latent = rng.standard_normal((size, generator.latent))
            points = generator(latent)
            generator = generator.moved(
                generator_optimiser.step(generator.pulled_back(latent, critic.input_slopes(points)))
            )
    return generator, scale
