"""What a project says about itself agrees: version, authors, licence, changelog, hooks."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

import fogline

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CFF_FIELDS = {"abstract", "authors", "cff-version", "date-released", "keywords", "license", "message", "title", "type"}
HEADING = re.compile(r"^## (\S+) \((unreleased|\d{4}-\d{2}-\d{2})\)$", flags=re.MULTILINE)


def parsed(name):
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text("utf-8"))


def test_the_version_is_the_same_everywhere():
    assert PROJECT["version"] == fogline.__version__
    assert parsed("CITATION.cff")["version"] == fogline.__version__
    assert HEADING.search((ROOT / "CHANGELOG.md").read_text("utf-8"))[1] == fogline.__version__


def test_the_citation_is_valid():
    cited = parsed("CITATION.cff")
    assert {"authors", "cff-version", "message", "title"} <= cited.keys() <= CFF_FIELDS | {"version"}
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] == "software"
    assert cited["authors"] == PROJECT["authors"] == [{"name": "fogline developers"}]
    assert cited["license"] == PROJECT["license"]
    assert all(isinstance(cited[field], str) for field in ("message", "title", "version", "abstract"))


def test_every_version_of_the_changelog_begins_with_privacy():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    parts = HEADING.split(text)[1:]
    versions = parts[::3]
    assert len(versions) == len(re.findall(r"^## ", text, flags=re.MULTILINE)), "a heading has another form"
    assert versions == sorted(versions, key=Version, reverse=True)
    for version, content in zip(versions, parts[2::3], strict=True):
        assert re.search(r"^### (.+)$", content, flags=re.MULTILINE)[1] == "Privacy", version


def test_hooks_are_local_and_run_the_tools_of_the_project():
    repositories = parsed(".pre-commit-config.yaml")["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    hooks = {hook["id"]: hook for hook in repositories[0]["hooks"]}
    assert {"ruff", "ruff-format", "mypy", "api"} <= hooks.keys()
    for hook in hooks.values():
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")
        for word in hook["entry"].split()[1:]:
            assert "/" not in word or (ROOT / word).is_file(), word


def test_metadata_names_every_python_that_the_matrix_runs():
    lowest = re.fullmatch(r">=(3\.\d+)", PROJECT["requires-python"])[1]
    named = re.findall(r"Python :: (3\.\d+)\b", "\n".join(PROJECT["classifiers"]))
    assert named[0] == lowest
    assert {"3.11", "3.12", "3.13"} <= set(named)


def test_no_file_of_the_project_names_a_place_that_only_we_have():
    names = ("pyproject.toml", "Makefile", "CITATION.cff", ".pre-commit-config.yaml", "CONTRIBUTING.md", "SECURITY.md")
    tools = [f"tools/{path.name}" for path in (ROOT / "tools").glob("*.py")]
    for name in (*names, *tools):
        text = (ROOT / name).read_text("utf-8")
        assert not re.search(r"(?<![\w.])/(root|home|work)/|index-url|find-links", text), name
