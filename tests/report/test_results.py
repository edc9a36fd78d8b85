"""The results interface: the same methods on every result, with names, errors, intervals and the guarantee."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from fogline import (
    DensitySketch,
    IntegralSampler,
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
    private_strata,
)
from fogline.report.page import KINDS, find, render_report
from fogline.testing import seeded_noise

pd = pytest.importorskip("pandas")

N = 3000
BOUNDS = {"age": "age", "stay": (0, 60)}
HOSTILE = "<b>stay</b>"


def frame(n=N):
    rng = np.random.default_rng(0)
    old = rng.random(n) < 0.5
    age = np.where(old, rng.normal(70, 6, n), rng.normal(30, 5, n))
    stay = np.where(old, rng.gamma(9.0, 3.0, n), rng.gamma(9.0, 0.8, n))
    return pd.DataFrame({"age": age, "stay": stay})


def leaves(columns, epsilon=1.0, n=N):
    rows = frame(n)[list(columns)].to_numpy()
    bounds = [(0, 125) if name == "age" else (0, 60) for name in columns]
    density = DensitySketch(bounds, features="leaves").update(rows).release(epsilon=epsilon)
    density.columns = tuple(columns)
    return density


def ward(n=N):
    return frame(n).assign(ward=np.where(np.arange(n) % 3 == 0, "north", "south"))


CASES = {
    "density": lambda: leaves(["stay"]),
    "density of two": lambda: leaves(["age", "stay"]),
    "density of Fourier sums": lambda: (
        DensitySketch([(0, 60)]).update(frame()[["stay"]].to_numpy()).release(epsilon=1, delta=1e-6)
    ),
    "modes": lambda: PrivateModes(epsilon=1, delta=1e-5, bounds={"stay": (0, 60)}).fit(frame()[["stay"]]),
    "modes of two": lambda: PrivateModes(epsilon=1, delta=1e-5, bounds=BOUNDS).fit(frame()),
    "clusters": lambda: PrivateModeClustering(epsilon=1, delta=1e-5, bounds=BOUNDS).fit(frame()),
    "regression": lambda: PrivateModalRegression(
        epsilon=1, delta=1e-5, x_bounds={"age": "age"}, y_bounds={"stay": (0, 60)}
    ).fit(frame(), "stay"),
    "fit": lambda: PrivateHellinger(
        family="gamma",
        parameter_bounds={"shape": (0.5, 20), "scale": (0.2, 9)},
        bounds={"stay": (0, 60)},
        epsilon=1,
        delta=1e-5,
    ).fit(frame()[["stay"]]),
    "mixture": lambda: PrivateGaussianMixture(
        n_components=2, epsilon=1, delta=1e-5, radius=80.0, center=[50.0, 20.0]
    ).fit(frame()),
    "strata": lambda: private_strata(
        ward()[["stay", "ward"]],
        "ward",
        categories=["north", "south"],
        epsilon=1,
        bounds={"stay": (0, 60)},
        features="leaves",
    ),
}


@pytest.fixture(scope="module")
def results():
    made = {}

    def get(case):
        if case not in made:
            with seeded_noise(3):
                made[case] = CASES[case]()
        return made[case]

    return get


def guarantee_of(result):
    return getattr(result, "guarantee_", None) or result.guarantee


@pytest.mark.parametrize("case", CASES)
def test_every_result_has_the_same_interface(case, results, tmp_path, Page):
    result = results(case)
    text, html = str(result.summary()), result._repr_html_()
    names = ["x1"] if case == "density of Fourier sums" else ["stay"]
    for part in (text, html, result.to_json()):
        assert all(name in part for name in names)
    assert " ".join(str(guarantee_of(result)).split()) in " ".join(text.split())
    assert "std. error" in text
    assert "0.975]" in text
    assert html.startswith("<div>")
    document = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert document["guarantee"]["statement"] == str(guarantee_of(result))
    assert len(result.to_frame()) >= 1
    page = Page(result.report(tmp_path / "page.html").read_text(encoding="utf-8"))
    page.assert_self_contained()
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert all(name in page.text for name in names)
    assert "column 1" not in page.text + text


@pytest.mark.parametrize("case", CASES)
def test_plots_name_the_columns_and_span_the_bounds(case, results):
    plt = pytest.importorskip("matplotlib.pyplot")
    result = results(case)
    figure = result.plot() if case == "strata" else result.plot().figure
    (ax,) = figure.axes
    two = case in ("density of two", "modes of two", "clusters", "regression", "mixture")
    assert (ax.get_xlabel() == "age") == two
    assert ax.get_ylabel() == ("stay" if two else "density")
    if case not in ("fit", "mixture"):  # their limits follow the fitted law
        assert ax.get_xlim() == ((0, 125) if two else (0, 60))
    plt.close("all")


def test_a_plot_goes_where_it_is_told(results):
    plt = pytest.importorskip("matplotlib.pyplot")
    ax = plt.subplots()[1]
    assert results("density").plot(ax) is ax
    with pytest.raises(ValueError, match=r"^ax must be one"):
        results("density").plot(list(plt.subplots(1, 2)[1]))
    plt.close("all")


def test_the_summary_of_a_density_agrees_with_its_posterior(results):
    density = results("density")
    found = density.to_frame().set_index("quantity")
    median = density.quantile(0.5)
    assert found.loc["median", ["value", "low", "high"]].tolist() == [median.value, median.low, median.high]
    assert found.loc["count", "value"] == density.count
    parts = found.loc["mean", ["privacy", "sampling", "smoothing"]].astype(float)
    assert np.sqrt((parts**2).sum()) == pytest.approx(found.loc["mean", "standard_error"], rel=1e-6)
    spread = density.variance()
    assert found.loc["standard deviation", "value"] == pytest.approx(np.sqrt(spread.value))


def test_atoms_and_empty_stretches_are_told():
    stay = np.concatenate([np.zeros(6000), np.random.default_rng(0).normal(12, 2, 14_000)])
    with seeded_noise(1):
        density = DensitySketch([(0, 60)], features="leaves").update(stay[:, None]).release(epsilon=1.0)
    density.columns = ("stay",)
    (curve,) = find(density).curves
    assert [atom.value for atom in curve.atoms] == [0.0]
    assert curve.band.value.max() < 0.3  # the atom is a bar, and not in the curve
    low, high, share = curve.empty[-1]
    assert 17 < low < 26
    assert high == 60
    assert share.high < 0.01
    text = " ".join(density.summary().notes)
    assert "at stay = 0 alone" in text
    assert "Hardly anyone has stay from" in text


def test_more_than_three_columns_say_what_to_read_instead():
    rows = np.random.default_rng(0).normal(0, 0.5, (500, 4))
    with seeded_noise(0):
        density = DensitySketch([(-4, 4)] * 4).update(rows).release(epsilon=1.0, delta=1e-5)
    assert "no posterior" in str(density.summary())
    assert "random features" in render_report(find(density))
    with pytest.raises(ValueError, match="up to three columns"):
        density.plot()


def test_three_columns_are_three_pairs(Page):
    plt = pytest.importorskip("matplotlib.pyplot")
    rows = np.random.default_rng(0).normal(5, 1, (2000, 3))
    with seeded_noise(0):
        density = DensitySketch([(0, 10)] * 3, features="leaves").update(rows).release(epsilon=1.0)
    axes = density.plot()
    assert [ax.get_xlabel() + ax.get_ylabel() for ax in axes] == ["x1x2", "x1x3", "x2x3"]
    plt.close("all")
    assert Page(render_report(find(density))).tags.count("svg") == 6 + 2  # and two of the risk


@pytest.mark.parametrize("model", [PrivateModes(), PrivateHellinger(), PrivateGaussianMixture(), IntegralSampler()])
def test_before_a_fit_there_are_no_results(model, tmp_path):
    from sklearn.exceptions import NotFittedError

    for ask in (model.summary, model.plot, model.to_frame, model.to_json, lambda: model.report(tmp_path / "page.html")):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask()
    assert "sk-" in model._repr_html_()  # scikit-learn's picture of the parameters
    assert set(model._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_a_notebook_shows_the_result_once_there_is_one(results):
    model = results("modes")
    assert "sk-" not in model._repr_html_()
    assert "Modes of stay" in model._repr_mimebundle_()["text/html"]


def test_names_are_escaped_in_a_notebook():
    density = leaves(["stay"])
    density.columns = (HOSTILE,)
    assert HOSTILE not in density._repr_html_()
    assert "&lt;b&gt;stay" in density._repr_html_()


def test_draws_show_the_promise_and_nothing_else(tmp_path, Page):
    with seeded_noise(0):
        sampler = IntegralSampler(
            epsilon=0.1, max_samples=5, learner="boosting", schedule="full", rounds=1, base="uniform",
            bounds={"stay": (0, 60)}, training_draws=50,
        ).fit(frame(200)[["stay"]])  # fmt: skip
    assert "5 in all, 5 left" in str(sampler.summary())
    page = Page(sampler.report(tmp_path / "page.html").read_text(encoding="utf-8"))
    page.assert_self_contained()
    assert page.tags.count("svg") == 2  # of the risk, which is of the promise
    for ask in (sampler.plot, sampler.to_frame):
        with pytest.raises(ValueError, match="the learnt density is secret"):
            ask()
    assert sampler.draws_left_ == 5


@pytest.mark.parametrize(("library", "ask", "words"), [
    ("matplotlib", "plot", r"plot needs matplotlib: pip install 'fogline\[plot\]'"),
    ("pandas", "to_frame", "to_frame needs pandas"),
])  # fmt: skip
def test_a_missing_library_is_named(library, ask, words, results, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=words):
        getattr(results("density"), ask)()


def test_every_kind_has_every_part():
    for kind in KINDS.values():
        for part in ("findings", "document", "table", "content", "title", "summary", "frame", "plot"):
            assert callable(kind.get(part))


@pytest.mark.parametrize("rule", ["prefers-color-scheme: dark", "max-width: 600px", "@media print"])
def test_pages_are_made_for_the_dark_for_phones_and_for_paper(rule, results):
    page = render_report(find(results("density")))
    assert rule in page
    # both sizes of a drawing are there, and the style shows one of them
    assert page.count('class="on-desk"') == page.count('class="on-phone"') == 1


# -- names -----------------------------------------------------------------------------------------------------------


def test_bounds_by_name_follow_the_columns_whatever_the_order():
    with seeded_noise(0):
        by_name = PrivateModes(epsilon=1, delta=1e-5, bounds={"stay": (0, 60), "age": "age"}).fit(frame())
    with seeded_noise(0):
        by_order = PrivateModes(epsilon=1, delta=1e-5, bounds=[(0, 125), (0, 60)]).fit(frame())
    assert by_name.density_ == by_order.density_
    assert by_name.density_.columns == ("age", "stay")


def test_a_mapping_names_the_columns_of_an_array():
    X = frame().to_numpy()
    with seeded_noise(0):
        model = PrivateModeClustering(epsilon=1, delta=1e-5, bounds=BOUNDS).fit(X)
    assert find(model).columns == ("age", "stay")
    assert not hasattr(model, "feature_names_in_")  # of the array nothing is known


def test_projected_clusters_take_bounds_by_name():
    X = pd.DataFrame(np.random.default_rng(0).normal(5, 1, (900, 4)), columns=list("abcd"))
    with seeded_noise(0):
        model = PrivateModeClustering(epsilon=1, delta=1e-5, bounds=dict.fromkeys("dcba", (0, 10)), n_clusters=1).fit(X)
    assert model.predict(X[:3]).shape == (3,)
    assert find(model).bounds.tolist() == [[0, 10]] * 4


def test_the_response_has_its_name():
    data = frame()
    model = PrivateModalRegression(epsilon=1, delta=1e-5, x_bounds="age", y_bounds=(0, 60))
    with seeded_noise(0):
        assert find(model.fit(data[["age"]], data["stay"])).columns == ("age", "stay")
    with seeded_noise(0):
        assert find(model.fit(data[["age"]].to_numpy(), data["stay"].to_numpy())).columns == ("x1", "y")


def test_messages_name_the_column():
    stay = pd.DataFrame({"stay": np.random.default_rng(0).exponential(1, 5000)})
    with seeded_noise(0):
        model = PrivateModes(epsilon=1, delta=1e-5, bounds={"stay": (0, 10)}).fit(stay)
    assert "the low end of stay" in model.message_


def test_a_reading_takes_the_names_of_the_density():
    with seeded_noise(0):
        named = PrivateModes(epsilon=1, delta=1e-5, bounds=BOUNDS).fit(frame())
    assert find(PrivateModes().read(named.density_)).columns == ("age", "stay")
    named.density_.columns = None
    assert find(named.read(named.density_)).columns == ("x1", "x2")  # of an earlier fit


def test_strata_on_leaves_are_tested_for_one_shape(results):
    strata = results("strata")
    (told,) = json.loads(strata.to_json())["comparisons"]
    assert told["p_value"] == strata.compare("north", "south").p_value
    assert "north and south: test of equal shapes, p = " in " ".join(str(strata.summary()).split())
