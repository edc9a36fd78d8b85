"""Every block of code on the site is run: Python by doctest, commands here or in the tests that are named here."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import release
from fogline.cli.app import app
from fogline.datasets import load_faithful

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FENCED = re.compile(r"^(```|~~~)([^\n]*)\n(.*?)^\1$", flags=re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:\A|(?<=\n\n))((?:    \S[^\n]*\n(?:     [^\n]*\n)*)+)")
RUN_ELSEWHERE = {
    "release.md": "tests/cli/test_release_page.py",
    "federation.md": "tests/cli/test_federation.py",
    "scale.md": "tests/sources/test_recipes.py",
    "r.md": "tests/test_r.py",
}
SERVERS = {
    "fogline studio data/ --budget 3": "tests/cli/test_studio_commands.py",
    "fogline docs": "tests/cli/test_docs.py",
}
"""Commands that go on until they are stopped."""

NOT_COMMANDS = {
    "architecture.md": ("records --cells-->", "sources --rows-->"),
    "deprecation.md": ("warn_deprecated(",),
    "hellinger.md": ("HD²(p, q) =",),
    "install.md": ("pip install",),
    "ledger-simulator.md": ("python -m tests.ledger.simulator",),
    "results.md": ("                                      Density of stay",),
    "studio.md": ("fogline studio: 2 data sets", "[studio]"),
    "tutorial.md": ("count: 10553",),
}
"""Beginnings of blocks that are drawings, formulas, outputs, or commands of other programs."""


def blocks(text: str) -> list[str]:
    """Blocks of a page that are no examples of Python, without the indentation."""
    fenced = [body for _, kind, body in FENCED.findall(text) if not kind.startswith("python")]
    indented = INDENTED.findall(FENCED.sub("", text))
    return fenced + [re.sub(r"^    ", "", found, flags=re.MULTILINE) for found in indented]


def commands(block: str) -> list[str]:
    """Commands of a block: an indented line continues the one before it."""
    joined = re.sub(r"\s*\\?\n +", " ", block)
    return [re.sub(r"\s+#\s.*$", "", line).strip() for line in joined.splitlines() if line.strip()]


PAGES = {path.name: path.read_text("utf-8") for path in sorted(DOCS.glob("*.md"))}
OWN = {
    name: [block for block in blocks(text) if not block.startswith(NOT_COMMANDS.get(name, ("\0",)))]
    for name, text in PAGES.items()
    if name not in RUN_ELSEWHERE
}
RUN = {name: found for name, found in OWN.items() if found}


def write(path: str, columns: dict[str, object]) -> None:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def prepare(page: str) -> None:
    """Files that the commands of a page read, in the present folder."""
    rng = np.random.default_rng(0)
    days = np.where(rng.random(1200) < 0.7, rng.normal(4, 1.5, 1200), rng.normal(14, 3, 1200)).clip(0, 30).round(2)
    if page == "budget.md":
        for file in ("quarter1.csv", "quarter2.csv", "visits.csv", "visits.parquet"):
            write(file, {"days": days})
    elif page == "clusters.md":
        from sklearn.datasets import load_iris

        write("iris.csv", dict(zip(("sl", "sw", "pl", "pw"), load_iris().data.T.round(2), strict=True)))
    elif page == "continual.md":
        write("week01.csv", {"person_id": rng.integers(0, 500, 1200), "stay": days})
        Path("leavers.txt").write_text("3\n17\n", encoding="utf-8")
    elif page == "hellinger.md":
        write("patients.csv", {"bmi": rng.lognormal(3.2, 0.2, 1200).round(2)})
    elif page == "mixtures.md":
        old = rng.random(1200) < 0.5
        ages = np.where(old, rng.normal(70, 4, 1200), rng.normal(30, 4, 1200)).round(1)
        write("visits.csv", {"age": ages, "minutes": np.where(old, rng.normal(60, 5, 1200), 20).round(1)})
    elif page == "reading.md":
        Path("pay.csv").write_text("person;pay\n1;1.234,5\n", encoding="utf-8")
    elif page == "regression.md":
        Path("geyser.csv").write_bytes(load_faithful().path.read_bytes())
    elif page == "sampling.md":
        write("stays.csv", {"age": rng.uniform(0, 100, 800).round(), "days": days[:800]})
    elif page == "profile.md":
        wards, dates = rng.choice(["a", "b"], 1200), rng.choice(["2020-01-05", "2021-07-01"], 1200)
        made = {
            "age": rng.integers(0, 99, 1200),
            "stay": days,
            "cost": (days * 90).round(),
            "ward": wards,
            "day": dates,
        }
        write("visits.csv", made)
    elif page == "studio.md":
        shape = release(days, columns=["stay"], bounds=(0, 60), epsilon=1.0)
        shape.save("visits.fog")


def half_a_year() -> None:
    """Count the weeks between the first, which the page shows, and the 27th, after which it looks for a drift."""
    for _ in range(26):
        CliRunner().invoke(app, ["continual", "add", "year.counts", "week01.csv"])
        done = CliRunner().invoke(app, ["continual", "release", "year.counts", "--out", "year.npz"])
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_run_in_their_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare(page)
    for block in RUN[page]:
        if page == "budget.md" and "patients.fogline" in block:
            Path("patients.fogline").unlink(missing_ok=True)  # the page shows two ways to make one
        for line in commands(block):
            if line in SERVERS:
                assert (ROOT / SERVERS[line]).is_file()
                continue
            words = shlex.split(line)
            if words[:2] == ["pip", "install"]:
                continue
            assert words[0] == "fogline", line
            if words[1:3] == ["continual", "drift"]:
                half_a_year()
            done = CliRunner().invoke(app, words[1:])
            assert done.exit_code == 0, f"{line}\n{done.output}"


def test_pages_whose_commands_run_elsewhere_are_run_there():
    for name, test in RUN_ELSEWHERE.items():
        assert name in (ROOT / test).read_text("utf-8")


def test_the_configuration_of_the_studio_is_one(tmp_path):
    from fogline.studio.config import load_config

    text = next(body for _, kind, body in FENCED.findall(PAGES["studio.md"]) if kind == "toml")
    assert tomllib.loads(text)
    (tmp_path / "studio.toml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path / "studio.toml")
    assert config.dataset("visits").reading == {"decimal": ","}
    assert config.cap == (3.0, 0.0)


def test_a_block_is_cut_into_commands():
    indented = "    fogline a \\\n        --b   # why\n    fogline c\n"
    page = f"A\n\n{indented}\n```sh\nfogline d\n    --e\n```\n\n```python\n>>> 1\n```\n"
    assert [commands(block) for block in blocks(page)] == [["fogline d --e"], ["fogline a --b", "fogline c"]]


def test_examples_of_python_are_all_doctests():
    for name, text in PAGES.items():
        for _, kind, body in FENCED.findall(text):
            assert not kind.startswith("py") or ">>> " in body or "recipe:" in kind, (name, body)
