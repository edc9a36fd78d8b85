"""What people see of a release: one self-contained page, and the same findings as plain values."""

from fogline.report.branches import BranchFindings
from fogline.report.clusters import ClusterFindings
from fogline.report.findings import Findings
from fogline.report.fits import FitFindings
from fogline.report.mixtures import MixtureFindings
from fogline.report.page import document, find, render_report, write_report
from fogline.report.wide_modes import WideFindings

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
