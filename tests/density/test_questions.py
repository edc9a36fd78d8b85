"""Questions in words: the grammar, its errors, and answers that agree with the posterior and with the truth."""

import json

import numpy as np
import pytest

from fogline import release
from fogline.datasets import hospital_visits
from fogline.density.posterior.conditions import Conditions
from fogline.density.questions import Event, parse_question
from fogline.testing import seeded_noise

COLUMNS = ("age", "stay")


def table(n=20_000):
    rng = np.random.default_rng(5)
    age = rng.integers(18, 95, n)
    return age, rng.gamma(3.0, 1 + age / 40, n)


@pytest.fixture(scope="module")
def shape():
    age, stay = table()
    with seeded_noise(2):
        return release(
            np.column_stack([age, stay]), columns=COLUMNS, bounds={"age": "age", "stay": (0, 60)}, epsilon=1.0
        )


@pytest.fixture(scope="module")
def zeros():
    """One column of which three in ten are zero."""
    rng = np.random.default_rng(3)
    stay = np.where(rng.random(20_000) < 0.3, 0.0, 0.5 + rng.gamma(2.0, 3.0, 20_000))
    with seeded_noise(1):
        return stay, release(stay, columns=["stay"], bounds=(0, 60), epsilon=1.0)


# -- grammar -------------------------------------------------------------------------------------------------

SAME = {
    "P(stay > 10)": ("p( stay>10 )", "Probability(stay > 1e1)", "pr(10 < stay)", "share of stay > 10"),
    "P(stay > 10 | age >= 70)": ("P(stay > 10) where age >= 70", "P(stay > 10) given 70 <= age"),
    "P(40 <= age < 60 and stay > 5)": ("P(40 <= age < 60, stay > 5)", "P(60 > age >= 40 & stay > 5)"),
    "P(age in 40:60)": ("P(age in [40, 60])", "P(40 <= age <= 60)", "P(60 >= age >= 40)"),
    "P(age = 40)": ("P(age == 40)", "P(40 = age)"),
    "median stay": ('MEDIAN of "stay"', "Median stay"),
    "mean stay by age 0:100:20": ("average of stay BY age 0 : 100 : 20",),
    "mean stay by age 0:100:20 where stay > 1": ("mean stay where stay > 1 by age 0:100:20",),
    "quantile .05,.95 stay": ("quantiles 0.05, 0.95 of stay", "percentiles 5, 95 stay", "quantile 5%, 95% stay"),
    "quartiles stay": ("quantile .25,.5,.75 of stay",),
    "correlation age stay": ("corr of age and stay", "correlation age, stay"),
    "sd stay": ("std of stay",),
    "count where age < 40": ("Count if age < 40",),
}  # fmt: skip


@pytest.mark.parametrize("words", SAME)
def test_many_ways_to_ask_the_same(words):
    first = parse_question(words, COLUMNS)
    for other in SAME[words]:
        found = parse_question(other, COLUMNS)
        for name in ("kind", "columns", "levels", "events", "given", "by"):
            assert getattr(found, name) == getattr(first, name), (other, name)


def test_what_a_question_is_understood_as():
    found = parse_question("P(-5 <= age < 60 | stay > 10)", COLUMNS)
    assert found.events == (Event("age", -5.0, 60.0, high_open=True),)
    assert found.given == (Event("stay", 10.0, low_open=True),)
    assert [str(event) for event in (*found.events, *found.given)] == ["-5 <= age < 60", "stay > 10"]
    assert str(Event("age", 3.0, 3.0)) == "age = 3"
    assert str(Event("age", high=3.0)) == "age <= 3"
    parts = list(parse_question("mean stay by age 0:50:20", COLUMNS).parts())
    assert [str(part) for part in parts] == ["0 <= age < 20", "20 <= age < 40", "40 <= age <= 50"]


def test_names_that_are_no_plain_words():
    names = ["income, net", "count", "größe", "2024"]
    assert parse_question('mean "income, net" where count > 3 and "2024" < 5', names).given[0].column == "count"
    assert parse_question("mean größe", names).columns == ("größe",)
    assert parse_question("median count", names).columns == ("count",)
    assert parse_question("P(2024 > 5)", names).events == (Event("2024", 5.0, low_open=True),)


BAD = {
    "": "is empty",
    "   ": "is empty",
    "medain stay": "begins with 'medain'.*did you mean 'median'",
    "what is it": "begins with 'what', which is none of count",
    "median": "needs a column where there is nothing",
    "median sty": "no column 'sty' in 'median sty'; did you mean 'stay'",
    "median Stay": "no column 'Stay'.*did you mean 'stay'",
    "mean cost": "no column 'cost' in 'mean cost'; released are age, stay",
    "P(cost > 3)": "no column 'cost'",
    "P(stay)": r"needs one of < <= > >= = where there is '\)'",
    "P(stay >)": "needs a number",
    "P(stay > ten)": "needs a number where there is 'ten'",
    "P(stay > 10": r"needs '\)' where there is nothing",
    "P stay > 10": r"needs '\('",
    "P(10 < stay > 3)": "point in different directions",
    "P(3 = stay = 4)": "point in different directions",
    "P(30 < stay < 10)": "a range of stay that falls, from 30 to 10",
    "P(stay > 1 stay < 3)": r"needs '\)' where there is 'stay'",
    "median stay, age": "needs 'by', 'where' or the end where there is ','",
    "mean stay by age": "needs a number where there is nothing",
    "mean stay by age 0:10": "needs ':'",
    "mean stay by age 10:0:1": "start < stop",
    "mean stay by age 0:10:0": "a step above 0",
    "mean stay by age 0:10:.001": "more than 1000 parts",
    "mean stay by age 0:10:5 by age 0:10:5": "two parts that begin with 'by'",
    "quantile 1.5 stay": "levels from 0 to 1",
    "percentile 101 stay": "levels from 0 to 100",
    "correlation stay stay": "two different columns",
    "median \" stay": "cannot be read from",
}  # fmt: skip


@pytest.mark.parametrize("words", BAD)
def test_errors_say_what_is_missing(words):
    with pytest.raises(ValueError, match=BAD[words]) as caught:
        parse_question(words, COLUMNS)
    assert str(caught.value).startswith("question")


def test_a_question_is_a_text(shape):
    with pytest.raises(TypeError, match="question must be a text"):
        shape.ask(3)
    with pytest.raises(ValueError, match="target must be"):
        shape.ask("mean stay", target="people")
    with pytest.raises(ValueError, match="level"):
        shape.ask("mean stay", level=2)


# -- answers -------------------------------------------------------------------------------------------------


def test_plain_questions_are_those_of_the_posterior(shape):
    one = shape.posterior.marginal("stay")
    assert shape.ask("mean stay").estimate == one.mean("stay")
    assert shape.ask("median stay", level=0.8).estimate == one.quantile(0.5, "stay", level=0.8)
    assert shape.ask("variance stay").estimate == one.variance("stay")
    assert shape.ask("sd stay").estimate.value == pytest.approx(np.sqrt(one.variance("stay").value))
    assert shape.ask("correlation age stay").estimate == shape.correlation()
    assert shape.ask("count").estimate == shape.posterior.count
    found, box = shape.ask("P(40 <= age <= 60 and stay >= 5)").estimate, shape.probability(age=(40, 60), stay=(5, None))
    assert found.value == pytest.approx(box.value, abs=1e-12)
    assert found.standard_error == pytest.approx(box.standard_error, rel=1e-9)
    records = shape.ask("P(stay >= 5)", target="records").estimate
    assert (records.target, records.sampling) == ("records", 0.0)


def truths():
    age, stay = table()
    old, long = age > 70, stay > 10
    return {
        "P(stay > 10)": long.mean(),
        "P(stay > 10 | age > 70)": long[old].mean(),
        "P(age > 70 | stay > 10)": old[long].mean(),
        "median stay where age > 70": np.median(stay[old]),
        "mean stay where age > 70 and stay > 10": stay[old & long].mean(),
        "mean age where stay > 10": age[long].mean(),
        "quantile .9 of stay where 30 <= age < 50": np.quantile(stay[(age >= 30) & (age < 50)], 0.9),
        "correlation age stay where age < 60": np.corrcoef(age[age < 60], stay[age < 60])[0, 1],
        "sd stay": stay.std(),
        "P(age = 50)": (age == 50).mean(),
        "P(age < 50)": (age < 50).mean(),
        "P(age <= 50)": (age <= 50).mean(),
    }


@pytest.mark.parametrize("words", truths())
def test_answers_are_near_the_truth(words, shape):
    found, truth = shape.ask(words).estimate, truths()[words]
    assert abs(found.value - truth) < 4 * found.standard_error + 0.01 * abs(truth)
    assert found.low <= found.value <= found.high
    parts = np.hypot(np.hypot(found.privacy, found.sampling), found.smoothing)
    assert parts == pytest.approx(found.standard_error, rel=1e-6)


def test_counts_of_boxes_add_up(shape):
    age, _ = table()
    found = shape.ask("count by age 0:120:30")
    values = [row.estimate.value for row in found.rows]
    assert sum(values) == pytest.approx(shape.count, rel=1e-4)  # a little is above 120
    for row, low in zip(found.rows, (0, 30, 60, 90), strict=True):
        truth = ((age >= low) & (age < low + 30)).sum()
        assert abs(row.estimate.value - truth) < 5 * row.estimate.standard_error + 30
        assert (row.estimate.target, row.estimate.sampling) == ("records", 0.0)
    assert found.rows[-1].label == "90 <= age <= 120"


def test_parts_of_a_statistic(shape):
    age, stay = table()
    found = shape.ask("mean stay by age 20:90:10")
    assert len(found.rows) == 7
    for row, low in zip(found.rows, range(20, 90, 10), strict=True):
        truth = stay[(age >= low) & (age < low + 10)].mean()
        assert abs(row.estimate.value - truth) < 4 * row.estimate.standard_error
    levels = shape.ask("quartiles stay by age 20:80:30")
    assert [row.label for row in levels.rows][:2] == ["20 <= age < 50: 0.25", "20 <= age < 50: 0.5"]


def test_outside_the_bounds_there_is_nothing_and_the_answer_says_so(shape):
    found = shape.ask("P(stay > 70)")
    assert (found.estimate.value, found.estimate.low, found.estimate.high) == (0.0, 0.0, 0.0)
    assert "stay > 70 lies outside the released bounds 0 to 60, where nothing was counted" in str(found)
    assert shape.ask("count where age < -3").estimate.value == 0.0
    nothing = shape.ask("mean stay where age > 200")
    assert nothing.rows[0].estimate is None
    assert "nothing to say" in str(nothing)
    assert nothing.to_dict()["answers"][0]["estimate"] is None
    with pytest.raises(ValueError, match="no single number"):
        float(nothing)
    contradiction = shape.ask("P(stay > 10 | stay < 5)")
    assert contradiction.estimate.value == 0.0
    assert shape.ask("mean stay where age > 60 and age < 50").rows[0].estimate is None


def test_where_hardly_a_record_lies_the_answer_says_so(shape):
    assert "which may be none" in str(shape.ask("mean stay where age > 118"))
    assert shape.ask("mean stay where age > 50").rows[0].note == ""


def test_heaps_are_in_or_out_as_wholes(zeros):
    stay, density = zeros
    some = density.ask("P(stay > 0)")
    assert some.estimate.value == pytest.approx((stay > 0).mean(), abs=0.01)
    assert density.ask("P(stay = 0)").estimate.value == pytest.approx((stay == 0).mean(), abs=0.01)
    assert density.ask("mean stay where stay > 0").estimate.value == pytest.approx(stay[stay > 0].mean(), rel=0.02)
    assert density.ask("P(stay > 6 | stay > 0)").estimate.value == pytest.approx(
        (stay > 6).mean() / (stay > 0).mean(), abs=0.02
    )


def test_an_end_between_two_whole_numbers_leaves_neither_out():
    age = np.random.default_rng(2).binomial(9, 0.4, 4000).astype(float)
    with seeded_noise(1):
        density = release(age[:, None], columns=["age"], bounds=[(0, 9)], steps=[1.0], epsilon=5.0)
    for words, true in (("3.7 < age < 4.3", age == 4), ("age < 4.4", age <= 4), ("3 < age < 5", age == 4)):
        assert density.ask(f"P({words})").estimate.value == pytest.approx(true.mean(), abs=0.01), words


def test_zeros_beside_another_column_are_told_from_what_is_above_them():
    rng = np.random.default_rng(3)
    stay = np.where(rng.random(20_000) < 0.3, 0.0, rng.gamma(2.0, 3.0, 20_000))
    with seeded_noise(1):
        density = release(
            np.column_stack([rng.random(20_000), stay]), columns=["u", "stay"], bounds=[(0, 1), (0, 60)], epsilon=1.0
        )
    found = density.ask("P(stay > 0)").estimate
    assert abs(found.value - (stay > 0).mean()) < 0.02  # was answered as 1 before walls had leaves of their own
    assert found.low < 0.71 < found.high
    zeros = density.ask("P(stay = 0)")
    assert zeros.estimate.low < 0.3 < zeros.estimate.high  # was answered as 0 ± 0
    assert "taken to be stay = 0" in str(zeros)
    mean = density.ask("mean stay").estimate
    assert mean.low < stay.mean() < mean.high


def test_the_hospital_table_is_read_as_it_was_made():
    """The README's own table: two in ten stays are zero, in every age, and the young stay a third as long."""
    records = hospital_visits(20_000).records
    rows = np.column_stack([records["age"], records["stay"]]).astype(float)
    with seeded_noise(5):
        density = release(rows, columns=["age", "stay"], bounds=["age", (0, 60)], epsilon=1.0)
    truth = {
        "P(stay = 0)": 0.35 * 0.3 + 0.65 * 0.12,
        "P(stay > 0 | age < 20)": 0.7,
        "mean stay": 0.35 * 0.7 * 2.4 + 0.65 * 0.88 * 6.0,
        "mean stay where age < 20": 0.7 * 2.4,
        "P(age < 30)": 0.35,
    }
    for question, value in truth.items():
        found = density.ask(question).estimate
        assert found.low - 0.01 * value < value < found.high + 0.01 * value, question
    groups = density.clusters()
    assert len(groups.shares) == 2
    assert abs(groups.shares[0] - 0.65) < 3 * groups.share_errors[0] + 0.005
    assert np.all(np.abs(groups.centres - [[69.5, 5.28], [7.05, 1.72]]) < 3 * groups.centre_errors)
    fit = density.fit(
        "zero-inflated gamma", "stay", parameter_bounds={"zero": (0, 1), "shape": (0.5, 9), "scale": (0.5, 20)}
    )
    low, high = fit.intervals["zero"]
    assert low - 0.005 < 0.1757 < high + 0.005  # the best on cells of the release, found without privacy
    branches = density.branches(y="stay")
    assert set(branches.place) <= set(np.flatnonzero(branches.axes[0] < 112).tolist())  # nobody is older
    assert branches.low.min() >= 0.0
    at = branches.at([70.0])
    assert at.low[0] - 0.24 < 3.0 < at.high[0] + 0.24  # a leaf beyond the band: one in twenty bands may miss


def test_documents_and_numbers(shape):
    found = shape.ask("median age")
    assert str(found).startswith("median age: ")
    assert " years (95% interval" in str(found)
    assert float(found) == found.estimate.value
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.to_dict()["unit"] == "years"
    assert str(shape.ask("count")).startswith(f"count: {shape.count:.0f} ± ")


def test_random_features_have_no_posterior_to_ask():
    rows = np.random.default_rng(0).random((500, 4))
    density = release(rows, columns=list("abcd"), bounds=(0, 1), epsilon=1.0, delta=1e-6, features=600)
    with pytest.raises(ValueError, match="random features"):
        density.ask("mean a")


def test_a_condition_that_no_draw_sees_leaves_the_share_open(shape):
    boxes = Conditions(shape.posterior)
    found = boxes.share({"age": (0, 40)}, {"stay": (100, 200)})
    assert (found.value, found.low < 0.05, found.high > 0.95) == (0.5, True, True)
    # of two ranges of one column that do not meet, none can be in both, seen or not
    assert boxes.share({"stay": (0, 5)}, {"stay": (100, 200)}).interval == (0.0, 0.0)
