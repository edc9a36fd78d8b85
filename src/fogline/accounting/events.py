"""What happened: frozen values that describe one use of a mechanism, and nothing about its cost.

The docstring of an event is the whole mechanism. The meaning of an event never changes; a new mechanism gets
a new event. What an event costs is said in `fogline.accounting.costs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from fogline._validation import (
    Neighbours,
    check_count,
    check_delta,
    check_epsilon,
    check_neighbours,
    check_positive,
)

__all__ = [
    "AboveThresholdEvent",
    "ComposedEvent",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "IntegralDrawEvent",
    "LaplaceEvent",
    "ParallelEvent",
    "StableHistogramEvent",
]


@dataclass(frozen=True)
class GaussianEvent:
    """Noise from the discrete Gaussian on the integers added to each entry of an integer vector.

    The noise has P(z) proportional to exp(-z^2 / (2 scale^2)), independently for each entry. Neighbours move
    the exact vector by at most `sensitivity` in Euclidean norm. Done `count` times on the same data,
    adaptively.

    Examples
    --------
    >>> GaussianEvent(sensitivity=1.0, scale=4.0)
    GaussianEvent(sensitivity=1.0, scale=4.0, count=1)
    """

    sensitivity: float
    scale: float
    count: int = 1

    def __post_init__(self) -> None:
        check_positive(self.sensitivity, "sensitivity")
        check_positive(self.scale, "scale")
        check_count(self.count, "count")


@dataclass(frozen=True)
class LaplaceEvent:
    """Noise from the discrete Laplace distribution on the integers added to each entry of an integer vector.

    The noise has P(z) proportional to exp(-|z| / scale), independently for each entry. Neighbours move the
    exact vector by at most `sensitivity` in the sum of absolute values. Done `count` times on the same data.

    Examples
    --------
    >>> LaplaceEvent(sensitivity=1.0, scale=2.0, count=3).count
    3
    """

    sensitivity: float
    scale: float
    count: int = 1

    def __post_init__(self) -> None:
        check_positive(self.sensitivity, "sensitivity")
        check_positive(self.scale, "scale")
        check_count(self.count, "count")


@dataclass(frozen=True)
class ExponentialEvent:
    """One index drawn with probability proportional to exp(epsilon * utility / (2 * sensitivity)).

    Neighbours move every utility by at most the sensitivity. The draw is exact, so that the logarithm of the
    ratio of an index's probabilities between neighbours varies by at most `epsilon` over the indices (bounded
    range), and is at most `epsilon` in size. Done `count` times on the same data.

    Examples
    --------
    >>> ExponentialEvent(epsilon=0.5)
    ExponentialEvent(epsilon=0.5, count=1)
    """

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_count(self.count, "count")


@dataclass(frozen=True)
class AboveThresholdEvent:
    """The first of a fixed sequence of integer queries that is above a noisy threshold, or none.

    The threshold gets discrete Laplace noise of scale 2 * sensitivity / epsilon, each query one of scale
    4 * sensitivity / epsilon, and the first index with noisy query >= noisy threshold comes out: only that
    index, never a noisy value. Neighbours move each query by at most the sensitivity. Done `count` times.

    Examples
    --------
    >>> AboveThresholdEvent(epsilon=1.0).epsilon
    1.0
    """

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_count(self.count, "count")


@dataclass(frozen=True)
class StableHistogramEvent:
    """The keys that occur in the data, with noisy counts, where the noisy count reaches a threshold.

    Under add-remove, a unit has at most c records; each key that occurs gets discrete Laplace noise of scale
    c / epsilon (or more) and is published when its noisy count is at least a threshold so high that the keys
    only one unit holds come out with probability at most `delta`. Done `count` times on the same data.

    Examples
    --------
    >>> StableHistogramEvent(epsilon=1.0, delta=1e-6).delta
    1e-06
    """

    epsilon: float
    delta: float
    count: int = 1

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_count(self.count, "count")


@dataclass(frozen=True)
class IntegralDrawEvent:
    """A point drawn from a density whose ratio to a public one lies between exp(-epsilon/2) and exp(epsilon/2).

    The public density does not depend on the data; the drawn one may depend on all of it, and is secret. For any two
    data sets, neighbours or not, the probabilities of what is drawn differ by a factor of at most exp(epsilon), for all
    `count` draws together of at most exp(count * epsilon).

    Examples
    --------
    >>> IntegralDrawEvent(epsilon=0.5, count=10).count
    10
    """

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_count(self.count, "count")


@dataclass(frozen=True)
class ComposedEvent:
    """All of `parts` on the same data, each chosen with the answers of those before it in view.

    Examples
    --------
    >>> ComposedEvent((GaussianEvent(1.0, 4.0), ExponentialEvent(0.5))).parts[1].epsilon
    0.5
    """

    parts: tuple[Event, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


@dataclass(frozen=True)
class ParallelEvent:
    """Each of `parts` on its own piece of the data, where every protected unit lies in one piece only.

    The pieces are cut by a rule that looks at one unit at a time. Under "add-remove" a neighbour differs in
    one piece; under "replace" a unit may leave one piece and enter another, so it may differ in two.

    Examples
    --------
    >>> ParallelEvent((GaussianEvent(1.0, 4.0), GaussianEvent(1.0, 4.0)), "replace").neighbours
    'replace'
    """

    parts: tuple[Event, ...]
    neighbours: Neighbours

    def __post_init__(self) -> None:
        _check_parts(self.parts)
        check_neighbours(self.neighbours)


Event = (
    GaussianEvent
    | LaplaceEvent
    | ExponentialEvent
    | AboveThresholdEvent
    | StableHistogramEvent
    | IntegralDrawEvent
    | ComposedEvent
    | ParallelEvent
)


def _check_parts(parts: object) -> None:
    if not isinstance(parts, tuple):
        raise TypeError(f"parts must be a tuple of events, got {type(parts).__name__}")
