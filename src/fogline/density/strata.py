r"""One density for each public category, from one noisy release.

The exact sums of the strata stand one after the other in one integer vector. A record is in one stratum, so adding or
removing it moves the vector by no more than it would move the sums of a sketch of all records: strata cost the maximum
of their parts, not the sum. Replacing it may move two strata, at right angles. Noise is added once, to the
whole vector; each stratum's part of it is a :class:`~fogline.PrivateDensity`. The proof is in ``strata.proof.md``
beside this file.

Picture of strata, from released values: densities at one bandwidth, with bands of the privacy noise.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fogline._results import Origin, Results, read_from
from fogline.accounting.guarantee import Guarantee
from fogline.density.comparison import CLEAR_COUNT, ShapeComparison, compare_shapes
from fogline.density.counted_records import is_nothing, release_message
from fogline.density.leaves import LeafRelease, LeafSpec
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import CellSpec, Spec, spec_from_dict

if TYPE_CHECKING:
    from fogline.density.modes.on_grid import ModeTable

__all__ = ["Strata", "common_bandwidth", "plot_strata", "strata_message", "visible_names"]

FORMAT = "fogline-strata-1"
LEAF_FORMAT = "fogline-strata-leaves-1"


MOST_NAMED = 4
"""Most categories that a message names."""


class Strata(Results, Mapping[str, PrivateDensity]):
    """Released densities by category; safe to publish.

    Made by :func:`fogline.private_strata`. ``strata["f"]`` is the density of one category; everything that can be asked
    of it is free.

    Attributes
    ----------
    guarantee : Guarantee
        Of all strata together; that of each is the same.
    receipt : dict or None
    columns : tuple of str or None
    weight_bound : float or None
        With survey weights, their bound. Counts are then sums of weights over the bound: at most the number of records,
        and at most the effective sample size, so that errors are not understated.
    message : str
        What to check, where the released counts or the budget give cause; else empty. It stays with the object that
        :func:`fogline.private_strata` returned and is not in the file.
    """

    def __init__(
        self,
        spec: Spec,
        names: Sequence[str],
        released: NDArray[np.int64],
        *,
        scale: float,
        guarantee: Guarantee,
        columns: Sequence[str] | None = None,
        weight_bound: float | None = None,
        receipt: dict[str, Any] | None = None,
        message: str = "",
        leaves: Sequence[LeafRelease] | None = None,
    ) -> None:
        self.spec = spec
        self.names = tuple(names)
        self.leaves = None if leaves is None else tuple(leaves)
        self.guarantee = guarantee
        self.columns = None if columns is None else tuple(columns)
        self.weight_bound = weight_bound
        self.receipt = receipt
        self.message = message
        self._scale = float(scale)
        if self.leaves is not None:
            self._released = np.asarray(released, dtype=np.int64)
            self._densities = {
                name: PrivateDensity.from_leaves(part, guarantee=guarantee, receipt=receipt, columns=columns)
                for name, part in zip(self.names, self.leaves, strict=True)
            }
            return
        self._released = np.asarray(released, dtype=np.int64).reshape(len(self.names), -1)
        self._densities = {
            name: PrivateDensity(
                replace(spec), part, scale=scale, guarantee=guarantee, receipt=receipt, columns=columns
            )
            for name, part in zip(self.names, self._released, strict=True)
        }

    @classmethod
    def from_leaves(
        cls,
        names: Sequence[str],
        leaves: Sequence[LeafRelease],
        *,
        guarantee: Guarantee,
        columns: Sequence[str] | None = None,
        receipt: dict[str, Any] | None = None,
    ) -> Strata:
        """Strata of a release in two stages on leaves, one part for each name."""
        counts = np.concatenate([part.counts.counts for part in leaves])
        scale = leaves[0].counts.noise.scale
        more: Any = {"guarantee": guarantee, "columns": columns, "receipt": receipt, "leaves": leaves}
        return cls(leaves[0].spec, names, counts, scale=scale, **more)

    def __getitem__(self, name: str) -> PrivateDensity:
        return self._densities[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strata) and self.to_bytes() == other.to_bytes()

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: about {self[name].count:.0f}" for name in self.names)
        return f"Strata({counts}; {self.guarantee})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.to_bytes(), self.message)

    @property
    def count(self) -> float:
        """Released number of records in all strata together, at least 1."""
        return max(sum(density.total for density in self._densities.values()), 1.0)

    @property
    def count_sd(self) -> float:
        """Standard deviation of the noise in :attr:`count`."""
        return math.hypot(*(density.count_sd for density in self._densities.values()))

    def modes(self, n_modes: int | None = None, *, level: float = 0.05) -> dict[str, ModeTable]:
        """Modes of each stratum, as :meth:`fogline.PrivateDensity.modes` reads them."""
        return {name: self[name].modes(n_modes, level=level) for name in self.names}

    def compare(self, first: str, second: str, *, simulations: int | None = None) -> ShapeComparison:
        """Test whether two strata have the same shape; see :func:`fogline.density.comparison.compare_shapes`.

        Its page, summary and frame also have the distances and differences of :meth:`fogline.PrivateDensity.compare`.
        """
        for name in (first, second):
            if name not in self._densities:
                raise KeyError(f"there is no stratum {name!r}; there are {', '.join(self.names)}")
        origin = Origin(self[first], "compare", arguments={"other": self[second], "names": (first, second)})
        return read_from(origin, compare_shapes(self[first], self[second], simulations=simulations))

    def plot(self, ax: Any = None, *, bandwidth: Any = None, names: Sequence[str] | None = None) -> Any:
        """Draw the densities over each other (one column) or side by side (two); needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            For one column.
        bandwidth : float or array, optional
            One for all, so that they can be compared; by default the largest that any stratum would have. Strata on
            leaves are drawn as their posterior where none is given.
        names : sequence of str, optional
            Which strata; by default all whose count is clear of the noise.

        Returns
        -------
        matplotlib figure
        """
        return plot_strata(self, bandwidth, names, ax)

    # -- files ----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the release to one file (JSON and integers, no pickle)."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Strata:
        """Read a release written by :meth:`save`."""
        return cls.from_bytes(Path(path).read_bytes())

    def to_bytes(self) -> bytes:
        """The file that :meth:`save` writes."""
        header = {
            "format": FORMAT if self.leaves is None else LEAF_FORMAT,
            "spec": self.spec.to_dict(),
            "names": self.names,
            "scale": self._scale.hex(),
            "guarantee": self.guarantee.to_dict(),
            "columns": self.columns,
            "weight_bound": self.weight_bound,
            "receipt": self.receipt,
        }
        arrays: Any = {"released": self._released} if self.leaves is None else self._leaf_arrays(self.leaves)
        file = io.BytesIO()
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
        return file.getvalue()

    @staticmethod
    def _leaf_arrays(leaves: Sequence[LeafRelease]) -> dict[str, Any]:
        parts = enumerate(part.to_arrays() for part in leaves)
        return {f"stratum_{i}_{name}": array for i, arrays in parts for name, array in arrays.items()}

    @classmethod
    def from_bytes(cls, data: bytes, *, receipt: dict[str, Any] | None = None) -> Strata:
        """Inverse of :meth:`to_bytes`; a receipt given here takes the place of the one inside."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as content:
                header = json.loads(str(content["header"]))
                released = content["released"] if header.get("format") == FORMAT else None
                is_leaves = header.get("format") == LEAF_FORMAT
                arrays = {name: content[name] for name in content.files} if is_leaves else {}
        except (OSError, ValueError, KeyError, EOFError):
            raise ValueError(f"path: not strata of format {FORMAT}") from None
        if is_leaves:
            return cls._from_leaf_file(header, arrays, header["receipt"] if receipt is None else receipt)
        if released is None:
            raise ValueError(f"path: not strata of format {FORMAT}: {header.get('format')!r}")
        return cls(
            spec_from_dict(header["spec"]),
            header["names"],
            released,
            scale=float.fromhex(header["scale"]),
            guarantee=Guarantee.from_dict(header["guarantee"]),
            columns=header["columns"],
            weight_bound=header["weight_bound"],
            receipt=header["receipt"] if receipt is None else receipt,
        )

    @classmethod
    def _from_leaf_file(cls, header: dict[str, Any], arrays: dict[str, Any], receipt: dict[str, Any] | None) -> Strata:
        spec = spec_from_dict(header["spec"])
        try:
            if not isinstance(spec, LeafSpec):
                raise ValueError("spec must be one of leaves")
            parts = [
                {name.removeprefix(f"stratum_{i}_"): array for name, array in arrays.items()}
                for i in range(len(header["names"]))
            ]
            leaves = [LeafRelease.from_arrays(spec, part) for part in parts]
        except (KeyError, ValueError):
            raise ValueError(f"path: strata of format {LEAF_FORMAT} are damaged") from None
        return cls.from_leaves(
            header["names"],
            leaves,
            guarantee=Guarantee.from_dict(header["guarantee"]),
            columns=header["columns"],
            receipt=receipt,
        )


def _restored(data: bytes, message: str) -> Strata:
    strata = Strata.from_bytes(data)
    strata.message = message
    return strata


def strata_message(strata: Strata, categories: Sequence[str], expect_records: int | None = None) -> str:
    """What to check, from released counts: too few records in all, or in some category.

    Parameters
    ----------
    strata : Strata
    categories : sequence of str
        Strata that were asked for by name, without the one of all other records.
    expect_records : int, optional
        How many records are expected in all strata together.
    """
    few = [name for name in categories if is_nothing(strata[name].count, strata[name].count_sd)]
    found = ""
    if few and not is_nothing(strata.count, strata.count_sd):
        shown = [f"{name!r} ({strata[name].count:.0f} ± {strata[name].count_sd:.0f})" for name in few[:MOST_NAMED]]
        more = f" and {len(few) - len(shown)} more" if len(few) > len(shown) else ""
        found = (
            f"the release counts no more records than noise in {', '.join(shown)}{more}; check that "
            f"{'this category is' if len(few) == 1 else 'these categories are'} spelled as in the data"
        )
    counted = (strata.count, strata.count_sd)
    return release_message(found, strata.guarantee, *counted, expect_records, columns=strata.spec.d)


def visible_names(strata: Strata) -> tuple[str, ...]:
    """Strata whose released count is clear of the noise; all of them if none is."""
    clear = tuple(name for name in strata if strata[name].count >= CLEAR_COUNT * strata[name].count_sd)
    return clear or strata.names


def common_bandwidth(strata: Strata, names: Sequence[str]) -> Any:
    """Half as much again as the largest bandwidth at which any of these would be read: quiet enough to compare."""
    largest = max((strata[name].bandwidth for name in names), key=lambda bandwidth: float(bandwidth[0]))
    return np.minimum(1.5 * largest, strata.spec.readable[1])


def plot_strata(strata: Strata, bandwidth: Any, names: Sequence[str] | None, ax: Any) -> Any:
    """Draw on matplotlib axes, made here if None; limits come from the bounds."""
    if not isinstance(strata.spec, CellSpec) or strata.spec.d > 2:
        raise ValueError("plot draws one or two columns; with more, draw slices of pdf()")
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'fogline[plot]'") from None
    shown = visible_names(strata) if names is None else tuple(names)
    unknown = [name for name in shown if name not in strata]
    if unknown or not shown:
        raise ValueError(f"names must be strata of {', '.join(strata.names)}")
    posterior = bandwidth is None and strata.leaves is not None
    h = bandwidth if posterior or bandwidth is not None else common_bandwidth(strata, shown)
    if strata.spec.d == 1:
        return _lines(strata, shown, h, ax, plt)
    if ax is not None:
        raise ValueError("ax is for one column; two columns have a panel for each stratum")
    return _panels(strata, shown, h, plt)


def _lines(strata: Strata, names: Sequence[str], h: Any, ax: Any, plt: Any) -> Any:
    axes = plt.subplots()[1] if ax is None else ax
    for name in names:
        x, values, low, high = _line(strata[name], h)
        (line,) = axes.plot(x, values, label=f"{name} (about {strata[name].count:.0f})")
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_xlim(*strata.spec.bounds[0])
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("x" if strata.columns is None else strata.columns[0])
    axes.set_ylabel("density")
    told = "bands hold the whole curve in 95%" if h is None else "bands: two deviations of the privacy noise"
    axes.set_title(told, fontsize="small", loc="left")
    axes.legend()
    return axes.figure


def _line(density: PrivateDensity, h: Any) -> tuple[Any, Any, Any, Any]:
    """Places, density and both sides of a band: of the posterior, or of the kernel at a bandwidth."""
    if h is None:
        band = density.posterior.band(0)
        return band.x, band.value, band.low, band.high
    grid, noise = density.grid(h), 2 * density.noise_sd(h)
    return grid.axes[0], grid.values, grid.values - noise, grid.values + noise


def _plane(density: PrivateDensity, h: Any) -> Any:
    """Density on a grid of two columns: of the posterior, or of the kernel at a bandwidth."""
    if h is not None:
        return density.grid(h).values
    posterior = density.posterior
    return posterior.masses().estimate / (posterior.axes[0].width * posterior.axes[1].width)


def _panels(strata: Strata, names: Sequence[str], h: Any, plt: Any) -> Any:
    figure, panels = plt.subplots(1, len(names), sharex=True, sharey=True, squeeze=False, figsize=(4 * len(names), 4))
    planes = [_plane(strata[name], h) for name in names]
    top = max(float(np.quantile(plane, 0.999) if h is None else plane.max()) for plane in planes)
    (left, right), (bottom, upper) = strata.spec.bounds
    for axes, name, plane in zip(panels[0], names, planes, strict=True):
        axes.imshow(
            np.maximum(plane.T, 0.0),
            extent=(left, right, bottom, upper),
            origin="lower",
            aspect="auto",
            cmap="Blues",
            vmin=0.0,
            vmax=top if top > 0 else 1.0,
        )
        axes.set_title(f"{name} (about {strata[name].count:.0f})")
        if strata.columns is not None:
            axes.set_xlabel(strata.columns[0])
    if strata.columns is not None:
        panels[0, 0].set_ylabel(strata.columns[1])
    return figure
