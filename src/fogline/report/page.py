"""The report: one HTML file that needs nothing else, for people who were not there when it was made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fogline.report.frame import render_page
from fogline.report.kinds import finder_of, kind_of

__all__ = ["document", "find", "render_report", "write_report"]


def find(estimator: Any, columns: Sequence[str] | None = None) -> Any:
    """Read what a page shows from a fitted estimator; costs no privacy.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit([[0.5]] * 500)
    >>> find(found, columns=["share"]).columns
    ('share',)
    """
    return finder_of(estimator)(estimator, columns)


def document(findings: Any, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit([[0.5]] * 500)
    >>> document(find(found))["format"]
    'fogline-modes-1'
    """
    found: dict[str, Any] = kind_of(findings).get("document")(findings, command)
    return found


def write_report(
    estimator: Any,
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    title: str | None = None,
    command: str | None = None,
) -> Path:
    """Write a page about a fitted estimator; costs no privacy.

    Parameters
    ----------
    estimator : PrivateModes, PrivateModeClustering, PrivateModalRegression, PrivateHellinger or PrivateGaussianMixture
        Fitted.
    path : str or Path
        Where to write; a file that exists is replaced.
    columns : sequence of str, optional
        Names for the axes; by default those of the frame or file it was fitted on; of a regression
        those of x, then that of y.
    title : str, optional
    command : str, optional
        What the reader can type to do the same; by default the Python call.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from fogline import PrivateModes
    >>> from fogline.datasets.tables import load_faithful
    >>> table = load_faithful()
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=table.bounds, steps=table.steps).fit(table.X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_report(found, f"{folder}/report.html", columns=table.columns)
    ...     "Certified" in written.read_text(encoding="utf-8")
    True
    """
    target = Path(path)
    page = render_report(find(estimator, columns), title=title, command=command)
    target.write_text(page, encoding="utf-8")
    return target


def render_report(findings: Any, *, title: str | None = None, command: str | None = None) -> str:
    """Return the page as a string.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit([[0.5]] * 500)
    >>> render_report(find(found), title="Shares").startswith("<!doctype html>")
    True
    """
    kind = kind_of(findings)
    content = kind.get("content")(findings)
    words = title or kind.get("title")(findings)
    return render_page(kind.template, findings.estimator, content, title=words, command=command)
