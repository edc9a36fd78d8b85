"""What every result can be asked for: a summary, a picture, a frame, a page, a document.

The words and drawings belong to ``fogline.report``, which stands above the densities and estimators that it describes.
So a result does not import it: it calls it by name when a user asks, which is the one call upward of the house
(``[upward]`` in ``tests/layers.toml``).
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Results"]


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
