"""Histograms of the DPBench study as populations, where a copy is at hand.

The file holds counts on 4096 cells (one column) or 256 x 256 cells (names that end in ``_2d``). Each histogram is
taken as a distribution that is even inside each cell, from which records are drawn. The environment variable
``FOGLINE_DPBENCH`` names the file; by default it is looked for beside the project. Without it there are no such sets.

References
----------
.. [1] M. Hay, A. Machanavajjhala, G. Miklau, Y. Chen, D. Zhang, "Principled evaluation of differentially private
   algorithms using DPBench", SIGMOD 2016.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fogline_research.datasets.columns import Half

__all__ = ["HistogramSet", "dpbench_sets"]

Array = NDArray[np.float64]

_BESIDE = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "dpbench" / "histograms.npz"


@dataclass(frozen=True, eq=False)
class HistogramSet:
    """A histogram as a population.

    Attributes
    ----------
    name : str
    half : {"tune", "judge"}
    masses : ndarray with d axes
        Of equal cells; they sum to 1.

    Examples
    --------
    >>> made = HistogramSet("made", "tune", np.array([0.25, 0.75]))
    >>> made.draw(4, np.random.default_rng(0)).shape, made.bounds, made.cell_masses(1)
    ((4, 1), ((0.0, 2.0),), array([1.]))
    """

    name: str
    half: Half
    masses: Array
    kind: str = "DPBench"
    steps: None = None
    atomic: bool = False

    @property
    def d(self) -> int:
        """Number of axes."""
        return self.masses.ndim

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public bounds, one pair per axis: a unit per cell."""
        return tuple((0.0, float(size)) for size in self.masses.shape)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Draw records of shape (n, d), even inside each cell."""
        cells = rng.choice(self.masses.size, size=n, p=self.masses.ravel())
        return np.stack(np.unravel_index(cells, self.masses.shape), axis=1) + rng.random((n, self.d))

    def cell_masses(self, cells: int) -> Array:
        """Mass of equal cells of the box; `cells` must divide the histogram's own."""
        masses = self.masses
        for axis, size in enumerate(masses.shape):
            if size % cells:
                raise ValueError(f"cells must divide {size}, got {cells}")
            masses = np.add.reduceat(masses, np.arange(0, size, size // cells), axis=axis)
        return masses


def dpbench_sets(path: str | Path | None = None) -> tuple[HistogramSet, ...]:
    """Load the histograms in the order of their names, which fall to the halves in turn.

    Parameters
    ----------
    path : path, optional
        By default ``FOGLINE_DPBENCH``, else beside the project.

    Returns
    -------
    tuple of HistogramSet
        Empty where there is no such file.
    """
    file = Path(path or os.environ.get("FOGLINE_DPBENCH") or _BESIDE)
    if not file.exists():
        return ()
    halves: tuple[Half, Half] = ("tune", "judge")
    with np.load(file, allow_pickle=False) as loaded:
        return tuple(
            HistogramSet(name, halves[place % 2], loaded[name] / loaded[name].sum())
            for place, name in enumerate(sorted(loaded.files))
        )
