"""Take pictures of the studio with made-up visits: those of docs/studio.md, or of every page, to be looked at.

    python tools/studio_pictures.py              the pictures of the page; needs the extras studio and dev, and chromium
    python tools/studio_pictures.py --all DIR    every page of the studio in light, dark, phone and print
    python tools/studio_pictures.py --pages DIR FILE.html ...    the same of pages that were written: reports, say
    python tools/studio_pictures.py --site DIR [PART ...]    the same of what `make docs` built
    python tools/studio_pictures.py --sheets DIR    lay the pictures of a folder out on sheets, several pages on each

Beside each picture it prints what a script finds wrong with the page: text of too little contrast, fields, pictures and
links without a name, headings out of order, complaints on the console, and pages wider than the screen. The noise is
the operating system's, so that the pictures differ from one time to the next.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SITE = ROOT / "build" / "site"
WRONG = (ROOT / "tests" / "studio" / "accessibility.js").read_text(encoding="utf-8")
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
[dataset.before]
file = "before.csv"
title = "Hospital visits 2024"
unit = "patient"
max_contributions = 3
expect_records = 20000
ranges = { age = "age", stay = [0, 40] }
[dataset.lost]
file = "lost.csv"
title = "A file that is not there"
"""

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1160, "height": 900}},
    "dark": {"viewport": {"width": 1160, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1.5},
    "print": {"viewport": {"width": 760, "height": 1000}},
}
"""Ways in which a page is looked at; a sheet of paper is as wide as that, in points."""


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
    (folder / "before.csv").write_text("\n".join(["patient,age,stay", *lines[:12_000], ""]))
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


def looked_at(browser: Any, state: Any, address: str, name: str, folder: Path) -> None:
    """Take one page in every way, and say what is wrong with it."""
    for look, options in LOOKS.items():
        context = browser.new_context(storage_state=state, **options)
        page = context.new_page()
        page.set_default_timeout(180_000)
        said: list[str] = []
        page.on("console", lambda message, said=said: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        if look == "print":
            page.emulate_media(media="print")
        page.goto(address)
        page.wait_for_load_state("networkidle")
        width, seen = page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
        page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
        wide = [f"{width - seen} points too wide"] if width > seen else []
        found = page.evaluate(WRONG) if look in ("light", "dark") else []
        print(f"{name}-{look}: {'; '.join([*wide, *said, *found]) or 'nothing wrong'}", flush=True)
        context.close()


def every_page(browser: Any, links: dict[str, str], folder: Path) -> None:
    """Release twice and propose once, then look at every page."""
    root = links["custodian"].partition("/enter")[0]
    contexts = {role: browser.new_context(viewport=LOOKS["light"]["viewport"]) for role in links}
    pages = {role: context.new_page() for role, context in contexts.items()}
    for role, page in pages.items():
        page.set_default_timeout(180_000)
        page.goto(links[role])
        page.wait_for_selector("#datasets")
    releases = {}
    for dataset in ("visits", "before"):
        page = pages["custodian"]
        page.goto(f"{root}/data/{dataset}/review?column=age&column=stay&epsilon=1")
        page.get_by_role("button", name="Release once").click()
        page.wait_for_url("**/releases/**")
        releases[dataset] = page.url
    page = pages["analyst"]
    page.goto(f"{root}/data/visits/review?column=stay&epsilon=0.5")
    page.get_by_label("Why it is wanted").fill("For the spring report: how long do people stay?")
    page.get_by_role("button", name="Propose it").click()
    pages["custodian"].goto(root)
    proposal = pages["custodian"].locator("section[aria-labelledby=proposals] a").first.get_attribute("href")
    place, other = releases["visits"], releases["before"].rpartition("/")[2]
    query = "column=age&column=stay&epsilon=1"
    looks = {
        "home": ("custodian", root),
        "home-analyst": ("analyst", root),
        "question": ("custodian", f"{root}/data/visits?{query}"),
        "question-empty": ("custodian", f"{root}/data/before"),
        "review": ("custodian", f"{root}/data/visits/review?column=stay&epsilon=0.5"),
        "review-too-much": ("custodian", f"{root}/data/visits/review?column=stay&epsilon=9"),
        "review-analyst": ("analyst", f"{root}/data/visits/review?column=stay&epsilon=0.5"),
        "proposal": ("custodian", f"{root}{proposal}"),
        "proposal-analyst": ("analyst", f"{root}{proposal}"),
        "ledger": ("custodian", f"{root}/ledger"),
        "unreadable": ("custodian", f"{root}/data/lost"),
        "not-found": ("custodian", f"{root}/nowhere"),
        "overview": ("custodian", place),
        "curve": ("custodian", f"{place}/curve?column=age"),
        "groups": ("custodian", f"{place}/curve?column=stay&split=age&at=60"),
        "ask": ("custodian", f"{place}/ask?q=mean+stay+by+age+0%3A100%3A20"),
        "ask-refused": ("custodian", f"{place}/ask?q=modian+stay"),
        "modes": ("custodian", f"{place}/modes"),
        "clusters": ("custodian", f"{place}/clusters"),
        "branches": ("custodian", f"{place}/branches"),
        "compare": ("custodian", f"{place}/compare?with={other}"),
        "export": ("custodian", f"{place}/export"),
    }
    looked_at(browser, None, f"{root}/enter", "enter", folder)
    for name, (role, address) in looks.items():
        looked_at(browser, contexts[role].storage_state(), address, f"studio-{name}", folder)


def site_pages(parts: list[str]) -> list[Path]:
    """Pages of the site whose names begin with one of the parts; by default all but most of those made from code."""
    pages = sorted(path.relative_to(SITE) for path in SITE.rglob("*.html"))
    if parts:
        return [page for page in pages if page.as_posix().startswith(tuple(parts))]
    made = {folder: [page for page in pages if page.parts[0] == folder] for folder in ("files", "reference", "gallery")}
    rest = [page for page in pages if page.parts[0] not in made]
    return rest + [page for found in made.values() for page in found[:2]]


def every_site_page(browser: Any, folder: Path, parts: list[str]) -> None:
    """Look at pages of the site from top to bottom, from a server on this machine."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(SITE))
    SimpleHTTPRequestHandler.log_message = lambda *_: None  # type: ignore[method-assign]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in site_pages(parts):
            name = f"site-{page.with_suffix('').as_posix().replace('/', '-')}"
            looked_at(browser, None, f"http://127.0.0.1:{server.server_port}/{page}", name, folder)
        server.shutdown()


SHEET, GAP, LINE = 1092, 4, 14
SCALES = {"light": 0.31, "dark": 0.23, "phone": 0.4, "print": 0.4}
"""Points of a sheet, between columns and of a name; and how small a page may be for its faults to be seen still."""


def sheets(folder: Path) -> None:
    """Lay pictures out in columns, one page below the other, and write sheets beside them."""
    from PIL import Image, ImageDraw

    Image.MAX_IMAGE_PIXELS = None  # pages of a phone are long
    for look, scale in SCALES.items():
        width = round(LOOKS[look]["viewport"]["width"] * scale)
        sheet, made, left, top = Image.new("RGB", (SHEET, SHEET), "#888"), 0, 0, 0
        for path in sorted(path for path in folder.glob(f"*-{look}.png") if not path.name.startswith("sheet-")):
            picture = Image.open(path).convert("RGB")
            picture = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
            done = 0
            while done < picture.height:
                if top > SHEET - 4 * LINE:
                    left, top = left + width + GAP, 0
                if left + width > SHEET:
                    sheet.save(folder / f"sheet-{look}-{made:02}.png")
                    sheet, made, left, top = Image.new("RGB", (SHEET, SHEET), "#888"), made + 1, 0, 0
                part = min(picture.height - done, SHEET - LINE - top)
                ImageDraw.Draw(sheet).text((left, top), path.stem.removesuffix(f"-{look}"), fill="white")
                sheet.paste(picture.crop((0, done, width, done + part)), (left, top + LINE))
                done, top = done + part, top + part + LINE
        sheet.save(folder / f"sheet-{look}-{made:02}.png")
        print(f"{look}: {made + 1} sheets")


def _kept(download: Any) -> str:
    """Address of a downloaded page under a name that says what it is."""
    place = Path(tempfile.mkdtemp()) / "page.html"
    download.save_as(place)
    return place.as_uri()


def main(words: list[str]) -> None:
    """Take the pictures that the words ask for."""
    from playwright.sync_api import sync_playwright

    if words[:1] == ["--sheets"]:
        sheets(Path(words[1]))
        return
    if words[:1] in (["--pages"], ["--site"]):
        folder = Path(words[1])
        folder.mkdir(parents=True, exist_ok=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            if words[0] == "--site":
                every_site_page(browser, folder, words[2:])
            for file in map(Path, words[2:] if words[0] == "--pages" else []):
                looked_at(browser, None, file.resolve().as_uri(), file.stem, folder)
            browser.close()
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_hospital(folder)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(folder / "state")}
        command = ["studio", str(folder / "studio.toml"), "--port", str(PORT)]
        server = subprocess.Popen(
            [sys.executable, "-m", "fogline.cli", *command], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            told = "".join(server.stdout.readline() for _ in range(4))
            links: dict[str, str] = dict(re.findall(r"(custodian|analyst):\s+(\S+)", told))
            time.sleep(3)
            with sync_playwright() as playwright:
                path = shutil.which("chromium")
                browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
                if words[:1] == ["--all"]:
                    Path(words[1]).mkdir(parents=True, exist_ok=True)
                    every_page(browser, links, Path(words[1]))
                else:
                    journey(browser, links["custodian"])
                browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
