"""Kinds of releases, and where to find what is said of each: the one place in which a new kind is registered.

A kind's functions are named, not imported: ``fogline modes --json`` loads no drawing, and no page of another kind.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

__all__ = ["KINDS", "Kind", "finder_of", "kind_of"]


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
        Takes findings, and returns a :class:`~fogline.report.console.ConsoleTable`.
    content : str
        Takes findings, and returns what the page says, for its template.
    title : str
        Takes findings, and returns the page's title where none is given.
    template : str
        Name of the page's template.
    """

    findings: str
    document: str
    table: str
    content: str
    title: str
    template: str

    def get(self, part: str) -> Any:
        """Import a part of this kind by its name, such as ``"document"``.

        Examples
        --------
        >>> KINDS["modes"].get("document").__name__
        'modes_document'
        """
        return _imported(getattr(self, part))


FINDERS = {
    "fogline.estimators.mode_fit:ModeFit": "findings:find_modes",
    "fogline.estimators.clustering:PrivateModeClustering": "clusters:find_clusters",
    "fogline.estimators.regression:PrivateModalRegression": "regression:find_branches",
    "fogline.estimators.hellinger:PrivateHellinger": "fit:find_fit",
    "fogline.estimators.mixture:PrivateGaussianMixture": "mixture:find_mixture",
}
"""For each estimator what reads the findings from it, once it is fitted."""

KINDS = {
    "modes": Kind(
        findings="findings:Findings",
        document="findings:modes_document",
        table="console:modes_table",
        content="modes:modes_content",
        title="modes:modes_title",
        template="modes.html.j2",
    ),
    "wide modes": Kind(
        findings="modes:WideFindings",
        document="modes:wide_modes_document",
        table="modes:wide_modes_table",
        content="modes:wide_modes_content",
        title="modes:wide_modes_title",
        template="wide_modes.html.j2",
    ),
    "clusters": Kind(
        findings="clusters:ClusterFindings",
        document="clusters:cluster_document",
        table="clusters:cluster_table",
        content="clusters:cluster_content",
        title="clusters:cluster_title",
        template="clusters.html.j2",
    ),
    "regression": Kind(
        findings="regression:BranchFindings",
        document="regression:branch_document",
        table="regression:branch_table",
        content="regression:branch_content",
        title="regression:branch_title",
        template="regression.html.j2",
    ),
    "fit": Kind(
        findings="fit:FitFindings",
        document="fit:fit_document",
        table="fit:fit_table",
        content="fit:fit_content",
        title="fit:fit_title",
        template="fit.html.j2",
    ),
    "mixture": Kind(
        findings="mixture:MixtureFindings",
        document="mixture:mixture_document",
        table="mixture:mixture_table",
        content="mixture:mixture_content",
        title="mixture:mixture_title",
        template="mixture.html.j2",
    ),
}
"""By the ``kind`` of their findings."""


def finder_of(estimator: Any) -> Any:
    """Return the function that reads the findings of such an estimator.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> finder_of(PrivateModes()).__name__
    'find_modes'
    """
    for cls in type(estimator).__mro__:
        place = FINDERS.get(f"{cls.__module__}:{cls.__qualname__}")
        if place is not None:
            return _imported(place)
    raise TypeError(f"estimator: there is no report for {type(estimator).__name__}")


def kind_of(findings: Any) -> Kind:
    """Return the kind of some findings."""
    return KINDS[findings.kind]


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"fogline.report.{module}"), name)
