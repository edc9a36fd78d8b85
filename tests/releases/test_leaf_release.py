"""A release on leaves: what it promises and costs, what it stores, and that no data set and no budget breaks it."""

from __future__ import annotations

import io
import json
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import DensitySketch, Ledger, private_strata
from fogline.density.leaves import LeafSpec, check_tiling
from fogline.density.private_density import LEAF_FORMAT, PrivateDensity
from fogline.density.strata import Strata
from fogline.federation import SiteSketch, merge_sites
from fogline.ledger import BudgetExceeded, LedgerRefused
from fogline.mechanisms.errors import ReleaseFailed
from fogline.releases import leaf_release, sketch
from fogline.releases.leaf_release import plan_stages, release_leaves, settle_terms, stage_payload
from fogline.releases.terms import ReleaseTerms
from fogline.sources.registry import table
from fogline.testing import seeded_noise

LINE = LeafSpec.plan([(0, 10)])


def terms(epsilon=1.0, delta=0, neighbours="add-remove", c=1, **more):
    return ReleaseTerms.checked(epsilon, delta, neighbours, c, allow_pure=True, **more)


def counted(rows=None, **more):
    rows = np.random.default_rng(0).normal(4, 1, (2000, 1)) if rows is None else rows
    return DensitySketch([(0, 10)], features="leaves", **more).update(rows)


def books(tmp_path, epsilon=3.0, delta=0.0, **more):
    return Ledger.create(tmp_path / "books.ledger", dataset="visits", epsilon=epsilon, delta=delta, **more)


# -- budgets -------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(1e-9, 1e3),
    neighbours=st.sampled_from(["add-remove", "replace"]),
    c=st.integers(1, 50),
    d=st.integers(1, 3),
)
def test_the_stages_never_cost_more_than_epsilon(epsilon, neighbours, c, d):
    asked = terms(epsilon, 0, neighbours, c)
    stages = plan_stages(LeafSpec.plan([(0, 1)] * d), asked)
    moved = c if neighbours == "add-remove" else 2 * c
    spent = sum(Fraction(moved) / Fraction(stage.noise.scale) for stage in stages)
    assert sum(Fraction(stage.budget) for stage in stages) <= asked.exact_epsilon <= Fraction(epsilon)
    assert spent <= asked.exact_epsilon
    assert spent >= Fraction(98, 100) * asked.exact_epsilon or min(stage.noise.scale for stage in stages) < 0.126


@settings(max_examples=30, deadline=None)
@given(rho=st.floats(1e-9, 1e3), neighbours=st.sampled_from(["add-remove", "replace"]), c=st.integers(1, 50))
def test_the_stages_never_cost_more_than_rho(rho, neighbours, c):
    asked = terms(None, 1e-6, neighbours, c, rho=rho)
    stages = plan_stages(LINE, asked)
    square = c**2 if neighbours == "add-remove" else 2 * c**2
    spent = sum(Fraction(square) / (2 * Fraction(stage.noise.scale) ** 2) for stage in stages)
    assert {stage.noise.kind for stage in stages} == {"gaussian"}
    assert spent <= Fraction(asked.rho) <= Fraction(rho)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3), (0.3, 0.4), (1.0, 0.9)])
def test_of_two_laws_the_one_with_less_variance_is_taken(epsilon, delta, neighbours):
    asked = terms(epsilon, delta, neighbours)
    laplace = plan_stages(LINE, replace(asked, delta=0.0))[1].noise.variance
    gaussian = plan_stages(LINE, asked)[1].noise.variance
    settled = settle_terms(LINE, asked)
    assert settled.pure == (laplace <= gaussian)
    assert settled.epsilon == epsilon
    assert settled.delta in (0.0, delta)


def test_a_large_delta_is_worth_gaussian_noise_where_records_are_replaced():
    assert not settle_terms(LINE, terms(0.3, 0.4, "replace")).pure
    assert settle_terms(LINE, terms(0.3, 1e-6, "replace")).pure


def test_promises_of_fourier_sums_are_refused():
    for promise in ({"hdp": 0.2}, {"pdp": (1.0, 0.4)}):
        with pytest.raises(ValueError, match="promised for Fourier sums"):
            settle_terms(LINE, terms(None, None, **promise))


def test_shares_that_do_not_sum_to_one_are_refused(monkeypatch):
    for shares in ((Fraction(1, 2), Fraction(2, 3)), (Fraction(0), Fraction(1)), (Fraction(1, 5), Fraction(1, 5))):
        monkeypatch.setattr(leaf_release, "stage_shares", lambda _, found=shares: found)
        with pytest.raises(RuntimeError, match="sum to exactly 1"):
            plan_stages(LINE, terms())


# -- what is promised and stored -----------------------------------------------------------------------------


def test_the_guarantee_is_pure_and_says_so():
    density = counted().release(epsilon=0.5)
    assert (density.guarantee.epsilon, density.guarantee.delta, density.guarantee.rho) == (0.5, 0.0, None)
    assert "epsilon-DP (pure), by discrete Laplace noise on counts, in two stages" in str(density.guarantee)
    assert density.guarantee.certified
    with_delta = counted().release(epsilon=0.5, delta=1e-6)
    assert with_delta.guarantee.delta == 0.0
    with pytest.raises(TypeError, match="delta must be given"):
        DensitySketch([(0, 10)], features="grid").update([[1.0]]).release(epsilon=0.5)


def test_a_release_in_rho_has_gaussian_noise():
    density = counted().release_under(terms(None, 1e-6, rho=0.2))
    assert {stage.noise.kind for stage in density.leaves.stages} == {"gaussian"}
    assert density.guarantee.rho == pytest.approx(0.2)
    assert "discrete Gaussian noise on counts, in two stages" in str(density.guarantee)


def test_a_density_of_leaves_survives_files_and_pickles(tmp_path):
    density = counted().release(epsilon=1.0)
    density.pdf([[4.0]], bandwidth=0.05)
    density.save(tmp_path / "a.fog")
    for same in (
        PrivateDensity.load(tmp_path / "a.fog"),
        pickle.loads(pickle.dumps(density)),
        density.under(density.guarantee),
    ):
        assert same == density
        assert same.leaves == density.leaves
    with np.load(io.BytesIO(density.to_bytes())) as content:
        assert json.loads(str(content["header"]))["format"] == LEAF_FORMAT
    assert density != counted().release(epsilon=1.0)
    assert density.under(replace(density.guarantee, unit="person")).guarantee.unit == "person"


def test_a_damaged_file_is_refused():
    density = counted().release(epsilon=1.0)
    with np.load(io.BytesIO(density.to_bytes())) as content:
        arrays = dict(content.items())

    def written(**changes):
        file = io.BytesIO()
        np.savez(file, **{name: array for name, array in {**arrays, **changes}.items() if array is not None})
        return file.getvalue()

    assert PrivateDensity.from_bytes(written()) == density
    header = json.loads(str(arrays["header"]))
    fourier = DensitySketch([(0, 10)], features="grid").spec.to_dict()
    for damage in (
        {"counts_boxes": arrays["counts_boxes"][1:]},
        {"counts_boxes": None},
        {"pilot_noise": np.array(["laplace", (-1.0).hex()])},
        {"header": np.array(json.dumps({**header, "spec": fourier}))},
    ):
        with pytest.raises(ValueError, match="damaged"):
            PrivateDensity.from_bytes(written(**damage))
    with pytest.raises(ValueError, match="not a density of format"):
        PrivateDensity.from_bytes(written(header=np.array(json.dumps({**header, "format": "fogline-density-9"}))))


def test_the_count_is_that_of_both_stages():
    density = counted().release(epsilon=1.0)
    assert density.count == density.total == density.leaves.total
    assert abs(density.count - 2000) < 6 * density.count_sd
    assert density.coefficients.tolist() == density.leaves.counts.counts.tolist()
    assert density.weights.tolist() == [1.0] * len(density.leaves.counts)
    assert density.noise_scale == density.leaves.counts.noise.scale
    empty = counted(np.zeros((0, 1))).release(epsilon=0.01)
    assert empty.count >= 1.0


def test_modes_and_fogline_are_read_from_leaves():
    density = counted().release(epsilon=1.0)
    assert density.modes().positions.shape[1] == density.spec.d
    assert density.fogline() > 0


def test_the_noise_of_a_reading_is_what_repeated_releases_show():
    with seeded_noise(5):
        densities = [counted().release(epsilon=1.0) for _ in range(40)]
    x, h = np.array([[4.0], [9.0]]), 0.1
    values = np.array([density.pdf(x, h) for density in densities])
    stated = np.mean([density.reading(h).noise_sd_at(x) for density in densities], axis=0)
    truth = counted().table()
    exact = np.array([np.sum(truth * _kernel(point, h * 10)) for point in x[:, 0]]) / 2000
    assert np.all(np.abs(values.mean(axis=0) - exact) < 0.05 * exact.max())
    assert np.all(values.std(axis=0) < 2.0 * stated)


def _kernel(x, h):
    edges = LINE.edges(0)
    centres = (edges[1:] + edges[:-1]) / 2
    return np.exp(-0.5 * ((x - centres) / h) ** 2) / (h * np.sqrt(2 * np.pi))


# -- sketches ------------------------------------------------------------------------------------------------


def test_merged_sketches_and_one_sketch_release_alike():
    rows = np.random.default_rng(1).uniform(-1, 11, (500, 1))
    with seeded_noise(3):
        whole = counted(rows).release(epsilon=1.0)
    with seeded_noise(3):
        parts = counted(rows[:200]).merge(counted(rows[200:])).release(epsilon=1.0)
    assert whole.leaves == parts.leaves


def test_a_saved_sketch_releases_the_same_and_only_once(tmp_path):
    counted().save(tmp_path / "s.sketch")
    loaded = DensitySketch.load(tmp_path / "s.sketch")
    assert loaded.spec == LINE
    with seeded_noise(3):
        first = loaded.release(epsilon=1.0)
    with seeded_noise(3):
        assert counted().release(epsilon=1.0).leaves == first.leaves
    with pytest.raises(RuntimeError, match="released"):
        DensitySketch.load(tmp_path / "s.sketch").release(epsilon=1.0)
    assert repr(loaded) == "DensitySketch(bounds=[[0.0, 10.0]], 4096 leaves)"


def test_records_cut_by_a_unit_carry_their_bound(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("x,person\n" + "".join(f"{i % 9 + 0.5},{i % 40}\n" for i in range(400)))
    made = sketch(table(path, ["x"], unit="person"), LINE, max_contributions=2)
    assert int(made.state()[1].sum()) == 80
    with pytest.raises(ValueError, match="max_contributions must be at least 2"):
        made.release(epsilon=1.0)
    density = made.release(epsilon=1.0, max_contributions=2)
    assert density.leaves.counts.noise.scale == pytest.approx(2 / 0.85, rel=0.2)
    assert "one person (at most 2 records, enforced)" in str(density.guarantee)


def test_sites_release_the_merged_leaves_once():
    rng = np.random.default_rng(0)
    parts = [
        SiteSketch.of(counted(rng.normal(m, 1, (300, 1))), site, "spring") for m, site in ((3, "north"), (7, "south"))
    ]
    density = merge_sites(parts).release(epsilon=1.0)
    assert density.guarantee.max_contributions == 2
    assert density.guarantee.delta == 0.0
    assert abs(density.count - 600) < 6 * density.count_sd


# -- the ledger ----------------------------------------------------------------------------------------------


def test_a_pure_ledger_is_charged_epsilon_and_answers_again_for_nothing(tmp_path):
    with books(tmp_path) as ledger:
        first = counted().release(epsilon=1.0, ledger=ledger)
        made = counted()
        second = made.release(epsilon=1.0, ledger=ledger)
        assert first == second
        assert first.receipt["currency"] == "pure"
        assert first.receipt["code_version"] == "leaves-7"
        assert first.receipt["amount"] == 10**12
        with pytest.raises(BudgetExceeded):
            counted().release(epsilon=2.5, ledger=ledger)
        assert counted().release(epsilon=2.0, ledger=ledger).guarantee.epsilon == 2.0


def test_a_stored_release_is_read_with_its_partition(tmp_path, monkeypatch):
    with books(tmp_path) as ledger:
        first = counted().release(epsilon=1.0, ledger=ledger)

        def forbidden(*_):
            raise AssertionError("the partition of a stored release is not planned again")

        monkeypatch.setattr(leaf_release, "plan_partition", forbidden)
        assert counted().release(epsilon=1.0, ledger=ledger) == first


def test_other_leaves_other_terms_and_other_columns_are_other_questions(tmp_path):
    with books(tmp_path, epsilon=9.0) as ledger:
        densities = [
            counted().release(epsilon=1.0, ledger=ledger),
            counted(steps=0.5).release(epsilon=1.0, ledger=ledger),
            counted().release(epsilon=1.5, ledger=ledger),
            counted().release_under(terms(), ledger, columns=["weight"]),
            counted().release(epsilon=1.0, snapshot="2026-W46", ledger=ledger),
        ]
        assert len({density.receipt["question"] for density in densities}) == 5
        same = counted().release(epsilon=1.0, delta=1e-6, ledger=ledger)
        assert same == densities[0], "a delta that buys nothing is the same question"


def test_a_release_in_rho_is_refused_by_a_pure_ledger_before_anything_is_read(tmp_path):
    with books(tmp_path) as ledger, pytest.raises((LedgerRefused, ValueError), match=r"[Gg]aussian|rho|delta"):
        release_leaves(LINE, terms(None, 1e-6, rho=0.1), _must_not_be_read, ledger)


def test_both_currencies_share_a_ledger(tmp_path):
    with books(tmp_path, epsilon=3.0, delta=1e-5) as ledger:
        counted().release(epsilon=1.0, ledger=ledger)
        fourier = DensitySketch([(0, 10)], features="grid", bandwidths=[0.1]).update([[1.0]])
        fourier.release(epsilon=1.0, delta=1e-6, ledger=ledger)
        with pytest.raises(BudgetExceeded):
            counted().release(epsilon=2.5, ledger=ledger)


@pytest.mark.parametrize("asked", [{}, {"delta": 0}, {"delta": 1e-7}])
def test_a_ledger_in_the_gaussian_lane_pays_a_release_without_a_delta_from_its_pure_one(tmp_path, asked):
    with books(tmp_path, delta=1e-6, lane="gaussian") as ledger:
        density = counted().release(epsilon=0.5, ledger=ledger, **asked)
        assert (density.leaves.counts.noise.kind, density.guarantee.delta) == ("laplace", 0.0)
        assert (ledger.remaining().pure, density.receipt["currency"]) == (2.5, "pure")
        fourier = DensitySketch([(0, 10)], features="grid", bandwidths=[0.1]).update([[1.0]])
        with pytest.raises(ValueError, match=r"strictly between 0 and 1, got 0\.0: discrete Gaussian"):
            fourier.release(epsilon=0.5, delta=0, ledger=ledger)
        assert ledger.remaining().pure == 2.5, "a refusal costs nothing"
        with pytest.raises(ValueError, match="Gaussian lane needs an epsilon and a delta above 0"):
            ledger.set_cap(dataset="visits", epsilon=3.0, delta=0.0)
    with pytest.raises(ValueError, match="Gaussian lane needs an epsilon and a delta above 0"):
        Ledger.create(tmp_path / "none.ledger", dataset="visits", epsilon=3.0, delta=0, lane="gaussian")


def _must_not_be_read():
    raise AssertionError("no record may be read")


def test_the_largest_release_fits_its_payload(tmp_path):
    for d, steps in ((1, None), (2, 0.125)):
        spec = LeafSpec.plan([(0, 10)] * d, None if steps is None else [steps] * d)
        full = np.full(spec.leaves, 10**7)
        with Ledger.create(tmp_path / f"{d}.ledger", dataset="d", epsilon=9.0, delta=0.0) as ledger:
            density = release_leaves(spec, terms(8.0), lambda found=full: found, ledger)
        assert len(density.leaves.counts) > 1000
        assert len(density.to_bytes()) <= stage_payload(spec) + 2**16


# -- errors --------------------------------------------------------------------------------------------------


def test_an_error_after_the_noise_is_one_constant(monkeypatch):
    with pytest.raises(ReleaseFailed, match="count its budget as spent"):
        release_leaves(LINE, terms(), lambda: np.array(["secret 1"]))
    monkeypatch.setattr(leaf_release, "plan_partition", lambda *_: np.array([[[0, 4095]]]))
    with pytest.raises(ReleaseFailed, match="count its budget as spent"):
        counted().release(epsilon=1.0)


def test_the_table_is_read_once_and_after_the_noise(monkeypatch):
    calls = []
    real = leaf_release.add_laplace

    def add_laplace(query, **options):
        calls.append(options["parameters"][0][1])
        return real(lambda: (calls.append("query"), query())[1], **options)

    def read():
        calls.append("read")
        return np.zeros(LINE.leaves, dtype=np.int64)

    monkeypatch.setattr(leaf_release, "add_laplace", add_laplace)
    release_leaves(LINE, terms(), read)
    assert calls == ["pilot", "query", "read", "counts", "query"]


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "rows",
    [[], [[4.0]], [[4.0]] * 5000, [[np.nan]] * 50, [[1e9], [-np.inf], [np.inf]] * 20, [[0.0], [10.0]] * 300],
    ids=["none", "one", "one cell", "missing", "outside", "walls"],
)
def test_no_data_set_breaks_it(rows, neighbours, d):
    data = np.repeat(np.array(rows, dtype=float).reshape(-1, 1), d, axis=1)
    density = DensitySketch([(0, 10)] * d, features="leaves").update(data).release(epsilon=1.0, neighbours=neighbours)
    for stage in density.leaves.stages:
        check_tiling(stage.boxes, density.spec.leaves)
    assert np.isfinite(density.pdf(np.full((1, d), 4.0), 0.1)).all()
    assert np.isfinite(density.noise_sd(0.1))
    assert density.sample(5, bandwidth=0.1, random_state=0).shape == (5, d)


@pytest.mark.parametrize("budget", [{"epsilon": e, "delta": 0} for e in (1e-9, 1e-3, 50.0, 1e6)] + [{"rho": 1e6}])
@pytest.mark.filterwarnings("ignore::fogline.accounting.cautions.PrivacyWarning")
def test_no_budget_breaks_it(budget):
    density = counted().release_under(terms(**{"epsilon": None, "delta": 1e-6, **budget}))
    if max(budget.values()) > 1:
        assert density.leaves.counts.noise.scale >= 0.125
    assert np.isfinite(density.count)
    assert np.isfinite(density.pdf([[4.0]], 0.1)).all()


@pytest.mark.parametrize("width", [1e-49, 1e-3, 1e12, 1e49])
def test_no_width_of_the_box_breaks_it(width):
    rows = np.linspace(0, width, 2000)[:, None]
    density = DensitySketch([(0, width)], features="leaves").update(rows).release(epsilon=1.0)
    assert density.pdf([[width / 2]], 0.2)[0] * width == pytest.approx(1.0, rel=0.5)


def test_a_flag_is_two_leaves_and_fewer_values_are_refused():
    flag = DensitySketch([(0, 1)], features="leaves", steps=1).update([[0.0]] * 300 + [[1.0]] * 700)
    density = flag.release(epsilon=2.0)
    assert density.spec.leaves == (2,)
    assert np.allclose(density.leaves.counts.counts, [300, 700], atol=30)
    with pytest.raises(ValueError, match="steps"):
        DensitySketch([(0, 1)], features="leaves", steps=3)
    with pytest.raises(ValueError, match="2\\^200"):
        release_leaves(LINE, terms(1e-80), _must_not_be_read)


# -- strata --------------------------------------------------------------------------------------------------


def groups(**more):
    rng = np.random.default_rng(0)
    labels = rng.choice(["f", "m"], 3000)
    heights = np.where(labels == "f", rng.normal(165, 7, 3000), rng.normal(178, 7, 3000))
    given = {"categories": ["f", "m"], "bounds": [(120, 220)], "features": "leaves", "epsilon": 1.0, **more}
    return private_strata(heights, labels, **given)


def test_strata_of_leaves_survive_files_and_pickles(tmp_path):
    with Ledger.create(tmp_path / "s.ledger", dataset="d", epsilon=1.0, delta=0.0) as ledger:
        strata = groups(ledger=ledger)
        assert groups(ledger=ledger) == strata
    assert Strata.from_bytes(strata.to_bytes()) == strata == pickle.loads(pickle.dumps(strata))
    assert strata.receipt["code_version"] == "leaves-7"
    assert strata["f"].leaves == strata.leaves[0]
    assert strata["f"].guarantee == strata.guarantee
    assert "counts of 3 strata, in two stages" in str(strata.guarantee)
    assert strata.count == pytest.approx(3000, abs=6 * strata.count_sd)
    assert strata["f"].pdf([[165.0]], 0.05) > strata["m"].pdf([[165.0]], 0.05)


def test_strata_of_leaves_that_cannot_be():
    with pytest.raises(ValueError, match="weight_bound"):
        groups(weights=np.ones(3000), weight_bound=1.0)
    with pytest.raises(ValueError, match="too many leaves"):
        groups(categories=[str(i) for i in range(3000)])


def test_damaged_strata_are_refused():
    strata = groups()
    data = strata.to_bytes().replace(b"stratum_2_pilot", b"stratum_7_pilot")
    with pytest.raises(ValueError, match="damaged"):
        Strata.from_bytes(data)


def test_a_plot_of_strata_on_leaves():
    pytest.importorskip("matplotlib").use("Agg")
    assert groups().plot(bandwidth=0.03) is not None
