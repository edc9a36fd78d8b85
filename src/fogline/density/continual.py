r"""Cumulative densities of many periods, released one after the other from one budget; public side.

Let :math:`x_t` be the counts of new records of period t in the cells of a fixed public partition, t = 1, ..., T, and
:math:`S_t = x_1 + \dots + x_t`. The matrix A of these sums (lower triangular, all ones) is the square of the lower
triangular Toeplitz matrix with the coefficients

.. math:: r_k = \binom{2k}{k} 4^{-k} = 1, \tfrac12, \tfrac38, \dots, \qquad
          \Bigl(\sum_k r_k z^k\Bigr)^2 = \frac{1}{1-z}.

Released is, period after period, :math:`y_t = \sum_k R_k x_{t-k} + z_t` with whole numbers
:math:`R_k = \lfloor 2^{20} r_k \rfloor` and discrete Gaussian noise z of one scale s. With
:math:`a(z) = 1/((1-z) \sum_k R_k z^k)` the sums are read as :math:`\hat S_t = \sum_k a_k y_{t-k} = S_t + \sum_k a_k
z_{t-k}`: without bias, with a noise of standard deviation :math:`s (\sum_{k<t} a_k^2)^{1/2}` per cell. A record moves
all of y by at most :math:`(\sum_{k<T} R_k^2)^{1/2}`, so that the last of T releases has

.. math:: \sum_{k<T} r_k^2 \approx 1 + \tfrac{1}{\pi}\log T

times the noise of a single release of the same budget: 2.3 for the 52 weeks of a year, where 52 releases that share
the budget have 7.2 times, each. The proof of privacy is ``releases/continual.proof.md``.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, IntArray
from fogline._validation import check_count
from fogline.accounting.guarantee import Guarantee
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.private_density import PrivateDensity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MOST_PERIODS", "ContinualRelease", "Drift", "noise_factor", "root_coefficients", "squared_sensitivity"]

BITS = 20
"""Coefficients are whole numbers of this many bits."""

MOST_PERIODS = 4096
FORMAT = "fogline-continual-1"

NO_PILOT = 2.0**40
"""Scale of the noise of a pilot that says nothing: there is only one stage here."""


def root_coefficients(periods: int) -> IntArray:
    r"""Whole numbers :math:`R_k = \lfloor 2^{20} \binom{2k}{k} 4^{-k} \rfloor` for k below the number of periods.

    Examples
    --------
    >>> (root_coefficients(4) / 2**20).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    return np.array([math.comb(2 * k, k) * 2**BITS // 4**k for k in range(periods)], dtype=np.int64)


def squared_sensitivity(periods: int, *, leavers: bool = False) -> int:
    r"""Largest squared norm of what one record adds to all of y; exact.

    A record that enters in period s adds :math:`R_{t-s}` to its cell for t >= s: largest for s = 1. One that is taken
    back d periods later adds :math:`R_{t-s} - R_{t-s-d}` from then on.

    Examples
    --------
    >>> round(squared_sensitivity(52) / 2**40, 3), round(squared_sensitivity(52, leavers=True) / 2**40, 3)
    (2.322, 3.523)
    """
    roots = [int(root) for root in root_coefficients(periods)]
    found = [sum(root * root for root in roots)]
    for later in range(1, periods if leavers else 1):
        before = sum(root * root for root in roots[:later])
        found.append(before + sum((roots[j] - roots[j + later]) ** 2 for j in range(periods - later)))
    return max(found)


def _readings(periods: int) -> FloatArray:
    """Coefficients by which the sums are read: of 1 / ((1 - z) R(z))."""
    roots = root_coefficients(periods).astype(np.float64)
    found = np.zeros(periods)
    for k in range(periods):
        found[k] = (1.0 - np.dot(roots[1 : k + 1], found[:k][::-1])) / roots[0]
    return found


def noise_factor(periods: int, *, leavers: bool = False) -> float:
    """Noise of the last of so many releases over that of a single release of the same total budget.

    Examples
    --------
    >>> round(noise_factor(52), 2), round(noise_factor(52, leavers=True), 2), noise_factor(1)
    (2.32, 2.86, 1.0)
    """
    return math.sqrt(squared_sensitivity(periods, leavers=leavers) * float(np.sum(_readings(periods) ** 2)))


@dataclass(frozen=True)
class Drift:
    """Whether the records of later periods are distributed as those before.

    Attributes
    ----------
    first, last : int
        Records up to the period `first` are compared with those of the periods after it, up to `last`.
    statistic : float
        Sum over cells of squared differences of the two shares, each over its variance.
    p_value : float
        Share of simulated tables without drift, privacy noise included, whose statistic is at least as large.
    scores : array
        Difference of the shares per cell, in standard deviations, in the form of the partition; later minus before.
    """

    first: int
    last: int
    statistic: float
    p_value: float
    scores: FloatArray


@dataclass(frozen=True, eq=False)
class ContinualRelease:
    """Everything that was released so far: one noisy vector per period; public.

    Parameters
    ----------
    spec : LeafSpec
        The fixed partition: its leaves.
    periods : int
        How many there will be.
    values : int64 array of shape (released, leaves)
        Released numbers.
    scale : float
        Standard deviation of the noise in each.
    guarantee : Guarantee
        Of all periods together, those to come included.
    columns : tuple of str, optional
    """

    spec: LeafSpec
    periods: int
    values: IntArray
    scale: float
    guarantee: Guarantee
    columns: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"ContinualRelease({len(self)} of {self.periods} periods; {self.guarantee})"

    @cached_property
    def _reading(self) -> FloatArray:
        return _readings(self.periods)

    def _weights(self, period: int) -> FloatArray:
        """Weights of all released vectors in the sums up to a period."""
        weights = np.zeros(len(self))
        weights[:period] = self._reading[:period][::-1]
        return weights

    def _checked(self, period: int | None) -> int:
        if not len(self):
            raise ValueError("period: none was released yet")
        period = len(self) if period is None else check_count(period, "period")
        if period > len(self):
            raise ValueError(f"period: {len(self)} periods were released, got {period}")
        return period

    def cumulative(self, period: int | None = None) -> tuple[FloatArray, float]:
        """Noisy numbers of records per cell up to a period, by default the last, and the noise's standard deviation."""
        weights = self._weights(self._checked(period))
        return weights @ self.values, self.scale * float(np.linalg.norm(weights))

    def density(self, period: int | None = None) -> PrivateDensity:
        """Density of all records up to a period, with all its readings; free."""
        counts, sd = self.cumulative(period)
        whole = np.rint(counts).astype(np.int64)
        cells = np.stack(np.unravel_index(np.arange(self.spec.n_leaves), self.spec.leaves), axis=1)
        boxes = np.stack([cells, cells + 1], axis=-1).astype(np.int64)
        # Rounding adds a twelfth to the variance.
        stage = BucketCounts(boxes, whole, Noise("gaussian", math.sqrt(sd**2 + 1 / 12)))
        everything = np.array([[(0, n) for n in self.spec.leaves]], dtype=np.int64)
        pilot = BucketCounts(everything, np.zeros(1, dtype=np.int64), Noise("gaussian", NO_PILOT))
        leaves = LeafRelease(self.spec, pilot, stage)
        return PrivateDensity.from_leaves(leaves, guarantee=self.guarantee, columns=self.columns)

    # -- drift -----------------------------------------------------------------------------------------------

    def drift(self, first: int, last: int | None = None, *, draws: int = 999, seed: int = 0) -> Drift:
        r"""Test whether records after the period `first` are distributed as those up to it; free.

        The statistic is :math:`\sum_b (d_b/m - p_b/n)^2 / v_b` with noisy numbers p of records before and d after, and
        variances v of sampling and of the noise, which both share. Its law without drift is simulated: multinomial
        draws from the common shares, with the released noise's own law.

        Parameters
        ----------
        first, last : int
            Periods; `last` is by default the last that was released.
        draws : int
            Simulated tables: the least p value is 1 / (draws + 1).
        seed : int
            Of the simulation, which protects nobody.
        """
        last, first = self._checked(last), self._checked(first)
        if not first < last:
            raise ValueError(f"first must be before the last period, {last}, got {first}")
        weights = np.stack([self._weights(first), self._weights(last) - self._weights(first)])
        noise = self.scale**2 * weights @ weights.T
        before, after = weights @ self.values
        shares = np.clip(before + after, 0, None)
        shares = shares / shares.sum() if shares.sum() > 0 else np.full(len(shares), 1 / len(shares))
        sizes = np.maximum([before.sum(), after.sum()], 1.0)
        statistic, scores = _distance(np.stack([before, after]), shares, sizes, noise)
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(noise + 1e-12 * np.trace(noise) * np.eye(2))
        larger = 1
        for _ in range(check_count(draws, "draws")):
            drawn = np.stack([rng.multinomial(int(size), shares) for size in sizes])
            noisy = drawn + root @ rng.standard_normal((2, len(shares)))
            again = np.maximum(noisy.sum(axis=1), 1.0)
            pooled = np.clip(noisy.sum(axis=0), 0, None)
            pooled = pooled / max(pooled.sum(), 1e-300)
            larger += _distance(noisy, pooled, again, noise)[0] >= statistic
        return Drift(first, last, statistic, larger / (draws + 1), scores.reshape(self.spec.leaves))

    def plot_drift(self, first: int, last: int | None = None) -> Figure:
        """Draw the shares before and after a period, with two standard deviations of noise; of two columns, scores."""
        from matplotlib.figure import Figure

        last, first = self._checked(last), self._checked(first)
        found = self.drift(first, last)
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        names = self.columns or tuple(f"x{j}" for j in range(self.spec.d))
        if self.spec.d == 1:
            self._draw_shares(axes, first, last)
            axes.set_xlabel(names[0])
            axes.set_ylabel("share of the records")
            axes.legend()
        elif self.spec.d == 2:
            x, y = (self.spec.edges(axis) for axis in range(2))
            drawn = axes.pcolormesh(x, y, found.scores.T, cmap="RdBu_r", vmin=-4, vmax=4)
            figure.colorbar(drawn, label="later minus before, in standard deviations")
            axes.set_xlabel(names[0])
            axes.set_ylabel(names[1])
        else:
            raise ValueError("drift is drawn for one or two columns")
        axes.set_title(f"periods {first + 1} to {last} against 1 to {first}: p = {found.p_value:.3g}")
        return figure

    def _draw_shares(self, axes: Any, first: int, last: int) -> None:
        edges = self.spec.edges(0)
        early, late = self._weights(first), self._weights(last) - self._weights(first)
        for weights, name in ((early, f"up to period {first}"), (late, f"periods {first + 1} to {last}")):
            counts, sd = weights @ self.values, self.scale * float(np.linalg.norm(weights))
            size = max(float(counts.sum()), 1.0)
            line = axes.stairs(counts / size, edges, label=name)
            axes.fill_between(
                edges,
                np.append(counts - 2 * sd, 0) / size,
                np.append(counts + 2 * sd, 0) / size,
                step="post",
                alpha=0.2,
                color=line.get_edgecolor(),
            )

    # -- files -----------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Everything that was released, in numpy's format; nothing is pickled."""
        header = {
            "format": FORMAT,
            "spec": self.spec.to_dict(),
            "periods": self.periods,
            "scale": float(self.scale).hex(),
            "guarantee": self.guarantee.to_dict(),
            "columns": None if self.columns is None else list(self.columns),
        }
        file = io.BytesIO()
        np.savez_compressed(file, header=np.array(json.dumps(header)), values=self.values)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> ContinualRelease:
        """Inverse of :meth:`to_bytes`; refused where no release could have made it."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as data:
                header, values = json.loads(str(data["header"])), np.asarray(data["values"])
            if header["format"] != FORMAT:
                raise ValueError
            return cls._from_parts(header, values)
        except (KeyError, TypeError, ValueError, OSError):
            raise ValueError(f"path: not a release of format {FORMAT}, or damaged") from None

    @classmethod
    def _from_parts(cls, header: dict[str, Any], values: NDArray[Any]) -> ContinualRelease:
        spec = LeafSpec.from_dict(header["spec"])
        periods = check_count(header["periods"], "periods")
        shape_fits = values.ndim == 2 and values.shape[1] == spec.n_leaves and len(values) <= periods <= MOST_PERIODS
        scale = float.fromhex(header["scale"])
        if values.dtype != np.int64 or not shape_fits or not 0 < scale < math.inf:
            raise ValueError("values")
        names: Sequence[str] | None = header["columns"]
        columns = None if names is None else tuple(map(str, names))
        return cls(spec, periods, values, scale, Guarantee.from_dict(header["guarantee"]), columns)

    def save(self, path: str | Path) -> None:
        """Write what was released to a file, which may be published."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> ContinualRelease:
        """Read a file of :meth:`save`."""
        return cls.from_bytes(Path(path).read_bytes())


def _distance(counts: FloatArray, shares: FloatArray, sizes: FloatArray, noise: FloatArray) -> tuple[float, FloatArray]:
    """Sum of squared scores of the differences of two tables' shares, and the scores."""
    before, after = sizes
    difference = counts[1] / after - counts[0] / before
    privacy = noise[0, 0] / before**2 + noise[1, 1] / after**2 - 2 * noise[0, 1] / (before * after)
    variance = shares * (1 / before + 1 / after) + max(float(privacy), 0.0)
    scores = np.where(variance > 0, difference / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
    return float(np.sum(scores**2)), scores
