"""``fogline ledger`` and ``fogline modes --ledger``: what is paid, what is free, what is refused, what is said."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

from fogline import PrivateDensity
from fogline.accounting import Cost, PureCost
from fogline.accounting.costs import GaussianCost
from fogline.cli.app import app
from fogline.ledger import Ledger, Receipt
from fogline.report.ledger import spending_picture, statements

DELTA = ["--delta", "1e-6"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def place(tmp_path):
    (tmp_path / "books").mkdir()
    return tmp_path / "books" / "ledger", ["--high-water", tmp_path / "marks"]


@pytest.fixture
def ledger(place):
    path, marks = place
    result = run("ledger", "create", path, "--dataset", "visits", "--epsilon", "1", *DELTA, *marks)
    assert result.exit_code == 0, result.output
    return path, marks


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(30, 5, (800, 2)), rng.normal(70, 5, (800, 2))])
    np.savetxt(tmp_path / "table.csv", X, delimiter=",", header="a,b", comments="")
    return tmp_path / "table.csv"


def modes(table, ledger, *words, epsilon="0.5", columns="a"):
    path, marks = ledger
    options = ["--columns", columns, "--bounds", "0:100", "--epsilon", epsilon, *DELTA, "--ledger", path, *marks]
    return run("modes", table, *options, *words)


def shown(ledger):
    path, marks = ledger
    return json.loads(run("ledger", "show", path, *marks, "--json").stdout)["datasets"][0]


# -- create, show, history, verify, export ----------------------------------------------------------------


def test_create_says_what_the_cap_is_in_rho(place):
    path, marks = place
    words = ["--dataset", "visits", "--epsilon", "1", *DELTA, "--neighbours", "replace", *marks, "--json"]
    result = run("ledger", "create", path, *words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["rho"] == Ledger.rho_of(1.0, 1e-6)
    with Ledger.open(path, high_water=marks[1]) as opened:
        assert opened.id == document["ledger"]
        assert opened.history()[1].content["neighbours"] == "replace"


def test_a_new_ledger_shows_its_cap_and_nothing_spent(ledger):
    path, marks = ledger
    result = run("ledger", "show", path, *marks)
    assert result.exit_code == 0, result.output
    assert "visits" in result.stdout
    assert "0%" in result.stdout
    assert shown(ledger)["items"] == []
    assert shown(ledger)["remaining"]["epsilon"] == pytest.approx(1)


def test_history_lists_every_entry(ledger, table):
    path, marks = ledger
    assert modes(table, ledger).exit_code == 0
    text = run("ledger", "history", path, *marks).stdout
    assert [kind in text for kind in ("genesis", "dataset", "reserve", "commit")] == [True] * 4
    entries = json.loads(run("ledger", "history", path, *marks, "--json").stdout)["entries"]
    assert [entry["content"]["kind"] for entry in entries] == ["genesis", "dataset", "reserve", "commit"]


def test_verify_counts_the_entries(ledger):
    path, marks = ledger
    assert run("ledger", "verify", path, *marks).stdout.startswith("sound: 2 entries")
    assert json.loads(run("ledger", "verify", path, *marks, "--json").stdout)["sound"] is True


def test_export_writes_lines_and_never_over_a_file(ledger, tmp_path):
    path, marks = ledger
    out = tmp_path / "out.jsonl"
    assert run("ledger", "export", path, out, *marks).exit_code == 0
    assert len(out.read_text().splitlines()) == 2
    again = run("ledger", "export", path, out, *marks)
    assert again.exit_code == 2
    assert "already" in again.stderr
    assert run("ledger", "export", path, tmp_path / "no" / "out", *marks).exit_code == 2


# -- plan -------------------------------------------------------------------------------------------------


def test_plan_says_what_fits_and_costs_nothing(ledger):
    path, marks = ledger
    words = ["ledger", "plan", path, "--epsilon", "0.5", *DELTA, *marks]
    result = run(*words)
    assert result.exit_code == 0
    assert "fits: yes (1 asked for, 3 would fit)" in result.stdout
    document = json.loads(run(*words, "--json").stdout)
    assert document["times"] == 3
    assert document["after"]["rho"] == pytest.approx(document["before"]["rho"] - document["cost"]["amount"])
    assert run(*words, "--times", "3").exit_code == 0
    assert run(*words, "--times", "4").exit_code == 4
    assert shown(ledger)["items"] == []


def test_plan_foretells_what_modes_pays(ledger, table):
    path, marks = ledger
    plan = json.loads(run("ledger", "plan", path, "--epsilon", "0.5", *DELTA, *marks, "--json").stdout)
    assert modes(table, ledger).exit_code == 0
    assert shown(ledger)["spent"]["zcdp"]["amount"] == plan["cost"]["amount"]


# -- modes --ledger ---------------------------------------------------------------------------------------


def test_a_repeated_question_is_free_and_the_output_says_so(ledger, table, tmp_path):
    page = tmp_path / "page.html"
    first = modes(table, ledger, "--save", tmp_path / "first.npz")
    assert first.exit_code == 0, first.output
    assert "Paid: rho = " in first.stdout
    spent = shown(ledger)["spent"]
    second = modes(table, ledger, "--save", tmp_path / "second.npz", "--report", page)
    assert second.exit_code == 0, second.output
    assert "Free: this question was asked before" in second.stdout
    assert shown(ledger)["spent"] == spent
    released = [PrivateDensity.load(tmp_path / name) for name in ("first.npz", "second.npz")]
    assert released[0] == released[1]
    assert page.stat().st_size > 10_000


def test_a_new_version_is_asked_anew_on_the_same_budget(ledger, table):
    path, marks = ledger
    modes(table, ledger)
    spent = shown(ledger)["spent"]["zcdp"]["amount"]
    result = run("ledger", "new-version", path, "quarter 2", *marks)
    assert result.exit_code == 0, result.output
    assert "visits: now version quarter 2" in result.stdout
    assert "Paid: rho = " in modes(table, ledger).stdout
    assert shown(ledger)["version"] == "quarter 2"
    assert shown(ledger)["spent"]["zcdp"]["amount"] == pytest.approx(2 * spent)
    for words in (["quarter 2"], [""], ["quarter 3", "--dataset", "nobody"]):
        refused = run("ledger", "new-version", path, *words, *marks)
        assert refused.exit_code in (2, 4), refused.output
        assert "Traceback" not in refused.output


def test_the_receipt_is_in_the_document_and_holds(ledger, table):
    path, marks = ledger
    documents = [json.loads(modes(table, ledger, "--json").stdout) for _ in range(2)]
    assert [document["cached"] for document in documents] == [False, True]
    assert documents[0]["receipt"] == documents[1]["receipt"]
    with Ledger.open(path, high_water=marks[1]) as opened:
        assert Receipt.from_dict(documents[0]["receipt"]).verify(opened)


def test_other_columns_are_another_question(ledger, table):
    answers = [json.loads(modes(table, ledger, "--json", columns=name).stdout) for name in ("a", "b")]
    assert [answer["cached"] for answer in answers] == [False, False]
    assert [item["label"] for item in shown(ledger)["items"]] == ["density, a, epsilon 0.5", "density, b, epsilon 0.5"]


def test_a_spent_budget_ends_with_4_and_one_line_before_the_records_are_touched(ledger, table, monkeypatch):
    from fogline.sources.files import FileTable

    monkeypatch.setattr(FileTable, "state", lambda *_: pytest.fail("the records were touched"))
    result = modes(table, ledger, epsilon="1.5")
    assert result.exit_code == 4
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "budget" in result.stderr
    assert shown(ledger)["items"] == []


def test_a_release_that_fails_ends_with_3_and_is_spent(ledger, table, monkeypatch):
    from fogline.sources.files import FileTable

    said = set()
    for secret in ("secret 1", "secret 2"):
        with monkeypatch.context() as patched:
            patched.setattr(FileTable, "state", lambda *_, word=secret: (_ for _ in ()).throw(OSError(word)))
            result = modes(table, ledger, epsilon="0.3" if secret.endswith("1") else "0.31")
        assert result.exit_code == 3
        assert result.stdout == ""
        said.add(result.stderr)
    assert len(said) == 1
    assert "secret" not in said.pop()
    assert [item["answered"] for item in shown(ledger)["items"]] == [False, False]
    path, marks = ledger
    assert "no answer" in run("ledger", "show", path, *marks).stdout


def test_several_data_sets_and_an_analyst(ledger, table):
    path, marks = ledger
    with Ledger.open(path, high_water=marks[1]) as opened:
        opened.add_dataset("stays", epsilon=2.0, delta=1e-6)
        opened.add_analyst("ada", epsilon=0.6, delta=1e-6)
    unnamed = modes(table, ledger)
    assert unnamed.exit_code == 4
    assert "'visits', 'stays'" in unnamed.stderr
    assert modes(table, ledger, "--dataset", "stays", "--analyst", "ada").exit_code == 0
    assert modes(table, ledger, "--dataset", "stays", "--analyst", "ada", epsilon="0.55").exit_code == 4
    assert modes(table, ledger, "--dataset", "stays", "--analyst", "bob").exit_code == 4
    document = json.loads(run("ledger", "show", path, *marks, "--json").stdout)
    assert document["analysts"] == ["ada"]
    assert [len(dataset["items"]) for dataset in document["datasets"]] == [0, 1]
    assert document["datasets"][1]["items"][0]["analyst"] == "ada"


# -- the picture ------------------------------------------------------------------------------------------


def test_the_picture_stands_alone_and_escapes_names(place, tmp_path):
    path, marks = place
    with Ledger.create(path, dataset="<b>&", epsilon=1.0, delta=1e-6, integral=3.0, high_water=marks[1]) as opened:
        opened.declare_partition("<b>&", "sex", ["f", "m"])
        for part in ("f", "m"):
            opened.on("<b>&", partition=("sex", part)).ask(
                "count",
                code_version="1",
                parameters={"epsilon": 0.5},
                cost=Cost(0.005),
                neighbours="add-remove",
                certified=True,
                release=lambda: b"90",
            )
        listed = statements(opened)
    assert [item.amount for item in listed[0].items] == [5_000_000_001, 0]  # rounded up
    assert sum(item.amount for item in listed[0].items) == listed[0].spent["zcdp"][0]
    drawing = spending_picture(listed)
    root = ET.fromstring(drawing)
    text = " ".join(root.itertext())
    assert "<b>&, version 1" in text
    assert "count, epsilon 0.5, sex = f" in text
    assert "integrally private" in text
    assert "http" not in drawing.replace("http://www.w3.org/2000/svg", "")
    for name in ("spent.svg", "spent.html"):
        result = run("ledger", "show", path, *marks, "--picture", tmp_path / name)
        assert result.exit_code == 0, result.output
        assert drawing in (tmp_path / name).read_text(encoding="utf-8")
    assert run("ledger", "show", path, *marks, "--picture", tmp_path / "no" / "x.svg").exit_code == 2


def test_a_bar_of_many_questions_stays_small(place):
    path, marks = place
    with Ledger.create(path, dataset="d", epsilon=5.0, delta=1e-6, high_water=marks[1]) as opened:
        for number in range(70):
            opened.ask(
                "count",
                code_version="1",
                parameters={"number": number, "epsilon": number / 100},
                cost=Cost(0.001),
                neighbours="add-remove",
                certified=True,
                release=lambda: b"9",
            )
        drawing = spending_picture(statements(opened))
    assert "10 more questions" in drawing
    assert "and 58 other questions" in drawing


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["show", "history", "verify"])
def test_no_ledger_there(command, place):
    path, marks = place
    result = run("ledger", command, path, *marks)
    assert result.exit_code == 4
    assert "there is no ledger" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"hello", bytes(range(256)) * 35, b"SQLite format 3\0" + bytes(5000)])
def test_garbage_is_refused(content, place):
    path, marks = place
    path.write_bytes(content)
    for words in (["show"], ["verify"], ["plan", "--epsilon", "1", *DELTA]):
        result = run("ledger", words[0], path, *words[1:], *marks)
        assert result.exit_code == 4, result.output
        assert "Traceback" not in result.output


def test_another_version_is_refused(ledger, monkeypatch, tmp_path):
    from fogline.ledger import accounts as books
    from fogline.ledger import files as founding

    path = tmp_path / "books" / "newer"
    with monkeypatch.context() as patched:
        patched.setattr(founding, "FORMAT", 99)
        patched.setattr(books, "FORMAT", 99)
        made = run("ledger", "create", path, "--dataset", "d", "--epsilon", "1", *DELTA, *ledger[1])
        assert made.exit_code == 0, made.output
    result = run("ledger", "show", path, *ledger[1])
    assert result.exit_code == 4
    assert "format 99" in result.stderr


def test_a_lost_high_water_mark_is_refused(ledger, tmp_path):
    result = run("ledger", "show", ledger[0], "--high-water", tmp_path / "elsewhere")
    assert result.exit_code == 4
    assert "high-water" in result.stderr


def test_a_ledger_is_not_made_twice(ledger):
    path, marks = ledger
    result = run("ledger", "create", path, "--dataset", "visits", "--epsilon", "1", *DELTA, *marks)
    assert result.exit_code == 4
    assert "already" in result.stderr


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (["--epsilon", "-1"], "--epsilon"),
        (["--epsilon", "inf"], "--epsilon"),
        (["--delta", "2"], "--delta"),
        (["--dataset", ""], "--dataset"),
        (["--neighbours", "friends"], "--neighbours"),
    ],
)
def test_a_bad_option_is_named(changed, named, place):
    path, marks = place
    result = run("ledger", "create", path, "--dataset", "d", "--epsilon", "1", *DELTA, *marks, *changed)
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert not path.exists()


def test_the_mark_cannot_lie_beside_the_ledger(place):
    path, _ = place
    words = ["--dataset", "d", "--epsilon", "1", *DELTA, "--high-water", path.parent]
    result = run("ledger", "create", path, *words)
    assert result.exit_code == 2
    assert "--high-water" in result.stderr


def test_an_unknown_data_set_is_refused(ledger, table):
    path, marks = ledger
    assert modes(table, ledger, "--dataset", "nobody").exit_code == 4
    assert run("ledger", "plan", path, "--epsilon", "1", *DELTA, "--dataset", "nobody", *marks).exit_code == 4


def test_the_other_relation_is_refused(ledger, table):
    result = modes(table, ledger, "--neighbours", "replace")
    assert result.exit_code == 4
    assert "replace" in result.stderr


@pytest.mark.parametrize("option", ["--dataset", "--analyst", "--high-water"])
def test_options_of_a_ledger_need_a_ledger(option, table):
    result = run("modes", table, "--bounds", "0:100", "--epsilon", "1", *DELTA, option, "x")
    assert result.exit_code == 2
    assert option in result.stderr


# -- the machine ------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs wait4")
@pytest.mark.parametrize("words", [["--help"], ["ledger", "--help"], ["ledger", "show", "--help"]])
def test_help_answers_at_once_and_loads_nothing_heavy(words):
    code = (
        "import sys; from fogline.cli.app import app\n"
        f"try: app({words!r}, prog_name='fogline')\n"
        "except SystemExit: print([m for m in ('numpy', 'rich', 'duckdb', 'sqlite3', 'sklearn') if m in sys.modules])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    text = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert b"Usage" in text
    assert text.rstrip().endswith(b"[]")
    assert usage.ru_utime + usage.ru_stime < 0.5


@pytest.mark.parametrize(
    "words",
    [
        ["ledger"],
        *(["ledger", name] for name in ("create", "show", "history", "plan", "new-version", "verify", "export")),
    ],
)
def test_help_has_examples(words):
    text = run(*words, "--help").stdout
    assert "Example" in text
    assert "fogline " + " ".join(words) in text


# -- units, sources, analysts, answers ------------------------------------------------------------------------


@pytest.fixture
def visits(tmp_path):
    lines = ["patient,a", *(f"{i % 50},{20 + i % 60}" for i in range(400))]
    for name in ("visits.csv", "women.csv"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path / "visits.csv"


def test_a_declared_unit_is_shown_and_held_to(place, visits):
    path, marks = place
    declared = ["--dataset", "visits", "--epsilon", "1", *DELTA, "--unit", "patient", "--max-contributions", "3"]
    made = run("ledger", "create", path, *declared, *marks)
    assert "unit: patient, at most 3 records" in made.output
    refused = modes(visits, place)
    assert refused.exit_code == 4
    assert "--unit patient" in refused.output
    assert shown(place)["spent"] == {}
    paid = modes(
        visits, place, "--unit", "patient", "--max-contributions", "2", "--report", visits.parent / "page.html"
    )
    assert paid.exit_code == 0, paid.output
    assert "for one patient (at most 2 records, enforced)" in paid.output
    assert "accounted for one patient (at most 2 records, enforced)" in (visits.parent / "page.html").read_text()
    assert shown(place)["unit"] == {"name": "patient", "max_contributions": 3, "enforced": None}
    for command in ("show", "history"):
        assert "patient" in run("ledger", command, path, *marks).output
    exported = visits.parent / "lines.jsonl"
    run("ledger", "export", path, exported, *marks)
    units = [json.loads(line)["content"].get("unit") for line in exported.read_text().splitlines()]
    assert {"name": "patient", "max_contributions": 2, "enforced": True} in units


def test_a_unit_that_is_not_declared_is_said_to_be_open(ledger, visits):
    path, marks = ledger
    assert shown(ledger)["unit"] is None
    assert "not fixed" in " ".join(run("ledger", "show", path, *marks).output.split())
    assert modes(visits, ledger).exit_code == 0
    assert shown(ledger)["unit"]["name"] == "record"


def test_another_file_is_refused_unless_it_is_said(ledger, visits):
    women = visits.with_name("women.csv")
    assert modes(visits, ledger, epsilon="0.1").exit_code == 0
    refused = modes(women, ledger, epsilon="0.1")
    assert refused.exit_code == 4
    assert "--afresh" in refused.output
    assert "new-version" in refused.output
    assert modes(women, ledger, "--afresh", epsilon="0.1").exit_code == 0
    assert "Free" in modes(visits, ledger, epsilon="0.1").output
    path, marks = ledger
    assert run("ledger", "new-version", path, "2", *marks).exit_code == 0
    assert "Paid" in modes(women, ledger, epsilon="0.1").output
    without = run("modes", visits, "--columns", "a", "--bounds", "0:100", "--epsilon", "1", *DELTA, "--afresh")
    assert without.exit_code == 2
    assert "--afresh" in without.output


def test_declared_sources_are_held_to(place, visits):
    path, marks = place
    declared = ["--dataset", "visits", "--epsilon", "1", *DELTA, "--source", visits]
    assert f"sources: {visits}" in run("ledger", "create", path, *declared, *marks).output
    assert modes(visits, place, epsilon="0.1").exit_code == 0
    women = visits.with_name("women.csv")
    assert modes(women, place, "--afresh", epsilon="0.1").exit_code == 4
    assert run("ledger", "new-version", path, "2", "--source", women, *marks).exit_code == 0
    assert modes(women, place, epsilon="0.1").exit_code == 0
    assert "women.csv" in run("ledger", "history", path, *marks, "--json").output


def test_data_sets_and_analysts_can_be_added(ledger, visits):
    path, marks = ledger
    more = ["--dataset", "stays", "--epsilon", "2", *DELTA, "--integral", "1", "--unit", "patient"]
    added = run("ledger", "add-dataset", path, *more, *marks)
    assert added.exit_code == 0, added.output
    assert "unit: patient" in added.output
    assert run("ledger", "add-dataset", path, *more, *marks).exit_code == 4
    assert "no limit" in run("ledger", "add-analyst", path, "ben", *marks).output
    assert "epsilon 0.5" in run("ledger", "add-analyst", path, "ana", "--epsilon", "0.5", *DELTA, *marks).output
    assert run("ledger", "add-analyst", path, "cy", "--epsilon", "0.5", *marks).exit_code == 2
    unnamed = modes(visits, ledger, "--dataset", "visits")
    assert unnamed.exit_code == 4
    assert "--analyst" in unnamed.output
    assert modes(visits, ledger, "--dataset", "visits", "--analyst", "ben").exit_code == 0


def test_answers_are_listed_and_written(ledger, visits):
    path, marks = ledger
    assert modes(visits, ledger).exit_code == 0
    listed = run("ledger", "answers", path, *marks)
    assert "density-" in listed.output
    (found,) = json.loads(run("ledger", "answers", path, *marks, "--json").stdout)["answers"]
    assert found["question"]["parameters"]["source"] == str(visits)
    entry, out = found["receipt"]["commit"], visits.parent / "density.npz"
    written = run("ledger", "answers", path, *marks, "--entry", entry, "--out", out)
    assert written.exit_code == 0, written.output
    assert "edition density-" in written.output
    assert PrivateDensity.load(out).guarantee.proof == "density-sketch"
    assert run("ledger", "answers", path, *marks, "--entry", entry, "--out", out).exit_code == 2
    assert run("ledger", "answers", path, *marks, "--entry", entry).exit_code == 2
    assert run("ledger", "answers", path, *marks, "--entry", 0, "--out", visits.parent / "b").exit_code == 4


# -- totals in all currencies, rounded up; large budgets ---------------------------------------------------


ASKED = {"code_version": "1", "neighbours": "add-remove", "certified": True, "release": lambda: b"about 90"}


@pytest.mark.parametrize("lane", ["zcdp", "gaussian"])
def test_history_and_show_round_up_and_have_all_currencies(place, lane):
    path, marks = place
    run("ledger", "create", path, "--dataset", "visits", "--epsilon", "3", *DELTA, "--lane", lane, *marks)
    with Ledger.open(path, high_water=marks[1]) as opened:
        opened.ask("count", parameters={"n": 1}, cost=PureCost(Fraction(1, 3)), **ASKED)
        opened.ask("count", parameters={"n": 2}, cost=opened.release_cost(0.7, 1e-7), **ASKED)
        found = statements(opened)[0]
        promise = opened.promise()
    history = run("ledger", "history", path, *marks).stdout
    assert "epsilon = 0.333334 pure" in history  # above one third
    assert ("mu = " in history) == (lane == "gaussian")
    document = json.loads(run("ledger", "history", path, *marks, "--json").stdout)["totals"][0]
    assert (document["epsilon"], document["delta"]) == found.total
    assert (document["mu"], document["rho"]) == (found.mu, found.rho)
    shown = run("ledger", "show", path, *marks).stdout
    assert promise in " ".join(shown.split())
    for text in (history, shown):
        said = re.search(r"in all epsilon (\S+) at delta (\S+) \(pure epsilon (\S+), .*?rho = ([^)\s]+)\)", text)
        epsilon, delta, pure, rho = (Fraction(number) for number in said.groups())
        assert 0 <= epsilon - Fraction(found.total[0]) < Fraction(1, 1000)
        assert delta >= Fraction(1e-6)
        assert pure > Fraction(1, 3)
        assert 0 <= rho - Fraction(found.rho) < Fraction(1, 10**5)


@pytest.mark.parametrize(("lane", "delta"), [("zcdp", "1e-6"), ("gaussian", "1e-6"), ("zcdp", "0")])
def test_the_crumbs_of_a_cap_that_is_used_up_are_told_as_nothing(place, lane, delta):
    path, marks = place
    words = ["--lane", lane] if delta != "0" else []
    run("ledger", "create", path, "--dataset", "visits", "--epsilon", "1", "--delta", delta, *words, *marks)
    crumbs = Fraction(2, 10**12)
    with Ledger.open(path, high_water=marks[1]) as opened:
        before = opened.remaining()
        price = {"zcdp": Cost, "gaussian": lambda rho: GaussianCost(rho, 0.0)}[lane]
        cost = PureCost(1 - crumbs) if delta == "0" else price(float(Fraction(before.rho) - crumbs))
        opened.ask("count", parameters={"n": 1}, cost=cost, **ASKED)
        (found,) = statements(opened)
        left = opened.remaining()
    assert 0 < (left.pure if delta == "0" else left.rho) < 4e-12  # programs are told what there is
    assert (found.left.epsilon, found.left.rho, found.left.pure) == (0, 0, 0)
    assert found.remaining == left
    shown = run("ledger", "show", path, *marks).stdout
    assert "; pure epsilon 0 would fit" in shown
    row = next(line for line in shown.splitlines() if "visits" in line)
    assert "e-1" not in row
    assert ", 0% left" in spending_picture([found])


def test_a_hundredth_of_a_percent_of_a_cap_is_not_nothing(place):
    path, marks = place
    run("ledger", "create", path, "--dataset", "visits", "--epsilon", "1", *DELTA, *marks)
    with Ledger.open(path, high_water=marks[1]) as opened:
        opened.ask("count", parameters={"n": 1}, cost=Cost(opened.remaining().rho * 0.9999), **ASKED)
        (found,) = statements(opened)
    assert found.left == found.remaining
    assert found.left.rho > 0


@pytest.mark.parametrize(
    "words", [["--epsilon", "12", "--delta", "1e-6"], ["--epsilon", "1", "--delta", "0.01"]], ids=["epsilon", "delta"]
)
def test_large_budgets_are_warned_of(place, words):
    path, marks = place
    made = run("ledger", "create", path, "--dataset", "visits", *words, *marks)
    assert made.exit_code == 0
    assert "Beware:" in made.stderr
    added = run("ledger", "add-dataset", path, "--dataset", "others", *words, *marks)
    assert "Beware:" in added.stderr
    planned = run("ledger", "plan", path, "--dataset", "visits", *words, *marks)
    assert "Beware:" in planned.stderr
    changed = run("ledger", "set-cap", path, "--dataset", "visits", *words, "--set-aside", "1e-7", *marks)
    assert "Beware:" in changed.stderr
    assert "whatever analysts decide" in changed.stdout


def test_ordinary_budgets_are_not(ledger):
    path, marks = ledger
    assert run("ledger", "plan", path, "--epsilon", "0.5", *DELTA, *marks).stderr == ""
    assert run("ledger", "set-cap", path, "--epsilon", "2", *DELTA, *marks).stderr == ""
    refused = run("ledger", "set-cap", path, "--epsilon", "2", *DELTA, "--set-aside", "1", *marks)
    assert refused.exit_code == 2
