"""The generator of a private GAN, and the optimiser of both networks: public from end to end."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Generator", "Optimiser"]

Array = NDArray[np.float64]

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

    layers: tuple[tuple[Array, Array], ...]

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

    def __call__(self, latent: Array) -> Array:
        """Points of latent draws."""
        return self._activations(latent)[-1]

    def draw(self, k: int, rng: np.random.Generator) -> Array:
        """Draw k points."""
        return self(rng.standard_normal((k, self.latent)))

    def pulled_back(self, latent: Array, slopes: Array) -> Array:
        """Gradient by the weights of the mean of a function of the points, from its slopes at the points."""
        activations = self._activations(latent)
        back = slopes / len(latent)
        parts: list[Array] = []
        for (matrix, _), before, after in reversed(
            list(zip(self.layers, activations[:-1], activations[1:], strict=True))
        ):
            back = back * (1.0 - after**2)
            parts = [(before.T @ back).ravel(), back.sum(axis=0), *parts]
            back = back @ matrix.T
        return np.concatenate(parts)

    def moved(self, change: Array) -> Generator:
        """Give the generator whose weights differ by `change`."""
        layers, start = [], 0
        for matrix, offset in self.layers:
            middle, end = start + matrix.size, start + matrix.size + offset.size
            layers.append((matrix + change[start:middle].reshape(matrix.shape), offset + change[middle:end]))
            start = end
        return Generator(tuple(layers))

    def _activations(self, latent: Array) -> list[Array]:
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

    def step(self, gradient: Array) -> Array:
        """Return the step uphill."""
        self.mean = self.memory * self.mean + (1.0 - self.memory) * gradient**2
        self.weight = self.memory * self.weight + (1.0 - self.memory)
        return np.asarray(self.rate * gradient / (np.sqrt(self.mean / self.weight) + 1e-8))
