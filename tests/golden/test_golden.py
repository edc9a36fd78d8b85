"""Nothing changes the law of a stored answer without changing its version: golden answers for a fixed seed."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest

import fogline
from fogline.density import private_density
from fogline.mechanisms import discrete_gaussian as gaussian
from fogline.queries.gaussian import SphericalQuery

pytestmark = pytest.mark.quick

PACKAGE = Path(fogline.__file__).parent


def load():
    spec = importlib.util.spec_from_file_location("golden_update", Path(__file__).with_name("update.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["golden_update"] = module
    spec.loader.exec_module(module)
    return module


golden = load()
KNOWN = json.loads(golden.ANSWERS.read_text(encoding="utf-8"))
QUICK = "private_spherical_gaussian, add-remove"


@pytest.mark.parametrize("case", golden.CASES)
def test_an_answer_moves_only_with_its_version(case):
    assert golden.compare(case, KNOWN.get(case), golden.golden(case)) == ""


def code_versions():
    """The value of every CODE_VERSION in the package, by the file that it is in."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("CODE_VERSION"):
                found[str(path.relative_to(PACKAGE))] = ast.literal_eval(node.value)
    return found


def test_every_version_has_an_answer_and_no_answer_is_left_over():
    versions = code_versions()
    assert len(versions) >= 10
    assert len(set(versions.values())) == len(versions), "two algorithms share a version: give one another name"
    assert {answer["version"] for answer in KNOWN.values()} == set(versions.values())
    assert set(KNOWN) == set(golden.CASES)


def test_every_certified_estimator_has_an_answer():
    named = {case.split(",")[0] for case in golden.CASES}
    public = {name for name, home in fogline._HOMES.items() if home in ("fogline.estimators", "fogline.releases")}
    assert public - {"PrivateDensity", "check_pipeline"} <= named


# -- mutants: what must make the test fail --------------------------------------------------------------------


def double_noise(patch):
    real = gaussian.gaussian_scale
    patch.setattr(gaussian, "gaussian_scale", lambda *args: 2.0 * real(*args))


def another_lattice(patch):
    module = importlib.import_module("fogline.releases.density_sketch")
    real = module.lattice_sums
    patch.setattr(module, "lattice_sums", lambda *args: real(*args) + 1)


def another_reading(patch):
    real = private_density.PrivateDensity.pdf
    patch.setattr(private_density.PrivateDensity, "pdf", lambda self, x, **more: 1.001 * real(self, x, **more))


@pytest.mark.parametrize("mutate", [double_noise, another_lattice, another_reading])
def test_a_changed_law_is_noticed(mutate, monkeypatch):
    case = "DensitySketch, add-remove"
    mutate(monkeypatch)
    said = golden.compare(case, KNOWN[case], golden.golden(case))
    assert "law changed and its version did not" in said


def wider(found):
    return dataclasses.replace(found, sigma=1.001 * found.sigma)


def test_a_reading_of_stages_that_changes_is_noticed(monkeypatch):
    assert golden.compare(QUICK, KNOWN[QUICK], golden.golden(QUICK)) == ""
    real = SphericalQuery._read
    monkeypatch.setattr(SphericalQuery, "_read", lambda *args: wider(real(*args)))
    assert "law changed" in golden.compare(QUICK, KNOWN[QUICK], golden.golden(QUICK))


def test_another_version_asks_for_an_update(monkeypatch):
    module = importlib.import_module("fogline.estimators.gaussians")
    monkeypatch.setattr(module, "CODE_VERSION", "gaussian-999")
    said = golden.compare(QUICK, KNOWN[QUICK], golden.golden(QUICK))
    assert "gaussian-999" in said
    assert "update.py" in said
    assert "no golden answer yet" in golden.compare(QUICK, None, golden.golden(QUICK))


def test_the_script_refuses_an_answer_that_moved_under_its_version(tmp_path):
    path = tmp_path / "answers.json"
    old = {"version": "a-1", "integers": "0", "stored": [1.0], "reading": [2.0]}
    assert golden.update(path, {"one": old}) == []
    before = path.read_text()
    moved = {**old, "reading": [2.1]}
    (refused,) = golden.update(path, {"one": moved, "new": old})
    assert "version did not" in refused
    assert path.read_text() == before
    assert golden.update(path, {"one": {**moved, "version": "a-2"}, "new": old}) == []
    kept = json.loads(path.read_text())
    assert kept["one"]["reading"] == [2.1]
    assert set(kept) == {"one", "new"}
    wobble = {**moved, "version": "a-2", "reading": [2.1 * (1 + 1e-6)]}
    assert golden.update(path, {"one": wobble, "new": old}) == []
    assert json.loads(path.read_text())["one"]["reading"] == [2.1]


def test_the_script_itself(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(golden, "ANSWERS", tmp_path / "answers.json")
    monkeypatch.setattr(golden, "CASES", {QUICK: golden.CASES[QUICK]})
    assert golden.main() == 0
    assert "1 answers" in capsys.readouterr().out
    assert golden.compare(QUICK, KNOWN[QUICK], json.loads(golden.ANSWERS.read_text())[QUICK]) == ""
    double_noise(monkeypatch)
    assert golden.main() == 1
    assert "refused" in capsys.readouterr().out


def test_answers_are_compared_part_by_part():
    one = {"version": "v", "integers": "a", "stored": [1.0, 0.0], "reading": [5.0]}
    assert golden.same(one, {**one, "stored": [1.0 + 1e-6, 0.0]})
    for change in ({"integers": "b"}, {"stored": [1.0]}, {"stored": [1.01, 0.0]}, {"reading": [5.1]}, {"reading": []}):
        assert not golden.same(one, {**one, **change})
    assert golden.rounded([math.pi, math.nan, math.inf]) == [3.14159, 0.0, 0.0]
