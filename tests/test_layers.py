"""The walls of the house: what may import what, where randomness may come from, what a proof must quote."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

import fogline

pytestmark = pytest.mark.quick

PACKAGE = Path(fogline.__file__).parent
ROOT = Path(__file__).parent.parent
FILES = sorted(PACKAGE.rglob("*.py"))

BELOW_RELEASE = {"_validation", "families", "accounting", "mechanisms", "sketch", "datasets", "metrics"}
ESTIMATORS = {"_validation", "families", "accounting", "mechanisms", "sketch", "locate", "engines", "ledger"}
ANY_PART = (
    ESTIMATORS | BELOW_RELEASE | {"estimators", "published", "contenders", "audit", "testing", "federation", "units"}
)
FACES = {"report", "cli", "reproduce", "studio"}

MAY_IMPORT = {
    "_validation": set(),
    "families": {"_validation"},
    "accounting": {"_validation"},
    "mechanisms": {"_validation", "accounting"},
    "ledger": {"_validation", "accounting", "mechanisms"},
    "testing": {"_validation", "accounting", "mechanisms", "estimators", "families"},
    "sketch": {"_validation", "accounting", "mechanisms"},
    "locate": {"_validation", "accounting", "mechanisms", "sketch"},
    "federation": {"_validation", "accounting", "mechanisms", "sketch"},
    "units": {"_validation"},
    "engines": {"_validation", "accounting", "mechanisms", "sketch", "locate"},
    "estimators": ESTIMATORS,
    "datasets": {"_validation", "metrics"},
    "metrics": {"_validation", "datasets"},
    "published": BELOW_RELEASE | {"families"},
    "contenders": BELOW_RELEASE | {"locate"},
    "audit": ESTIMATORS | BELOW_RELEASE | {"estimators", "published", "contenders", "testing"},
    "report": ANY_PART | {"report"},
    "cli": ANY_PART | {"report", "reproduce", "cli"},
    "reproduce": ANY_PART | {"report", "cli"},
    "studio": ANY_PART | {"report"},
}
"""For each part of the package the parts it may import, besides itself."""

MAY_DRAW = {"published", "contenders", "datasets", "testing"}
"""Parts that may use numpy's global or unseeded generators: their noise protects nobody."""


def part_of(path: Path) -> str:
    """Folder or module right below the package; the package's own front door is ''."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py").replace("__init__", "")


def part_named(name: str) -> str:
    """Part that a dotted name belongs to; a name of the front door belongs to the part it is at home in."""
    first = [*name.split("."), ""][1]
    return fogline._HOMES[first].split(".")[1] if first in fogline._HOMES else first


def imported_parts(source: str) -> set[str]:
    """Parts of fogline that a source imports anywhere: at the top, in functions, for the type checker."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
        else:
            continue
        found |= {part_named(name) for name in names if name.split(".")[0] == "fogline"}
    return found


def unseeded_draws(source: str) -> list[str]:
    """Uses of numpy or the standard library that draw without a seed: they pass by the entropy door."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) and any(a.name.split(".")[0] == "random" for a in node.names):
            found.append("import random")
        if isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random"):
            found.append(f"from {node.module}")
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name.endswith("default_rng"):
            if not (node.args or node.keywords) or ast.unparse(node) == f"{name}(None)":
                found.append(ast.unparse(node))
        elif re.match(r"(np|numpy)\.random\.(?!SeedSequence|Generator|get_state|default_rng)", name):
            found.append(name)
    return found


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def drifted_quotes(proof: str, source: str) -> list[str]:
    """Lines that a proof quotes and its code does not have."""
    quotes = re.findall(r"```python\n(.*?)```", proof, flags=re.DOTALL)
    return [quote for quote in quotes if squeezed(quote) not in squeezed(source)]


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_imports_go_only_downward():
    breaches = {}
    for path in FILES:
        part = part_of(path)
        if part == "":  # the front door may show every part's names; it has none of its own
            continue
        assert part in MAY_IMPORT, f"{part} has no place in the layers yet: give it one"
        itself = {part, "__version__"} | ({""} if part in FACES else set())
        if beyond := imported_parts(path.read_text()) - MAY_IMPORT[part] - itself:
            breaches[relative(path)] = sorted(beyond)
    assert not breaches, "these may not import what they import"


def test_the_layers_have_no_cycle():
    # `datasets` and `metrics` stand side by side, as do the faces; nothing else may lead back to itself.
    beside = {frozenset({"datasets", "metrics"}), frozenset({"cli", "reproduce"})}
    for part, below in MAY_IMPORT.items():
        for other in below - {part}:
            cyclic = part in MAY_IMPORT.get(other, set())
            assert not cyclic or frozenset({part, other}) in beside, (part, other)
    for part, below in MAY_IMPORT.items():
        assert part in FACES or not below & FACES, f"{part} stands below the faces"


def test_a_forbidden_import_would_be_noticed():
    hidden = "def f():\n    from fogline.estimators import PrivateModes\n"
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import fogline.cli\n"
    assert imported_parts(hidden) == {"estimators"}
    assert imported_parts(typed) == {"cli"}
    assert imported_parts("from fogline import audit, sketch") == {"audit", "sketch"}
    assert imported_parts("importlib.import_module('fogline.report.page')") == {"report"}
    assert imported_parts("from fogline import PrivateModes") == {"estimators"}
    assert imported_parts("import fogline") == {""}
    assert imported_parts("import numpy\nfrom os import path") == set()


def test_randomness_comes_through_the_door():
    watched = [path for path in FILES if part_of(path) not in MAY_DRAW]
    assert not {relative(path): found for path in watched if (found := unseeded_draws(path.read_text()))}


@pytest.mark.parametrize(
    "line",
    [
        "rng = np.random.default_rng()",
        "rng = numpy.random.default_rng(None)",
        "x = np.random.normal(size=3)",
        "np.random.seed(0)",
        "x = np.random.default_rng().normal(size=3)",
        "import random",
        "from random import gauss",
        "from numpy.random import normal",
        "rng = np.random.RandomState(3)",
    ],
)
def test_an_unseeded_draw_would_be_noticed(line):
    assert unseeded_draws(line)


@pytest.mark.parametrize(
    "line",
    [
        "rng = np.random.default_rng(seed)",
        "def f(rng: np.random.Generator): ...",
        "x = np.random.default_rng(seed).normal(size=3)",
        "np.random.SeedSequence(3).spawn(2)",
    ],
)
def test_a_seeded_draw_is_fine(line):
    assert not unseeded_draws(line)


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its signature and its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return function.end_lineno - body[0].lineno + 1 if body else 0


def long_bodies(source: str) -> list[str]:
    """Functions of 60 lines or more."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [function.name for function in found if body_lines(function) >= 60]


def test_a_file_can_be_read_in_one_sitting():
    # a file is as large as its idea; beyond this it has two
    assert not [relative(path) for path in FILES if len(path.read_text().splitlines()) >= 800]
    assert not {relative(path): names for path in FILES if (names := long_bodies(path.read_text()))}


def test_a_long_body_would_be_noticed():
    lines = "\n".join("    x = 1" for _ in range(60))
    assert long_bodies(f"def f():\n{lines}\n") == ["f"]
    assert long_bodies(f'def f():\n    """A docstring\n{lines}\n    """\n    return 1\n') == []


def has_proof(path: Path) -> bool:
    proof = path.with_name(f"{path.stem}.proof.md")
    return proof.is_file() and "QED" in proof.read_text()


def test_every_mechanism_has_a_proof():
    publishes_nothing = {"entropy", "failures"}
    mechanisms = [
        path
        for path in sorted((PACKAGE / "mechanisms").glob("*.py"))
        if not path.name.startswith("_") and path.stem not in publishes_nothing
    ]
    assert mechanisms
    assert [relative(path) for path in mechanisms if not has_proof(path)] == []


def faults_of_proof(path: Path) -> list[str]:
    """A proof quotes its sibling, and files of the same folder that it names."""
    proof = path.read_text()
    sibling = path.name.replace(".proof.md", ".py")
    named = [p for p in path.parent.glob("*.py") if p.name == sibling or f"`{p.name}`" in proof]
    faults = [] if sibling in {p.name for p in named} else [f"there is no {sibling}"]
    if part_of(path) in ("mechanisms", "sketch") and "```python" not in proof:
        faults.append("a proof of something certified quotes the code that it is about")
    return [*faults, *drifted_quotes(proof, "\n".join(p.read_text() for p in named))]


def test_what_a_proof_quotes_is_in_the_code():
    proofs = sorted(PACKAGE.rglob("*.proof.md"))
    assert proofs
    found = {relative(path): faults_of_proof(path) for path in proofs}
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_a_drifted_quote_would_be_noticed():
    source = (PACKAGE / "mechanisms" / "gaussian.py").read_text()
    quote = "```python\nnoise = source.gaussian({}scale, size)\n```"
    assert not drifted_quotes(quote.format(""), source)
    assert drifted_quotes(quote.format("0.8 * "), source)


def test_every_proof_that_is_named_exists():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and re.fullmatch(r"\w+/\w+\.proof\.md", node.value):
                assert (PACKAGE / node.value).is_file(), f"{relative(path)} names {node.value}"


def repository_files() -> list[Path]:
    """Files that belong to the repository: git's list, or all but caches where there is no git."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        skipped = re.compile(r"(^|/)(\.[^/]+|__pycache__|build|dist|out|[^/]+\.egg-info)/")
        paths = [p for p in ROOT.rglob("*") if not skipped.search(p.relative_to(ROOT).as_posix())]
    else:
        paths = [ROOT / name for name in listed.split("\0") if name]
    return [p for p in paths if p.is_file()]


def test_no_file_knows_the_machine_it_was_written_on():
    pattern = re.compile(rb"(?<![\w.])/(?:work|root)/(?=[\w.])")
    assert pattern.search(b"see " + b"/".join([b"", b"root", b".bashrc"]))
    files = repository_files()
    assert PACKAGE / "__init__.py" in files
    assert not [str(p.relative_to(ROOT)) for p in files if pattern.search(p.read_bytes())]
