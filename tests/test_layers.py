"""The walls of the house: what may import what, where randomness may come from, what a proof must quote."""

import ast
import importlib
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import fogline

pytestmark = pytest.mark.quick

PACKAGE = Path(fogline.__file__).parent
ROOT = Path(__file__).parent.parent
FILES = sorted(PACKAGE.rglob("*.py"))

LAYERS = tomllib.loads((Path(__file__).parent / "layers.toml").read_text())
RANK = {room: level for level, rooms in enumerate(LAYERS["order"]) for room in rooms}
OTHERS = tuple(LAYERS["foreign"]["names"])


def part_of(path: Path) -> str:
    """Folder or module right below the package; the package's own front door is ''."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py").replace("__init__", "")


def part_named(name: str) -> str:
    """Part that a dotted name belongs to; a name of the front door belongs to the part it is at home in."""
    first = [*name.split("."), ""][1]
    return fogline._HOMES[first].split(".")[1] if first in fogline._HOMES else first


def imported_names(source: str) -> set[str]:
    """Dotted names that a source imports anywhere: at the top, in functions, for the type checker."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            found |= {a.value for a in node.args if isinstance(a, ast.Constant)}
    return {name for name in found if name.split(".")[0] in ("fogline", *OTHERS)}


def imported_parts(source: str) -> set[str]:
    """Parts of fogline that a source imports."""
    return {part_named(name) for name in imported_names(source) if name.split(".")[0] == "fogline"}


def upward(room: str, source: str) -> list[str]:
    """Names that a source of a room imports from its own level, from later rooms, or from another distribution."""
    found = []
    for name in sorted(imported_names(source)):
        part = part_named(name)
        if name in LAYERS["upward"].get(room, []):
            continue
        if name.split(".")[0] in OTHERS or (part not in ("", "__version__", room) and RANK[part] >= RANK[room]):
            found.append(name)
    return found


def crossings(room: str, source: str) -> list[str]:
    """Names of readers or samplers that a source of a public room imports."""
    if room not in LAYERS["public"]:
        return []
    found = []
    for name in sorted(imported_names(source)):
        part = part_named(name)
        if part not in ("sources", "mechanisms"):
            continue
        module, _, last = name.removeprefix("fogline.").rpartition(".")
        if last not in LAYERS["allowed"].get(module, []):
            found.append(name)
    return found


ROWS = {"records", "numbers_or_missing", "each_batch", "each_unit_batch", "each", "exact", "RecordPasses"}
"""What gives the numbers of records, or exact numbers of them."""


def opened_rows(room: str, source: str) -> list[str]:
    """Calls by which a source of a room that may not open rows does so."""
    if room in {*LAYERS["secret"], "_validation", "testing", "audit"}:
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    calls = [call for call in calls if "public" not in {keyword.arg for keyword in call.keywords}]  # rows of a user's
    names = [getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls]
    return [name for name in names if name in ROWS]


def module_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Modules that each module imports when it is itself imported: at the top, not in functions or for types."""
    graph = {}
    for module, source in sources.items():
        found = set()
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= whole if whole <= set(sources) else {*whole, str(node.module)}
        graph[module] = {name for name in found if name in sources and name != module}
    return graph


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """A way from a module back to itself, if there is one."""
    done: set[str] = set()

    def follow(module: str, way: list[str]) -> list[str]:
        if module in way:
            return way[way.index(module) :]
        if module in done:
            return []
        for other in sorted(graph[module]):
            if found := follow(other, [*way, module]):
                return found
        done.add(module)
        return []

    return next((found for module in sorted(graph) if (found := follow(module, []))), [])


def dotted(path: Path) -> str:
    return ".".join(("fogline", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


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


def faults(check) -> dict[str, list[str]]:
    """What a check finds in each file of a room."""
    rooms = [(path, part_of(path)) for path in FILES if part_of(path)]  # the front door shows every room's names
    return {relative(path): found for path, room in rooms if (found := check(room, path.read_text()))}


def test_every_room_has_a_place():
    assert {part_of(path) for path in FILES} - {""} == set(RANK)
    assert set(LAYERS["secret"]) | set(LAYERS["public"]) <= set(RANK)


def test_imports_go_only_downward():
    assert faults(upward) == {}


def test_public_rooms_import_neither_readers_nor_samplers():
    assert faults(crossings) == {}


def test_rows_are_opened_in_secret_rooms_only():
    assert faults(opened_rows) == {}


def asks_a_ledger(source: str) -> bool:
    """Whether a source asks a ledger: the call itself, not an example of it."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    asks = [call for call in calls if isinstance(call, ast.Attribute) and call.attr == "ask"]
    return any(ast.unparse(call.value).endswith("ledger") for call in asks)


def test_a_ledger_is_asked_in_one_place():
    assert asks_a_ledger("answer = self.ledger.ask('density')")
    assert not asks_a_ledger("curator.ask(query, share, 'density')")
    assert [relative(path) for path in FILES if asks_a_ledger(path.read_text())] == ["releases/release.py"]


def test_no_module_leads_back_to_itself():
    assert cycle(module_graph({dotted(path): path.read_text() for path in FILES})) == []


def test_the_way_up_is_taken_late():
    # at the top it would load the report, and all that it describes, with every density
    for room, names in LAYERS["upward"].items():
        source = (PACKAGE / f"{room}.py").read_text()
        late = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        early = [node for node in ast.parse(source).body if ast.unparse(node) not in {ast.unparse(n) for n in late}]
        assert imported_names(source) == set(names)
        assert not imported_names("\n".join(map(ast.unparse, early)))


def test_what_is_allowed_is_there():
    for module, names in LAYERS["allowed"].items():
        there = importlib.import_module(f"fogline.{module}")
        assert [name for name in names if not hasattr(there, name)] == []


@pytest.mark.parametrize(
    ("check", "room", "line"),
    [
        (upward, "density", "from fogline.queries.fourier_sums import CellCounts"),
        (upward, "density", "def f():\n    from fogline import PrivateModes"),
        (upward, "sources", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import fogline.releases.terms"),
        (upward, "families", "from fogline.datasets import load_faithful"),
        (upward, "cli", "from fogline_research.experiments import Row"),
        (upward, "ledger", "importlib.import_module('fogline.report.page')"),
        (upward, "density", "importlib.import_module('fogline.report.results')"),
        (upward, "_results", "importlib.import_module('fogline.report.page')"),
        (crossings, "density", "from fogline.mechanisms.discrete_gaussian import add_gaussian"),
        (crossings, "algorithms", "from fogline.mechanisms.randomness import current_door"),
        (crossings, "cli", "from fogline.sources.text_lines import TextTable"),
        (crossings, "report", "def f():\n    import fogline.sources.files"),
        (opened_rows, "estimators", "from fogline import _validation\nx = _validation.records(X, 2)"),
        (opened_rows, "algorithms", "passes.each_batch(take)"),
        (opened_rows, "algorithms", "values = query.exact(curator._records)"),
        (opened_rows, "estimators", "passes = RecordPasses(source, 3)"),
    ],
)
def test_a_planted_breach_is_noticed(check, room, line):
    assert check(room, line)


def test_a_planted_cycle_is_noticed():
    sources = {
        "fogline.a": "from fogline.b import f",
        "fogline.b": "import fogline.c",
        "fogline.c": "from fogline import a",
    }
    assert cycle(module_graph(sources)) == ["fogline.a", "fogline.b", "fogline.c"]
    sources["fogline.c"] = "def late():\n    from fogline import a"
    assert cycle(module_graph(sources)) == []


def test_a_forbidden_import_would_be_noticed():
    hidden = "def f():\n    from fogline.estimators import PrivateModes\n"
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import fogline.cli\n"
    assert imported_parts(hidden) == {"estimators"}
    assert imported_parts(typed) == {"cli"}
    assert imported_parts("from fogline import audit, density") == {"audit", "density"}
    assert imported_parts("importlib.import_module('fogline.report.page')") == {"report"}
    assert imported_parts("from fogline import PrivateModes") == {"estimators"}
    assert imported_parts("import fogline") == {""}
    assert imported_parts("import numpy\nfrom os import path") == set()


def test_randomness_comes_through_the_door():
    watched = [path for path in FILES if part_of(path) not in LAYERS["draws"]["rooms"]]
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


def defined_twice(source: str) -> list[str]:
    """Names that a module binds more than once at its top: of two merged files, the later would change the earlier."""
    names: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # an overload says one of several signatures of the definition that follows it
            if "overload" not in {getattr(mark, "id", "") for mark in node.decorator_list}:
                names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            stored = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            names += [name.id for name in stored if isinstance(name.ctx, ast.Store)]
    return sorted({name for name in names if names.count(name) > 1})


def test_no_module_gives_a_name_twice():
    assert {relative(path): twice for path in FILES if (twice := defined_twice(path.read_text()))} == {}


def test_a_name_given_twice_would_be_noticed():
    assert defined_twice("A, B = 1, 2\ndef f(): ...\nB, C = 3, 4\nf = 1\n") == ["B", "f"]
    assert defined_twice("A = 1\nx[0] = A\ny.A = A\ndef f():\n    A = 2\n") == []


def has_proof(path: Path) -> bool:
    proof = path.with_name(f"{path.stem}.proof.md")
    return proof.is_file() and "QED" in proof.read_text()


def test_every_mechanism_has_a_proof():
    publishes_nothing = {"randomness", "errors"}
    mechanisms = [
        path
        for path in sorted((PACKAGE / "mechanisms").glob("*.py"))
        if not path.name.startswith("_") and path.stem not in publishes_nothing
    ]
    assert mechanisms
    assert [relative(path) for path in mechanisms if not has_proof(path)] == []


def test_every_query_has_a_proof():
    asks_nothing = {"query"}  # what a query is
    queries = [
        path
        for path in sorted((PACKAGE / "queries").glob("*.py"))
        if not path.name.startswith("_") and path.stem not in asks_nothing
    ]
    assert queries
    assert [relative(path) for path in queries if not has_proof(path)] == []


def faults_of_proof(path: Path) -> list[str]:
    """A proof quotes its sibling, files of the same folder that it names, and files of others that it names by path."""
    proof = path.read_text()
    sibling = path.name.replace(".proof.md", ".py")
    named = [p for p in path.parent.glob("*.py") if p.name == sibling or f"`{p.name}`" in proof]
    faults = [] if sibling in {p.name for p in named} else [f"there is no {sibling}"]
    named += [PACKAGE / name for name in set(re.findall(r"`((?!tests)\w+/(?:\w+/)?\w+\.py)`", proof))]
    faults += [f"there is no {p}" for p in named if not p.is_file()]
    named = [p for p in named if p.is_file()]
    if part_of(path) in ("mechanisms", "queries", "releases") and "```python" not in proof:
        faults.append("a proof of something certified quotes the code that it is about")
    return [*faults, *drifted_quotes(proof, "\n".join(p.read_text() for p in named))]


def test_what_a_proof_quotes_is_in_the_code():
    proofs = sorted(PACKAGE.rglob("*.proof.md"))
    assert proofs
    found = {relative(path): faults_of_proof(path) for path in proofs}
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_a_drifted_quote_would_be_noticed():
    source = (PACKAGE / "mechanisms" / "discrete_gaussian.py").read_text()
    quote = "```python\nnoise = source.gaussian({}scale, size)\n```"
    assert not drifted_quotes(quote.format(""), source)
    assert drifted_quotes(quote.format("0.8 * "), source)


def test_every_proof_that_is_named_exists():
    for path in FILES:
        if path == PACKAGE / "accounting" / "proofs.py":  # former paths among them; tests/accounting/test_proofs.py
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and re.fullmatch(r"\w+/\w+\.proof\.md", node.value):
                assert (PACKAGE / node.value).is_file(), f"{relative(path)} names {node.value}"


def lost_proofs(path: Path) -> list[str]:
    """Proofs that a text names in quotes of code and that are not there: beside it, or by a path in the package."""
    named = set(re.findall(r"``?((?:\w+/)?\w+\.proof\.md)``?", path.read_text()))
    return sorted(name for name in named if not ((PACKAGE if "/" in name else path.parent) / name).is_file())


def test_every_proof_that_a_proof_or_a_trusted_module_names_is_there():
    trusted = [path for path in FILES if part_of(path) in {*LAYERS["secret"], "mechanisms", "accounting"}]
    files = [*sorted(PACKAGE.rglob("*.proof.md")), *(path for path in trusted if path.name != "__init__.py")]
    files.remove(PACKAGE / "accounting" / "proofs.py")  # former paths among them
    assert {relative(path): lost for path in files if (lost := lost_proofs(path))} == {}


def test_a_lost_proof_would_be_noticed(tmp_path):
    text = tmp_path / "query.py"
    text.write_text("see ``query.proof.md`` and `mechanisms/lattice.proof.md`, not `mechanisms/fence.proof.md`")
    assert lost_proofs(text) == ["mechanisms/fence.proof.md", "query.proof.md"]


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


def test_every_public_name_of_a_package_is_there():
    packages = [importlib.import_module(dotted(path)) for path in FILES if path.name == "__init__.py"]
    missing = {p.__name__: [name for name in getattr(p, "__all__", []) if not hasattr(p, name)] for p in packages}
    assert {name: names for name, names in missing.items() if names} == {}
