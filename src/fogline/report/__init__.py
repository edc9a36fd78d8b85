"""What people see of a release: one self-contained page, and the same findings as plain values."""

from fogline.report.findings import Findings, document, find
from fogline.report.page import render_report, write_report

__all__ = ["Findings", "document", "find", "render_report", "write_report"]
