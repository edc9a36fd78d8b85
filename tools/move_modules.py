"""Move and merge modules by a table, and rewrite whatever names them.

    python tools/move_modules.py --check     say what would clash, run in circles or be left without a place
    python tools/move_modules.py             do it in the work tree, by ``git mv``; then run ``make format``

The table is ``tools/moves.toml``. Rewritten are import statements (also in doctests and in functions), dotted names in
strings and prose, and paths of modules and proofs. What a script cannot decide it prints: names that two merged modules
share, and modules that were used by name within their own group. New ``__init__.py`` files are written by hand.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "fogline"
SUFFIXES = {".py", ".md", ".toml", ".j2", ".html", ".txt", ".yaml", ".yml"}
KEPT = {"CHANGELOG.md", "moves.toml"}
"""Files that speak of old places on purpose."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def place(name: str) -> Path:
    """File of a row's name."""
    if name.startswith("fogline_research/"):
        return ROOT / "research" / "src" / name
    return ROOT / name if name.startswith("tests/") else PACKAGE / name


def dotted(name: str) -> str:
    """Dotted module name of a row's name."""
    base = name if name.startswith(("fogline_research/", "tests/")) else f"fogline/{name}"
    return base.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@dataclass
class Moves:
    """The table, and what follows from it.

    Parameters
    ----------
    modules : dict
        New file to old files.
    renames : dict
        Dotted old name to new bare name.
    proofs, tests : dict
        Old path to new path.
    dissolved : set of str
        Packages whose re-exports are looked up.
    """

    modules: dict[str, list[str]]
    renames: dict[str, str]
    proofs: dict[str, str]
    tests: dict[str, str]
    dissolved: set[str]
    log: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Moves:
        """Read the table."""
        rows = tomllib.loads(path.read_text())
        return cls(rows["modules"], rows["renames"], rows["proofs"], rows["tests"], set(rows["packages"]["dissolved"]))

    @cached_property
    def sources(self) -> dict[str, str]:
        """Old files and their texts."""
        return {old: (PACKAGE / old).read_text() for olds in self.modules.values() for old in olds}

    @cached_property
    def homes(self) -> dict[str, str]:
        """Old module to new module."""
        return {dotted(old): dotted(new) for new, olds in self.modules.items() for old in olds}

    @cached_property
    def exports(self) -> dict[tuple[str, str], tuple[str, str]]:
        """(package, name) to the (module, name) that the package's ``__init__`` takes it from."""
        found = {}
        for old, text in self.sources.items():
            if old.endswith("__init__.py"):
                for node in ast.walk(ast.parse(text)):
                    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fogline"):
                        names = [(alias.asname or alias.name, alias.name) for alias in node.names]
                        found.update({(dotted(old), local): (str(node.module), name) for local, name in names})
        return found

    def defined(self, module: str, name: str) -> tuple[str, str]:
        """Old module and name behind a re-export of a package that dissolves."""
        while (module, name) in self.exports and module in self.dissolved:
            module, name = self.exports[(module, name)]
        return module, name

    def target(self, module: str, name: str) -> tuple[str, str]:
        """New module and name of ``from module import name``; a module is a name of its new package."""
        full = f"{module}.{name}"
        if full in self.homes and (module, name) not in self.exports:
            package, _, last = self.homes[full].rpartition(".")
            return package, last
        module, name = self.defined(module, name)
        if f"{module}.{name}" in self.homes and (module, name) not in self.exports:
            return self.target(module, name)
        return self.homes.get(module, module), self.renames.get(f"{module}.{name}", name)

    @cached_property
    def paths(self) -> dict[str, str]:
        """Old relative path to new, of modules and proofs."""
        moved = {old: new for new, olds in self.modules.items() for old in olds if old != new}
        return {old: new for old, new in {**moved, **self.proofs}.items() if not old.endswith("__init__.py")}

    @cached_property
    def path_pattern(self) -> re.Pattern[str]:
        """Any old path, with or without the folders above it; longer ones first."""
        either = "|".join(re.escape(old) for old in sorted(self.paths, key=len, reverse=True))
        return re.compile(rf"(?<![\w/])((?:\.\./)*(?:src/fogline/)?)({either})(?!\w)")


# -- imports ----------------------------------------------------------------------------------------------


def new_import(moves: Moves, node: ast.Import | ast.ImportFrom, within: str | None = None) -> list[str] | None:
    """Give the lines that take an import's place, None if it stays; imports of the module itself vanish."""
    if isinstance(node, ast.Import):
        names = [(alias.name, moves.homes.get(alias.name, alias.name), alias.asname) for alias in node.names]
        if all(old == new for old, new, _ in names):
            return None
        return [f"import {new}" + (f" as {local}" if local else "") for _, new, local in names]
    if node.level or not (node.module or "").startswith("fogline"):
        return None
    lines, groups, same = [], dict[str, list[str]](), True
    for alias in node.names:
        module, name = moves.target(str(node.module), alias.name)
        local = alias.asname or alias.name
        same = same and (module, name) == (node.module, alias.name)
        if f"{module}.{name}" == within:
            moves.log.append(f"{within}: was used as the module {local!r} within its own group")
        elif module == within:
            same = False
            lines += [f"{local} = {name}"] if local != name else []
        else:
            groups.setdefault(module, []).append(name if local == name else f"{name} as {local}")
    if same:
        return None
    return lines + [f"from {module} import {', '.join(names)}" for module, names in groups.items()]


def with_new_imports(moves: Moves, text: str, within: str | None = None) -> str:
    """Rewrite every import statement of a source, wherever it stands."""
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in sorted(nodes, key=lambda node: -node.lineno):
        new = new_import(moves, node, within)
        if new is not None:
            last = lines[(node.end_lineno or 0) - 1].rstrip("\n")
            remark = last[last.index("  #") :] if "  #" in last else ""
            indent = " " * node.col_offset
            empty = [f"{indent}pass\n"] if node.col_offset and not new else []
            lines[node.lineno - 1 : node.end_lineno] = [f"{indent}{line}{remark}\n" for line in new] or empty
    return "".join(lines)


DOCTEST = re.compile(r"^([ \t]*(?:>>> |\.\.\. )?)((?:from fogline[\w.]* import [^\n(#]+|import fogline[\w. ]*))", re.M)
DOTTED = re.compile(r"\bfogline(?:\.\w+)+")


def with_new_names(moves: Moves, text: str) -> str:
    """Rewrite imports of doctests, dotted names, and paths of modules and proofs."""

    def imported(match: re.Match[str]) -> str:
        try:
            (node,) = ast.parse(match.group(2).strip()).body
        except (SyntaxError, ValueError):
            return match.group()
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        new = new_import(moves, node) if is_import else None  # type: ignore[arg-type]
        return match.group() if new is None else "\n".join(match.group(1) + line for line in new)

    def named(match: re.Match[str]) -> str:
        parts = match.group().split(".")
        for size in range(len(parts), 1, -1):
            module, rest = ".".join(parts[:size]), parts[size:]
            if module in moves.homes:
                if not rest:
                    return moves.homes[module]
                return ".".join([*moves.target(module, rest[0]), *rest[1:]])
        return match.group()

    text = DOTTED.sub(named, DOCTEST.sub(imported, text))
    return moves.path_pattern.sub(lambda match: _moved_path(moves, match), text)


def _moved_path(moves: Moves, match: re.Match[str]) -> str:
    prefix, new = match.group(1), moves.paths[match.group(2)]
    return (prefix.replace("src/fogline/", "research/src/") if new.startswith("fogline_research/") else prefix) + new


# -- merging ----------------------------------------------------------------------------------------------


@dataclass
class Parts:
    """A source taken apart."""

    docstring: str = ""
    raw: bool = False
    imports: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    body: list[tuple[str, str, ast.stmt]] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Parts:
        """Take a source apart by its syntax tree; comments stay with what they stand above."""
        tree, lines = ast.parse(text), text.splitlines(keepends=True)
        parts, last = cls(ast.get_docstring(tree, clean=False) or "", text.startswith('r"""')), 0
        for node in tree.body[bool(ast.get_docstring(tree)) :]:
            decorators = [one.lineno for one in getattr(node, "decorator_list", [])]
            start, end = min([node.lineno, *decorators]), node.end_lineno or 0
            lead = "".join(lines[last or tree.body[0].end_lineno or 0 : start - 1])
            segment, last = "".join(lines[start - 1 : end]), end
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                parts.imports.append(segment)
            elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                parts.typed.append("".join(lines[node.body[0].lineno - 1 : end]))
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                parts.names += ast.literal_eval(node.value)
            else:
                parts.body.append((lead, segment, node))
        return parts


def by_imports(moves: Moves, olds: list[str]) -> Iterator[str]:
    """Order modules so that each comes after those it imports."""
    group = {dotted(old): old for old in olds}
    needs = {}
    for old in olds:
        found = set()
        for node in ast.walk(ast.parse(moves.sources[old])):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        needs[old] = {group[name] for name in found & set(group)} - {old}
    rest = list(olds)
    while rest:
        chosen = next((old for old in rest if not needs[old] & set(rest)), rest[0])
        rest.remove(chosen)
        yield chosen


def merged(moves: Moves, new: str) -> str:
    """One source of several; equal definitions are kept once, different ones of one name are logged."""
    olds, whole, seen = moves.modules[new], Parts(), dict[str, str]()
    documented = []
    for old in by_imports(moves, olds):
        parts = Parts.of(with_new_imports(moves, _without_own_names(moves, old, new), dotted(new)))
        documented.append((Path(old).stem.strip("_") != Path(new).stem, parts.docstring.strip()))
        whole.raw |= parts.raw
        whole.imports += parts.imports
        whole.typed += parts.typed
        whole.names += parts.names
        for lead, segment, node in parts.body:
            name = _name_of(node)
            if name is not None and name in seen:
                if seen[name] == ast.dump(node):
                    continue
                moves.log.append(f"{new}: {name} of {old} is there already, with another meaning")
            seen |= {name: ast.dump(node)} if name else {}
            whole.body.append((lead, segment, node))
    return _joined(whole, "\n\n".join(text for _, text in sorted(documented, key=lambda pair: pair[0])))


def _name_of(node: ast.stmt) -> str | None:
    if isinstance(node, Definition):
        return node.name
    is_name = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    return node.targets[0].id if is_name else None  # type: ignore[attr-defined]


def _without_own_names(moves: Moves, old: str, new: str) -> str:
    """A module's text with its renames, and with other modules of its group no longer named before a dot."""
    text = moves.sources[old]
    for full, name in moves.renames.items():
        module, _, before = full.rpartition(".")
        if module == dotted(old):
            text = re.sub(rf"(?<![\w.]){before}(?!\w)", name, text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if moves.homes.get(f"{node.module}.{alias.name}") == dotted(new):
                    text = re.sub(rf"(?<![\w.]){alias.asname or alias.name}\.(?=\w)", "", text)
    return text


def _joined(parts: Parts, docstring: str) -> str:
    opening, end = 'r"""' if parts.raw else '"""', '\n"""' if "\n" in docstring else '"""'
    text = f"{opening}{docstring}{end}\n\nfrom __future__ import annotations\n\n" + "".join(
        dict.fromkeys(parts.imports)
    )
    if parts.typed:
        text += "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n" + "".join(dict.fromkeys(parts.typed))
    if parts.names:
        text += f"\n__all__ = {sorted(set(parts.names))!r}\n"
    for lead, segment, node in parts.body:
        gap = "\n\n" if isinstance(node, Definition) else "\n" * lead.startswith("\n")
        text += (lead if lead.strip() else gap) + segment
    return text


# -- the whole move ---------------------------------------------------------------------------------------


def git(*arguments: str | Path) -> str:
    """Run git in the repository."""
    done = subprocess.run(["git", *map(str, arguments)], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def move(old: Path, new: Path) -> None:
    """``git mv``, with the folders that it needs."""
    if old != new and old.exists():
        new.parent.mkdir(parents=True, exist_ok=True)
        git("mv", old, new)


def run(moves: Moves) -> None:
    """Move, merge and rewrite."""
    texts = {}
    for new, olds in moves.modules.items():
        is_one = len(olds) == 1
        texts[new] = with_new_imports(moves, _without_own_names(moves, olds[0], new)) if is_one else merged(moves, new)
    for new, olds in moves.modules.items():
        largest = max(olds, key=lambda old: (Path(old).stem == Path(new).stem, len(moves.sources[old])))
        move(PACKAGE / largest, place(new))
        for old in set(olds) - {largest, new}:
            git("rm", "-q", "-f", PACKAGE / old)
        place(new).write_text(texts[new])
    for old, new in moves.proofs.items():
        move(PACKAGE / old, place(new))
    for old, new in moves.tests.items():
        for file in sorted((ROOT / old).rglob("*.*")) if (ROOT / old).is_dir() else [ROOT / old]:
            if "__pycache__" not in file.parts:
                move(file, ROOT / new / file.relative_to(ROOT / old) if (ROOT / old).is_dir() else ROOT / new)
    built = {place(new) for new in moves.modules}
    for name in git("ls-files", "-co", "--exclude-standard").splitlines():
        file = ROOT / name
        if file.is_file() and (file.suffix in SUFFIXES or file.name == "Makefile") and file.name not in KEPT:
            old_text = file.read_text()
            text = with_new_imports(moves, old_text) if file.suffix == ".py" and file not in built else old_text
            text = with_new_names(moves, text)
            if text != old_text:
                file.write_text(text)


def complaints(moves: Moves) -> list[str]:
    """What the table does not know, names that is not there, or would make clash."""
    there = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    named = {old for olds in moves.modules.values() for old in olds}
    found = [f"{name} has no place" for name in sorted(there - named)]
    found += [f"{name} is not there" for name in sorted(named - there)]
    proofs = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.proof.md")}
    found += [f"{name} is not there" for name in sorted(set(moves.proofs) - proofs)]
    if named <= there:
        for new, olds in moves.modules.items():
            if len(olds) > 1:
                merged(moves, new)
    return found + moves.log


def main() -> int:
    """Check or move."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    moves = Moves.read(ROOT / "tools" / "moves.toml")
    if parser.parse_args().check:
        found = complaints(moves)
        print("\n".join(found) or "the table fits the tree")
        return bool(found)
    run(moves)
    print("\n".join(moves.log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
