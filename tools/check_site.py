"""Look for dead links in a built site, and for anything that it would load from elsewhere.

    python tools/check_site.py build/site

Every link, picture, script and style of every page must be a file of the site, every anchor an id of its page; nothing
that a browser loads by itself may have an address of its own.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
FOLLOWED = {("a", "href")}
ANCHORS_OF_SCRIPTS = ("__search", "__tabbed")


class Page(HTMLParser):
    """Ids and links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        HTMLParser.feed(self, text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what an element is called and where it leads."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.ids.add(value)
            if value and (tag, name) in LOADED | FOLLOWED:
                self.links.append((tag, name, value))


def faults(site: Path) -> list[str]:
    """Every dead link and every address from which something would be loaded."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        here = path.relative_to(site).as_posix()
        for tag, name, value in page.links:
            address = urlsplit(value)
            if address.scheme or address.netloc:
                if (tag, name) in LOADED and address.scheme != "data":
                    found.append(f"{here}: would load {value}")
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() and here != "404.html":
                found.append(f"{here}: {value} leads nowhere")
            anchor = unquote(address.fragment)
            if (
                anchor
                and target in pages
                and anchor not in pages[target].ids
                and not anchor.startswith(ANCHORS_OF_SCRIPTS)
            ):
                found.append(f"{here}: {value} has no such anchor")
    return found


def main(arguments: list[str]) -> int:
    """Print faults; fail if there is one."""
    site = Path(arguments[0]).resolve()
    found = faults(site)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
