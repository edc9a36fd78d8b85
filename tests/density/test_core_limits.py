"""Guards that nothing passes: broken tables, limbs that overflow, counts that no records make; strata and terms."""

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.density.random_spec import plan_spec
from fogline.density.strata import Strata, strata_message
from fogline.queries import fourier_sums as fourier
from fogline.queries import random_feature_sums as random_features
from fogline.queries.fourier_sums import CellCounts, phase_table
from fogline.queries.strata import StrataCounts
from fogline.releases.strata import release_strata
from fogline.releases.terms import ReleaseTerms
from fogline.testing import seeded_noise

LINE = plan_spec([(0, 10)], [0.1], None)


def test_a_phase_beyond_modulus_one_stops_everything(monkeypatch):
    monkeypatch.setattr(fourier.np, "cos", lambda angle: np.full_like(angle, 1.5))
    with pytest.raises(AssertionError, match="modulus one"):
        phase_table(4, 8, np.arange(3))


def test_a_direction_beyond_modulus_one_stops_everything(monkeypatch):
    monkeypatch.setattr(random_features.np, "cos", lambda angle: np.full_like(angle, 1.5))
    with pytest.raises(AssertionError, match="modulus one"):
        random_features.direction_table.__wrapped__()


def test_limbs_that_are_too_few_stop_everything():
    with pytest.raises(AssertionError, match="limbs are too few"):
        fourier._carry([np.array([2**62])], 10)


@pytest.mark.parametrize(
    ("keys", "counts", "word"),
    [
        ([0.5], [1], "integers"),
        ([0], [1.0], "integers"),
        ([0, 1], [1], "integers"),
        ([[0]], [[1]], "integers"),
        ([-1], [1], "cells of the grid"),
        ([10**9], [1], "cells of the grid"),
        ([0], [-1], "negative"),
        ([3, 3], [1, 1], "distinct"),
    ],
)
def test_counts_that_no_records_make(keys, counts, word):
    sketch = DensitySketch.of(LINE)
    with pytest.raises(ValueError, match=word):
        sketch.add_cells(np.array(keys), np.array(counts))
    assert sketch.table().sum() == 0
    assert not sketch.provenance.counted
    assert CellCounts(LINE).checked(np.array([], dtype=int), np.array([], dtype=int))[0].size == 0


@pytest.fixture
def strata():
    counts = StrataCounts(LINE, 2)
    counts.add(np.full((600, 1), 4.0), np.arange(600) % 3 - 1)
    terms = ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1)
    with seeded_noise(0):
        return release_strata(LINE, ["f", "m"], terms, counts.vector)


def test_strata_are_a_mapping_of_released_densities(strata, tmp_path):
    assert (len(strata), list(strata)) == (2, ["f", "m"])
    assert abs(strata["f"].count - 200) < 60
    assert hash(strata) == hash(Strata.from_bytes(strata.to_bytes()))
    assert strata != 3
    assert set(strata.modes(1)) == {"f", "m"}
    assert strata.compare("f", "m", simulations=20).p_value > 0
    with pytest.raises(KeyError, match="there is no stratum 'x'"):
        strata.compare("f", "x")
    assert repr(strata).startswith("Strata(f: about")
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    plt.close(strata.plot())
    strata.save(tmp_path / "s.npz")
    assert Strata.load(tmp_path / "s.npz") == strata


def test_categories_that_nobody_has_are_named(strata):
    counts = StrataCounts(LINE, 3)
    counts.add(np.full((600, 1), 4.0), np.zeros(600, dtype=int))
    with seeded_noise(1):
        found = release_strata(LINE, ["f", "m", "x"], ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1), counts.vector)
    told = strata_message(found, ["f", "m", "x"])
    assert "'m' (" in told
    assert "'x' (" in told
    assert "'f' (" not in told
    assert "spelled as in the data" not in strata_message(strata, ["f", "m"])


def test_strata_of_a_ledger(tmp_path):
    from fogline import Ledger

    counts = StrataCounts(LINE, 1)
    counts.add(np.full((50, 1), 4.0), np.zeros(50, dtype=int))
    terms = ReleaseTerms.checked(0.3, 1e-6, "add-remove", 1)
    with Ledger.create(tmp_path / "b", dataset="x", epsilon=1.0, delta=1e-5, high_water=tmp_path / "marks") as ledger:
        first, again = (
            release_strata(LINE, ["all"], terms, counts.vector, ledger, columns=["x"], facts={"by": None})
            for _ in range(2)
        )
    assert first == again
    assert first.receipt == again.receipt is not None
    with pytest.raises(ValueError, match="coefficients; at most"):
        release_strata(LINE, [str(i) for i in range(10**6)], terms, counts.vector)
    for content in (b"", b"no file"):
        with pytest.raises(ValueError, match="not strata of format"):
            Strata.from_bytes(content)


def test_terms_in_another_currency():
    terms = ReleaseTerms.checked(None, 1e-6, "replace", 2, "patient", rho=0.01)
    assert terms.rho <= 0.01
    asked = terms.question()
    assert (asked["unit"], asked["rho"]) == ("patient", terms.rho)
    assert terms.is_enforced
    assert terms.guarantee().enforced
    loose = ReleaseTerms(1.0, 1e-6, "add-remove", 1, "patient", declared=True)
    trusted = ReleaseTerms(1.0, 1e-6, "add-remove", 1, "patient", on_trust=True)
    assert not loose.is_enforced
    assert not trusted.is_enforced
