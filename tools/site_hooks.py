"""What mkdocs does for our site besides its own: files of the repository as pages, and a reference of all public names.

Pages in ``docs/`` link to proofs, sources and tests as they lie in the repository, so that the links work there. On the
site each such file becomes a page of its own, below ``files/``, and the links are rewritten to it. The reference of
public names is made from ``tests/api.txt``: one page per module, below ``reference/``.
"""

from __future__ import annotations

import functools
import importlib
import json
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs"
CITATION = "CITATION.cff"
ALWAYS = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "README.md", CITATION)
"""Files outside of ``docs/`` that the navigation names."""

LINK = re.compile(
    r"(?P<code>^```.*?^```[^\n]*$|^~~~.*?^~~~[^\n]*$|(?P<label>!?\[(?:[^\[\]\n]|\n(?!\n)|\[[^\]\n]*\])*\]\()"
    r"(?P<target>[^()\s]+)(?P<end>\))|`[^`\n]+`)",
    flags=re.DOTALL | re.MULTILINE,
)
"""Code, in which nothing is a link, or a link, whose label may hold code: whichever begins first."""
ELSEWHERE = re.compile(r"^([a-z][a-z0-9+.-]*:|//)")
LANGUAGES = {".py": "python", ".toml": "toml", ".cff": "yaml", ".csv": "text", ".sh": "sh", ".R": "r", ".Rmd": "text"}
PUBLIC = re.compile(r"^(class|def|exception|value) ([\w.]+)", flags=re.MULTILINE)
MADE = "Made by `make docs`."


def links_of(text: str) -> Iterator[str]:
    """Targets of the links and pictures of a page of Markdown, without those in code."""
    yield from (found["target"] for found in LINK.finditer(text) if found["target"])


def with_links(text: str, change: Callable[[str], str]) -> str:
    """Return a page whose links were changed, and whose code was not.

    Examples
    --------
    >>> with_links("[`a`](b.md) and `[c](d.md)`", str.upper)
    '[`a`](B.MD) and `[c](d.md)`'
    """

    def changed(found: re.Match[str]) -> str:
        return found["label"] + change(found["target"]) + found["end"] if found["target"] else found[0]

    return LINK.sub(changed, text)


def in_repository(page: str, target: str) -> tuple[str, str]:
    """Path from the root of what a page links to, and the anchor with its sign; no path if it lies elsewhere.

    Examples
    --------
    >>> in_repository("docs/modes.md", "../src/fogline/units.py#L3"), in_repository("docs/a.md", "mailto:us")
    (('src/fogline/units.py', '#L3'), ('', ''))
    """
    if ELSEWHERE.match(target):
        return "", ""
    path, sign, anchor = target.partition("#")
    if not path:
        return page, sign + anchor
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)), sign + anchor


def page_of(path: str) -> str:
    """Where the site has a file of the repository.

    Examples
    --------
    >>> page_of("docs/modes.md"), page_of("src/fogline/units.py"), page_of("src/a.proof.md"), page_of("README.md")
    ('modes.md', 'files/src/fogline/units.py.md', 'files/src/a.proof.md', 'files/README-of-the-repository.md')
    """
    if path == DOCS or path.startswith(f"{DOCS}/"):
        return path[len(DOCS) + 1 :] or "index.md"
    if posixpath.basename(path) == "README.md":  # mkdocs would take it for the start of a folder
        path = f"{path[:-3]}-of-the-repository.md"
    path = posixpath.join(posixpath.dirname(path), posixpath.basename(path).removeprefix("."))  # mkdocs hides dots
    return f"files/{path}" if path.endswith(".md") else f"files/{path}.md"


@functools.cache
def outside_pages(root: Path = ROOT) -> dict[str, str]:
    """Text of every page that is made of a file outside of ``docs/``, by the file's path: all that a page leads to."""
    texts: dict[str, str] = {}
    begin = [*sorted((root / DOCS).rglob("*.md")), *proofs(root)]
    waiting = [path.relative_to(root).as_posix() for path in begin] + list(ALWAYS)
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        text = text_of(root, path)
        if not path.startswith(f"{DOCS}/"):
            texts[path] = text
        for target in links_of(text) if path.endswith(".md") or (root / path).is_dir() else ():
            found, _ = in_repository(path, target)
            if found and found not in seen and (root / found).exists() and not found.startswith(DOCS):
                seen.add(found)
                waiting.append(found)
    return texts


def proofs(root: Path = ROOT) -> list[Path]:
    """Every proof of the package."""
    return sorted((root / "src").rglob("*.proof.md"))


def proofs_page(root: Path = ROOT) -> str:
    """All proofs, by the folder of the code beside which they lie, each with its title."""
    lines = [
        "# Proofs",
        "",
        f"{MADE} Each lies beside the code that it is about, and quotes the lines that it needs.",
        "",
    ]
    folder = ""
    for place in proofs(root):
        path = place.relative_to(root).as_posix()
        if posixpath.dirname(path) != folder:
            folder = posixpath.dirname(path)
            lines += ["", f"## {folder.removeprefix('src/').replace('/', '.')}", ""]
        title = place.read_text(encoding="utf-8").split("\n")[0].lstrip("# ")
        lines.append(f"- [{title}](../{page_of(path)})")
    return "\n".join(lines) + "\n"


def text_of(root: Path, path: str) -> str:
    """A file of the repository as Markdown: Markdown as it is, sources as code, a folder as the list of its files."""
    place = root / path
    if place.is_dir():
        names = sorted(found.name for found in place.glob("*.proof.md"))
        return f"# {path}\n\n" + "\n".join(f"- [{name}]({posixpath.basename(path)}/{name})" for name in names)
    text = place.read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    if path.endswith(".ipynb"):
        return notebook_page(path, text)
    fence = "~~~~" if "~~~" in text else "~~~"
    return f"# {place.name}\n\n`{path}`\n\n{fence}{LANGUAGES.get(place.suffix, 'text')}\n{text}{fence}\n"


def notebook_page(path: str, text: str) -> str:
    """Cells of a notebook, one after the other."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    parts.insert(1, f"`{path}`")
    return "\n\n".join(parts) + "\n"


def for_the_site(path: str, text: str, root: Path = ROOT) -> str:
    """A page of the repository as the site shows it: links lead to pages of the site, examples are coloured as such."""
    own = page_of(path)

    def change(target: str) -> str:
        found, anchor = in_repository(path, target)
        if not found or found == path or not (root / found).exists():
            return target
        return posixpath.relpath(page_of(found), posixpath.dirname(own) or ".") + anchor

    text = re.sub(r"^```(\w+)[ \t]+\S.*$", r"```\1", with_links(text, change), flags=re.MULTILINE)
    text = re.sub(r"^```python\n(?=>>>)", "```pycon\n", text, flags=re.MULTILINE)
    return re.sub(r"[ \t]+# doctest: \+\w+$", "", text, flags=re.MULTILINE)


@functools.cache
def reference_pages(root: Path = ROOT) -> dict[str, str]:
    """Text of the reference, by page: each public name where it is defined, once, in the order of the list."""
    modules: dict[str, list[str]] = {}
    for _, address in PUBLIC.findall((root / "tests" / "api.txt").read_text(encoding="utf-8")):
        module, name = split_address(address)
        if module and "." not in name and not name.startswith("__"):
            modules.setdefault(module, []).append(name)
    texts = {f"reference/{module}.md": reference_page(module, names) for module, names in modules.items()}
    table = "\n".join(
        f"| [`{module}`]({module}.md) | {first_line(importlib.import_module(module))} | {len(names)} |"
        for module, names in modules.items()
    )
    head = (
        f"# Reference\n\n{MADE} Every public name with its parameters, its formulas and an example. [One list of all of"
        " them](../api.md), a line per name, is shorter.\n\n| module | what it holds | names |\n| --- | --- | ---: |\n"
    )
    return {"reference/index.md": f"{head}{table}\n", "reference/proofs.md": proofs_page(root), **texts}


def split_address(address: str) -> tuple[str, str]:
    """Module and name of an address; the longest part that is a module."""
    parts = address.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:length])
        try:
            importlib.import_module(module)
        except ImportError:
            continue
        return module, ".".join(parts[length:])
    return "", address


def reference_page(module: str, names: list[str]) -> str:
    """One module: a heading and a directive per name, which names where the thing is defined."""
    found = importlib.import_module(module)
    lines = [f"# {module}", "", first_line(found), ""]
    for name in names:
        thing = getattr(found, name)
        if not callable(thing) or not str(getattr(thing, "__module__", "")).startswith("fogline"):
            lines += [f"## {name}", "", f"`{module}.{name}`: {type(thing).__name__}", ""]
        else:
            lines += [f"::: {thing.__module__}.{thing.__qualname__}", ""]
    return "\n".join(lines)


def first_line(thing: object) -> str:
    """First line of a docstring."""
    return (getattr(thing, "__doc__", None) or "").strip().split("\n")[0]


def on_config(config: Any) -> Any:
    """Anchors as code hosts make them, so that links with anchors work in both places."""
    from pymdownx.slugs import slugify

    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are no files in ``docs/``."""
    from mkdocs.structure.files import File

    made = {page_of(path): for_the_site(path, text) for path, text in outside_pages().items()}
    for place, text in {**made, **reference_pages()}.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001
    """Rewrite the links of pages in ``docs/``; those of made pages were rewritten when they were made."""
    place = page.file.src_uri
    return markdown if place.startswith(("files/", "reference/")) else for_the_site(f"{DOCS}/{place}", markdown)


NAMES = {
    '<label class="md-header__button md-icon" for="__drawer">': "Menu",
    '<label class="md-header__button md-icon" for="__search">': "Search",
    '<label class="md-search__icon md-icon" for="__search">': "Search",
}
"""Buttons of the theme that are a picture and nothing else, and what they do."""


def on_post_page(output: str, page: Any, config: Any) -> str:  # noqa: ARG001
    """Give a name to the theme's buttons that have none, for those who hear a page; let names in tables break."""
    return breakable(named(output))


def on_post_template(output: str, template_name: str, config: Any) -> str:  # noqa: ARG001
    """The same for the page that is shown where there is none, which says where to go on besides."""
    said = '<p>There is no such page. Go on from the <a href="/index.html">start</a>, or search above.</p>'
    output = output.replace("<h1>404 - Not found</h1>", "<h1>404 - Not found</h1>\n" + said)
    return named(output) if template_name.endswith(".html") else output


def named(page: str) -> str:
    """A page whose buttons all have a name.

    Examples
    --------
    >>> named('<label class="md-search__icon md-icon" for="__search">')
    '<label class="md-search__icon md-icon" for="__search" title="Search" aria-label="Search">'
    """
    for label, name in NAMES.items():
        page = page.replace(label, f'{label[:-1]} title="{name}" aria-label="{name}">')
    return page


CELL = re.compile(r"<td\b[^>]*>.*?</td>", flags=re.DOTALL)
CODE = re.compile(r"(<code\b[^>]*>)(.*?)(</code>)", flags=re.DOTALL)
JOINT = re.compile(r"(<[^>]*>)|(?<=[_/.:=])(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])")
"""A tag, which stays as it is, or a place between the words of a name."""


def breakable(page: str) -> str:
    r"""A page with places in the code of its tables at which a long name may break, and with bars that are no cells.

    Markdown needs a backslash before a bar in a table; the theme's Markdown keeps it in code, where code hosts drop it.

    Examples
    --------
    >>> breakable("<td><code>test_no_leak</code></td> <code>test_no_leak</code>")
    '<td><code>test_<wbr>no_<wbr>leak</code></td> <code>test_no_leak</code>'
    >>> breakable(r"<td><code>a \| b</code></td>")
    '<td><code>a | b</code></td>'
    """

    def code(found: re.Match[str]) -> str:
        text = found[2].replace(r"\|", "|")
        return found[1] + JOINT.sub(lambda joint: joint[1] or "<wbr>", text) + found[3]

    return CELL.sub(lambda cell: CODE.sub(code, cell[0]), page)
