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
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from fogline._validation import check_bounds, check_count, check_delta, check_epsilon, check_positive, records
from fogline.accounting.guarantee import Guarantee
from fogline.accounting.zcdp import rho_of
from fogline.contenders._dpgan_critic import LATTICE, Critic
from fogline.contenders._dpgan_generator import Generator, Optimiser
from fogline.mechanisms.entropy import IntArray, current_door, door_reason
from fogline.mechanisms.gaussian import add_gaussian

__all__ = ["DPGAN", "sampled_gaussian_epsilon"]

Array = NDArray[np.float64]
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

    bounds: Array
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
        rng = current_door().generator("DPGAN")
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

    def sample(self, k: int, *, random_state: int | np.random.Generator | None = None) -> Array:
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
        reason = "; ".join(filter(None, [_POISSON, door_reason()]))
        return Guarantee.uncertified(
            epsilon=epsilon, delta=delta, neighbours="add-remove", mechanism=mechanism, reason=reason
        )
    return Guarantee.certified_release(
        rho=rho,
        delta=delta,
        neighbours="replace",
        mechanism=mechanism,
        proof="dpgan",
        reason=door_reason(),
    )


def _batches(
    accountant: Accountant, n: int, size: int, epochs: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Places of the records of each batch; of the number of records and of public randomness only."""
    for _ in range(epochs):
        order = rng.permutation(n)
        for start in range(0, max(1, n // size) * size, size):
            yield order[start : start + size] if accountant == "zcdp" else rng.permutation(n)[:size]


def _real_gradient(rows: Array, box: Array, critic: Critic, bound: float) -> IntArray:
    """Exact sum over a batch of the records' clipped gradients, in steps of the lattice."""
    low, high = box.T
    inside = ((low <= rows) & (high >= rows)).all(axis=1)
    unit = 2.0 * (np.where(inside[:, None], rows, low) - low) / (high - low) - 1.0
    return np.asarray((critic.clipped(unit, bound) * inside[:, None]).sum(axis=0))


# -- training ---------------------------------------------------------------------------------------------------


def _train(
    real: Callable[[NDArray[np.int64], Critic], IntArray],
    *,
    bound: float,
    batches: Iterator[NDArray[np.int64]],
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
