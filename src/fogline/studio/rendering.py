"""Templates of the studio, and the report's own as parts of its pages.

A report's template extends a frame. Here the frame of that name is another one, which shows the reading without what
makes it a page of its own: the two never drift apart.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import fogline

__all__ = ["constant_page", "fragment", "page", "static_files"]

STATIC = {
    "studio.css": ("fogline.studio", "static/studio.css", "text/css; charset=utf-8"),
    "studio.js": ("fogline.studio", "static/studio.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("fogline.studio", "static/icon.svg", "image/svg+xml"),
    "report.css": ("fogline.report", "templates/report.css", "text/css; charset=utf-8"),
}
"""The files that are served, by name: nothing else can be asked for."""

TITLES = {
    400: "The form could not be read",
    403: "Not allowed",
    404: "There is no such page",
    405: "Not allowed",
    409: "Not possible now",
    413: "Too large",
    414: "Too large",
    415: "Not understood",
    421: "Another address",
    431: "Too large",
    500: "Something went wrong",
}
WORDS = {
    400: "Go back, load the page again and send it once more.",
    403: "This needs another role, or the form came from elsewhere or was used before. Go back and load the page.",
    404: "It may have been there before. The start page shows what there is.",
    405: "The studio answers to pages and forms only.",
    409: "Go back and try again in a moment.",
    413: "The studio takes no uploads, and its forms are short.",
    414: "The address is longer than the studio's forms make it.",
    415: "The studio takes its own forms only.",
    421: "The studio is reached under the address that it printed when it started.",
    431: "The headers are longer than a browser makes them.",
    500: "Nothing more is said, since that might tell more than it should. The ledger reserves a budget before records "
    "are read, so that nothing can be overspent; the page of the budget shows what was reserved.",
}


@cache
def _environments() -> tuple[Any, Any]:
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError:  # pragma: no cover
        raise ImportError("the studio needs Jinja2: pip install 'fogline[studio]'") from None
    own = PackageLoader("fogline.studio", "templates")
    parts = ChoiceLoader(
        [PackageLoader("fogline.studio", "templates/fragments"), PackageLoader("fogline.report", "templates")]
    )
    options: Any = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(loader=own, **options), Environment(loader=parts, **options)


def page(template: str, content: dict[str, Any]) -> str:
    """Return a page, or a part of one, of the studio's own templates; all text is escaped."""
    found: str = _environments()[0].get_template(template).render(version=fogline.__version__, **content)
    return found


def fragment(template: str, content: dict[str, Any]) -> Any:
    """Return what a report's template shows of a reading, as markup; drawings in it are not escaped."""
    from markupsafe import Markup

    drawings: dict[str, Any] = {"figures": [Markup(drawing) for drawing in content["figures"]]}
    drawings |= {name: Markup(content[name]) for name in ("chart", "bar") if name in content}
    return Markup(_environments()[1].get_template(template).render({**content, **drawings}))


@cache
def constant_page(status: int) -> bytes:
    """Return the page of an error, which depends on its status alone."""
    content = {"status": status, "title": TITLES[status], "words": WORDS[status]}
    return page("error.html.j2", content).encode()


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """Content and type of each file that is served."""
    return {
        name: (resources.files(package).joinpath(place).read_bytes(), media)
        for name, (package, place, media) in STATIC.items()
    }
