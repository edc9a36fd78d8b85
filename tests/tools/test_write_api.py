"""The list of public names: up to date, and a change of any kind is seen."""

import re
import types
import warnings

import pytest

import fogline
from tools import write_api


@pytest.fixture(scope="module")
def wanted():
    return write_api.files()


def test_the_lists_are_up_to_date(wanted):
    assert write_api.stale(write_api.ROOT, wanted) == [], f"run `{write_api.COMMAND}` and look at what changed"


def test_every_public_name_has_a_line_a_sentence_and_a_place(wanted):
    entries = write_api.public_names(write_api.ROOT)
    lines = [line for entry in entries for line in entry.lines]
    assert len(lines) == len(set(lines)) >= 60
    assert {entry.name for entry in entries if entry.module == "fogline"} == set(fogline.__all__)
    wordless = [entry.name for entry in entries if not entry.summary and not entry.lines[0].startswith("value ")]
    assert wordless == [], "these public names have no docstring"
    page = wanted[write_api.PAGE]
    for link in re.findall(r"\]\(([\w.-]+)\)", page):
        assert (write_api.ROOT / "docs" / link).is_file(), link
    assert " at 0x" not in page


def made(**names):
    """A module with these names, all public."""
    module = types.ModuleType("fogline.made")
    for name, thing in names.items():
        setattr(module, name, thing)
    module.__all__ = list(names)
    return module


def lines(**names):
    return [line for entry, _ in write_api.entries_of(made(**names)) for line in entry.lines]


class Sample:
    """A sample. More words."""

    def __init__(self, x, *, level=0.05):
        self.x = x

    @property
    def size(self):
        return 1

    @classmethod
    def of(cls, *, x: int = 2) -> None:
        pass

    @staticmethod
    def at(place):
        pass

    def read(self, y=None):
        pass

    def _hidden(self):
        pass


Sample.__module__ = "fogline.made"


class Refused(RuntimeError):
    """No."""


def test_each_kind_of_name_has_its_line():
    assert lines(Sample=Sample) == [
        "class fogline.made.Sample(x, *, level=0.05)",
        "def fogline.made.Sample.at(place)",
        "def fogline.made.Sample.of(*, x=2)",
        "def fogline.made.Sample.read(y=None)",
        "property fogline.made.Sample.size",
    ]
    assert lines(Refused=Refused) == ["exception fogline.made.Refused(RuntimeError)"]
    assert lines(LIMIT=3) == ["value fogline.made.LIMIT: int"]
    assert lines(warnings=warnings) == ["module fogline.made.warnings"]


def test_a_changed_default_a_new_parameter_and_a_lost_method_change_the_list():
    def before(a, *, b=1): ...

    def other_default(a, *, b=2): ...

    def more(a, *, b=1, c=None): ...

    assert len({tuple(lines(f=f)) for f in (before, other_default, more)}) == 3
    shorter = type("Sample", (), {name: value for name, value in vars(Sample).items() if name != "read"})
    assert len(lines(Sample=shorter)) == len(lines(Sample=Sample)) - 1


def test_a_file_that_differs_or_is_absent_is_stale(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "api.md").write_text("old\n")
    said = write_api.stale(tmp_path, {write_api.PAGE: "new\n", write_api.LIST: "name\n"})
    assert "-old" in said
    assert "+new" in said
    assert "+name" in said
    (tmp_path / "docs" / "api.md").write_text("new\n")
    assert write_api.stale(tmp_path, {write_api.PAGE: "new\n"}) == []


def test_documented_are_modules_that_a_page_imports_from():
    page = (
        "words from fogline.nowhere import x\n```python\n>>> from fogline.made import A, b\n```\n`import fogline.other`"
    )
    assert write_api.documented_modules([page]) == ["fogline.made", "fogline.other"]
    assert write_api.documented_modules(["```\nfrom fogline import A\nfrom fogline._hidden import b\n```"]) == []


def test_a_page_is_found_by_the_code_in_it():
    entry = write_api.Entry("fogline.made", "read", ("def fogline.made.read()",), "")
    pages = {
        "docs/a.md": "read read read()",
        "docs/b.md": "`made.read`",
        "docs/c.md": "```\nfrom fogline.made import read\n```",
    }
    assert write_api.page_about(entry, pages) == "docs/c.md"
    assert write_api.page_about(entry, {"docs/a.md": pages["docs/a.md"]}) == ""


def test_a_name_that_leaves_is_listed_as_such_whether_installed_or_not():
    def lead(name):
        warnings.warn(f"{name} goes", FutureWarning, stacklevel=2)
        if name == "absent":
            raise ImportError(name)
        return Sample

    module = types.ModuleType("fogline.made")
    module.__all__ = ["absent", "present"]
    module.__getattr__ = lead
    assert [entry.lines for entry, _ in write_api.entries_of(module)] == [
        ("deprecated fogline.made.absent",),
        ("deprecated fogline.made.present",),
    ]


def test_bad_modules_are_refused():
    with pytest.raises(ValueError, match="no __all__"):
        list(write_api.entries_of(types.ModuleType("fogline.made")))

    def fails(name):
        raise ImportError(name)

    module = types.ModuleType("fogline.made")
    module.__all__, module.__getattr__ = ["absent"], fails
    with pytest.raises(ImportError, match=r"fogline\.made\.absent is listed in __all__"):
        list(write_api.entries_of(module))

    unnamed = object()

    def no_lasting_text(a=unnamed): ...

    with pytest.raises(ValueError, match="no lasting text"):
        lines(f=no_lasting_text)


def test_checking_says_what_to_run(monkeypatch, capsys):
    monkeypatch.setattr(write_api, "files", lambda: {write_api.LIST: "other\n"})
    assert write_api.main(["--check"]) == 1
    assert "run `make api`" in capsys.readouterr().out
    held = (write_api.ROOT / write_api.LIST).read_text("utf-8")
    monkeypatch.setattr(write_api, "files", lambda: {write_api.LIST: held})
    assert write_api.main(["--check"]) == 0
