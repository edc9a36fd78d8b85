"""What passes through a door of an audit: uses of mechanisms with the noise they drew, and auxiliary generators."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.mechanisms.entropy import Call, IntArray, Sample, Source

__all__ = [
    "Draw",
    "DrawsDiffer",
    "GeneratorStep",
    "MechanismStep",
    "RecordedSource",
    "SourceSpy",
    "Step",
    "same_values",
]


@dataclass(frozen=True)
class Draw:
    """Noise that a mechanism drew: "gaussian" or "laplace" of some scale, or "bytes"."""

    law: str
    scale: float
    values: IntArray


@dataclass(frozen=True)
class MechanismStep:
    """One use of a mechanism: what was said, the secret exact value, the answer, and how noise is made."""

    call: Call
    exact: NDArray[Any]
    answer: NDArray[Any]
    draws: tuple[Draw, ...]
    sample: Sample = field(repr=False, compare=False)


@dataclass(frozen=True)
class GeneratorStep:
    """One auxiliary generator: its purpose and its seed."""

    purpose: str
    seed: int


Step = MechanismStep | GeneratorStep


class SourceSpy:
    """A source that keeps what is drawn from it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.draws: list[Draw] = []

    @property
    def certified(self) -> bool:
        """As the source says."""
        return self._source.certified

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return draws of the source."""
        return self._keep("gaussian", scale, self._source.gaussian(scale, size))

    def laplace(self, scale: float, size: int) -> IntArray:
        """Return draws of the source."""
        return self._keep("laplace", scale, self._source.laplace(scale, size))

    def bytes(self, size: int) -> builtins.bytes:
        """Return bytes of the source."""
        drawn = self._source.bytes(size)
        self._keep("bytes", 0.0, np.frombuffer(drawn, dtype=np.uint8).astype(np.int64))
        return drawn

    def _keep(self, law: str, scale: float, values: IntArray) -> IntArray:
        self.draws.append(Draw(law, float(scale), values.copy()))
        return values


class DrawsDiffer(RuntimeError):
    """A mechanism drew other noise than the one that was recorded at its place."""


class RecordedSource:
    """A source that gives recorded draws again, in their order, to whoever asks for the same.

    Examples
    --------
    >>> source = RecordedSource((Draw("laplace", 2.0, np.array([5, -1])),))
    >>> source.laplace(2.0, 2).tolist(), source.used_up
    ([5, -1], True)
    >>> source.laplace(2.0, 2)
    Traceback (most recent call last):
    fogline.audit.steps.DrawsDiffer: laplace noise
    """

    certified = False

    def __init__(self, draws: tuple[Draw, ...]) -> None:
        self._draws = list(draws)

    @property
    def used_up(self) -> bool:
        """Whether all draws were asked for."""
        return not self._draws

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return the recorded draws."""
        return self._next("gaussian", scale, size)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Return the recorded draws."""
        return self._next("laplace", scale, size)

    def bytes(self, size: int) -> builtins.bytes:
        """Return the recorded bytes."""
        return self._next("bytes", 0.0, size).astype(np.uint8).tobytes()

    def _next(self, law: str, scale: float, size: int) -> IntArray:
        draw = self._draws.pop(0) if self._draws else None
        if draw is None or (draw.law, draw.scale, draw.values.size) != (law, float(scale), size):
            raise DrawsDiffer(f"{law} noise")
        return draw.values.copy()


def same_values(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Say whether two answers are the same, to the last bit.

    Examples
    --------
    >>> same_values(np.array([0.0]), np.array([-0.0]))
    False
    """
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.dtype == object:
        return bool(first.tolist() == second.tolist())
    return first.tobytes() == second.tobytes()
