"""The Dockerfile, read line by line: no root, nothing copied that is not named, nothing fetched but packages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fogline.cli.app import COMMANDS, app

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


def instructions(text: str) -> list[tuple[str, str]]:
    """Instructions and their arguments, with lines that go on joined and comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\s*\n\s*", " ", "\n".join(lines))
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


STEPS = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
KNOWN = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}


def last(word: str) -> str:
    return [rest for name, rest in STEPS if name == word][-1]


def test_every_line_is_an_instruction():
    assert {word for word, _ in STEPS} <= KNOWN
    assert STEPS[0][0] == "FROM"


def test_the_last_stage_runs_as_somebody_without_rights():
    final = STEPS[max(k for k, (word, _) in enumerate(STEPS) if word == "FROM") :]
    users = [rest for word, rest in final if word == "USER"]
    assert users == ["10001:10001"]
    after = [word for word, _ in final[[word for word, _ in final].index("USER") :]]
    assert "RUN" not in after
    assert "COPY" not in after


def test_images_are_named_with_their_version_and_nothing_is_downloaded():
    images = [rest.split()[0] for word, rest in STEPS if word == "FROM"]
    assert all(re.fullmatch(r"[a-z]+:\d+\.\d+-slim", image) for image in images)
    for word, rest in STEPS:
        assert not re.search(r"curl|wget|https?://|--index-url|sudo|chmod 777|ADD ", f"{word} {rest}")


def test_only_what_the_ignore_file_names_is_copied():
    ignored = [
        line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line and not line.startswith("#")
    ]
    assert ignored[0] == "*"
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    copied = {part.removeprefix("./") for word, rest in STEPS if word == "COPY" and "--from" not in rest
              for part in rest.split()[:-1]}  # fmt: skip
    assert copied == allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_state_and_marks_are_on_the_volume():
    told = dict(part.split("=", 1) for part in last("ENV").split())
    [volume] = json.loads(last("VOLUME"))
    assert told["XDG_STATE_HOME"].startswith(volume)
    assert told["HOME"] == volume
    assert last("EXPOSE") == "8765"
    assert json.loads(last("ENTRYPOINT")) == ["fogline"]


def test_commands_in_the_comments_are_those_of_the_program():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert set(re.findall(r"fogline (check|studio) /data", text)) <= set(COMMANDS)
    shown = CliRunner().invoke(app, ["studio", "--help"]).output
    for option in set(re.findall(r"--(?:store|budget|host|allow-host|https)\b", text)):
        assert option in shown
