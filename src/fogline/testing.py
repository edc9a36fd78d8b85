"""Repeatable noise, and a look at what is secret, for tests and benchmarks only.

`seeded_noise` is the only way to repeat noise. Whoever knows the seed knows the noise and can subtract it,
so a guarantee made inside says that it is not certified, and a ledger refuses it. `integral_log_ratio` reads the
secret model of a sampler: never on records that matter.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._typing import FloatArray, IntArray
from fogline._validation import check_count
from fogline.mechanisms.randomness import Call, NoiseProvider, Query, Sample, use_provider

__all__ = ["SeededProvider", "SeededSource", "integral_log_ratio", "seeded_noise"]

_WIDEST_TABLE = 4096.0


@dataclass(frozen=True)
class SeededSource:
    """Draws with the same probabilities as the system's, up to floating point, from a numpy generator.

    Examples
    --------
    >>> SeededSource(np.random.default_rng(0)).gaussian(2.0, 4).dtype
    dtype('int64')
    """

    rng: np.random.Generator
    certified: bool = False

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return draws of the discrete Gaussian: by table where one is small, else by rejection."""
        if scale <= _WIDEST_TABLE:
            reach, cumulative = _table(scale)
            return np.searchsorted(cumulative, self.rng.random(size), side="right") - reach
        kept: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        missing = size
        while missing > 0:
            accepted = self._accepted(scale, 2 * missing + 16)[:missing]
            kept.append(accepted)
            missing -= accepted.size
        return np.concatenate(kept)

    def _accepted(self, scale: float, size: int) -> IntArray:
        """Thin discrete Laplace draws to a discrete Gaussian (Canonne et al. 2020, algorithm 3)."""
        t = math.floor(scale) + 1.0
        draws = self.laplace(t, size)
        deviation = (np.abs(draws.astype(np.float64)) - scale * (scale / t)) / scale
        return draws[self.rng.random(size) < np.exp(-0.5 * deviation**2)]

    def laplace(self, scale: float, size: int) -> IntArray:
        """Return draws of the discrete Laplace: the difference of two geometric draws."""
        p = -math.expm1(-1.0 / scale)
        return self.rng.geometric(p, size) - self.rng.geometric(p, size)

    def bytes(self, size: int) -> builtins.bytes:
        """Return uniform bytes."""
        return self.rng.bytes(size)


@lru_cache(maxsize=32)
def _table(scale: float) -> tuple[int, FloatArray]:
    """Return the reach m and the distribution function of the discrete Gaussian on -m, ..., m."""
    reach = math.ceil(12.0 * scale) + 1
    z = np.arange(-reach, reach + 1) / scale
    cumulative = np.cumsum(np.exp(-0.5 * z * z))
    # Dividing by the last entry makes it exactly 1, so that a uniform draw below 1 never falls off the end.
    return reach, cumulative / cumulative[-1]


@dataclass(frozen=True)
class SeededProvider:
    """A door whose noise and whose auxiliary randomness repeat.

    Examples
    --------
    >>> SeededProvider(1).certified
    False
    """

    seed: int
    certified: bool = field(default=False, init=False)
    reason: str = field(default="the noise was seeded, and whoever knows the seed can take it away", init=False)

    def __post_init__(self) -> None:
        noise, auxiliary = np.random.SeedSequence(self.seed).spawn(2)
        object.__setattr__(self, "_source", SeededSource(np.random.default_rng(noise)))
        object.__setattr__(self, "_auxiliary", auxiliary)

    def answer(self, call: Call, query: Query, sample: Sample) -> NDArray[Any]:  # noqa: ARG002
        """Return the noisy answer, in the same order as the system's door: noise, then data."""
        source: SeededSource = self.__dict__["_source"]
        finish = sample(source)
        return finish(query())

    def generator(self, purpose: str) -> np.random.Generator:  # noqa: ARG002
        """Return the next generator of this seed."""
        auxiliary: np.random.SeedSequence = self.__dict__["_auxiliary"]
        return np.random.default_rng(auxiliary.spawn(1)[0])


@contextmanager
def seeded_noise(seed: int) -> Iterator[NoiseProvider]:
    """Draw all noise within this context from a seed; what is released inside is not certified.

    Parameters
    ----------
    seed : int
        Not negative.

    Examples
    --------
    >>> from fogline.mechanisms.discrete_gaussian import add_gaussian
    >>> def release():
    ...     return add_gaussian(lambda: np.zeros(3, dtype=int), size=3, sensitivity=1, rho=0.01).values
    >>> with seeded_noise(7):
    ...     first = release()
    >>> with seeded_noise(7):
    ...     second = release()
    >>> bool((first == second).all())
    True
    """
    with use_provider(SeededProvider(check_count(seed, "seed", minimum=0))) as provider:
        yield provider


def integral_log_ratio(sampler: Any, x: ArrayLike) -> FloatArray:
    """Return the logarithm of the ratio of a fitted sampler's *secret* density to its base, at some points.

    It reads raw data through the model, and must never be published: it is here for benchmarks on simulated records.
    The normaliser is a mean over 2^16 points that fill the base evenly, good to about 1e-3.

    Parameters
    ----------
    sampler : IntegralSampler
        Fitted without a ledger, with draws left.
    x : array-like of shape (n, d)

    Examples
    --------
    >>> from fogline import IntegralSampler
    >>> X = np.random.default_rng(0).normal(1.0, 0.3, size=(2000, 1))
    >>> sampler = IntegralSampler(epsilon=2.0, max_samples=1, learner="boosting", schedule="full", rounds=1).fit(X)
    >>> near, far = integral_log_ratio(sampler, [[1.0], [-1.0]])
    >>> bool(near > 0.3 > 0 > far > -1)
    True
    """
    from scipy.stats.qmc import Sobol

    from fogline.releases import secret_models

    paid_draws = secret_models.paid_draws_of(sampler)
    if paid_draws is None or paid_draws.log_ratio is None:
        raise ValueError("sampler must hold a model: fitted without a ledger, and with draws left")
    points = np.asarray(x, dtype=np.float64)
    even = Sobol(paid_draws.base.d, rng=np.random.default_rng(0)).random_base2(16)
    inner = paid_draws.base.points(np.clip(even, 2.0**-54, 1.0 - 2.0**-53))
    normaliser = float(np.log(np.exp(paid_draws.log_ratio(inner)).mean()))
    return np.asarray(paid_draws.log_ratio(points) - normaliser)
