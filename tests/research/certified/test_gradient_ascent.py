"""Noisy gradient ascent from public starts: what it finds, and that neighbours cannot be told apart."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from canaries import by_turns

from fogline import Ledger
from fogline.audit import attack, canary_pairs, replay
from fogline.queries.lattice import RecordLattice
from fogline.testing import seeded_noise
from fogline_research.certified import gradient_ascent, gradient_ascent_modes
from fogline_research.certified.gradient_ascent import KernelJetQuery, gram_matrix

BOX = [(-10.0, 10.0)] * 2
SETTINGS = {"epsilon": 2.0, "delta": 1e-5, "bounds": BOX, "n_modes": 2}


class Rows:
    """Records as a query meets them."""

    memory = {}  # noqa: RUF012

    def __init__(self, rows):
        self.rows = rows

    def each(self, take):
        take(self.rows)


def blobs(n=2000):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1, size=(n, 2)) for m in (-4, 4)])


def jets(points, bandwidth, box=BOX):
    lattice = RecordLattice.of(box)
    return KernelJetQuery(lattice, lattice.vectors(np.asarray(points, dtype=float)), bandwidth / 10 * lattice.steps)


def test_far_modes_are_found_and_stand_above_the_noise():
    with seeded_noise(0):
        found = gradient_ascent_modes(blobs(), **SETTINGS)
    np.testing.assert_allclose(np.sort(found.modes[:, 0]), [-4, 4], atol=0.4)
    assert (found.heights > 0).all()
    assert found.guarantee.certified or "seeded" in str(found.guarantee.reason)


def test_without_noise_to_speak_of_a_height_and_a_gradient_are_those_of_the_kernel():
    X, points = blobs(200), np.array([[-3.0, -4.5], [0.0, 0.0], [4.0, 4.0]])
    query = jets(points, 1.5)
    found = query.decode(query.exact(Rows(X)), 0.0)
    offsets = (X[:, None] - points) / 1.5
    kernel = np.exp(-0.5 * (offsets**2).sum(axis=2))
    np.testing.assert_allclose(found.heights, kernel.sum(axis=0), rtol=3e-3, atol=0.05)
    np.testing.assert_allclose(found.gradients, (offsets * kernel[:, :, None]).sum(axis=0), rtol=3e-3, atol=0.1)


def test_the_clip_takes_nothing_away():
    """A record's vector is shorter than the clip in the space of the kernel, also where starts meet."""
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.uniform(-8, 8, size=(20, 2)), [[1.0, 1.0], [1.0, 1.01]]])
    query = jets(points, 2.0)
    longest = np.linalg.norm(query.vectors(query.lattice.vectors(rng.uniform(-10, 10, size=(4000, 2)))), axis=1)
    unclipped = np.linalg.norm(query.vectors(query.points), axis=1)
    assert longest.max() <= 2.0**16
    assert longest.max() > 0.9 * 2.0**16  # the declared sensitivity is nearly attained
    assert unclipped.max() <= 2.0**16
    gram = gram_matrix(points / 2.0)
    assert np.linalg.eigvalsh(gram).min() > -1e-9


def test_noise_does_not_grow_with_the_number_of_starts():
    few, many = jets(np.zeros((1, 2)), 1.0), jets(np.random.default_rng(0).uniform(-2, 2, size=(60, 2)), 1.0)
    assert few.sensitivity("add-remove", 1) == many.sensitivity("add-remove", 1)
    scale = few.sensitivity("add-remove", 1)
    rng = np.random.default_rng(2)
    for query in (few, many):
        noise = [query.decode(np.rint(rng.normal(scale=scale, size=query.size)), scale) for _ in range(400)]
        seen = np.std([jet.heights for jet in noise])
        assert seen == pytest.approx(noise[0].noise, rel=0.1)
        assert np.std([jet.gradients for jet in noise]) == pytest.approx(noise[0].noise, rel=0.1)
        assert noise[0].noise == pytest.approx(1.0, rel=1e-3)


def test_a_records_vector_does_not_depend_on_its_batch():
    query = jets(np.random.default_rng(0).uniform(-9, 9, size=(30, 2)), 1.0)
    q = query.lattice.vectors(np.random.default_rng(1).uniform(-10, 10, size=(333, 2)))
    whole = query.vectors(q)
    assert (whole == np.concatenate([query.vectors(part) for part in np.array_split(q, 50)])).all()
    assert (whole[::-1] == query.vectors(q[::-1])).all()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_neighbours_cannot_be_told_apart(neighbours):
    pairs = canary_pairs([(-8.0, 8.0)] * 2, neighbours=neighbours, n=40, block=None)
    pairs = by_turns(pairs, neighbours)
    options = SETTINGS | {"n_steps": 3, "n_starts": 4, "neighbours": neighbours}
    report = replay(lambda rows: gradient_ascent_modes(rows, **options), pairs)
    assert report.passed, str(report)
    assert report.largest_ratio > 0.2


def test_half_the_sensitivity_is_noticed(monkeypatch):
    real = KernelJetQuery.vectors
    monkeypatch.setattr(KernelJetQuery, "vectors", lambda self, q: 2 * real(self, q))
    pairs = canary_pairs([(-8.0, 8.0)] * 2, neighbours="add-remove", n=40, block=None)
    options = SETTINGS | {"n_steps": 2, "n_starts": 8}
    assert not replay(lambda rows: gradient_ascent_modes(rows, **options), pairs, until_failure=True).passed


def test_an_outlier_does_not_come_out_as_a_mode():
    """The attack that the published algorithm falls to: 150 of 150 runs against none."""
    crowd = np.random.default_rng(0).normal(size=(300, 2))
    moved = np.append(crowd[:-1], [[9.0, 9.0]], axis=0)
    seeds = iter(range(10**6))

    def release(X):
        with seeded_noise(next(seeds)):
            options = SETTINGS | {"epsilon": 1.0, "n_modes": None, "neighbours": "replace", "n_steps": 3}
            return gradient_ascent_modes(X, **options)

    def nearest(found):
        return float(-np.linalg.norm(found.path[-1] - 9.0, axis=1).min())

    assert not attack(release, crowd, moved, claim=release(crowd).guarantee, score={"near": nearest}, runs=60).broken


def test_a_second_time_it_is_read_from_the_ledger(tmp_path):
    X = blobs(300)
    books = Ledger.create(tmp_path / "l", dataset="x", epsilon=3.0, delta=1e-4, high_water=tmp_path / "m")
    with books as ledger:
        first = gradient_ascent_modes(X, **SETTINGS, ledger=ledger)
        again = gradient_ascent_modes(X, **SETTINGS, ledger=ledger)
    assert (first.modes == again.modes).all()
    assert (first.path == again.path).all()
    assert (first.heights == again.heights).all()


def test_no_records_and_one_are_no_errors():
    with seeded_noise(0):
        for rows in (np.zeros((0, 2)), np.zeros((1, 2)), np.full((5, 2), np.nan), np.full((5, 2), 1e300)):
            found = gradient_ascent_modes(rows, **SETTINGS | {"n_steps": 2})
            assert np.isfinite(found.path).all()


def test_one_column_and_four():
    rng = np.random.default_rng(0)
    line = np.concatenate([rng.normal(m, 0.5, size=(3000, 1)) for m in (-5, 2)])
    four = np.concatenate([rng.normal(m, 1.0, size=(4000, 4)) for m in (-4, 4)])
    with seeded_noise(0):
        found = gradient_ascent_modes(line, **SETTINGS | {"bounds": [(-10, 10)]})
        wide = gradient_ascent_modes(four, **SETTINGS | {"bounds": [(-10, 10)] * 4, "epsilon": 4.0})
    np.testing.assert_allclose(np.sort(found.modes[:, 0]), [-5, 2], atol=0.4)
    np.testing.assert_allclose(np.sort(wide.modes.mean(axis=1)), [-4, 4], atol=1.0)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": None}, "delta"),
        ({"bounds": [(1.0, 0.0)]}, "bounds"),
        ({"n_modes": 0}, "n_modes"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_starts": 40}, "n_starts"),
    ],
)
def test_bad_input_is_named(change, name):
    with pytest.raises((ValueError, TypeError), match=name):
        gradient_ascent_modes(np.zeros((3, 2)), **SETTINGS | change)


def test_the_bounds_that_the_proof_rests_on():
    module = gradient_ascent
    length = math.sqrt(module.MOST_NUMBERS / 2) * 2.0**module.VALUE_BITS
    row = module.RIDGE**-0.5 * 2.0**module.MAP_BITS + math.sqrt(module.MOST_NUMBERS)
    assert 1.01 * length * row < 2.0**53
    query = jets(np.zeros((9, 2)), 1.0)  # all starts at one place
    assert np.linalg.norm(query.matrix, axis=1).max() <= row


def test_what_the_proof_quotes_is_in_the_code():
    file = Path(gradient_ascent.__file__)
    code = re.sub(r"\s+", "", file.read_text())
    quotes = re.findall(r"```python\n(.*?)```", file.with_suffix("").with_suffix(".proof.md").read_text(), re.DOTALL)
    assert len(quotes) >= 4
    assert [line for quote in quotes for line in quote.splitlines() if re.sub(r"\s+", "", line) not in code] == []
