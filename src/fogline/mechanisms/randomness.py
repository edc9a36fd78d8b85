"""OpenDP's exact samplers, imported when the first noise is drawn and not before.

Integers only: OpenDP samples the discrete Gaussian and the discrete Laplace on the integers with rational
arithmetic and the operating system's entropy. A vector of zeros in is a vector of noise out; values beyond
int64 saturate.

The noise provider: everything random that privacy rests on comes through here.

A mechanism does not draw noise and does not add it. It hands the provider a `Call` (what it is about to do:
public), a `query` (the exact value: secret) and a `sample` (how to draw the noise, and with it to finish the
answer). The provider of everyday use draws from the operating system. Other providers can record every call and its
answer, replay the answers on a neighbouring data set while comparing the exact values, or draw from a seed
in tests: all without a word in the mechanisms.

Noise is drawn *before* the data is touched: the time that an exact sampler takes depends on what it draws
(Jin et al. 2022), and drawn first it cannot depend on the data as well.
"""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fogline._typing import IntArray
from fogline.accounting.events import Event
from fogline.mechanisms.errors import quiet, sealed

__all__ = [
    "Call",
    "EntropySource",
    "Finish",
    "NoiseProvider",
    "Parameters",
    "Query",
    "Sample",
    "SystemProvider",
    "SystemSource",
    "ask_provider",
    "current_provider",
    "draw",
    "gaussian_rho",
    "laplace_epsilon",
    "provider_reason",
    "use_provider",
]


class Measurement(Protocol):
    """What is asked of a measurement of OpenDP."""

    def __call__(self, argument: list[int], /) -> list[int]: ...

    def map(self, d_in: float, /) -> float:
        """Return what it costs at this distance of the inputs."""


# a release asks for the same scale at least twice: for the bound of OpenDP, and for the draw
@lru_cache(maxsize=64)
def _mechanism(kind: str, scale: float) -> Measurement:
    from opendp import measurements, metrics
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    # OpenDP wants constructors that are not fully vetted to be opted in to; mechanisms check what they get against its
    # own map.
    enable_features("contrib")
    integers = vector_domain(atom_domain(T="i64"))
    if kind == "gaussian":
        gaussian: Measurement = measurements.make_gaussian(integers, metrics.l2_distance(T="f64"), scale=scale)
        return gaussian
    laplace: Measurement = measurements.make_laplace(integers, metrics.l1_distance(T="f64"), scale=scale)
    return laplace


def draw(kind: str, scale: float, size: int) -> IntArray:
    """Return `size` draws of discrete noise ("gaussian" or "laplace").

    Examples
    --------
    >>> draw("gaussian", 2.0, 3).shape
    (3,)
    """
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    # OpenDP adds noise to values: zeros in, noise out
    return np.array(_mechanism(kind, scale)([0] * size), dtype=np.int64)


def gaussian_rho(scale: float, sensitivity: float) -> float:
    """Return OpenDP's own zCDP bound for the discrete Gaussian at this Euclidean sensitivity.

    Examples
    --------
    >>> gaussian_rho(2.0, 1.0)
    0.125
    """
    return float(_mechanism("gaussian", scale).map(sensitivity))


def laplace_epsilon(scale: float, sensitivity: float) -> float:
    """Return OpenDP's own epsilon for the discrete Laplace at this absolute sensitivity.

    Examples
    --------
    >>> laplace_epsilon(2.0, 1.0)
    0.5
    """
    return float(_mechanism("laplace", scale).map(sensitivity))


Parameters = tuple[tuple[str, Hashable], ...]


@dataclass(frozen=True)
class Call:
    """The public description of one use of a mechanism.

    Parameters
    ----------
    mechanism : str
        "gaussian", "laplace", "exponential", ...
    parameters : tuple of (name, value)
        Public parameters only.
    sensitivity : float
        How far the exact query may move between neighbours, in `norm`.
    norm : {"l1", "l2", "linf"}
    event : Event
        What it is charged as.

    Examples
    --------
    >>> from fogline.accounting.events import GaussianEvent
    >>> Call("gaussian", (("size", 3),), 1.0, "l2", GaussianEvent(1.0, 4.0)).mechanism
    'gaussian'
    """

    mechanism: str
    parameters: Parameters
    sensitivity: float
    norm: Literal["l1", "l2", "linf"]
    event: Event


class EntropySource(Protocol):
    """Where noise comes from. `certified` says that it is fit for real data."""

    @property
    def certified(self) -> bool:
        """Whether the draws are exact and unpredictable."""

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return draws of the discrete Gaussian, P(z) proportional to exp(-z^2 / (2 scale^2))."""

    def laplace(self, scale: float, size: int) -> IntArray:
        """Return draws of the discrete Laplace, P(z) proportional to exp(-|z| / scale)."""

    def bytes(self, size: int) -> builtins.bytes:
        """Return uniform bytes."""


Query = Callable[[], NDArray[Any]]
Finish = Callable[[NDArray[Any]], NDArray[Any]]
Sample = Callable[[EntropySource], Finish]


class NoiseProvider(Protocol):
    """Through which a mechanism asks for its answer.

    A provider may also have an attribute `reason`, which says why its answers cannot be certified.
    """

    @property
    def certified(self) -> bool:
        """Whether a release through this provider may be certified."""

    def answer(self, call: Call, query: Query, sample: Sample) -> NDArray[Any]:
        """Return ``sample(source)(query())``: the noisy answer.

        Parameters
        ----------
        call : Call
            What is about to happen; public.
        query : callable
            Gives the exact value; secret. A provider calls it at most once.
        sample : callable
            Draws the noise from a source and returns the function that turns the exact value into the answer.
        """

    def generator(self, purpose: str) -> np.random.Generator:
        """Return randomness that is not noise (random shifts, public frequencies), for a named purpose."""


@dataclass(frozen=True)
class SystemSource:
    """Exact draws on the operating system's entropy: OpenDP's samplers, and `secrets` for bytes.

    Examples
    --------
    >>> SystemSource().gaussian(3.0, 5).dtype
    dtype('int64')
    >>> len(SystemSource().bytes(4))
    4
    """

    certified: bool = True

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return draws of the discrete Gaussian."""
        return draw("gaussian", scale, size)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Return draws of the discrete Laplace."""
        return draw("laplace", scale, size)

    def bytes(self, size: int) -> builtins.bytes:
        """Return uniform bytes."""
        return secrets.token_bytes(size)


@dataclass(frozen=True)
class SystemProvider:
    """The provider of everyday use: noise first, then the data, from the operating system's entropy.

    There is no state, so that a forked process cannot repeat the noise of its parent.

    Examples
    --------
    >>> SystemProvider().certified
    True
    """

    certified: bool = True
    reason: str = ""

    def answer(self, call: Call, query: Query, sample: Sample) -> NDArray[Any]:  # noqa: ARG002
        """Return the noisy answer, having drawn the noise before the exact value was asked for."""
        # Noise first: the time that an exact sampler takes depends on what it draws, and must not depend on data too.
        finish = sample(SystemSource())
        return finish(query())

    def generator(self, purpose: str) -> np.random.Generator:  # noqa: ARG002
        """Return a fresh generator seeded with 256 bits of the operating system's entropy."""
        # Fresh each time: a generator that was kept would be shared with a forked child.
        return np.random.default_rng(secrets.randbits(256))


_SYSTEM = SystemProvider()
_PROVIDER: ContextVar[NoiseProvider | None] = ContextVar("fogline_door", default=None)


def current_provider() -> NoiseProvider:
    """Return the provider in use here: the system's, unless `use_provider` says otherwise.

    Examples
    --------
    >>> current_provider().certified
    True
    """
    # a context variable, not a global: an audit in one thread must not change the noise of another
    return _PROVIDER.get() or _SYSTEM


@contextmanager
def use_provider(provider: NoiseProvider) -> Iterator[NoiseProvider]:
    """Use another provider within this context (and only in this thread or task).

    Examples
    --------
    >>> with use_provider(SystemProvider()) as provider:
    ...     current_provider() is provider
    True
    """
    token = _PROVIDER.set(provider)
    try:
        yield provider
    finally:
        _PROVIDER.reset(token)


def ask_provider(call: Call, query: Query, sample: Sample) -> NDArray[Any]:
    """Return the noisy answer of the provider in use here: how every mechanism asks.

    The query is sealed, and the noise is added in the same fixed numeric error state: no setting of the program that
    calls can make an answer fail for the sake of a record.

    Examples
    --------
    >>> from fogline.accounting.events import GaussianEvent
    >>> call = Call("gaussian", (), 1.0, "l2", GaussianEvent(1.0, 4.0))
    >>> ask_provider(call, lambda: np.array([5]), lambda source: lambda exact: exact + source.gaussian(4.0, 1)).shape
    (1,)
    """

    def quiet_sample(source: EntropySource) -> Finish:
        finish = sample(source)

        def quiet_finish(exact: NDArray[Any]) -> NDArray[Any]:
            with quiet():
                return finish(exact)

        return quiet_finish

    return current_provider().answer(call, sealed(query), quiet_sample)


def provider_reason() -> str:
    """Return why a release made here cannot be certified; empty for the system's provider.

    Examples
    --------
    >>> provider_reason()
    ''
    """
    provider = current_provider()
    if type(provider) is SystemProvider:  # what another provider says of itself does not count
        return ""
    # a provider that gives no reason is not certified all the same
    return str(getattr(provider, "reason", "")) or "the noise did not come from the operating system"
