"""Where secret models are learnt and kept: not on the estimator, so that no attribute, repr or pickle leads to them.

:class:`SecretTraining` holds the records while a model is learnt from them. What the model may draw is kept here: one
entry for each fitted sampler that has draws left. It goes when the last draw is taken, when the sampler is fitted again
or dropped, and in every forked process: two processes must not spend the same draws.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fogline._typing import LedgerLike
from fogline.families.base_measures import Base
from fogline.mechanisms.errors import sealed
from fogline.queries.query import Records
from fogline.releases.release import PaidQuestion, release
from fogline.sources.passes import RecordPasses

__all__ = ["Model", "PaidDraws", "SecretTraining", "forget", "hold", "paid_draws_of"]

FloatArray = NDArray[np.float64]
Model = tuple[Callable[[int], FloatArray], Callable[[FloatArray], FloatArray]]
"""A function that makes draws, and the log-ratio to the base that they follow, up to a constant."""


class PaidDraws:
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
        return f"PaidDraws({self.left} draws left)"

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
            # before they are made: a draw that fails may have told something
            self.left -= size
            return self._draw(size)


class SecretTraining:
    """Holder of a source's records while a secret model is learnt from them; errors of its schema come first.

    Parameters
    ----------
    source : array, frame, path or Table
    width : int
        Number of columns that are wanted.
    """

    def __init__(self, source: Any, *, width: int) -> None:
        self._records = RecordPasses(source, width)

    @property
    def facts(self) -> dict[str, Any]:
        """What of the source, beside columns and unit, belongs into a ledger's question."""
        return self._records.facts

    def release(
        self,
        learn: Callable[[Records], Model],
        base: Base,
        draws: int,
        ledger: LedgerLike | None,
        question: Callable[[], PaidQuestion],
    ) -> tuple[PaidDraws, dict[str, Any] | None]:
        """Learn a model and hold what it may draw; with a ledger all draws are made at once and stored.

        Parameters
        ----------
        learn : callable
            Takes the records and returns the model.
        base : Base
        draws : int
            How many draws are paid for.
        ledger, question
            As for :func:`fogline.releases.release.release`.

        Returns
        -------
        holding, receipt
        """

        def make() -> tuple[PaidDraws, dict[str, Any] | None]:
            draw, log_ratio = sealed(lambda: learn(self._records))()
            return PaidDraws(draw, draws, base, log_ratio), None

        def write(made: tuple[PaidDraws, dict[str, Any] | None]) -> bytes:
            file = io.BytesIO()
            # all of them now: the model is not kept, and asking again gives the same draws
            np.save(file, made[0].take(draws), allow_pickle=False)
            return file.getvalue()

        def read(payload: bytes, receipt: dict[str, Any]) -> tuple[PaidDraws, dict[str, Any] | None]:
            # handed out in their order, each once
            stored = iter(np.load(io.BytesIO(payload), allow_pickle=False))
            return PaidDraws(lambda size: np.array([next(stored) for _ in range(size)]), draws, base), receipt

        return release(make, ledger, question, write=write, read=read)

    def forget(self) -> None:
        """Let go of the records: an error's traceback must not lead to them."""
        self._records.forget()


# weak: a model goes with the sampler that owns it
_PAID: WeakKeyDictionary[Any, PaidDraws] = WeakKeyDictionary()
# else parent and child would each spend the draws that were paid for once
os.register_at_fork(after_in_child=_PAID.clear)


def hold(owner: Any, paid_draws: PaidDraws) -> None:
    """Keep what `owner` may draw."""
    _PAID[owner] = paid_draws


def paid_draws_of(owner: Any) -> PaidDraws | None:
    """Return what `owner` may draw, None if there is nothing left or nothing yet."""
    return _PAID.get(owner)


def forget(owner: Any) -> None:
    """Let go of it."""
    _PAID.pop(owner, None)
