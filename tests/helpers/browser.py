"""A real browser on a real server, both on this machine: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from contextlib import contextmanager

import pytest

CANDIDATES = ("chromium", "chromium-browser", "google-chrome")


def browser_path() -> str:
    """Where a browser is; a clear skip where there is none, but not in CI."""
    found = next((path for name in CANDIDATES if (path := shutil.which(name))), None)
    if found is None:
        words = "no chromium on this machine: `make browser` installs Debian's where it may"
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)
    return found


@contextmanager
def launched():
    """A browser."""
    if not os.environ.get("CI"):
        pytest.importorskip("playwright")
    path = browser_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


@contextmanager
def served(app, port: int):
    """An application on this machine's own address, in a thread."""
    import uvicorn

    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    run = threading.Thread(target=server.run, daemon=True)
    run.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        run.join()
