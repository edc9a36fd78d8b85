"""Where secret models are kept: not on the estimator, so that no attribute, repr or pickle of it leads to them.

One entry for each fitted sampler that has draws left. It goes when the last draw is taken, when the sampler is fitted
again or dropped, and in every forked process: two processes must not spend the same draws.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fogline.families.base_measures import Base

__all__ = ["Holding", "forget", "held", "hold"]

FloatArray = NDArray[np.float64]


class Holding:
    """Draws that are paid for: a way to make them, and how many are left.

    Parameters
    ----------
    draw : callable
        Takes a number of draws and returns them.
    left : int
    base : Base
    log_ratio : callable, optional
        The model itself, for tests and benchmarks; None where it is forgotten already.
    """

    __slots__ = ("_draw", "_lock", "base", "left", "log_ratio")

    def __init__(
        self,
        draw: Callable[[int], FloatArray],
        left: int,
        base: Base,
        log_ratio: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        self._draw = draw
        self._lock = threading.Lock()
        self.left = left
        self.base = base
        self.log_ratio = log_ratio

    def __repr__(self) -> str:
        return f"Holding({self.left} draws left)"

    def __reduce__(self) -> Any:
        raise TypeError("a secret model cannot be pickled")

    def take(self, size: int) -> FloatArray:
        """Return so many draws; they are counted before they are made, and a draw that fails is spent.

        Raises
        ------
        ValueError
            When fewer are left. Nothing is drawn then.
        """
        with self._lock:
            if size > self.left:
                raise ValueError(f"n_samples={size}: only {self.left} of the draws that were paid for are left")
            self.left -= size
            return self._draw(size)


_HELD: WeakKeyDictionary[Any, Holding] = WeakKeyDictionary()
os.register_at_fork(after_in_child=_HELD.clear)


def hold(owner: Any, holding: Holding) -> None:
    """Keep what `owner` may draw."""
    _HELD[owner] = holding


def held(owner: Any) -> Holding | None:
    """Return what `owner` may draw, None if there is nothing left or nothing yet."""
    return _HELD.get(owner)


def forget(owner: Any) -> None:
    """Let go of it."""
    _HELD.pop(owner, None)
