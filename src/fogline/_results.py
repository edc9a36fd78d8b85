"""What every result can be asked for: a summary, a picture, a frame, a page, a document.

The words and drawings belong to ``fogline.report``, which stands above the densities and estimators that it describes.
So a result does not import it: it calls it by name when a user asks, which is the one call upward of the house
(``[upward]`` in ``tests/layers.toml``).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Output = Literal["pandas", "polars"] | None
"""Which frame points come in; an array if None."""

__all__ = [
    "AnyReading",
    "Origin",
    "Output",
    "ReadingResults",
    "Results",
    "check_output",
    "column_words",
    "framed",
    "read_from",
]


def _report() -> ModuleType:
    return importlib.import_module("fogline.report.results")


class Results:
    """Mixin of whatever holds released values: everything below reads them, costs nothing, and names the columns.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> from fogline.datasets.tables import load_faithful
    >>> bounds = {"eruptions": (0.5, 6.5), "waiting": (30, 110)}
    >>> found = PrivateModes(epsilon=2.0, delta=1e-5, bounds=bounds).fit(load_faithful().X)
    >>> print(str(found.summary()).splitlines()[0].strip())
    Modes of eruptions and waiting
    """

    def summary(self) -> Any:
        """Table of the results for people: values, standard errors, intervals, the released count, the guarantee.

        Returns
        -------
        fogline.report.results.Summary
            Prints as text, shows as HTML in a notebook.
        """
        self._require_results()
        return _report().summary_of(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the result with matplotlib; axes have the names of the columns and span the public bounds.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; for three columns a sequence of three, one per pair.

        Returns
        -------
        matplotlib axes, or an array of three
        """
        self._require_results()
        return _report().plot_of(self, ax)

    def to_frame(self) -> pd.DataFrame:
        """Results as a pandas frame, one row per finding."""
        self._require_results()
        frame: pd.DataFrame = _report().frame_of(self)
        return frame

    def to_json(self) -> str:
        """Results as a JSON document, which has everything that the page says."""
        self._require_results()
        return str(_report().json_of(self))

    def report(self, path: str | Path, *, title: str | None = None, command: str | None = None) -> Path:
        """Write a page about the result: one HTML file that needs nothing else.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that exists is replaced.
        title : str, optional
        command : str, optional
            What the reader can type to do the same; by default the Python call.

        Returns
        -------
        Path
            The file.
        """
        self._require_results()
        written: Path = _report().page_of(self, path, title=title, command=command)
        return written

    def _repr_html_(self) -> str | None:
        """Show the result in a notebook."""
        return str(_report().html_of(self))

    def _require_results(self) -> None:
        """Raise an error where there is nothing to show yet."""


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a reading comes from: the estimator that reads the same from the same density says and draws it.

    Attributes
    ----------
    density : PrivateDensity
    estimator : str
        Name of the estimator's class.
    parameters : dict
        Of the estimator.
    arguments : dict
        Of its ``read``, beside the density.
    """

    density: Any
    estimator: str
    parameters: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)


class ReadingResults(Results):
    """Mixin of what a density's own methods return: modes, clusters, branches, fits, mixtures.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 8)], features="leaves").update([[2.0]] * 900).release(epsilon=1.0)
    >>> print(str(density.mixture(1).summary()).splitlines()[0].strip())
    A mixture for x1
    """

    @property
    def origin(self) -> Origin | None:
        """Where the reading comes from; None for one that was put together by hand."""
        found: Origin | None = self.__dict__.get("_origin")
        return found

    def _require_results(self) -> None:
        if self.origin is None:
            raise TypeError(
                f"this {type(self).__name__} was not read from a density: ask the estimator that made it, "
                "or a method of PrivateDensity"
            )

    def _repr_html_(self) -> str | None:
        return None if self.origin is None else super()._repr_html_()


AnyReading = TypeVar("AnyReading", bound=ReadingResults)


def read_from(origin: Origin, reading: AnyReading) -> AnyReading:
    """Note where a reading comes from, and return it."""
    # readings are frozen values, and this is no part of their value: two readings of one release are the same
    object.__setattr__(reading, "_origin", origin)
    return reading


def column_words(reading: ReadingResults, d: int) -> tuple[str, ...]:
    """Names of the columns that a reading is of.

    Examples
    --------
    >>> column_words(ReadingResults(), 2)
    ('column 1', 'column 2')
    """
    origin = reading.origin
    names: Sequence[str] = () if origin is None else origin.density.column_names
    return tuple(names) if len(names) == d else tuple(f"column {k + 1}" for k in range(d))


def framed(points: Any, columns: Sequence[str] | None, output: Output) -> Any:
    """Return points as an array, or as a frame with the names of their columns.

    What comes out does not depend on where a release was made, from a frame or from a file: a frame comes to whoever
    asks for one, as from scikit-learn's ``set_output``.

    Parameters
    ----------
    points : array of shape (k, d)
    columns : sequence of str, optional
        Names; x1, x2 and so on where there are none.
    output : {"pandas", "polars"}, optional

    Examples
    --------
    >>> import numpy as np
    >>> framed(np.array([[61.0, 2.5]]), ["age", "stay"], "pandas").columns.tolist()
    ['age', 'stay']
    >>> framed(np.array([[61.0, 2.5]]), ["age", "stay"], None).shape
    (1, 2)
    """
    library = check_output(output)
    if library is None:
        return points
    names = [f"x{k + 1}" for k in range(points.shape[1])] if columns is None else list(columns)
    return library.DataFrame({name: points[:, k] for k, name in enumerate(names)})


def check_output(output: Output) -> ModuleType | None:
    """Return the library of the frames that are asked for, before anything is drawn; None for arrays.

    Examples
    --------
    >>> check_output("excel")
    Traceback (most recent call last):
    ValueError: output must be None, 'pandas' or 'polars', got 'excel'
    """
    if output is None:
        return None
    if output not in ("pandas", "polars"):
        raise ValueError(f"output must be None, 'pandas' or 'polars', got {output!r}")
    try:
        return importlib.import_module(output)
    except ImportError:
        raise ImportError(f"output={output!r} needs {output}: pip install {output}") from None
