"""Write the list of public names: ``docs/api.md`` for readers, ``tests/api.txt`` for the test that holds it.

    python tools/write_api.py             writes both files
    python tools/write_api.py --check     writes nothing, and says which file is stale

Nothing is listed by hand. Public are the names in ``fogline.__all__``, and those in ``__all__`` of every documented
submodule: one that is itself in ``fogline.__all__``, or that the README or a page of ``docs/`` imports from. A name
that is reached by several ways is listed once, at its shortest. A name whose use warns that it goes away is listed as
deprecated, whether or not what it leads to is installed.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import importlib
import inspect
import re
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOP = "fogline"
PAGE = Path("docs/api.md")
LIST = Path("tests/api.txt")
COMMAND = "make api"
FOR_DEVELOPERS = ("docs/architecture.md", "docs/deprecation.md")
"""Pages that name things without explaining how to use them."""
IMPORT_WEIGHT = 3
"""How many mentions one import is worth: a page that imports a name shows how to use it."""

GENERATED = re.compile(r"^Made by `", flags=re.MULTILINE)
IMPORT = re.compile(rf"(?:from ({TOP}(?:\.[a-z]\w*)*) import ([\w, ]+)|import ({TOP}(?:\.[a-z]\w*)+))")
CODE = re.compile(r"```.*?```|`[^`\n]+`", flags=re.DOTALL)
METHODS = (types.FunctionType, classmethod, staticmethod, property, functools.cached_property)


@dataclass(frozen=True)
class Entry:
    """One public name.

    Parameters
    ----------
    module, name : str
        Where it is imported from, and what it is called there.
    lines : tuple of str
        Its own line of the list, then those of its public methods and properties.
    summary : str
        First sentence of its docstring; of a deprecated name the warning.
    """

    module: str
    name: str
    lines: tuple[str, ...]
    summary: str


def own_pages(root: Path) -> dict[str, str]:
    """Text of the README and of each page that is written by hand, by path."""
    paths = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return {path: text for path, text in texts.items() if path != PAGE.as_posix() and not GENERATED.search(text[:400])}


def documented_modules(pages: Iterable[str]) -> list[str]:
    """Submodules that some page imports from, sorted; those with a leading underscore are nobody's business."""
    found = {match[1] or match[3] for text in pages for code in CODE.findall(text) for match in IMPORT.finditer(code)}
    return sorted(found - {TOP})


def formula(text: str) -> str:
    r"""Return a formula as it can be read in a line of text.

    Examples
    --------
    >>> formula(r"\varepsilon"), formula(r"f(x) \propto x^{k - 1}")
    ('epsilon', '`f(x) ∝ x^(k - 1)`')
    """
    for sign, plain in (("\\propto", "∝"), ("\\pm", "±"), ("{", "("), ("}", ")")):
        text = text.replace(sign, plain)
    text = re.sub(r"\\(?:var)?(\w+)", r"\1", text)
    return f"`{text}`" if re.search(r"[\^∝=]", text) else text


def first_sentence(thing: object) -> str:
    """Return the first sentence of a docstring on one line, empty if there is none."""
    text = inspect.getdoc(thing) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z`])", paragraph)[0]
    sentence = re.sub(r":math:`([^`]+)`", lambda found: formula(found[1]), sentence)
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", sentence)


def signature(thing: Any) -> str:
    """Return parameters and defaults as text, without types: those are the type checker's concern.

    Raises
    ------
    ValueError
        If a default is shown by its address in memory, which no two runs share.
    """
    if inspect.isclass(thing) and getattr(thing.__init__, "__module__", "") == "typing":
        return "()"  # a protocol, whose own __init__ looks different in every version of Python
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):  # written in C, or called through a metaclass
        return "(...)"
    empty = inspect.Parameter.empty
    bare = [parameter.replace(annotation=empty) for parameter in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    if " at 0x" in text:
        raise ValueError(f"the default of a parameter has no lasting text: {text}; give its class a __repr__")
    return text


def line_of(address: str, thing: Any) -> str:
    """Return the line of the list for one name, without its methods."""
    if inspect.ismodule(thing):
        return f"module {address}"
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return f"exception {address}({', '.join(base.__name__ for base in thing.__bases__)})"
    if inspect.isclass(thing):
        return f"class {address}{signature(thing)}"
    if inspect.isroutine(thing):
        return f"def {address}{signature(thing)}"
    return f"value {address}: {type(thing).__name__}"


def methods(thing: Any) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that fogline defines: those that scikit-learn brings change with its version."""
    if not inspect.isclass(thing):
        return
    found: dict[str, Any] = {}
    for cls in reversed(thing.__mro__):
        if cls.__module__.partition(".")[0] == TOP:
            found |= {name: member for name, member in vars(cls).items() if isinstance(member, METHODS)}
    yield from sorted((name, member) for name, member in found.items() if not name.startswith("_"))


def method_line(address: str, name: str, member: Any) -> str:
    """Return the line of one method or property."""
    if isinstance(member, property | functools.cached_property):
        return f"property {address}.{name}"
    bound = isinstance(member, classmethod)
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    text = signature(function)
    if bound or isinstance(member, types.FunctionType):  # `self` and `cls` are not given by the caller
        text = re.sub(r"^\((?:self|cls)(?:, )?", "(", text)
    return f"def {address}.{name}{text}"


def look_up(module: types.ModuleType, name: str) -> tuple[Any, str]:
    """Return what a name stands for and, if it goes away, the words that say so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            thing = getattr(module, name)
        except ImportError:
            thing = None
    said = [str(warning.message) for warning in caught if issubclass(warning.category, FutureWarning)]
    if thing is None and not said:
        raise ImportError(f"{module.__name__}.{name} is listed in __all__ and cannot be imported")
    return thing, " ".join(said)


def entries_of(module: types.ModuleType) -> Iterator[tuple[Entry, Any]]:
    """Each name of a module's ``__all__``, with what it stands for."""
    if not hasattr(module, "__all__"):
        raise ValueError(f"{module.__name__} is documented and has no __all__: say there which of its names are public")
    for name in sorted(module.__all__, key=lambda name: (name.lower(), name)):
        address = f"{module.__name__}.{name}"
        thing, leaving = look_up(module, name)
        if leaving:
            yield Entry(module.__name__, name, (f"deprecated {address}",), f"Deprecated. {leaving}"), None
            continue
        own = [method_line(address, method, member) for method, member in methods(thing)]
        of_type = isinstance(thing, types.ModuleType) or inspect.isclass(thing) or inspect.isroutine(thing)
        summary = first_sentence(thing) if of_type else ""
        yield Entry(module.__name__, name, (line_of(address, thing), *own), summary), thing


def public_names(root: Path) -> list[Entry]:
    """All public names: those of the front door, then those of each documented submodule."""
    top = importlib.import_module(TOP)
    front = list(entries_of(top))
    shown = {f"{TOP}.{entry.name}" for entry, thing in front if isinstance(thing, types.ModuleType)}
    seen = {id(thing) for _, thing in front if inspect.isclass(thing) or inspect.isroutine(thing)}
    found = [entry for entry, _ in front]
    documented = shown | set(documented_modules(own_pages(root).values()))
    for name in sorted(documented, key=lambda name: (name.count("."), name)):
        for entry, thing in entries_of(importlib.import_module(name)):
            if id(thing) not in seen:
                found.append(entry)
            if inspect.isclass(thing) or inspect.isroutine(thing):
                seen.add(id(thing))
    return found


def page_about(entry: Entry, pages: dict[str, str]) -> str:
    """Page whose code names an entry most often, empty if none does."""
    last = entry.module.rpartition(".")[2]
    used = rf"\b{entry.name}\b" if entry.name[0].isupper() else rf"\b{last}\.{entry.name}\b|(?<![.\w ]){entry.name}\("
    counts = {}
    for path, text in pages.items():
        code = "\n".join(CODE.findall(text))
        taken = [match for match in IMPORT.finditer(code) if match[1] and entry.name in re.split(r",\s*", match[2])]
        counts[path] = len(re.findall(used, code)) + IMPORT_WEIGHT * sum(match[1] == entry.module for match in taken)
    best = max(counts, key=lambda path: counts[path], default="")
    return best if best and counts[best] else ""


def render_list(entries: list[Entry]) -> str:
    """Return ``tests/api.txt``."""
    return "\n".join(line for entry in entries for line in entry.lines) + "\n"


def render_page(entries: list[Entry], pages: dict[str, str]) -> str:
    """Return ``docs/api.md``."""
    parts = [
        "# Public names",
        f"Made by `{COMMAND}` from the docstrings. Do not edit.",
        "These names, their parameters and defaults change only as the [deprecation policy](deprecation.md) says.\n"
        "Names that are not listed here may change in any version. `help(name)` shows the whole docstring.",
    ]
    texts = {path: text for path, text in pages.items() if path.startswith("docs/") and path not in FOR_DEVELOPERS}
    for module in dict.fromkeys(entry.module for entry in entries):
        about = first_sentence(importlib.import_module(module))
        rows = ["| name | what it is | more |", "| --- | --- | --- |"]
        for entry in (entry for entry in entries if entry.module == module):
            call = re.sub(r"^\w+ ", "", entry.lines[0]).removeprefix(f"{module}.")
            page = page_about(entry, texts).removeprefix("docs/")
            link = f"[{page.removesuffix('.md')}]({page})" if page else ""
            rows.append(
                f"| `{call.replace('|', chr(92) + '|')}` | {entry.summary.replace('|', chr(92) + '|')} | {link} |"
            )
        parts += [f"## `{module}`", about, "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def stale(root: Path, wanted: dict[Path, str]) -> list[str]:
    """What differs between the files and what they should hold, as lines of a diff."""
    said: list[str] = []
    for path, text in wanted.items():
        present = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else ""
        name = path.as_posix()
        said += difflib.unified_diff(
            present.splitlines(), text.splitlines(), name, f"{name}, as it is now", lineterm="", n=0
        )
    return said


def files(root: Path = ROOT) -> dict[Path, str]:
    """Both files as they should be."""
    entries = public_names(root)
    return {PAGE: render_page(entries, own_pages(root)), LIST: render_list(entries)}


def main(words: list[str] | None = None) -> int:
    """Write or compare, and return the exit code."""
    parser = argparse.ArgumentParser(description="Write docs/api.md and tests/api.txt from the public names.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    asked = parser.parse_args(words)
    wanted = files()
    differences = stale(ROOT, wanted)
    if asked.check:
        print("\n".join([*differences, f"run `{COMMAND}`"] if differences else ["up to date"]))
        return int(bool(differences))
    for path, text in wanted.items():
        (ROOT / path).write_text(text, encoding="utf-8")
    print(f"{len(differences)} lines changed" if differences else "nothing changed")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main())
