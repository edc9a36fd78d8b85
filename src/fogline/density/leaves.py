r"""Public leaves: a fine grid of cells over the box, and what two stages of counts on it publish.

Nothing here has seen a record. The box is cut into equal *leaves*, some thousands in all. On an axis whose values are
rounded to a step, a leaf holds one value, or the same number of neighbouring values where there are too many: a heap
of equal values is then a leaf of its own. The exact number of records in each leaf is the secret state of a sketch.

What is released are noisy counts in *boxes* of leaves, twice: a coarse pilot, then counts in a partition that was
chosen from the pilot's released numbers (:mod:`fogline.density.partition`). Both partitions tile the grid, so that a
record lies in one box of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_bounds, check_count, check_positive
from fogline.density.spec import PublicBox, check_steps, require_same

__all__ = ["MOST_LEAVES", "Boxes", "BucketCounts", "LeafRelease", "LeafSpec", "Noise", "check_tiling"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Boxes = NDArray[np.int64]
"""Half-open ranges of leaves [start, stop) per axis, of boxes that tile the grid; shape (boxes, axes, 2)."""

LEAVES_PER_AXIS: dict[int, int] = {1: 4096, 2: 256, 3: 64}
"""Leaves of a continuous axis, and most leaves of an axis with a step, by the number of axes."""

MOST_LEAVES = 2**18
"""Most leaves of a grid: a table of them takes 2 MiB."""

LARGEST_COUNT = 2**61
"""Noisy counts are clipped to plus or minus this by the mechanisms."""


@dataclass(frozen=True)
class LeafSpec(PublicBox):
    """Public grid of leaves that all holders of data must agree on before their counts can be merged.

    Parameters
    ----------
    bounds : tuple of (float, float)
        The box, one pair per axis.
    steps : tuple of float
        Public rounding step of each axis, 0 for a continuous one.
    leaves : tuple of int
        Number of leaves per axis.

    Examples
    --------
    >>> LeafSpec.plan([(0, 10)]).leaves
    (4096,)
    >>> ages = LeafSpec.plan([(0, 100), (0, 1)], steps=[1, None])
    >>> ages.leaves, float(ages.cell_widths[0]), ages.values_per_leaf
    ((101, 256), 1.0, (1, 0))
    """

    bounds: tuple[tuple[float, float], ...]
    steps: tuple[float, ...]
    leaves: tuple[int, ...]

    @classmethod
    def plan(cls, bounds: ArrayLike | None, steps: Any = None, *, leaves: Any = None) -> LeafSpec:
        """Check a user's wishes and complete them; every error names its parameter.

        Parameters
        ----------
        bounds : array-like of shape (d, 2)
        steps : None, float or list
            Public rounding step of each axis, None for a continuous one.
        leaves : sequence of int, optional
            Leaves per axis, at most; by default 4096, 256 or 64 for one, two or three axes.
        """
        box = check_bounds(bounds)
        _check_axes(len(box))
        widths = box[:, 1] - box[:, 0]
        step = check_steps(steps, widths * (1 + 2.0**-30))  # as wide as the axis is a flag: two values, two leaves
        entries = [LEAVES_PER_AXIS[len(box)]] * len(box) if leaves is None else list(leaves)
        if len(entries) != len(box):
            raise ValueError(f"leaves must have one number per axis ({len(box)}), got {len(entries)}")
        most = [check_count(n, "leaves") for n in entries]
        spec = cls(
            bounds=tuple((float(low), float(high)) for low, high in box),
            steps=tuple(map(float, step)),
            leaves=tuple(_leaves(w, s, n) for w, s, n in zip(widths.tolist(), step.tolist(), most, strict=True)),
        )
        spec._check_size()
        return spec

    # -- the grid ------------------------------------------------------------------------------------------

    @property
    def cells(self) -> tuple[int, ...]:
        """Number of cells per axis: the leaves."""
        return self.leaves

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the whole grid."""
        return math.prod(self.leaves)

    @cached_property
    def values_per_leaf(self) -> tuple[int, ...]:
        """How many values of a rounded axis share a leaf, 0 on a continuous axis."""
        sizes = zip(self.widths.tolist(), self.steps, self.leaves, strict=True)
        return tuple(-(-_values(w, s) // n) if s else 0 for w, s, n in sizes)

    @cached_property
    def cell_widths(self) -> FloatArray:
        """Width of a leaf per axis, in data units."""
        sizes = zip(self.widths.tolist(), self.steps, self.leaves, self.values_per_leaf, strict=True)
        return np.array([group * s if s else w / n for w, s, n, group in sizes])

    @cached_property
    def shift(self) -> FloatArray:
        """What is added before the floor: 0, or half a step in leaves, so that a value is in the middle of its part."""
        return np.array([0.5 / group if group else 0.0 for group in self.values_per_leaf])

    @cached_property
    def origin(self) -> FloatArray:
        """Centre of the first leaf."""
        return self.lower + (0.5 - self.shift) * self.cell_widths

    def edges(self, axis: int) -> FloatArray:
        """Edges of the leaves along an axis, in data units; with a step they lie between two values."""
        start = self.lower[axis] - self.shift[axis] * self.cell_widths[axis]
        return np.asarray(start + self.cell_widths[axis] * np.arange(self.leaves[axis] + 1))

    @cached_property
    def leaf_volume(self) -> float:
        """Volume of a leaf, in data units."""
        return float(np.prod(self.cell_widths))

    @property
    def readable(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest bandwidth of a linear reading: a leaf, and the box."""
        return np.minimum(self.cell_widths, self.widths), self.widths.copy()

    # -- agreement -----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; floats survive the round trip exactly."""
        return {
            "kind": "leaves",
            "bounds": [list(pair) for pair in self.bounds],
            "steps": list(self.steps),
            "leaves": list(self.leaves),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LeafSpec:
        """Inverse of :meth:`to_dict`; refused where no plan could have made it."""
        leaves = tuple(check_count(n, "leaves") for n in data["leaves"])
        steps = [float(s) for s in data["steps"]]
        spec = cls.plan([(float(low), float(high)) for low, high in data["bounds"]], steps, leaves=leaves)
        if spec.leaves != leaves:
            raise ValueError(f"leaves: {list(leaves)} leaves cannot hold equal numbers of values of these axes")
        return spec

    def require_same(self, other: Any) -> None:
        """Raise an error that names the first field in which two specifications differ."""
        require_same(self, other)

    def _check_size(self) -> None:
        if self.n_leaves > MOST_LEAVES:
            raise ValueError(f"leaves must be at most {MOST_LEAVES} in all, got {self.n_leaves}")


def _check_axes(d: int) -> None:
    if d > 3:
        raise ValueError(f"bounds has {d} axes: leaves serve up to 3; use features='random' or 'auto' for more")


def _values(width: float, step: float) -> int:
    """Number of values of an axis that is rounded to steps, from the lower bound on."""
    return math.floor(width / step + 0.5) + 1


def _leaves(width: float, step: float, most: int) -> int:
    """Leaves of an axis: as many as there may be, or as few as hold the same whole number of values each."""
    if not step:
        return most
    # every leaf holds equally many values, or some would look denser than others
    values = _values(width, step)
    return -(-values // -(-values // most))


@dataclass(frozen=True)
class Noise:
    r"""Law of the noise that was added to each count, on the integers.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Mass in proportion to :math:`e^{-|z|/b}` or to :math:`e^{-z^2/2s^2}`.
    scale : float
        The b or the s, in records.

    Examples
    --------
    >>> round(Noise("laplace", 10.0).variance, 2), Noise("gaussian", 10.0).variance
    (199.83, 100.0)
    """

    kind: Literal["laplace", "gaussian"]
    scale: float

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian"):
            raise ValueError(f"kind must be 'laplace' or 'gaussian', got {self.kind!r}")
        check_positive(self.scale, "scale")

    @property
    def variance(self) -> float:
        """Variance of the discrete law."""
        if self.kind == "laplace":
            inverse = 1 / self.scale
            return 2 * math.exp(-inverse) / math.expm1(-inverse) ** 2
        if self.scale > 4:  # off by less than exp(-2 pi^2 16) of it: nothing that a double could hold
            return self.scale**2
        places = np.arange(1, 64) ** 2
        mass = np.exp(-places / (2 * self.scale**2))
        return float(2 * np.sum(places * mass) / (1 + 2 * np.sum(mass)))

    @property
    def sd(self) -> float:
        """Standard deviation of the discrete law."""
        return math.sqrt(self.variance)


def check_tiling(boxes: Any, leaves: tuple[int, ...]) -> Boxes:
    """Return boxes as an array if they tile a grid: no leaf is left out and none is in two. Integers only.

    Parameters
    ----------
    boxes : int array of shape (boxes, axes, 2)
    leaves : tuple of int
        Number of leaves per axis.

    Examples
    --------
    >>> check_tiling([[[0, 3]], [[3, 8]]], (8,)).shape
    (2, 1, 2)
    >>> check_tiling([[[0, 3]], [[2, 8]]], (8,))
    Traceback (most recent call last):
    ValueError: boxes must tile the leaves: each leaf in one box
    """
    array = np.asarray(boxes)
    if (
        array.dtype.kind not in "iu"
        or array.dtype == np.uint64
        or array.ndim != 3
        or array.shape[1:] != (len(leaves), 2)
    ):
        raise ValueError(f"boxes must be whole numbers of shape (boxes, {len(leaves)}, 2)")
    array = array.astype(np.int64)
    start, stop = array[..., 0], array[..., 1]
    if np.any(start < 0) or np.any(start >= stop) or np.any(stop > np.array(leaves)):
        raise ValueError("boxes must be ranges start < stop of leaves of the grid")
    # How many boxes hold each leaf: signs at the corners of the boxes, summed along each axis.
    cover = np.zeros([n + 1 for n in leaves], dtype=np.int64)
    for corner in np.ndindex(*(2,) * len(leaves)):
        place = tuple(array[:, axis, side] for axis, side in enumerate(corner))
        np.add.at(cover, place, (-1) ** sum(corner))
    for axis in range(len(leaves)):
        np.cumsum(cover, axis=axis, out=cover)
    if np.any(cover[tuple(slice(0, n) for n in leaves)] != 1):
        raise ValueError("boxes must tile the leaves: each leaf in one box")
    return array


@dataclass(frozen=True, eq=False)
class BucketCounts:
    """What one stage released: noisy counts of records in boxes of leaves.

    Parameters
    ----------
    boxes : int64 array of shape (boxes, axes, 2)
        Half-open ranges of leaves; they tile the grid.
    counts : int64 array of shape (boxes,)
        Released numbers.
    noise : Noise
        Law of the noise in each.

    Examples
    --------
    >>> stage = BucketCounts(np.array([[[0, 3]], [[3, 8]]]), np.array([40, 2]), Noise("laplace", 2.0))
    >>> stage.total, stage.sizes.tolist()
    (42, [3, 5])
    """

    boxes: Boxes
    counts: IntArray
    noise: Noise

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BucketCounts):
            return NotImplemented
        return (
            self.noise == other.noise
            and np.array_equal(self.boxes, other.boxes)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def total(self) -> int:
        """Sum of all released counts."""
        # as Python integers: many counts near 2^61 could wrap
        return sum(self.counts.tolist())

    @property
    def total_variance(self) -> float:
        """Variance of the noise in :attr:`total`."""
        return len(self.counts) * self.noise.variance

    @property
    def sizes(self) -> IntArray:
        """Number of leaves in each box."""
        return np.asarray(np.prod(self.boxes[..., 1] - self.boxes[..., 0], axis=1))

    def to_arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Arrays of numbers and text, for a file."""
        # hexadecimal: a scale must come back to the last bit
        noise = np.array([self.noise.kind, float(self.noise.scale).hex()])
        boxes = self.boxes.astype(np.uint32)  # below 2^18, see MOST_LEAVES
        return {f"{prefix}_boxes": boxes, f"{prefix}_counts": self.counts, f"{prefix}_noise": noise}

    @classmethod
    def from_arrays(cls, spec: LeafSpec, arrays: Mapping[str, NDArray[Any]], prefix: str) -> BucketCounts:
        """Inverse of :meth:`to_arrays`; refused where no release on these leaves could have made it."""
        boxes = check_tiling(arrays[f"{prefix}_boxes"], spec.leaves)
        counts = np.asarray(arrays[f"{prefix}_counts"])
        if counts.dtype.kind != "i" or counts.shape != (len(boxes),) or np.any(np.abs(counts) > LARGEST_COUNT):
            raise ValueError(f"{prefix}_counts must be one whole number per box")
        kind, scale = (str(word) for word in arrays[f"{prefix}_noise"])
        return cls(boxes, counts.astype(np.int64), Noise(kind, float.fromhex(scale)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class LeafRelease:
    """Everything that a release in two stages published.

    Parameters
    ----------
    spec : LeafSpec
    pilot : BucketCounts
        Of the first stage, on a partition that was fixed before.
    counts : BucketCounts
        Of the second, on a partition that was chosen from the released pilot.

    Examples
    --------
    >>> spec = LeafSpec.plan([(0, 1)], leaves=[4])
    >>> halves = BucketCounts(np.array([[[0, 2]], [[2, 4]]]), np.array([9, 4]), Noise("laplace", 4.0))
    >>> whole = BucketCounts(np.array([[[0, 4]]]), np.array([12]), Noise("laplace", 1.0))
    >>> release = LeafRelease(spec, pilot=halves, counts=whole)
    >>> round(release.total, 2), LeafRelease.from_arrays(spec, release.to_arrays()) == release
    (12.03, True)
    """

    spec: LeafSpec
    pilot: BucketCounts
    counts: BucketCounts

    @property
    def stages(self) -> tuple[BucketCounts, BucketCounts]:
        """Both stages, in order."""
        return self.pilot, self.counts

    @property
    def total(self) -> float:
        """Number of records, from both stages by inverse variance; it may be negative."""
        precision = [1 / max(stage.total_variance, 1e-300) for stage in self.stages]
        return sum(p * stage.total for p, stage in zip(precision, self.stages, strict=True)) / sum(precision)

    @property
    def total_sd(self) -> float:
        """Standard deviation of the noise in :attr:`total`."""
        return 1 / math.sqrt(sum(1 / max(stage.total_variance, 1e-300) for stage in self.stages))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of numbers and text, for a file; the specification goes beside them."""
        return {**self.pilot.to_arrays("pilot"), **self.counts.to_arrays("counts")}

    @classmethod
    def from_arrays(cls, spec: LeafSpec, arrays: Mapping[str, NDArray[Any]]) -> LeafRelease:
        """Inverse of :meth:`to_arrays`; refused where no release on these leaves could have made them."""
        pilot, counts = (BucketCounts.from_arrays(spec, arrays, prefix) for prefix in ("pilot", "counts"))
        return cls(spec, pilot, counts)
