"""What people see of a release: one self-contained page, and the same findings as plain values."""

from typing import TYPE_CHECKING

from fogline._lazy import lazy_names

if TYPE_CHECKING:
    from fogline.report.clusters import ClusterFindings
    from fogline.report.fit import FitFindings
    from fogline.report.mixture import MixtureFindings
    from fogline.report.modes import Findings, WideFindings
    from fogline.report.page import document, find, render_report, write_report
    from fogline.report.regression import BranchFindings

__all__ = [
    "BranchFindings",
    "ClusterFindings",
    "Findings",
    "FitFindings",
    "MixtureFindings",
    "WideFindings",
    "document",
    "find",
    "render_report",
    "write_report",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BranchFindings": "regression",
        "ClusterFindings": "clusters",
        "Findings": "modes",
        "FitFindings": "fit",
        "MixtureFindings": "mixture",
        "WideFindings": "modes",
        "document": "page",
        "find": "page",
        "render_report": "page",
        "write_report": "page",
    },
)
