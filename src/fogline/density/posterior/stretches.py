r"""Emptiness along one column comes in stretches: a process of two states, summed over exactly.

Along the column a place is empty or filled. With a share :math:`\pi` of the length that is empty and a mean length
:math:`\ell`, neighbouring buckets whose centres are :math:`\delta` apart keep their state with correlation
:math:`e^{-\delta/\ell}`: a change of state within a narrow bucket is as unlikely as the bucket is narrow. So no record
where one was expected is chance, and only many such buckets side by side are a gap.

Given by how much each count is likelier if its bucket is empty, one pass forwards and one backwards sum over all ways
to divide the column into stretches. Length and share are not known: the probabilities are averaged over a grid of both
by their evidence, and a draw of the states of all buckets takes a length and a share of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fogline._typing import FloatArray

__all__ = ["Stretches"]


@dataclass(frozen=True)
class Stretches:
    """Two states along a chain, for several mean lengths of stretches and shares of the second state.

    Parameters
    ----------
    ratio : array of shape (places,)
        Likelihood of the second state over that of the first, per place.
    keep : array of shape (places - 1, laws)
        Correlation of neighbouring places, per pair of length and share.
    shares : array of shape (laws,)
        Probability of the second state without any data.

    Examples
    --------
    >>> chain = Stretches.of(np.array([9.0, 1.0, 1 / 9]), np.full(2, np.log(2.0)), lengths=(1.0,), shares=(0.5,))
    >>> chain.probability(chain.evidence).round(2).tolist()
    [0.86, 0.5, 0.14]
    """

    ratio: FloatArray
    keep: FloatArray
    shares: FloatArray

    @classmethod
    def of(
        cls, ratio: FloatArray, apart: FloatArray, lengths: tuple[float, ...], shares: tuple[float, ...]
    ) -> Stretches:
        """All pairs of the lengths and shares, for places whose distances are `apart`."""
        all_lengths, all_shares = (part.ravel() for part in np.meshgrid(lengths, shares))
        return cls(ratio, np.exp(-apart[:, None] / all_lengths), all_shares)

    @cached_property
    def _forwards(self) -> tuple[FloatArray, FloatArray]:
        """Probability of the second state given all places up to each, shape (places, laws), and the log-evidence."""
        found, totals = np.empty((2, len(self.ratio), len(self.shares)))
        now = self.shares
        for place, ratio in enumerate(self.ratio):
            if place:
                now = self.shares + (now - self.shares) * self.keep[place - 1]
            total = 1 + now * (ratio - 1)
            now = now * ratio / total
            found[place], totals[place] = now, total
        return found, np.asarray(np.log(totals).sum(axis=0))

    @property
    def evidence(self) -> FloatArray:
        """Logarithm of the likelihood of each law, up to a constant."""
        return self._forwards[1]

    def probability(self, evidence: FloatArray) -> FloatArray:
        """Probability of the second state at each place given all of them, averaged over laws by their evidence."""
        so_far = self._forwards[0]
        weight = _weights(evidence)
        chosen = weight > 1e-4
        so_far, keep, shares = so_far[:, chosen], self.keep[:, chosen], self.shares[chosen]
        stay, enter = shares + (1 - shares) * keep, shares * (1 - keep)
        ahead, found = np.ones(len(shares)), so_far.copy()
        for place in range(len(self.ratio) - 2, -1, -1):
            seen = ahead * self.ratio[place + 1]
            ahead = (stay[place] * seen + 1 - stay[place]) / (enter[place] * seen + 1 - enter[place])
            found[place] = so_far[place] * ahead / (1 + so_far[place] * (ahead - 1))
        # rounding must not lead beyond 1: powers of what is left would be nan
        return np.asarray(np.minimum(found @ (weight[chosen] / weight[chosen].sum()), 1.0))

    def draws(self, size: int, evidence: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the states of all places together, shape (places, size), 1 for the second; a law for each draw."""
        so_far = self._forwards[0]
        law = rng.choice(len(self.shares), size=size, p=_weights(evidence))
        shares, places = self.shares[law], len(self.ratio)
        states, coins = np.empty((places, size)), rng.random((places, size))
        states[-1] = coins[-1] < so_far[-1, law]
        for place in range(places - 2, -1, -1):
            keep, known, after = self.keep[place, law], so_far[place, law], states[place + 1]
            from_second = np.where(after == 1, shares + (1 - shares) * keep, (1 - shares) * (1 - keep))
            from_first = np.where(after == 1, shares * (1 - keep), 1 - shares * (1 - keep))
            joint = known * from_second
            states[place] = coins[place] * (joint + (1 - known) * from_first) < joint
        return states


def _weights(evidence: FloatArray) -> FloatArray:
    weight = np.exp(evidence - evidence.max())
    return np.asarray(weight / weight.sum())
