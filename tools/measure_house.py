"""Measure the house: sizes, imports, types and words of the code, as docs/architecture.md states them.

    python tools/measure_house.py            prints one line per figure
    python tools/measure_house.py --json     the same as JSON

Everything is read from the syntax trees, except for the files that ``fogline modes`` passes through: they are those of
which at least one function runs between the command line and the page, in a real run on the bundled table.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "src" / "fogline"
TRUSTED = ("sources", "queries", "releases", "federation", "mechanisms")

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
EMPTY = frozenset({
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
})  # fmt: skip

TRACED = """
import sys, tempfile
from pathlib import Path
import fogline.cli.app, fogline.report, fogline.estimators
from fogline.datasets.tables import load_faithful
core, seen, used = str(Path(fogline.__file__).parent), set(), set()

def loads(frame):
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(core)):
        frame = frame.f_back
    return frame is not None

def note(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and frame.f_code.co_name != "<module>" and name.startswith(core):
        seen.add(name)
        if name not in used and not loads(frame):
            used.add(name)

with tempfile.TemporaryDirectory() as folder:
    words = ["modes", str(load_faithful().path), "--bounds", "1:6,40:100", "--epsilon", "1", "--delta", "1e-6"]
    sys.setprofile(note)
    try:
        fogline.cli.app.app([*words, "--report", folder + "/page.html"], standalone_mode=False)
    finally:
        sys.setprofile(None)
print(len(seen), len(used), file=sys.stderr)
"""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a syntax tree."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its signature and its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def names_any(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a signature says ``Any`` by itself, not within ``dict[str, Any]`` and the like."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    notes = [argument.annotation for argument in arguments] + [function.returns]
    return any(isinstance(note, ast.Name) and note.id == "Any" for note in notes)


def module_name(path: Path, top: Path) -> str:
    """Dotted name of a file."""
    return ".".join(path.relative_to(top.parent).with_suffix("").parts).removesuffix(".__init__")


def importers(files: list[Path], top: Path) -> dict[str, set[str]]:
    """Modules that import each module, wherever the import stands."""
    modules = {module_name(path, top) for path in files}
    by: dict[str, set[str]] = {name: set() for name in modules}
    for path in files:
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
        for name in (found & modules) - {module_name(path, top)}:
            by[name].add(module_name(path, top))
    return by


def code_lines(path: Path) -> int:
    """Lines that hold code: without docstrings, comments and blank lines."""
    texts = [node.body[0] for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, DOCUMENTED)
             and ast.get_docstring(node, clean=False) is not None]  # fmt: skip
    described = {line for text in texts for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}
    filled: set[int] = set()
    with path.open("rb") as content:
        for token in tokenize.tokenize(content.readline):
            if token.type not in EMPTY:
                filled.update(range(token.start[0], token.end[0] + 1))
    return len(filled - described)


def comment_share(files: list[Path]) -> float:
    """Share of lines that hold a comment of words, in percent."""
    comments = lines = 0
    for path in files:
        lines += len(path.read_text().splitlines())
        with path.open("rb") as content:
            kinds = [token for token in tokenize.tokenize(content.readline) if token.type == tokenize.COMMENT]
        comments += sum(not token.string.startswith(("# type:", "# noqa", "# pragma")) for token in kinds)
    return 100 * comments / lines


def measure() -> dict[str, float]:
    """All figures by their names."""
    files = sorted(CORE.rglob("*.py"))
    trees = {path: ast.parse(path.read_text()) for path in files}
    sizes = [len(path.read_text().splitlines()) for path in files if path.name != "__init__.py"]
    every = [function for tree in trees.values() for function in functions(tree)]
    by = importers(files, CORE)
    plain = [module_name(path, CORE) for path in files if path.name not in ("__init__.py", "__main__.py")]
    once = [name for name in plain if len(by[name]) == 1]
    listed = [name for name in once if by[name] == {name.rpartition(".")[0]}]
    trusted = [path for path in files if path.relative_to(CORE).parts[0] in TRUSTED]
    import fogline

    traced = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, check=True)
    return {
        "files": len(files),
        "lines": sum(len(path.read_text().splitlines()) for path in files),
        "median lines per file": statistics.median(sizes),
        "longest function body": max(map(body_lines, every)),
        "modules with one importer, %": round(100 * len(once) / len(plain), 1),
        "of these, only their package, %": round(100 * len(listed) / len(plain), 1),
        "public names": len(fogline.__all__),
        "lines of the trusted base": sum(len(path.read_text().splitlines()) for path in trusted),
        "of these, lines of code": sum(map(code_lines, trusted)),
        "functions with a bare Any, %": round(100 * sum(map(names_any, every)) / len(every), 1),
        "files from `fogline modes` to the page": int(traced.stderr.split()[-2]),
        "of these, files that do more than load": int(traced.stderr.split()[-1]),
        "lines with a comment, %": round(comment_share(files), 2),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON")
    found = measure()
    if parser.parse_args().json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name:<40} {value:>10,}")


if __name__ == "__main__":
    main()
