"""The results interface: what ``summary()``, ``plot()``, ``to_frame()``, ``to_json()`` and ``report()`` do.

A density or an estimator hands itself over (:class:`fogline._results.Results`); its kind, registered in
:mod:`fogline.report.page`, does the rest. So there is one place for each, and none in the estimators.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fogline.report.page import find, kind_of, write_report
from fogline.report.summaries import Summary

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_of", "html_of", "json_of", "page_of", "plot_of", "summary_of"]


def summary_of(result: object) -> Summary:
    """Return the table of a result for people.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 8)], features="leaves").update([[2.0]] * 900).release(epsilon=1.0)
    >>> "lower quartile" in str(summary_of(density))
    True
    """
    findings = find(result)
    found: Summary = kind_of(findings).get("summary")(findings)
    return found


def frame_of(result: object) -> pd.DataFrame:
    """Return a result as a pandas frame.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 8)], features="leaves").update([[2.0]] * 900).release(epsilon=1.0)
    >>> frame_of(density)["quantity"].tolist()[:2]
    ['count', 'mean']
    """
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
    findings = find(result)
    return pd.DataFrame(kind_of(findings).get("frame")(findings))


def json_of(result: object) -> str:
    """Return a result as a JSON document.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 8)], features="leaves").update([[2.0]] * 900).release(epsilon=1.0)
    >>> json.loads(json_of(density))["format"]
    'fogline-density-summary-1'
    """
    findings = find(result)
    return json.dumps(kind_of(findings).get("document")(findings, None), indent=2, allow_nan=False, ensure_ascii=False)


def page_of(result: object, path: str | Path, *, title: str | None = None, command: str | None = None) -> Path:
    """Write the page of a result."""
    return write_report(result, path, title=title, command=command)


def html_of(result: object) -> str:
    """Return the table of a result as HTML, for a notebook."""
    return summary_of(result)._repr_html_()


def plot_of(result: object, ax: Any = None) -> Any:
    """Draw a result with matplotlib."""
    findings = find(result)
    return kind_of(findings).get("plot")(findings, ax)
