"""The commands and the recipe of docs/release.md, run as they stand there."""

import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from fogline.cli.app import COMMANDS, app
from fogline.cli.recipe import Recipe

PAGE = (Path(__file__).parents[2] / "docs" / "release.md").read_text()


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{k % 900},{rng.integers(18, 95)},{rng.gamma(3.0, 2.0):.2f}" for k in range(2000)]
    (tmp_path / "visits.csv").write_text("\n".join(["person,age,stay", *rows, ""]))
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert {words[0] for words in commands} == {"fogline"}
    assert (
        {"release", "card", "ask", "quantiles", "run", "init", "sample"}
        <= {words[1] for words in commands}
        <= {*COMMANDS}
    )
    for words in commands:
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, (words, result.output, result.stderr)


def test_the_recipe_of_the_page_is_one():
    (text,) = blocks("toml")
    kinds = [step.words[0] for step in Recipe(tomllib.loads(text), Path(".")).steps()]
    assert kinds == ["release", "profile", "quantiles", "ask"]
