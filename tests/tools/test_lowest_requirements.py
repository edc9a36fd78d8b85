"""Lowest versions: pins that follow from the requirements, and requirements from which none follows."""

import tomllib

import pytest
from packaging.requirements import Requirement
from tools.lowest_requirements import lowest_pins, minimum, requirements

from tools import lowest_requirements


def pins(*lines, **environment):
    return lowest_pins([Requirement(line) for line in lines], environment or None)


def test_a_minimum_becomes_a_pin():
    assert pins("numpy>=2.0", "OpenDP>=0.16,<0.17", "dask[array]>=2024.8", "a~=1.4", "b==3") == [
        "a==1.4",
        "b==3",
        "dask==2024.8",
        "numpy==2.0",
        "opendp==0.16",
    ]


def test_of_several_the_highest_counts_and_markers_decide():
    lines = ("numpy>=2.0", "numpy>=2.1; python_version >= '3.13'", "x>=1; python_version < '3.12'")
    assert pins(*lines, python_version="3.11") == ["numpy==2.0", "x==1"]
    assert pins(*lines, python_version="3.13") == ["numpy==2.1"]
    assert pins("x>=1.9", "X>=1.10") == ["x==1.10"]


@pytest.mark.parametrize("line", ["numpy", "numpy<3", "numpy!=2.0", "numpy>2.0"])
def test_a_requirement_without_a_minimum_is_refused(line):
    with pytest.raises(ValueError, match="numpy has no minimum"):
        minimum(Requirement(line))


def test_a_minimum_that_is_excluded_is_refused():
    with pytest.raises(ValueError, match=r"excludes its own minimum 2\.0"):
        minimum(Requirement("numpy>=2.0,!=2.0"))


def test_the_project_itself_is_not_pinned_and_nonsense_is_named():
    project = {"name": "Fog_Line", "dependencies": ["a>=1"], "optional-dependencies": {"x": ["fog-line[y]", "b>=2"]}}
    assert [found.name for found in requirements(project)] == ["a", "b"]
    with pytest.raises(ValueError, match=r"'>= 2' is not a requirement"):
        list(requirements({"name": "x", "dependencies": [">= 2"]}))


def test_every_requirement_of_ours_has_a_pin(capsys):
    assert lowest_requirements.main([]) == 0
    printed = capsys.readouterr().out.split()
    project = tomllib.loads((lowest_requirements.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert len(printed) == len({pin.split("==")[0] for pin in printed})
    assert {Requirement(line).name for line in project["dependencies"]} <= {pin.split("==")[0] for pin in printed}


@pytest.mark.parametrize(
    ("text", "said"), [("[project\n", "no pins"), ("[tool]\n", "no pins: 'project'"), (None, "no pins")]
)
def test_a_bad_file_is_a_sentence_and_an_exit_code(tmp_path, capsys, text, said):
    path = tmp_path / "pyproject.toml"
    if text is not None:
        path.write_text(text)
    assert lowest_requirements.main([str(path)]) == 1
    assert said in capsys.readouterr().err
