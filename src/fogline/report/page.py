"""The report: one HTML file that needs nothing else, for people who were not there when it was made.

Each kind of release is registered once, in ``FINDERS`` and ``KINDS``. A kind's functions are named, not imported:
``fogline modes --json`` loads no drawing, and no page of another kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from fogline._results import ReadingResults
from fogline.report.frame import FittedEstimator, render_page

__all__ = [
    "KINDS",
    "FindingsLike",
    "Kind",
    "document",
    "find",
    "find_reading",
    "finder_of",
    "kind_of",
    "render_report",
    "write_report",
]


class FindingsLike(Protocol):
    """What is read from a fitted estimator for a page, a terminal or a document."""

    kind: ClassVar[str]

    @property
    def estimator(self) -> FittedEstimator:
        """What was fitted."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""


@dataclass(frozen=True)
class Kind:
    """What is said of one kind of release. Functions stand as ``"module:function"``, of modules of ``fogline.report``.

    Parameters
    ----------
    findings : str
        The class of what a page shows, ``"module:Class"``; its ``kind`` is the name of this kind.
    document : str
        Takes findings and a command, and returns plain values for JSON.
    table : str
        Takes findings, and returns a :class:`~fogline.report.modes.ConsoleTable`.
    content : str
        Takes findings, and returns what the page says, for its template.
    title : str
        Takes findings, and returns the page's title where none is given.
    template : str
        Name of the page's template.
    summary : str
        Takes findings, and returns a :class:`~fogline.report.summaries.Summary`.
    frame : str
        Takes findings, and returns the columns of a frame: lists by name.
    plot : str
        Takes findings and matplotlib axes or None, and draws.
    """

    findings: str
    document: str
    table: str
    content: str
    title: str
    template: str
    summary: str
    frame: str
    plot: str

    def get(self, part: str) -> Callable[..., Any]:
        """Import a part of this kind by its name, such as ``"document"``.

        Examples
        --------
        >>> KINDS["modes"].get("document").__name__
        'modes_document'
        """
        return _imported(getattr(self, part))


FINDERS = {
    "fogline.density.private_density:PrivateDensity": "density:find_density",
    "fogline.density.profile:Profile": "profile:find_profile",
    "fogline.density.strata:Strata": "strata:find_strata",
    "fogline.density.posterior.posterior:Posterior": "density:find_posterior",
    "fogline.density.comparison:ShapeComparison": "comparison:find_comparison",
    "fogline.density.distances:DensityComparison": "comparison:find_comparison",
    "fogline._results:ReadingResults": "page:find_reading",
    "fogline.estimators.mode_fit:ModeFit": "modes:find_modes",
    "fogline.estimators.clustering:PrivateModeClustering": "clusters:find_clusters",
    "fogline.estimators.regression:PrivateModalRegression": "regression:find_branches",
    "fogline.estimators.hellinger:PrivateHellinger": "fit:find_fit",
    "fogline.estimators.mixture:PrivateGaussianMixture": "mixture:find_mixture",
    "fogline.estimators.sampler:IntegralSampler": "draws:find_draws",
}
"""For a density and each estimator what reads the findings from it, once it is fitted."""


KINDS = {
    "density": Kind(
        findings="density:DensityFindings",
        document="density:density_document",
        table="density:density_table",
        content="density:density_content",
        title="density:density_title",
        template="density.html.j2",
        summary="density:density_summary",
        frame="density:density_frame",
        plot="density:density_plot",
    ),
    "profile": Kind(
        findings="profile:ProfileFindings",
        document="profile:profile_document",
        table="profile:profile_table",
        content="profile:profile_content",
        title="profile:profile_title",
        template="profile.html.j2",
        summary="profile:profile_summary",
        frame="profile:profile_frame",
        plot="profile:profile_plot",
    ),
    "modes": Kind(
        findings="modes:Findings",
        document="modes:modes_document",
        table="modes:modes_table",
        content="modes:modes_content",
        title="modes:modes_title",
        template="modes.html.j2",
        summary="modes:modes_summary",
        frame="modes:modes_frame",
        plot="modes:modes_plot",
    ),
    "wide modes": Kind(
        findings="modes:WideFindings",
        document="modes:wide_modes_document",
        table="modes:wide_modes_table",
        content="modes:wide_modes_content",
        title="modes:wide_modes_title",
        template="wide_modes.html.j2",
        summary="modes:wide_modes_summary",
        frame="modes:wide_modes_frame",
        plot="modes:wide_modes_plot",
    ),
    "clusters": Kind(
        findings="clusters:ClusterFindings",
        document="clusters:cluster_document",
        table="clusters:cluster_table",
        content="clusters:cluster_content",
        title="clusters:cluster_title",
        template="clusters.html.j2",
        summary="clusters:cluster_summary",
        frame="clusters:cluster_frame",
        plot="clusters:cluster_plot",
    ),
    "regression": Kind(
        findings="regression:BranchFindings",
        document="regression:branch_document",
        table="regression:branch_table",
        content="regression:branch_content",
        title="regression:branch_title",
        template="regression.html.j2",
        summary="regression:branch_summary",
        frame="regression:branch_frame",
        plot="regression:branch_plot",
    ),
    "fit": Kind(
        findings="fit:FitFindings",
        document="fit:fit_document",
        table="fit:fit_table",
        content="fit:fit_content",
        title="fit:fit_title",
        template="fit.html.j2",
        summary="fit:fit_summary",
        frame="fit:fit_frame",
        plot="fit:fit_plot",
    ),
    "mixture": Kind(
        findings="mixture:MixtureFindings",
        document="mixture:mixture_document",
        table="mixture:mixture_table",
        content="mixture:mixture_content",
        title="mixture:mixture_title",
        template="mixture.html.j2",
        summary="mixture:mixture_summary",
        frame="mixture:mixture_frame",
        plot="mixture:mixture_plot",
    ),
    "strata": Kind(
        findings="strata:StrataFindings",
        document="strata:strata_document",
        table="strata:strata_table",
        content="strata:strata_content",
        title="strata:strata_title",
        template="strata.html.j2",
        summary="strata:strata_summary",
        frame="strata:strata_frame",
        plot="strata:strata_plot",
    ),
    "comparison": Kind(
        findings="comparison:ComparisonFindings",
        document="comparison:comparison_document",
        table="comparison:comparison_table",
        content="comparison:comparison_content",
        title="comparison:comparison_title",
        template="comparison.html.j2",
        summary="comparison:comparison_summary",
        frame="comparison:comparison_frame",
        plot="comparison:comparison_plot",
    ),
    "draws": Kind(
        findings="draws:DrawFindings",
        document="draws:draws_document",
        table="draws:draws_table",
        content="draws:draws_content",
        title="draws:draws_title",
        template="draws.html.j2",
        summary="draws:draws_summary",
        frame="draws:draws_frame",
        plot="draws:draws_plot",
    ),
}
"""By the ``kind`` of their findings."""


def finder_of(estimator: object) -> Callable[[Any, Sequence[str] | None], FindingsLike]:
    """Return the function that reads the findings of such an estimator.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> finder_of(PrivateModes()).__name__
    'find_modes'
    """
    # By names along the classes: to import all estimators for an isinstance would load scikit-learn.
    for cls in type(estimator).__mro__:
        place = FINDERS.get(f"{cls.__module__}:{cls.__qualname__}")
        if place is not None:
            return _imported(place)
    raise TypeError(f"estimator: there is no report for {type(estimator).__name__}")


def kind_of(findings: FindingsLike) -> Kind:
    """Return the kind of some findings."""
    return KINDS[findings.kind]


def _imported(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(f"fogline.report.{module}"), name)
    return found


def find(estimator: object, columns: Sequence[str] | None = None) -> FindingsLike:
    """Read what a page shows from a fitted estimator; costs no privacy.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 1)]).fit([[0.5]] * 500)
    >>> find(found, columns=["share"]).columns
    ('share',)
    """
    return finder_of(estimator)(estimator, columns)


def find_reading(reading: ReadingResults, columns: Sequence[str] | None = None) -> FindingsLike:
    """Read what a page shows from what a method of a density returned; costs no privacy.

    A table of modes, say, is read again by :class:`~fogline.PrivateModes` from the same density, which has kept it: the
    page, the summary and the frame of a reading are those of the estimator, and there is one place for each.

    Parameters
    ----------
    reading : ReadingResults
        What a method of :class:`~fogline.PrivateDensity` returned.
    columns : sequence of str, optional
        Names for the axes.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 8)], features="leaves").update([[2.0]] * 900).release(epsilon=1.0)
    >>> find_reading(density.modes()).kind
    'modes'
    """
    from fogline import estimators

    origin = reading.origin
    if origin is None:
        raise TypeError(f"this {type(reading).__name__} was not read from a density")
    estimator = getattr(estimators, origin.estimator)(**origin.parameters)
    return find(estimator.read(origin.density, **origin.arguments), columns)


def document(findings: FindingsLike, command: str | None = None) -> dict[str, Any]:
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
    estimator: object,
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    title: str | None = None,
    command: str | None = None,
) -> Path:
    """Write a page about a fitted estimator; costs no privacy.

    Parameters
    ----------
    estimator : PrivateDensity, Strata or estimator
        A release, or a fitted estimator.
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


def render_report(findings: FindingsLike, *, title: str | None = None, command: str | None = None) -> str:
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
