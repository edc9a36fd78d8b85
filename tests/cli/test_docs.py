"""``fogline docs``: the site comes from one archive, on this machine alone, and completion knows the command."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import threading
import zipfile

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from fogline.cli import docs as command
from fogline.cli.app import app
from tools import build_twice, pack_site

PAGES = {
    "index.html": "<h1>Start</h1>",
    "404.html": "<h1>Not here</h1>",
    "reference/index.html": "<h1>Reference</h1>",
    "images/a b.svg": "<svg/>",
    "assets/x.js": "1",
    "assets/x.js.map": "left out",
    "assets/javascripts/lunr/wordcut.js": "left out",
    "sitemap.xml": "left out",
}


@pytest.fixture
def archive(tmp_path):
    """A small built site, packed as ``make docs`` packs it."""
    for name, text in PAGES.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text, encoding="utf-8")
    pack_site.pack(tmp_path / "site", tmp_path / "site.zip")
    return tmp_path / "site.zip"


@pytest.fixture
def server(archive):
    with command.SiteServer(command.Site(archive), 0) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(server, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request(method, path)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content.decode()


def test_an_archive_holds_what_is_served_and_the_same_bytes_each_time(archive, tmp_path):
    with zipfile.ZipFile(archive) as packed:
        assert set(packed.namelist()) == {name for name, text in PAGES.items() if text != "left out"}
    pack_site.pack(tmp_path / "site", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    with pytest.raises(ValueError, match="holds no built site"):
        pack_site.pack(tmp_path, tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("path", "kind", "content"),
    [
        ("/", "text/html; charset=utf-8", "<h1>Start</h1>"),
        ("/index.html?q=1", "text/html; charset=utf-8", "<h1>Start</h1>"),
        ("/reference/", "text/html; charset=utf-8", "<h1>Reference</h1>"),
        ("/images/a%20b.svg", "image/svg+xml", "<svg/>"),
        ("/assets/x.js", "text/javascript; charset=utf-8", "1"),
    ],
)
def test_pages_are_answered_with_their_type(server, path, kind, content):
    answer, text = ask(server, path)
    assert (answer.status, answer.headers["Content-Type"], text) == (200, kind, content)
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    answer, text = ask(server, path, "HEAD")
    assert (answer.status, answer.headers["Content-Length"], text) == (200, str(len(content)), "")


@pytest.mark.parametrize("path", ["/none.html", "/../docs.py", "/%2e%2e/docs.py", "//etc/passwd", "/..%2fsite.zip"])
def test_nothing_but_the_site_is_served(server, path):
    answer, text = ask(server, path)
    assert (answer.status, text) == (404, "<h1>Not here</h1>")


def test_only_reading_is_answered(server):
    assert ask(server, "/", "POST")[0].status == 501
    assert server.server_address[0] == "127.0.0.1"


def test_without_a_built_site_the_way_to_one_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "SITE", tmp_path / "site.zip")
    done = CliRunner().invoke(app, ["docs"])
    assert done.exit_code == 1
    assert "`make docs`" in done.output
    command.SITE.write_text("no archive")
    assert "site.zip is no archive" in CliRunner().invoke(app, ["docs"]).output
    with zipfile.ZipFile(command.SITE, "w") as empty:
        empty.writestr("a.html", "x")
    assert "has no start page" in CliRunner().invoke(app, ["docs"]).output


def test_a_taken_port_is_said(server, archive, monkeypatch):
    monkeypatch.setattr(command, "SITE", archive)
    done = CliRunner().invoke(app, ["docs", "--port", str(server.server_port)])
    assert done.exit_code == 1
    assert f"port {server.server_port} cannot be used" in done.output


def test_the_command_prints_its_address_and_answers_there(archive):
    code = (
        "import pathlib, sys; from fogline.cli import docs; docs.SITE = pathlib.Path(sys.argv.pop(1)); "
        "from fogline.cli import main; main()"
    )
    words = [sys.executable, "-c", code, str(archive), "docs", "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        port = re.fullmatch(r"fogline docs: http://127\.0\.0\.1:(\d+)/\n", process.stdout.readline())[1]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"<h1>Start</h1>"
        connection.close()
    finally:
        process.terminate()
        assert process.communicate(timeout=60)[1] == ""


def test_a_distribution_is_not_built_without_the_site(tmp_path, monkeypatch):
    monkeypatch.setattr(build_twice, "tracked", lambda folder: ["src/fogline/cli/docs.py"])
    with pytest.raises(ValueError, match="`make docs` builds it"):
        build_twice.to_build(tmp_path)
    (tmp_path / "src" / "fogline" / "cli").mkdir(parents=True)
    (tmp_path / build_twice.SITE).touch()
    assert build_twice.to_build(tmp_path) == ["src/fogline/cli/docs.py", build_twice.SITE]
    monkeypatch.setattr(build_twice, "tracked", lambda folder: ["src/fogline_research/cli.py"])
    assert build_twice.to_build(tmp_path) == ["src/fogline_research/cli.py"]


@pytest.mark.parametrize(
    ("words", "begun", "wanted"),
    [([], "d", {"demo", "docs"}), (["docs"], "--p", {"--port"}), (["ledger"], "cr", {"create"})],
)
def test_completion_of_a_shell_knows_commands_and_options(words, begun, wanted):
    completer = BashComplete(app, {}, "fogline", "_FOGLINE_COMPLETE")
    assert wanted <= {item.value for item in completer.get_completions(words, begun)}
    assert "_FOGLINE_COMPLETE=bash_complete" in completer.source()
