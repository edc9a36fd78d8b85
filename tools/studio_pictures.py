"""Take the pictures of docs/studio.md: a studio with made-up visits, a browser, a few small PNG files.

    python tools/studio_pictures.py          needs the extras studio and dev, and chromium

The noise is the operating system's, so that the pictures differ from one time to the next.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PORT = 18799
CONFIG = """
[studio]
title = "St Anna Hospital"
store = "store"
[ledger]
epsilon = 4.0
[dataset.visits]
file = "visits.csv"
title = "Hospital visits 2025"
about = "One row per visit; a patient may come several times."
unit = "patient"
max_contributions = 3
expect_records = 20000
ranges = { age = "age", stay = [0, 40] }
"""


def write_hospital(folder: Path) -> None:
    """Write a table that nobody made, and a configuration."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 95, 20_000)
    stay = np.where(rng.random(20_000) < 0.6, rng.gamma(3.0, 1.0, 20_000), rng.normal(8 + age / 8, 2.5))
    lines = [
        f"{who},{years},{max(days, 0.0):.2f}"
        for who, years, days in zip(rng.integers(0, 15_000, 20_000), age, stay, strict=True)
    ]
    (folder / "visits.csv").write_text("\n".join(["patient,age,stay", *lines, ""]))
    (folder / "studio.toml").write_text(CONFIG)


def save(picture: bytes, name: str, height: int | None = None) -> None:
    """Write a picture with few colours, cut at a height."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.crop((0, 0, image.width, min(image.height, height or image.height)))
    path = IMAGES / f"studio-{name}.png"
    image.quantize(96).save(path, optimize=True)
    print(path.name, image.size, path.stat().st_size)


def journey(browser: Any, link: str) -> None:
    """Release once, and take a picture of each stop."""
    page = browser.new_page(viewport={"width": 1160, "height": 900})
    page.set_default_timeout(120_000)
    page.goto(link)
    page.wait_for_selector("#datasets")
    page.get_by_role("link", name=re.compile("^Hospital visits")).first.click()
    page.get_by_label("age", exact=True).check()
    page.get_by_label("stay", exact=True).check()
    page.wait_for_selector("#outlook table")
    page.wait_for_function("() => !document.querySelector('#outlook [data-pending]')")
    save(page.screenshot(full_page=True), "question", 1260)
    page.get_by_role("button", name="Review the release").click()
    save(page.screenshot(full_page=True), "review")
    page.get_by_role("button", name="Release once").click()
    page.wait_for_url("**/releases/**")
    place = page.url
    save(page.screenshot(full_page=True), "release", 1180)
    page.goto(f"{place}/curve?column=stay&split=age&at=60")
    save(page.screenshot(full_page=True), "groups", 1120)
    page.goto(f"{place}/export")
    with page.expect_download() as download:
        page.get_by_role("link", name=re.compile("^Page to explore")).click()
    phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    phone.goto(_kept(download.value))
    phone.wait_for_selector("#drawing svg")
    phone.locator("#slices input").first.fill("75")
    time.sleep(0.5)
    save(phone.screenshot(full_page=True), "explore-phone", 1100)


def _kept(download: Any) -> str:
    """Address of a downloaded page under a name that says what it is."""
    place = Path(tempfile.mkdtemp()) / "page.html"
    download.save_as(place)
    return place.as_uri()


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_hospital(folder)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(folder / "state")}
        words = ["studio", str(folder / "studio.toml"), "--port", str(PORT)]
        server = subprocess.Popen(
            [sys.executable, "-m", "fogline.cli", *words], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            link = re.search(r"custodian:\s+(\S+)", "".join(server.stdout.readline() for _ in range(4)))
            assert link is not None
            time.sleep(3)
            with sync_playwright() as playwright:
                path = shutil.which("chromium")
                browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
                journey(browser, link[1])
                browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
