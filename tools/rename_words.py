"""Rename identifiers by a table, wherever code, doctests, proofs and documents name them.

    python tools/rename_words.py --check     print every hit of every rule, and what would clash; change nothing
    python tools/rename_words.py             do it in the work tree; then run ``make format``

The table is ``tools/words.toml``. It has six kinds of rules:

``[[names]]``
    ``old``, ``new``, ``of``: a name at the top of a module of ``of`` (a module, or a package and all below it). It is
    followed through imports, re-exports, lazy homes, ``__all__``, patches by string and dotted names, so that other
    things of the same name stay as they are.
``[[members]]``
    ``old``, ``new``, ``in``: attributes, methods, fields of classes and keywords of calls, in the files of ``in``.
``[[locals]]``
    ``old``, ``new``, ``in``: variables and parameters of functions and keywords of calls, in the files of ``in``.
``[[aliases]]``
    ``old``, ``new``, ``in``: what an import is called in these files (``import module as old``).
``[[modules]]``
    ``old``, ``new``: a file of a module and its new path; its dotted name and its path are replaced as text.
``[[wording]]``
    ``old``, ``new``, ``in``: plain text, replaced last; for what names an identifier where no rule can see it.

A rule without hits is reported and is no error: the script can be run again, also after the code has changed. Names of
tests, the changelog and strings that are no names of code are never touched. A function in which the new name is taken
is left alone and reported as a clash.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = "tools/words.toml"
KEPT = {"CHANGELOG.md", "tools/moves.toml", "tools/rename_words.py", "tests/test_words.py", TABLE}
"""Files that speak of old names on purpose."""

BASES = {"src/": "", "research/src/": "", "benchmarks/": "", "": ""}
"""Folders that modules are imported from."""

OWN = ("fogline", "fogline_research", "tests", "benchmarks")
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Rule:
    """One line of the table."""

    kind: str
    old: str
    new: str
    of: str = ""
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = self.of or ", ".join(self.files) or "module"
        return f"{self.kind:8} {self.old} -> {self.new} ({where})" if self.kind != "wording" else f"{self.old!r:.60}"

    def is_in(self, path: str) -> bool:
        """Whether a rule limited to files covers this one."""
        return any(fnmatch(path, pattern) for pattern in self.files)


def read_rules(path: Path) -> list[Rule]:
    """Read the table."""
    rows = tomllib.loads(path.read_text())
    names = [Rule("names", row["old"], row["new"], of=row["of"]) for row in rows.get("names", [])]
    return (
        names
        + [
            Rule(kind, row["old"], row["new"], files=tuple(row["in"]))
            for kind in ("members", "locals", "aliases", "wording")
            for row in rows.get(kind, [])
        ]
        + [Rule("modules", row["old"], row["new"]) for row in rows.get("modules", [])]
    )


# -- scopes -----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Scope:
    """Names that a module, a class, a function or a comprehension binds, and where imported ones come from."""

    kind: str
    parent: Scope | None
    bound: set[str] = field(default_factory=set)
    imported: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def owner(self, name: str) -> Scope | None:
        """Scope that a name means here; None for names of Python."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if name in scope.bound and name not in scope.outer and (first or scope.kind != "class"):
                return scope
            first = first and scope.kind == "comprehension"  # a class is seen from its own comprehensions, nearly
            scope = scope.parent
        return None


def _is_within(scope: Scope | None, outer: Scope) -> bool:
    while scope is not None and scope is not outer:
        scope = scope.parent
    return scope is not None


class Scopes(ast.NodeVisitor):
    """Give each node that names something its scope."""

    def __init__(self, tree: ast.AST, module: str, outside: Scope | None = None) -> None:
        self.module = module
        self.top = Scope("module" if outside is None else "example", outside)
        self.now = self.top
        self.at: dict[ast.AST, Scope] = {}
        self.visit(tree)

    def visit(self, node: ast.AST) -> Any:
        """Note the scope, bind what the node binds, and go on."""
        self.at[node] = self.now
        if isinstance(node, ast.Name):
            (self.now.used if isinstance(node.ctx, ast.Load) else self.now.bound).add(node.id)
        elif isinstance(node, ast.arg):
            self.now.bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            self.now.bound.add(node.name)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.now.outer |= set(node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._bind_import(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.now.bound.add(node.name)
        if isinstance(node, Function | ast.ClassDef):
            self._enter_definition(node)
        elif isinstance(node, Comprehension):
            self._enter_comprehension(node)
        else:
            self.generic_visit(node)

    def _bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                target: tuple[str, str | None] = (node.module or "", alias.name)
                local = alias.asname or alias.name
            else:
                local = alias.asname or alias.name.partition(".")[0]
                target = (alias.name if alias.asname else local, None)
            self.now.bound.add(local)
            self.now.imported[local] = target

    def _enter_definition(self, node: ast.AST) -> None:
        outside = self.now
        inner = Scope("class" if isinstance(node, ast.ClassDef) else "function", outside)
        for name, value in ast.iter_fields(node):
            self.now = inner if name == "body" else outside
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.arguments):
                    self._visit_arguments(child, inner, outside)
                elif isinstance(child, ast.AST):
                    self.visit(child)
        self.now = outside

    def _visit_arguments(self, node: ast.arguments, inner: Scope, outside: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.arg):
                self.now = inner
                self.at[child] = inner
                inner.bound.add(child.arg)
                self.now = outside
                if child.annotation is not None:
                    self.visit(child.annotation)
            else:
                self.now = outside
                self.visit(child)

    def _enter_comprehension(self, node: ast.AST) -> None:
        outside = self.now
        inner = Scope("comprehension", outside)
        generators = node.generators  # type: ignore[attr-defined]
        self.visit(generators[0].iter)
        self.now = inner
        for i, generator in enumerate(generators):
            self.at[generator] = inner
            self.visit(generator.target)
            for child in ([] if i == 0 else [generator.iter]) + generator.ifs:
                self.visit(child)
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                self.visit(getattr(node, name))
        self.now = outside


# -- modules ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Module:
    """A source and what it binds at its top."""

    path: str
    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def scopes(self) -> Scopes:
        """Scopes of all nodes."""
        return Scopes(self.tree, self.name)

    @cached_property
    def homes(self) -> dict[str, str]:
        """Names that a dictionary of this module gives a module for: lazy re-exports."""
        found: dict[str, str] = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                for key, value in zip(node.value.keys, node.value.values, strict=True):
                    home = value.value if isinstance(value, ast.Constant) else None
                    if isinstance(key, ast.Constant) and isinstance(home, str) and home.startswith("fogline"):
                        found[str(key.value)] = home
        return found


@dataclass
class Tree:
    """All sources of the work tree, and the rules."""

    rules: list[Rule]
    files: list[str]
    modules: dict[str, Module] = field(default_factory=dict)
    by_path: dict[str, Module] = field(default_factory=dict)
    hits: dict[Rule, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    clashes: list[str] = field(default_factory=list)
    dropped: set[Rule] = field(default_factory=set)

    @classmethod
    def read(cls, rules: list[Rule]) -> Tree:
        """Read every Python source that git knows or could know."""
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        files = sorted({name for name in listed if name not in KEPT and (ROOT / name).is_file()})
        tree = cls(rules, files)
        for path in files:
            if path.endswith(".py"):
                module = Module(path, module_name(path), (ROOT / path).read_text(encoding="utf-8"))
                tree.modules[module.name] = tree.by_path[path] = module
        return tree

    @cached_property
    def by_old(self) -> dict[str, list[Rule]]:
        """Rules by old name."""
        found: dict[str, list[Rule]] = defaultdict(list)
        for rule in self.rules:
            found[rule.old].append(rule)
        return found

    def home(self, module: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> tuple[str, str] | None:
        """Module that defines what ``module.name`` is; None for modules and for what is not ours."""
        found = self.modules.get(module)
        if found is None or (module, name) in seen:
            return None
        top, seen = found.scopes.top, seen | {(module, name)}
        if name in top.imported:
            source, inner = top.imported[name]
            return None if inner is None else self.home(source, inner, seen)
        if name in top.bound:
            return module, name
        return self.home(found.homes[name], name, seen) if name in found.homes else None

    def submodule(self, module: str, name: str) -> str | None:
        """Module that ``module.name`` is, also where it is imported under another name."""
        if f"{module}.{name}" in self.modules or any(one.startswith(f"{module}.{name}.") for one in self.modules):
            return f"{module}.{name}"
        found = self.modules.get(module)
        if found is not None and name in found.scopes.top.imported:
            source, inner = found.scopes.top.imported[name]
            return source if inner is None else self.submodule(source, inner)
        return None

    def named(self, module: str, name: str) -> Rule | None:
        """Rule for what ``module.name`` is, if it has one."""
        if not any(rule.kind == "names" for rule in self.by_old.get(name, ())):
            return None
        home = self.home(module, name)
        for rule in self.by_old[name] if home else ():
            if rule.kind == "names" and f"{home[0]}.".startswith(f"{rule.of}."):  # type: ignore[index]
                return rule
        return None

    def candidates(self, kind: str, name: str, path: str) -> list[Rule]:
        """Rules for a name in a file; the first that meets nothing is taken."""
        return [rule for rule in self.by_old.get(name, ()) if rule.kind == kind and rule.is_in(path)]

    def patched(self, module: str, name: str) -> Rule | None:
        """Rule for a name that is put into a module by a patch; it need not be there yet."""
        own = [rule for rule in self.by_old.get(name, ()) if rule.kind == "names"]
        is_there = module in self.modules and name in self.modules[module].scopes.top.bound
        return self.named(module, name) if is_there or len(own) != 1 or not _is_distinct(name) else own[0]

    def limited(self, kind: str, name: str, path: str) -> Rule | None:
        """First rule for a name in a file."""
        return next(iter(self.candidates(kind, name, path)), None)


def module_name(path: str) -> str:
    """Dotted name of a source."""
    for base in BASES:
        if path.startswith(base):
            stem = path.removeprefix(base) if base != "benchmarks/" else path
            return stem.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    raise ValueError(path)


# -- one source -------------------------------------------------------------------------------------------


@dataclass
class Source:
    """A piece of Python, a module or a doctest, and the renames in it."""

    tree: Tree
    path: str
    text: str
    parsed: ast.Module
    scopes: Scopes
    edits: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    fstrings: list[tuple[ast.JoinedStr, str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, tree: Tree, path: str, text: str, outside: Scope | None = None) -> Source:
        """Parse; a doctest sees the names of the module that it stands in."""
        parsed = ast.parse(text)
        scopes = Scopes(parsed, module_name(path), outside)
        return cls(tree, path, text, parsed, scopes)

    @cached_property
    def lines(self) -> list[bytes]:
        """Lines as bytes: columns of the syntax tree count bytes."""
        return [line.encode() for line in self.text.splitlines(keepends=True)]

    @cached_property
    def in_fstring(self) -> dict[ast.AST, ast.JoinedStr]:
        """Nodes inside f-strings, whose columns Python 3.11 does not know."""
        found: dict[ast.AST, ast.JoinedStr] = {}
        for node in ast.walk(self.parsed):
            if isinstance(node, ast.JoinedStr):
                for inner in ast.walk(node):
                    if inner is not node:
                        found.setdefault(inner, node)
        return found

    def renamed(self) -> str:
        """Text with all renames."""
        for node in ast.walk(self.parsed):
            self._visit(node)
        lines = list(self.lines)
        for (line, column), (old, new) in sorted(self.edits.items(), reverse=True):
            raw, end = lines[line - 1], column + len(old.encode())
            if raw[column:end] != old.encode():
                raise AssertionError(f"{self.path}:{line}: {old} is not where it should be: {raw!r}")
            lines[line - 1] = raw[:column] + new.encode() + raw[end:]
        text = b"".join(lines).decode()
        return self._with_fstrings(text)

    def _with_fstrings(self, text: str) -> str:
        by_node: dict[ast.JoinedStr, dict[str, str]] = defaultdict(dict)
        for node, old, new in self.fstrings:
            by_node[node][old] = new
        lines = text.splitlines(keepends=True)
        for node, names in by_node.items():
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            segment = "".join(lines[first:last])
            lines[first:last] = _in_braces(segment, names).splitlines(keepends=True)
        return "".join(lines)

    # - where things stand -

    def _edit(self, node: ast.AST, line: int, column: int, rule: Rule, hit: str = "") -> None:
        old, new = hit or rule.old, rule.new
        self.tree.hits[rule][self.path] += 1
        if node in self.in_fstring:
            self.fstrings.append((self.in_fstring[node], old, new))
        else:
            self.edits[(line, column)] = (old, new)

    def _after(self, node: ast.AST, word: str, rule: Rule) -> None:
        """Edit the first occurrence of the name behind the start of a node, such as behind ``def``."""
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):  # type: ignore[attr-defined]
            raw = self.lines[number - 1]
            start = node.col_offset if number == node.lineno else 0  # type: ignore[attr-defined]
            match = re.search(rb"(?<!\w)" + word.encode() + rb"(?!\w)", raw[start:])
            if match:
                self._edit(node, number, start + match.start(), rule)
                return

    def _inside(self, node: ast.expr, text: str) -> int:
        """Column of the text of a string, behind its prefix and quote."""
        return self.lines[node.lineno - 1].index(text.encode(), node.col_offset)

    # - what things mean -

    def _module_of(self, node: ast.expr) -> str | None:
        """Module that an expression is, None for anything else."""
        if isinstance(node, ast.Name):
            owner = self.scopes.at[node].owner(node.id)
            target = owner.imported.get(node.id) if owner else None
            if target is None:
                return None
            source, inner = target
            return source if inner is None else self.tree.submodule(source, inner)
        if isinstance(node, ast.Attribute):
            outer = self._module_of(node.value)
            return None if outer is None else self.tree.submodule(outer, node.attr)
        return None

    def _is_foreign(self, node: ast.expr) -> bool:
        """Whether an expression is a module of somebody else."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        owner = self.scopes.at[node].owner(node.id)
        target = owner.imported.get(node.id) if owner else None
        return target is not None and target[0].partition(".")[0] not in OWN and target[0] not in self.tree.modules

    def _name_rule(self, scope: Scope, name: str) -> Rule | None:
        """Rule for a bare name."""
        if name not in self.tree.by_old:
            return None
        owner = scope.owner(name)
        if owner is None:
            return None
        if name in owner.imported:
            source, inner = owner.imported[name]
            if inner == name and (rule := self.tree.named(source, name)):
                return self._unless_taken(rule, scope, owner)
            return self.tree.limited("aliases", name, self.path) if inner != name else None
        if owner.kind == "module":
            rule = self.tree.named(self.scopes.module, name)
            return self._unless_taken(rule, scope, owner) if rule else None
        if owner.kind == "class":
            return self.tree.limited("members", name, self.path)
        rules = self.tree.candidates("locals", name, self.path)
        for rule in rules:
            if not self._is_taken(rule.new, owner):
                return rule
        if rules:
            self.tree.clashes.append(f"{self.path}: {rules[-1]} would meet another {rules[-1].new}")
        return None

    def _is_taken(self, new: str, owner: Scope) -> bool:
        """Whether a function, or what is inside it, has the new name already: for itself or from outside."""
        inside = [scope for scope in {*self.scopes.at.values()} if _is_within(scope, owner)]
        return any(new in scope.bound | scope.used for scope in inside)

    def _unless_taken(self, rule: Rule, scope: Scope, owner: Scope) -> Rule | None:
        """None, and a clash, where the new name means something else between here and the owner of the old."""
        at: Scope | None = scope
        while at is not None:
            if rule.new in at.bound - at.outer and (at.kind != "class" or at is scope):
                self.tree.clashes.append(f"{self.path}: {rule} would meet {rule.new} of a {at.kind}")
                self.tree.dropped.add(rule)
                return None
            if at is owner:
                break
            at = at.parent
        return rule

    def _visit(self, node: ast.AST) -> None:
        scope = self.scopes.at.get(node, self.scopes.top)
        if isinstance(node, ast.Name):
            if rule := self._name_rule(scope, node.id):
                self._edit(node, node.lineno, node.col_offset, rule)
        elif isinstance(node, ast.arg):
            if rule := self._name_rule(scope, node.arg):
                self._edit(node, node.lineno, node.col_offset, rule)
        elif isinstance(node, ast.Attribute):
            self._visit_attribute(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.name.startswith("test_") and (rule := self._name_rule(scope, node.name)):
                self._after(node, node.name, rule)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            self._visit_import(node)
        elif isinstance(node, ast.Call):
            self._visit_call(node)
        elif isinstance(node, ast.Assign):
            self._visit_assignment(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                if rule := self._name_rule(scope, name):
                    self._after(node, name, rule)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            if rule := self._name_rule(scope, node.name):
                self._after(node, node.name, rule)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._visit_string(node, node.value)

    def _visit_attribute(self, node: ast.Attribute) -> None:
        if node.attr not in self.tree.by_old:
            return
        module = self._module_of(node.value)
        if module is not None:
            rule = self.tree.patched(module, node.attr)
        elif self._is_foreign(node.value):
            rule = None
        else:  # a module in a variable can be meant too, if nothing else is called so
            rule = self.tree.limited("members", node.attr, self.path) or self.tree.patched("", node.attr)
        if rule:
            end = (node.end_col_offset or 0) - len(node.attr.encode())
            self._edit(node, node.end_lineno or node.lineno, end, rule)

    def _visit_import(self, node: ast.ImportFrom | ast.Import) -> None:
        for alias in node.names:
            rule = self.tree.named(node.module or "", alias.name) if isinstance(node, ast.ImportFrom) else None
            if rule:
                self._edit(alias, alias.lineno, alias.col_offset, rule)
            renamed = self.tree.limited("aliases", alias.asname or "", self.path)
            if renamed:
                whole = f"{alias.name} as {alias.asname}"
                same = renamed.new == alias.name
                self.tree.hits[renamed][self.path] += 1
                new = renamed.new if same else f"{alias.name} as {renamed.new}"
                self.edits[(alias.lineno, alias.col_offset)] = (whole, new)

    def _visit_call(self, node: ast.Call) -> None:
        if not self._is_foreign(node.func):
            for keyword in node.keywords:
                name = keyword.arg or ""
                rule = self.tree.limited("members", name, self.path) or self.tree.limited("locals", name, self.path)
                if rule:
                    self._edit(keyword, keyword.lineno, keyword.col_offset, rule)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("setattr", "getattr", "hasattr", "delattr", "object", "attrgetter") and len(node.args) > 1:
            word = node.args[1]
            if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value in self.tree.by_old:
                module = self._module_of(node.args[0])
                found = (
                    self.tree.patched(module, word.value)
                    if module is not None
                    else self.tree.limited("members", word.value, self.path)
                )
                if found:
                    self._edit(word, word.lineno, self._inside(word, found.old), found)

    def _visit_assignment(self, node: ast.Assign) -> None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        strings: Iterable[ast.expr | None] = ()
        if "__all__" in names and isinstance(node.value, ast.List | ast.Tuple):
            strings = node.value.elts
        elif isinstance(node.value, ast.Dict) and self.scopes.at[node] is self.scopes.top and self._is_homes(node):
            strings = node.value.keys
        elif "__slots__" in names and isinstance(node.value, ast.List | ast.Tuple):
            for item in node.value.elts:
                if isinstance(item, ast.Constant) and (
                    rule := self.tree.limited("members", str(item.value), self.path)
                ):
                    self._edit(item, item.lineno, self._inside(item, rule.old), rule)
        for named in strings:
            if isinstance(named, ast.Constant) and (rule := self.tree.named(self.scopes.module, str(named.value))):
                self._edit(named, named.lineno, self._inside(named, rule.old), rule)

    def _is_homes(self, node: ast.Assign) -> bool:
        values = node.value.values if isinstance(node.value, ast.Dict) else []
        return any(isinstance(v, ast.Constant) and str(v.value).startswith("fogline") for v in values)

    def _visit_string(self, node: ast.Constant, text: str) -> None:
        """Rename in strings that are one name which means nothing else, or a dotted one, such as targets of patches."""
        if node not in self.in_fstring and (rule := self.tree.patched("", text)):
            self.edits.setdefault((node.lineno, self._inside(node, text)), (text, rule.new))
            self.tree.hits[rule][self.path] += 1
        elif DOTTED.fullmatch(text):
            new = _dotted(self.tree, text, self.path)
            if new != text and node.lineno == node.end_lineno and node not in self.in_fstring:
                self.edits[(node.lineno, self._inside(node, text))] = (text, new)


def _in_braces(text: str, names: dict[str, str]) -> str:
    """Rename in the expressions of f-strings; doubled braces are text."""
    either = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, names))})(?!\w)")
    parts, depth, start = [], 0, 0
    i = 0
    while i < len(text):
        if depth == 0 and text[i : i + 2] in ("{{", "}}"):
            i += 2
            continue
        if text[i] == "{":
            if depth == 0:
                parts.append(text[start:i])
                start = i
            depth += 1
        elif text[i] == "}" and depth:
            depth -= 1
            if depth == 0:
                parts.append(either.sub(lambda match: names[match[1]], text[start : i + 1]))
                start = i + 1
        i += 1
    return "".join([*parts, text[start:]])


def _dotted(tree: Tree, name: str, path: str) -> str:
    """Rename in a dotted name: the part behind the module."""
    parts = name.split(".")
    for size in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:size])
        if module in tree.modules:
            rule = tree.named(module, parts[size])
            if rule:
                tree.hits[rule][path] += 1
                parts[size] = rule.new
            break
    return ".".join(parts)


# -- text -------------------------------------------------------------------------------------------------

DOTTED = re.compile(r"(?<![\w.])(?:fogline|fogline_research|tests)(?:\.\w+)+")
QUOTED = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+?)\1(?!`)")
EXAMPLE = re.compile(r"(?:^[ \t]*(?:>>>|\.\.\.)(?: .*)?\n?)+", re.M)
FENCE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


@dataclass
class Words:
    """What a text means by bare names: rules of the module that it stands in, and of distinct names."""

    tree: Tree
    path: str
    rules: dict[str, Rule]

    @classmethod
    def of(cls, tree: Tree, path: str) -> Words:
        """Rules for the names that a source binds at its top, or that the sources beside a document bind."""
        rules: dict[str, Rule] = {}
        if path.endswith(".py"):
            near = [tree.by_path[path]]
        elif path.endswith(".proof.md"):
            folder = path.rpartition("/")[0]
            sibling = path.replace(".proof.md", ".py")
            near = [one for one in tree.by_path.values() if one.path.rpartition("/")[0] == folder]
            near.sort(key=lambda one: one.path != sibling)
            proof = (ROOT / path).read_text(encoding="utf-8")
            near += [one for one in tree.by_path.values() if f"`{one.path.removeprefix('src/fogline/')}`" in proof]
        else:
            near = []
        for module in near:
            for name in module.scopes.top.bound:
                source, inner = module.scopes.top.imported.get(name, (module.name, name))
                if inner == name and (rule := tree.named(source, name)):
                    rules.setdefault(name, rule)
        for name, found in tree.by_old.items():
            own = [rule for rule in found if rule.kind == "names"]
            if len(own) == 1 and len(found) == 1 and _is_distinct(name):
                rules.setdefault(name, own[0])
            for rule in found:
                if rule.kind in ("members", "locals") and rule.is_in(path):
                    rules.setdefault(name, rule)
        return cls(tree, path, rules)

    def _swap(self, match: re.Match[str]) -> str:
        rule = self.rules.get(match[0])
        if rule is None:
            return match[0]
        self.tree.hits[rule][self.path] += 1
        return rule.new

    def in_text(self, text: str) -> str:
        """Rename dotted names, names in backticks and headings of parameters."""
        text = DOTTED.sub(lambda match: _dotted(self.tree, match[0], self.path), text)
        text = QUOTED.sub(self._quoted, text)
        return re.sub(r"^([ \t]*)((?:\w+, )*\w+)(?= : )", self._heading, text, flags=re.M)

    def _quoted(self, match: re.Match[str]) -> str:
        """A name in backticks, alone, with a call or with members; not words in a sentence of code."""
        inner = re.sub(r"(?<![\w./\-\"'])[A-Za-z_]\w*(?![\w\"'/]|\.(?:py|md|csv|toml)\b)", self._swap, match[2])
        inner = re.sub(r"(?<=[\w\])]\.)[A-Za-z_]\w*", self._swap_member, inner)
        return f"{match[1]}{inner}{match[1]}"

    def _swap_member(self, match: re.Match[str]) -> str:
        rule = self.rules.get(match[0])
        return self._swap(match) if rule is not None and rule.kind == "members" else match[0]

    def _heading(self, match: re.Match[str]) -> str:
        names = re.sub(r"\w+", lambda one: self._swap(one) if self._is_local(one[0]) else one[0], match[2])
        return f"{match[1]}{names}"

    def _is_local(self, name: str) -> bool:
        return name in self.rules and self.rules[name].kind in ("members", "locals")

    def in_types(self, text: str) -> str:
        """Rename classes in the types of a documented parameter: ``name : Type or None``."""

        def typed(match: re.Match[str]) -> str:
            return match[1] + re.sub(r"\b[A-Z]\w*\b", self._swap, match[2])

        return re.sub(r"^([ \t]*(?:\w+, )*\*{0,2}\w+ : )(.*)$", typed, text, flags=re.M)


def _is_distinct(name: str) -> bool:
    """Whether a name cannot be an English word: two capitals, or an underscore between words."""
    return "_" in name.strip("_") or bool(re.match(r"[A-Z][a-z]+[A-Z]", name))


def _with_examples(tree: Tree, path: str, text: str, outside: Scope | None) -> str:
    """Rename in the doctests of a text; an example is Python that sees the module's names."""

    def example(match: re.Match[str]) -> str:
        lines = match[0].splitlines(keepends=True)
        cut = [re.match(r"[ \t]*(?:>>>|\.\.\.)(?: |(?=\n|$))", line) for line in lines]
        code = "".join(line[found.end() :] for line, found in zip(lines, cut, strict=True) if found)
        try:
            new = Source.of(tree, path, code, scope).renamed().splitlines(keepends=True)
        except (SyntaxError, AssertionError):
            return match[0]
        return "".join((found[0] if found else "") + line for found, line in zip(cut, new, strict=True))

    # examples of one docstring share their names
    scope = Scope("example", outside)
    for match in EXAMPLE.finditer(text):
        code = "".join(re.sub(r"^[ \t]*(?:>>>|\.\.\.) ?", "", line) for line in match[0].splitlines(keepends=True))
        try:
            found = Scopes(ast.parse(code), module_name(path) if path.endswith(".py") else "", None).top
        except SyntaxError:
            continue
        scope.bound |= found.bound
        scope.imported |= found.imported
    return EXAMPLE.sub(example, text)


def _fenced(words: Words, text: str) -> str:
    """Rename in the Python of fences: by its syntax if it stands alone, else by the names that the rules know."""

    def fence(match: re.Match[str]) -> str:
        code = match[1]
        if ">>> " in code:
            return match[0]
        if words.path.endswith(".proof.md"):
            swapped = re.sub(r"(?<![\w\"'.])[A-Za-z_]\w*(?![\w\"'])", words._swap, code)
            swapped = re.sub(r"(?<=\.)[A-Za-z_]\w*", words._swap_member, swapped)
        else:
            try:
                swapped = Source.of(words.tree, words.path, textwrap.dedent(code)).renamed()
            except (SyntaxError, AssertionError):
                return match[0]
        return f"```python\n{swapped}```"

    return FENCE.sub(fence, text)


def _strings_and_comments(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of docstrings and comments, as offsets."""
    import io
    import tokenize

    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    documented = set()
    for node in ast.walk(tree):
        for child in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                documented.add(child.value.lineno)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_doc = token.type == tokenize.STRING and token.start[0] in documented
        if is_doc or token.type == tokenize.COMMENT:
            yield starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]


# -- all of it --------------------------------------------------------------------------------------------


def renamed_source(tree: Tree, path: str) -> str:
    """Rename in a module: its code, then its docstrings with their examples, then its comments."""
    module = tree.by_path[path]
    text = Source(tree, path, module.text, module.tree, module.scopes).renamed()
    words, parts, last = Words.of(tree, path), [], 0
    for start, end in _strings_and_comments(text):
        piece = text[start:end]
        if not piece.startswith("#"):
            piece = _with_examples(tree, path, piece, module.scopes.top)
            piece = words.in_types(piece)
        parts += [text[last:start], words.in_text(piece)]
        last = end
    return "".join([*parts, text[last:]])


def renamed_document(tree: Tree, path: str) -> str:
    """Rename in a document or a template."""
    text = (ROOT / path).read_text(encoding="utf-8")
    words = Words.of(tree, path)
    if path.endswith(".j2"):
        members = {rule.old: rule for rule in tree.rules if rule.kind == "members" and rule.is_in(path)}
        words = Words(tree, path, members)
        return re.sub(
            r"\{[{%].*?[%}]\}",
            lambda match: re.sub(r"(?<=\.)[A-Za-z_]\w*", words._swap_member, match[0]),
            text,
            flags=re.S,
        )
    if path.endswith(".md"):
        text = _fenced(words, _with_examples(tree, path, text, None))
        return words.in_text(text)
    return DOTTED.sub(lambda match: _dotted(tree, match[0], path), text)


def rename(tree: Tree) -> dict[str, str]:
    """New texts of the files that change."""
    changed = {}
    for path in tree.files:
        if path in tree.by_path:
            old, new = tree.by_path[path].text, renamed_source(tree, path)
        elif path.endswith((".md", ".j2", ".toml", ".txt", ".ini", ".yaml")) and not path.startswith("tests/api"):
            old, new = (ROOT / path).read_text(encoding="utf-8"), renamed_document(tree, path)
        else:
            continue
        new = _reworded(tree, path, new)
        if old != new:
            changed[path] = new
    return changed


def _reworded(tree: Tree, path: str, text: str) -> str:
    for rule in tree.rules:
        if rule.kind == "wording" and rule.is_in(path) and rule.old in text:
            tree.hits[rule][path] += text.count(rule.old)
            text = text.replace(rule.old, rule.new)
        elif rule.kind == "modules":
            old, new = module_name(rule.old), module_name(rule.new)
            named = rf"(?<![\w.]){re.escape(old)}(?!\w)|(?<![\w]){re.escape(rule.old)}(?!\w)"
            text, count = re.subn(named, lambda match: new if match[0] == old else rule.new, text)  # noqa: B023
            package, _, last = old.rpartition(".")
            taken = rf"(from {re.escape(package)} import ){last}(?= as \w+\n)"
            text, aliased = re.subn(taken, rf"\g<1>{new.rpartition('.')[2]}", text)
            count += aliased
            if re.search(rf"from {re.escape(package)} import [^\n]*\b{last}\b", text):
                tree.clashes.append(f"{path}: imports {old} by its bare name; write the import in full first")
            if count:
                tree.hits[rule][path] += count
    return text


def left_over(tree: Tree, texts: dict[str, str]) -> Iterator[str]:
    """Attributes, and strings that are no plain words, which are still called as a top-level name was."""
    old = {rule.old for rule in tree.rules if rule.kind == "names"}
    new = {rule.new for rule in tree.rules}
    for path, text in texts.items():
        source = Source.of(tree, path, text)
        for node in ast.walk(source.parsed):
            if isinstance(node, ast.Attribute):
                name = "" if source._is_foreign(node.value) else node.attr
            else:
                name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                name = "" if name.islower() and "_" not in name else name
            if name in old - new:
                yield f"{path}:{node.lineno}: {text.splitlines()[node.lineno - 1].strip()}"  # type: ignore[attr-defined]


def move_modules(tree: Tree) -> None:
    """Give files of modules their new names."""
    for rule in tree.rules:
        if rule.kind == "modules" and (ROOT / rule.old).is_file():
            subprocess.run(["git", "mv", rule.old, rule.new], cwd=ROOT, check=True)


def main() -> int:
    """Check or rename."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, print every hit")
    parser.add_argument("--rule", help="print hits of rules with this old name only")
    options = parser.parse_args()
    tree = Tree.read(read_rules(ROOT / TABLE))
    changed = rename(tree)
    if tree.dropped:  # a name is renamed everywhere or nowhere
        clashes = tree.clashes
        tree = Tree.read([rule for rule in tree.rules if rule not in tree.dropped])
        changed = rename(tree)
        tree.clashes += clashes
    for rule in tree.rules:
        if options.rule in (None, rule.old):
            hits = tree.hits.get(rule, Counter())
            print(f"{hits.total():5} {rule}" + ("" if hits else "   NO HITS"))
            if options.check:
                for path, count in sorted(hits.items()):
                    print(f"        {count:4} {path}")
    for clash in sorted(set(tree.clashes)):
        print("CLASH", clash)
    if options.check:
        for found in left_over(tree, {path: changed.get(path, one.text) for path, one in tree.by_path.items()}):
            print("LEFT?", found)
    if not options.check:
        for path, text in changed.items():
            (ROOT / path).write_text(text, encoding="utf-8")
        move_modules(tree)
    print(f"{len(changed)} files {'would change' if options.check else 'changed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
