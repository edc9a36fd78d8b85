"""The documentation site: every page can be reached, every link leads somewhere, notebooks and the gallery run."""

import ast
import importlib
import itertools
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

sys.path.insert(1, str(ROOT / "benchmarks"))

import check_site  # noqa: E402
import draw_gallery  # noqa: E402
import site_hooks  # noqa: E402
import tutorial_notebook  # noqa: E402
import write_expect  # noqa: E402

import page  # noqa: E402
import page_conclusions  # noqa: E402

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SCRIPTS = sorted(path.stem for path in (DOCS / "gallery").glob("*.py"))
NOT_IN_THE_NAVIGATION = {"skeletons/query.proof.md"}
"""A template to copy, to which the page on contributing links."""
MADE_WHEN_BUILT = ("files/", "reference/")
HEADING = re.compile(r"^#{1,6} (.+)$", flags=re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", flags=re.DOTALL | re.MULTILINE)


def named(part):
    """Pages that a part of the navigation names."""
    if isinstance(part, str):
        return [part]
    return [page for below in (part.values() if isinstance(part, dict) else part) for page in named(below)]


def configured():
    return pytest.importorskip("yaml").safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def anchors(text):
    """Anchors of the headings of a page, as code hosts and the site make them."""
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", title) for title in HEADING.findall(FENCED.sub("", text)))
    own = re.findall(r'<(?:a|span) id="([^"]+)">', text)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in plain} | set(own)


@pytest.mark.parametrize("path", PAGES)
def test_a_list_begins_after_an_empty_line(path):
    """Elsewhere it would be one, on the site it would be run on with its paragraph."""
    lines = FENCED.sub("", (ROOT / path).read_text("utf-8")).split("\n")
    item = re.compile(r" {0,3}(?:[-*]|\d+\.) ")
    begun = [
        (before, line)
        for before, line in itertools.pairwise(lines)
        if item.match(line) and before.strip() and not before.startswith((" ", "#", "<")) and not item.match(before)
    ]
    assert begun == []


def test_code_that_names_its_recipe_is_code_on_the_site():
    text = site_hooks.for_the_site("docs/scale.md", "```sh recipe: dbt\ndbt run\n```\n")
    assert text == "```sh\ndbt run\n```\n"


def test_formulas_of_docstrings_are_blocks_on_the_site():
    pytest.importorskip("griffe")
    plain = importlib.import_module("site_docstrings").plain
    assert plain("A\n\n.. math:: \\tfrac12 \\mu^2 \\le \\rho\n\nof ``b``") == "A\n\n```text\n1/2 μ^2 ≤ ρ\n```\n\nof `b`"


def test_the_navigation_names_every_page_once():
    pages = named(configured()["nav"])
    assert len(pages) == len(set(pages))
    own = {page for page in pages if not page.startswith(MADE_WHEN_BUILT)}
    assert own == {path.removeprefix("docs/") for path in PAGES} - NOT_IN_THE_NAVIGATION
    made = {site_hooks.page_of(path) for path in site_hooks.outside_pages()} | {*site_hooks.reference_pages()}
    assert set(pages) - own <= made


def test_nothing_is_loaded_from_elsewhere():
    settings = configured()
    assert settings["theme"]["font"] is False
    assert not re.search(
        r"https?://", (ROOT / "mkdocs.yml").read_text("utf-8") + (DOCS / "site.css").read_text("utf-8")
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    for target in site_hooks.links_of(text):
        found, anchor = site_hooks.in_repository(page, target)
        if not found:
            assert target.startswith(("https://", "mailto:")), target
            continue
        assert (ROOT / found).exists(), target
        if anchor and found.endswith(".md"):
            assert anchor[1:] in anchors((ROOT / found).read_text("utf-8")), target


def test_links_to_sources_and_proofs_become_links_to_pages():
    text = "[`a`](../src/fogline/units.py), [b](modes.md#x), `[c](../src)`, [d](https://example.org)"
    shown = site_hooks.for_the_site("docs/made.md", text)
    assert shown == "[`a`](files/src/fogline/units.py.md), [b](modes.md#x), `[c](../src)`, [d](https://example.org)"
    proof = site_hooks.for_the_site("src/fogline/made.proof.md", "[a](../../docs/modes.md)")
    assert proof == "[a](../../../modes.md)"


def test_the_reference_has_every_public_name():
    shown = "\n".join(site_hooks.reference_pages().values())
    for name in importlib.import_module("fogline").__all__:
        if not name.startswith("__") and isinstance(getattr(importlib.import_module("fogline"), name), type):
            assert re.search(rf"^::: fogline\.[\w.]*\b{name}$", shown, flags=re.MULTILINE), name


def test_the_check_of_a_built_site_finds_what_is_wrong(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="here"></h1><a href="b.html#there">b</a><a href="#here">a</a>')
    (tmp_path / "b.html").write_text('<h1 id="there"></h1><a href="https://example.org">elsewhere</a>')
    assert check_site.faults(tmp_path) == []
    (tmp_path / "b.html").write_text('<img src="https://example.org/x.png"><a href="c.html">c</a>')
    assert check_site.faults(tmp_path) == [
        "a.html: b.html#there has no such anchor",
        "b.html: would load https://example.org/x.png",
        "b.html: c.html leads nowhere",
    ]


def test_numbers_to_expect_are_those_of_the_measurements():
    assert write_expect.PAGE.read_text("utf-8") == write_expect.page()


@pytest.mark.parametrize("name", page_conclusions.CONCLUSIONS)
def test_a_page_of_measurements_begins_with_what_its_figures_say(name):
    said = page_conclusions.CONCLUSIONS[name]()
    text = (DOCS / "benchmarks" / f"{name}.md").read_text("utf-8")
    assert text.split("\n\n")[1] == f"**In short.** {page.beside(said)}"
    index = (DOCS / "benchmarks.md").read_text("utf-8")
    assert said in index
    parts = {f"benchmarks/{name}.md#{anchor}" for anchor in anchors(text.partition("\n\n")[2])}
    assert parts <= {*site_hooks.links_of(index)}
    assert anchors(text.partition("\n\n")[2]) <= anchors(index)  # old addresses


def test_the_risks_told_to_an_ethics_board_are_those_of_the_proof():
    told = re.findall(r"^\| ([\d.]+) \| ([\d.]+)%", (DOCS / "ethics-board.md").read_text("utf-8"), flags=re.MULTILINE)
    assert len(told) == 5
    for epsilon, percent in told:
        risk = draw_gallery.script("risk").promise(float(epsilon)).risk(0.1).content
        assert 100 * risk <= float(percent) + 1e-6 < 100 * risk + 0.1


# The tutorial's code is that of its page, which the next test compares, and runs there as doctests.
OWN_CODE = [path for path in NOTEBOOKS if path != ROOT / tutorial_notebook.NOTEBOOK]


@pytest.mark.parametrize("path", OWN_CODE, ids=lambda path: path.stem)
def test_every_cell_of_a_notebook_runs(path, tmp_path, monkeypatch):
    document = json.loads(path.read_text("utf-8"))
    pytest.importorskip("nbformat").validate(document)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)


def test_the_tutorial_is_a_notebook_as_well():
    stored = (ROOT / tutorial_notebook.NOTEBOOK).read_text("utf-8")
    assert stored == tutorial_notebook.notebook()
    pytest.importorskip("nbformat").validate(json.loads(stored))
    page = (ROOT / tutorial_notebook.PAGE).read_text("utf-8")
    assert stored.count("refusal") == 2  # the ledger says no once
    for line in re.findall(r"^>>> (\w.*)$", page, flags=re.MULTILINE):
        assert json.dumps(line, ensure_ascii=False)[1:-1] in stored, line


def test_there_are_six_notebooks_and_the_page_names_them():
    assert len(NOTEBOOKS) == 6
    assert {f"../notebooks/{path.name}" for path in NOTEBOOKS} <= {
        *site_hooks.links_of((DOCS / "notebooks.md").read_text())
    }


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_the_gallery_is_short_and_public(name):
    text = (DOCS / "gallery" / f"{name}.py").read_text("utf-8")
    assert len(text.splitlines()) < 40
    listed = (ROOT / "tests" / "api.txt").read_text("utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("fogline"):
            for alias in node.names:
                assert re.search(rf"^\w+ (fogline|{node.module})\.{alias.name}\b", listed, flags=re.MULTILINE), (
                    alias.name
                )
    picture = DOCS / "gallery" / f"{name}.svg"
    assert 0 < picture.stat().st_size <= draw_gallery.MOST_BYTES


@pytest.mark.parametrize(
    ("name", "n"), [("modes", 2000), ("risk", 5), ("attack", 400), ("sites", 500), ("quantiles", 500)]
)
def test_a_script_of_the_gallery_draws(name, n):
    pytest.importorskip("matplotlib").use("agg")
    figure = draw_gallery.script(name).draw(n)
    assert all(axes.has_data() and axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)
    importlib.import_module("matplotlib.pyplot").close(figure)


def test_the_gallery_shows_every_script():
    assert (DOCS / "gallery.md").read_text("utf-8") == draw_gallery.page()
    assert len(SCRIPTS) == 20


def test_buttons_of_the_theme_have_names():
    page = "".join(f"{label}<svg></svg></label>" for label in site_hooks.NAMES)
    named = site_hooks.on_post_page(page, None, None)
    assert named.count("aria-label=") == len(site_hooks.NAMES)
