r"""Draws from a secret density on cells of equal base mass: integral privacy with the normaliser known exactly.

Cut the base :math:`Q_0` into :math:`M` cells of equal mass, by its own quantiles. A density that is constant against
the base on each cell is a list of counts :math:`n_1 + \dots + n_M = 2^{53}`: cell j is drawn with probability
:math:`n_j / 2^{53}`, and a point of the base within it. Its ratio to the base is

.. math:: \frac{dQ}{dQ_0} = \frac{n_j M}{2^{53}} ,

known in whole numbers, so that the *whole* mollifier can be used, :math:`e^{-\varepsilon/2}` to
:math:`e^{\varepsilon/2}`, where rejection with an unknown normaliser has only half of its logarithmic width. The
price is the number of cells: up to three columns. The time of a draw does not depend on the counts.
Proof: ``mollified_cells.proof.md``, beside this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, IntArray
from fogline._validation import check_count, check_epsilon
from fogline.accounting.events import IntegralDrawEvent
from fogline.mechanisms.mollified_draws import COIN, Drawable, least_threshold
from fogline.mechanisms.randomness import Call, EntropySource, Finish, Parameters, ask_provider

__all__ = ["AXIS_BITS", "cell_centres", "count_range", "counts_of", "mollified_cells"]


AXIS_BITS = {1: 12, 2: 7, 3: 5}
"""An axis is cut into two to this power, by the number of columns."""

FINE = 2**40
"""Places within a cell along an axis: with 12 bits for the cell, all that a float holds."""


def mollified_cells(
    counts: Callable[[], NDArray[Any]], base: Drawable, *, size: int, epsilon: float, parameters: Parameters = ()
) -> FloatArray:
    """Draw points from a secret density that is constant, against the base, on each of its cells.

    Parameters
    ----------
    counts : callable
        Secret: returns one whole number per cell, in the order of `cell_centres`, as `counts_of` makes them. Any that
        are not in the mollifier, or do not add up to `COIN`, are replaced by equal ones: draws of the base.
    base : Base
        Public, of at most three columns.
    size : int
    epsilon : float
        Of one draw.
    parameters : tuple of (name, value)
        Further public facts for the record.

    Returns
    -------
    array of shape (size, d)

    Examples
    --------
    >>> from fogline.families.base_measures import UniformBase
    >>> base = UniformBase([(0, 1)])
    >>> high = counts_of(10.0 * cell_centres(1)[:, 0], epsilon=2.0)
    >>> drawn = mollified_cells(lambda: high, base, size=1000, epsilon=2.0)
    >>> bool(0.6 < drawn.mean() < 0.8)
    True
    """
    size, epsilon = check_count(size, "size"), check_epsilon(epsilon)
    bits, cells = AXIS_BITS[base.d], 2 ** (AXIS_BITS[base.d] * base.d)
    least, most = count_range(epsilon, cells)

    def sample(source: EntropySource) -> Finish:
        # all randomness before the secret counts are asked for
        coins = _whole_numbers(source, size, 53)
        within = (_whole_numbers(source, size * base.d, 40).reshape(size, base.d) + 0.5) / FINE

        def finish(exact: NDArray[Any]) -> NDArray[Any]:
            # counts add up to COIN, so that each coin falls into one cell with exactly its probability
            drawn = np.searchsorted(np.cumsum(exact), coins, side="right")
            places = np.stack(np.unravel_index(drawn, (2**bits,) * base.d), axis=1)
            return base.points((places + within) / 2**bits)

        return finish

    def query() -> IntArray:
        exact = np.asarray(counts())
        fits = exact.dtype.kind == "i" and exact.shape == (cells,)
        # Counts that break a rule are replaced by flat ones: an error here would depend on the records.
        # summed as Python integers, which cannot wrap
        if fits and least <= exact.min() and exact.max() <= most and sum(exact.tolist()) == COIN:
            return exact.astype(np.int64)
        return np.full(cells, COIN // cells, dtype=np.int64)

    event = IntegralDrawEvent(epsilon, size)
    described = (("size", size), ("cells", cells), *parameters)
    call = Call("mollified cells", described, float(max(most - least, 1)), "linf", event)
    return np.asarray(ask_provider(call, query, sample), dtype=np.float64)


def count_range(epsilon: float, cells: int) -> tuple[int, int]:
    """Return the least and the greatest count that a cell may have.

    Examples
    --------
    >>> least, most = count_range(2.0, 4096)
    >>> round(least * 4096 / COIN, 6), round(most * 4096 / COIN, 6)
    (0.367879, 2.718282)
    """
    threshold = least_threshold(epsilon)
    return -(-threshold // cells), min(COIN, COIN * COIN // (threshold * cells))


def cell_centres(d: int) -> FloatArray:
    """Return the middle of every cell in uniform coordinates, in the order of the counts.

    Examples
    --------
    >>> cell_centres(2).shape
    (16384, 2)
    """
    side = 2 ** AXIS_BITS[d]
    middle = (np.arange(side) + 0.5) / side
    return np.stack(np.meshgrid(*[middle] * d, indexing="ij"), axis=-1).reshape(-1, d)


def counts_of(log_ratios: FloatArray, *, epsilon: float) -> IntArray:
    """Return the counts of the density in the mollifier that comes nearest to some log-ratios.

    The logarithms are shifted, and clamped to [-epsilon/2, epsilon/2], so that the ratios have mean 1: among all
    densities of the mollifier the likeliest for records with these ratios to the base.

    Examples
    --------
    >>> counts_of(np.zeros(4096), epsilon=1.0).tolist() == [COIN // 4096] * 4096
    True
    """
    cells, half = len(log_ratios), epsilon / 2.0
    # beyond e^700 ratios are all alike here, and finite ends keep the bisection below from overflowing
    values = np.clip(np.nan_to_num(np.asarray(log_ratios, dtype=np.float64)), -700.0, 700.0)
    # at these shifts all ratios are at one end of the clamp, so that the mean passes 1 in between
    low, high = values.min() - half, values.max() + half
    # A fixed number of halvings: stopping early would take a time that depends on the ratios.
    for _ in range(200):
        middle = (low + high) / 2.0
        ratios = np.exp(np.clip(values - middle, -half, half))
        low, high = (middle, high) if ratios.mean() > 1.0 else (low, middle)
    least, most = count_range(epsilon, cells)
    counts = np.clip(np.rint(ratios * (COIN // cells)), least, most).astype(np.int64)
    # What rounding left over is spread evenly over the cells that have room for it.
    while rest := COIN - sum(counts.tolist()):
        slack = most - counts if rest > 0 else counts - least
        share = np.minimum(slack, -(-abs(rest) // max(1, int((slack > 0).sum()))))
        share = np.where(np.cumsum(share) <= abs(rest), share, 0)
        if not share.any():  # pragma: no cover - the first share is at most the rest, and fits
            share[int(np.argmax(slack))] = min(int(slack.max()), abs(rest))
        counts += share if rest > 0 else -share
    return np.asarray(counts, dtype=np.int64)


def _whole_numbers(source: EntropySource, size: int, bits: int) -> IntArray:
    return (np.frombuffer(source.bytes(8 * size), dtype="<u8") >> np.uint64(64 - bits)).astype(np.int64)
