r"""A histogram over keys that nobody could list beforehand.

Publishing *that* a key occurs can give its only owner away, so a key comes out only when its noisy count
reaches a threshold. A unit has at most c records. Each key that occurs gets discrete Laplace noise of scale
:math:`b \ge c/\varepsilon`, and the threshold is the least integer :math:`T \ge c` for which the keys of one
unit, should nobody else hold them, come out with probability at most :math:`\delta`. With
:math:`g(m) = P(z \ge T - m) = a^{T - m}/(1 + a)` and :math:`a = e^{-1/b}` that is

.. math:: \max\{g(c),\; c\,g(1)\} \le \delta .

The result is (epsilon, delta)-DP under add-remove. Proof: ``stable_histogram.proof.md``, beside this file.

The number of keys is secret, so this is the one mechanism that cannot draw its noise before it sees the data:
its running time shows about how many different keys there are.

References
----------
Korolova, Kenthapadi, Mishra and Ntoulas (2009), Releasing search queries and clicks privately.
Bun, Nissim and Stemmer (2016), Simultaneous private learning of multiple concepts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_delta, check_epsilon, check_max_contributions
from fogline.accounting.events import StableHistogramEvent
from fogline.mechanisms.discrete_laplace import laplace_reach, laplace_scale
from fogline.mechanisms.lattice import noisy_sum
from fogline.mechanisms.randomness import Call, EntropySource, Finish, Parameters, ask_provider

__all__ = ["StableHistogram", "stable_histogram", "stable_threshold"]

Atom = int | str | bytes
Key = Atom | tuple[Atom, ...]


@dataclass(frozen=True)
class StableHistogram:
    """A released histogram.

    Parameters
    ----------
    counts : dict
        Noisy count of each key that reached the threshold, in the order of the keys.
    threshold : int
    scale : float
        Of the discrete Laplace noise.
    event : StableHistogramEvent
        What was done, for the accounting.
    """

    counts: dict[Key, int]
    threshold: int
    scale: float
    event: StableHistogramEvent


def stable_threshold(scale: float, delta: float, max_contributions: int) -> int:
    """Return the least threshold that hides the keys of one unit except with probability `delta`.

    Parameters
    ----------
    scale : float
        Of the discrete Laplace noise.
    delta : float
    max_contributions : int

    Examples
    --------
    >>> stable_threshold(1.0, 1e-6, 1)
    15
    """
    c, target = check_max_contributions(max_contributions), Fraction(check_delta(delta))
    # All records of a unit may share one key, or each have its own: both must stay hidden.
    one_key = c + laplace_reach(scale, target)
    many_keys = 1 + laplace_reach(scale, target / c)
    return max(one_key, many_keys)


def stable_histogram(
    keys: Callable[[], Iterable[Hashable]],
    *,
    epsilon: float,
    delta: float,
    max_contributions: int = 1,
    parameters: Parameters = (),
) -> StableHistogram:
    """Release the keys that occur often, with noisy counts, under (epsilon, delta)-DP for add-remove.

    Parameters
    ----------
    keys : callable
        Returns one key a record: an int, a str, bytes, or a tuple of these. Anything else, such as a float or
        None, contributes nothing. Called once.
    epsilon, delta : float
    max_contributions : int
        Greatest number of records of one unit.
    parameters : tuple of (name, value)
        Further public facts for the record.

    Returns
    -------
    StableHistogram

    Examples
    --------
    >>> list(stable_histogram(lambda: ["b"] * 500 + ["a"] * 500 + ["rare"], epsilon=1.0, delta=1e-6).counts)
    ['a', 'b']
    """
    event = StableHistogramEvent(check_epsilon(epsilon), check_delta(delta))
    bound = check_max_contributions(max_contributions)
    scale = laplace_scale(bound, event.epsilon)
    threshold = stable_threshold(scale, event.delta, bound)

    def exact() -> NDArray[Any]:
        # sorted: the order in which records came must not decide which draw a key gets
        counts = Counter(key for record in keys() if (key := _key(record)) is not None)
        return _pairs(sorted(counts.items(), key=lambda item: _order(item[0])))

    def sample(source: EntropySource) -> Finish:
        def finish(pairs: NDArray[Any]) -> NDArray[Any]:
            # After the keys are known: there is one draw per key, and how many there are is secret.
            noise = source.laplace(scale, len(pairs))
            noisy = noisy_sum(pairs[:, 1].astype(np.int64), noise)
            shown = noisy >= threshold
            return _pairs(zip(pairs[shown, 0].tolist(), noisy[shown].tolist(), strict=True))

        return finish

    described = (("threshold", threshold), ("scale", scale), *parameters)
    call = Call("stable-histogram", described, float(bound), "l1", event)
    released = ask_provider(call, exact, sample)
    return StableHistogram({key: int(count) for key, count in released}, threshold, scale, event)


def _key(record: object) -> Key | None:
    """Return a key in its one standard form, or None for what is no key."""
    if not isinstance(record, tuple):
        return _atom(record)
    parts = [_atom(part) for part in record]
    atoms = tuple(part for part in parts if part is not None)
    return atoms if len(atoms) == len(parts) else None


def _atom(value: object) -> Atom | None:
    # True equals 1: which of the two would be shown must not depend on the order of the records.
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, str):
        return str(value)
    return bytes(value) if isinstance(value, bytes) else None


def _order(key: Key) -> tuple[Any, ...]:
    """Return what to sort keys of several types by: a total order that is public."""
    if isinstance(key, int):
        return (0, key)
    if isinstance(key, str):
        return (1, key)
    if isinstance(key, bytes):
        return (2, key)
    return (3, tuple(_order(part) for part in key))


def _pairs(items: Iterable[tuple[Key, int]]) -> NDArray[Any]:
    """Return (key, count) pairs as an object array of two columns, whatever the keys are."""
    listed = list(items)
    # filled by hand: numpy would take keys that are tuples for further axes
    array = np.empty((len(listed), 2), dtype=object)
    for row, (key, count) in enumerate(listed):
        array[row, 0], array[row, 1] = key, count
    return array
