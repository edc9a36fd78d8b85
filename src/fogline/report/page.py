"""The report: one HTML file that needs nothing else, for people who were not there when it was made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fogline.density.random_spec import RandomSpec
from fogline.estimators import (
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
)
from fogline.report.clusters import ClusterFindings, cluster_content, cluster_document, find_clusters
from fogline.report.findings import Findings, find_modes, modes_document
from fogline.report.fit import FitFindings, find_fit, fit_content, fit_document
from fogline.report.frame import listed, render_page
from fogline.report.mixture import MixtureFindings, find_mixture, mixture_content, mixture_document
from fogline.report.modes import WideFindings, find_wide_modes, modes_content, wide_modes_content, wide_modes_document
from fogline.report.regression import BranchFindings, branch_content, branch_document, find_branches

__all__ = ["document", "find", "render_report", "write_report"]

Estimator = PrivateModes | PrivateModeClustering | PrivateModalRegression | PrivateHellinger | PrivateGaussianMixture
MOST_WORDS = 44
"""Letters of names in a title."""

AnyFindings = Findings | WideFindings | ClusterFindings | BranchFindings | FitFindings | MixtureFindings


def find(estimator: Estimator, columns: Sequence[str] | None = None) -> Any:
    """Read what a page shows from a fitted estimator; costs no privacy.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit([[0.5]] * 500)
    >>> find(found, columns=["share"]).columns
    ('share',)
    """
    if isinstance(estimator, PrivateModeClustering):
        return find_clusters(estimator, columns)
    if isinstance(estimator, PrivateModalRegression):
        return find_branches(estimator, columns)
    if isinstance(estimator, PrivateHellinger):
        return find_fit(estimator, columns)
    if isinstance(estimator, PrivateGaussianMixture):
        return find_mixture(estimator, columns)
    wide = isinstance(estimator.density_.spec, RandomSpec)
    return find_wide_modes(estimator, columns) if wide else find_modes(estimator, columns)


def document(findings: AnyFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit([[0.5]] * 500)
    >>> document(find(found))["format"]
    'fogline-modes-1'
    """
    if isinstance(findings, ClusterFindings):
        return cluster_document(findings, command)
    if isinstance(findings, BranchFindings):
        return branch_document(findings, command)
    if isinstance(findings, FitFindings):
        return fit_document(findings, command)
    if isinstance(findings, MixtureFindings):
        return mixture_document(findings, command)
    if isinstance(findings, WideFindings):
        return wide_modes_document(findings, command)
    return modes_document(findings, command)


def write_report(
    estimator: Estimator,
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


def render_report(findings: AnyFindings, *, title: str | None = None, command: str | None = None) -> str:
    """Return the page as a string.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit([[0.5]] * 500)
    >>> render_report(find(found), title="Shares").startswith("<!doctype html>")
    True
    """
    template, content, words = _page(findings)
    return render_page(template, findings.estimator, content, title=title or words, command=command)


def _page(findings: AnyFindings) -> tuple[str, dict[str, Any], str]:
    """Template, content and default title of the page about some findings."""
    if isinstance(findings, ClusterFindings):
        return "clusters.html.j2", cluster_content(findings), f"Clusters of {_named(findings.columns)}"
    if isinstance(findings, BranchFindings):
        names, response = findings.columns[:-1], findings.columns[-1]
        return "regression.html.j2", branch_content(findings), f"{response} by {listed(names)}"
    if isinstance(findings, FitFindings):
        return "fit.html.j2", fit_content(findings), findings.title
    if isinstance(findings, MixtureFindings):
        return "mixture.html.j2", mixture_content(findings), f"A mixture for {_named(findings.columns)}"
    if isinstance(findings, WideFindings):
        return "wide_modes.html.j2", wide_modes_content(findings), f"The shape of {len(findings.columns)} columns"
    return "modes.html.j2", modes_content(findings), f"The shape of {listed(findings.columns)}"


def _named(columns: Sequence[str]) -> str:
    """Return the names of columns, or their number where that would be long."""
    words = listed(columns)
    return words if len(words) <= MOST_WORDS else f"{len(columns)} columns"
