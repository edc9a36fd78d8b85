"""What is taken home works: the recipe runs, the script and the notebook execute, nothing names a place."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fogline.cli.app import app as commands
from fogline.cli.recipe import Recipe
from fogline.studio.exports import EXPORTS, file_name, release_call
from fogline.studio.questions import ColumnWish, Question, parse_question, question_fields


def export(hospital, kind: str, dataset: str = "visits") -> str:
    studio, _, releases = hospital
    stored = studio.store.release(releases[dataset])
    entry, density = studio.config.dataset(dataset), studio.store.density(stored.id)
    return EXPORTS[kind].make(stored, entry, density).decode()


def test_the_recipe_is_one_that_runs(hospital, tmp_path):
    import shutil

    studio = hospital[0]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(export(hospital, "recipe").replace('[ledger]\npath = "budget.fogline"\n', ""))
    shutil.copy(studio.config.dataset("visits").source, tmp_path / "visits.csv")
    done = CliRunner().invoke(commands, ["run", str(recipe)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "shape.fog").is_file()
    found = Recipe.load(recipe)
    assert found.releases["shape"]["epsilon"] == 1.0
    assert found.source == {"file": "visits.csv", "unit": "patient", "max_contributions": 2}


def test_the_script_and_the_notebook_execute(hospital, tmp_path, monkeypatch, capsys):
    studio, _, releases = hospital
    name = releases["lab"]
    (tmp_path / f"{name}.fog").write_bytes(studio.store.file(name))
    monkeypatch.chdir(tmp_path)
    exec(compile(export(hospital, "script", "lab"), "script", "exec"), {})
    shown = capsys.readouterr().out
    assert "Certified" in shown
    assert "median" in shown
    assert "Modes" in shown
    notebook = json.loads(export(hospital, "notebook", "lab"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    cells = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "cell", "exec"), cells)
    assert cells["shape"] == studio.store.density(name)


@pytest.mark.quick
def test_a_call_holds_all_that_was_chosen():
    column = ColumnWish("a b", 0.0, 9.0, None, 1.0)
    question = Question("x", (column,), 0.5, "patient", 3, 100, {"decimal": ","})
    call = release_call(question, file_name("x", None))
    assert call == (
        "fogline.release('x.csv', bounds={'a b': (0.0, 9.0)}, epsilon=0.5, steps={'a b': 1.0}, unit='patient', "
        "max_contributions=3, decimal=',')"
    )


@pytest.mark.quick
def test_a_question_goes_into_a_form_and_comes_back(tmp_path):
    from fogline.studio.config import Dataset

    columns = (ColumnWish("age", 0.0, 125.0, "age", 1.0), ColumnWish("stay, d", -1.5, 60.0, typical=5.0, spread=2.0))
    question = Question("x", columns, 0.37, "patient", 3, 1234, {"delimiter": "\t", "null": ["NA", "-9"]})
    form: dict[str, list[str]] = {}
    for name, value in question_fields(question):
        form.setdefault(name, []).append(value)
    entry = Dataset("x", "x.csv", "X", account="x")
    assert parse_question(entry, form, ["age", "stay, d", "patient"]) == (question, {})
    assert Question.from_dict(json.loads(json.dumps(question.to_dict()))) == question


def test_a_column_may_have_any_name_even_that_of_python_s_own_first_parameter():
    import numpy as np

    from fogline import release
    from fogline.studio.explorer import Condition, curve

    rows = np.random.default_rng(0).uniform(0, 10, (2000, 2))
    shape = release(rows, columns=["self", "stay"], bounds=[(0, 10), (0, 10)], epsilon=1.0)
    found = curve(shape, "stay", 32, [[Condition("self", 0.0, 5.0)]])
    assert found.rows[0][0].startswith("self")


def test_few_releases_stay_in_memory_and_the_last_asked_for_longest(hospital, tmp_path):
    from fogline.studio.store import MOST_OPENED, Store

    studio, _, releases = hospital
    store = Store(tmp_path)
    kept = studio.store.release(releases["lab"])
    density = studio.store.density(releases["lab"])
    names = [store.add_release(kept.question, "Laboratory", density).id for _ in range(MOST_OPENED + 2)]
    assert list(store._opened) == names[-MOST_OPENED:]  # making releases does not fill the memory either
    first = store.density(names[-MOST_OPENED])
    store.density(names[0])
    assert store.density(names[-MOST_OPENED]) is first
    assert len(store._opened) == MOST_OPENED
    assert store.density(names[0]) == density
