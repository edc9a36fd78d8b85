"""``fogline docs`` serves the documentation site that lies in the package, on this machine alone and offline.

The site is one archive, ``site.zip`` beside this file. ``make docs`` writes it into a checkout, ``make dist`` packs it
into the wheel. A server that answers with members of an archive cannot be led to any other file of the machine.
"""

from __future__ import annotations

import mimetypes
import posixpath
import zipfile
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from fogline.cli.common import Command

__all__ = ["SITE", "Site", "SiteServer", "docs"]

SITE = Path(__file__).parent / "site.zip"
"""Where the built site lies."""

LOOPBACK = "127.0.0.1"
PORT = 8766
NOT_BUILT = (
    "this copy of fogline holds no documentation site: run `make docs` in a checkout of the sources, which builds it "
    "and puts it there, or install a wheel that `make dist` made"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The site's own pages have scripts and styles in line; nothing may come from another address."""


class Site:
    """The pages of a built site, read from its archive.

    Parameters
    ----------
    path : Path
        Of the archive.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If it is no archive, or one without a start page.
    """

    def __init__(self, path: Path) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                self._content = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
        except zipfile.BadZipFile:
            raise ValueError(f"{path.name} is no archive") from None
        if "index.html" not in self._content:
            raise ValueError(f"{path.name} has no start page")

    def page(self, address: str) -> tuple[HTTPStatus, str, bytes]:
        """Status, type and content of what an address names; the site's own page for what is not there.

        Parameters
        ----------
        address : str
            Path of a request, perhaps with a query.
        """
        path = posixpath.normpath("/" + unquote(urlsplit(address).path).lstrip("/"))
        name = path.lstrip("/")
        for found in (name, posixpath.join(name, "index.html")):
            if found in self._content:
                return HTTPStatus.OK, _type(found), self._content[found]
        missing = self._content.get("404.html", b"There is no such page.")
        return HTTPStatus.NOT_FOUND, _type("404.html"), missing


def _type(name: str) -> str:
    """Type of a file by its name, with the encoding of text.

    Examples
    --------
    >>> _type("index.html"), _type("a.svg"), _type("objects.inv")
    ('text/html; charset=utf-8', 'image/svg+xml', 'application/octet-stream')
    """
    kinds = {".js": "text/javascript", ".svg": "image/svg+xml", ".csv": "text/csv", ".css": "text/css"}
    suffix = posixpath.splitext(name)[1]
    found = kinds.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{found}; charset=utf-8" if found.startswith("text/") else found


class SiteServer(ThreadingHTTPServer):
    """Answers GET and HEAD on the loopback address with pages of a site.

    Parameters
    ----------
    site : Site
    port : int
        0 takes any that is free.
    """

    daemon_threads = True

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def address(self) -> str:
        """Where a browser finds the start page."""
        return f"http://{LOOPBACK}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: SiteServer
    server_version = "fogline"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page."""
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        """Answer with what a page's headers would be."""
        self._answer(with_content=False)

    def _answer(self, *, with_content: bool) -> None:
        status, kind, content = self.server.site.page(self.path)
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_content:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # the name is the library's
        """Keep the terminal quiet."""


@click.command(cls=Command, epilog="\b\nExamples:\n  fogline docs\n  fogline docs --port 9000 --open")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any that is free.")
@click.option("--open", "show", is_flag=True, help="Open it in a browser.")
def docs(port: int, show: bool) -> None:
    """Serve this documentation on this machine alone, from the package, without a network."""
    try:
        site = Site(SITE)
    except FileNotFoundError:
        raise click.ClickException(NOT_BUILT) from None
    except (ValueError, OSError) as error:
        raise click.ClickException(f"the documentation site cannot be read: {error}") from None
    try:
        server = SiteServer(site, port)
    except OSError as error:
        raise click.ClickException(f"port {port} cannot be used ({error.strerror}): choose another by --port") from None
    with server:
        click.echo(f"fogline docs: {server.address}\nStop it with Ctrl-C.")
        if show:
            click.launch(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("stopped")
