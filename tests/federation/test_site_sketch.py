"""Several sites: the sum is the pooled sketch to the last integer, each site counts once, masks hide the parts."""

from __future__ import annotations

import itertools
import json
import pickle
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import DensitySketch, Ledger, PrivateModes
from fogline.audit import Pair, canary_pairs, replay
from fogline.federation import PairKeys, SiteSketch, merge_sites, new_keys, release_file
from fogline.federation import masks as mask_module
from fogline.federation import site_sketch as site_module
from fogline.ledger import LedgerRefused
from fogline.releases import sketch as count
from fogline.releases.density_sketch import AlreadyReleased
from fogline.sources.registry import table
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SITES = ["east", "north", "west"]
BOXES = {"line": [(0, 10)], "plane": [(0, 10), (-5, 5)], "five axes": [(0, 1)] * 5, "leaves": [(0, 10), (-5, 5)]}
SMALL = {"line": {}, "plane": {"bandwidths": 0.1}, "five axes": {"features": 64}, "leaves": {"features": "leaves"}}


def sketch_of(box, seed=0, n=300):
    rows = np.random.default_rng(seed).uniform(-6, 11, size=(n, len(BOXES[box])))
    return DensitySketch(BOXES[box], **SMALL[box]).update(rows), rows


def same_state(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.state(), b.state(), strict=True))


@pytest.fixture
def key_folders(tmp_path):
    """Each site's folder, after the keys were brought round."""
    folders = {site: tmp_path / f"keys-{site}" for site in SITES}
    for site, folder in folders.items():
        for path in new_keys(folder, site, SITES):
            other = path.stem.split("+")[1]
            folders[other].mkdir(exist_ok=True)
            (folders[other] / path.name).write_bytes(path.read_bytes())
    return folders


def masked_parts(folders, box="line", pass_name="spring"):
    parts, rows = [], []
    for seed, site in enumerate(SITES):
        sketch, records = sketch_of(box, seed)
        rows.append(records)
        keys = PairKeys.load(folders[site], site, SITES)
        parts.append(SiteSketch.of(sketch, site, pass_name, keys=keys))
    return parts, DensitySketch(BOXES[box], **SMALL[box]).update(np.concatenate(rows))


# -- merging -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("with_masks", [False, True])
def test_the_sum_is_the_pooled_sketch(tmp_path, key_folders, box, with_masks):
    if with_masks:
        parts, pooled = masked_parts(key_folders, box)
    else:
        made = [sketch_of(box, seed) for seed in range(3)]
        parts = [SiteSketch.of(sketch, site, "spring") for (sketch, _), site in zip(made, SITES, strict=True)]
        pooled = DensitySketch(BOXES[box], **SMALL[box]).update(np.concatenate([rows for _, rows in made]))
    for order in itertools.permutations(parts):
        assert same_state(merge_sites(order).sketch, pooled)
    for part in parts:  # and by way of files, a few at a time, some of them twice
        part.save(tmp_path / f"{part.sites[0]}.sketch")
    files = [SiteSketch.load(tmp_path / f"{site}.sketch") for site in SITES]
    merge_sites([files[0], files[1], files[0]]).save(tmp_path / "two.sketch")
    whole = merge_sites([files[2], SiteSketch.load(tmp_path / "two.sketch"), files[1]])
    assert same_state(whole.sketch, pooled)
    assert whole.sites == tuple(SITES)
    assert not whole.missing


def test_a_site_counts_once_and_two_runs_are_refused():
    first, rows = sketch_of("line")
    part = SiteSketch.of(first, "east", "spring")
    assert merge_sites([part, part, part]) is part
    other_run = SiteSketch.of(DensitySketch(BOXES["line"]).update(rows), "east", "spring")
    with pytest.raises(ValueError, match="'east' sent two sketches of different runs"):
        merge_sites([part, other_run])


def test_sums_that_overlap_are_refused():
    east, north, west = (SiteSketch.of(sketch_of("line", i)[0], site, "spring") for i, site in enumerate(SITES))
    with pytest.raises(ValueError, match="'north' is in two sums"):
        merge_sites([east.merge(north), north.merge(west)])
    assert merge_sites([east, west, east.merge(north)]).sites == tuple(SITES)


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("bounds", lambda: SiteSketch.of(DensitySketch([(0, 11)]), "west", "spring")),
        ("scales", lambda: SiteSketch.of(DensitySketch([(0, 10)], bandwidths=0.1), "west", "spring")),
        ("features", lambda: SiteSketch.of(DensitySketch([(0, 10)], features=64), "west", "spring")),
        ("pass", lambda: SiteSketch.of(DensitySketch([(0, 10)]), "west", "autumn")),
        ("columns", lambda: SiteSketch.of(DensitySketch([(0, 10)]), "west", "spring", columns=["age"])),
    ],
)
def test_what_differs_is_named(field, other):
    mine = SiteSketch.of(DensitySketch([(0, 10)]), "east", "spring", columns=None)
    with pytest.raises(ValueError, match=f"differ in {field}"):
        merge_sites([mine, other()])


def test_bad_names():
    sketch = DensitySketch([(0, 10)])
    for site in ("", "a/b", "a+b", ".hidden", "x" * 65, None):
        with pytest.raises(ValueError, match="site must be"):
            SiteSketch.of(sketch, site, "spring")
    with pytest.raises(ValueError, match="pass must be"):
        SiteSketch.of(sketch, "a", "two\nlines")
    with pytest.raises(ValueError, match="max_contributions"):
        SiteSketch.of(sketch, "a", "p", max_contributions=0)
    with pytest.raises(ValueError, match="at least one"):
        merge_sites([])


# -- masks ---------------------------------------------------------------------------------------------------


def test_masks_hide_all_but_the_whole_sum(key_folders):
    parts, _ = masked_parts(key_folders)
    two = parts[0].merge(parts[1])
    assert two.missing == ("west",)
    assert "waits for west" in repr(two)
    for part in (*parts, two):
        assert part.sketch is None
        bits = np.unpackbits(part.masked.view(np.uint8))
        assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(bits.size)  # nothing but coin tosses
    with pytest.raises(ValueError, match="sites west are missing"):
        two.release(**BUDGET)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(-(2**40), 2**40), min_size=5, max_size=5), min_size=2, max_size=5),
    st.binary(min_size=1, max_size=20),
)
def test_masks_cancel_for_any_numbers(rows, context):
    names = [f"s{i}" for i in range(len(rows))]
    key = {pair: bytes([*(ord(c) for c in "".join(pair))]).ljust(32, b".") for pair in itertools.combinations(names, 2)}
    total = np.zeros(5, dtype=np.uint64)
    for name, row in zip(names, rows, strict=True):
        keys = {other: key[tuple(sorted((name, other)))] for other in names if other != name}
        total = total + mask_module.masked(np.array(row), name, keys, context)
    assert total.view(np.int64).tolist() == np.sum(rows, axis=0).tolist()


def test_masks_differ_with_everything_that_was_agreed():
    exact = np.zeros(8, dtype=np.int64)
    key = bytes(range(32))
    seen = {
        mask_module.masked(exact, "a", {"b": key}, mask_module.context_of({"pass": name})).tobytes()
        for name in ("spring", "autumn")
    }
    seen.add(mask_module.masked(exact, "a", {"c": key}, mask_module.context_of({"pass": "spring"})).tobytes())
    seen.add(mask_module.masked(exact, "a", {"b": key[::-1]}, mask_module.context_of({"pass": "spring"})).tobytes())
    assert len(seen) == 4
    long = mask_module.masked(np.zeros(2**17, dtype=np.int64), "a", {"b": key}, b"")
    assert len(np.unique(long)) == 2**17  # blocks do not repeat


def test_a_pass_is_masked_once(key_folders):
    masked_parts(key_folders)
    sketch, _ = sketch_of("line")
    keys = PairKeys.load(key_folders["east"], "east", SITES)
    with pytest.raises(ValueError, match="pass 'spring' was masked before"):
        SiteSketch.of(sketch, "east", "spring", keys=keys)
    assert SiteSketch.of(sketch, "east", "summer", keys=keys).missing == ("north", "west")


def test_unlike_keys_are_named(key_folders):
    changed = key_folders["north"] / "east+north.key"
    content = json.loads(changed.read_text())
    changed.write_text(json.dumps({**content, "key": "00" * 32}))
    parts, _ = masked_parts(key_folders)
    with pytest.raises(ValueError, match="'east' and 'north' masked with different keys"):
        merge_sites(parts)


def test_a_changed_sketch_is_refused(key_folders):
    parts, _ = masked_parts(key_folders)
    parts[0].masked[3:4] += np.uint64(2**62)
    with pytest.raises(ValueError, match="masks do not cancel"):
        merge_sites(parts)


def test_keys_are_kept_secret_and_never_replaced(tmp_path):
    made = new_keys(tmp_path / "keys", "east", SITES)
    assert [path.name for path in made] == ["east+north.key", "east+west.key"]
    assert new_keys(tmp_path / "keys", "east", SITES) == []
    assert new_keys(tmp_path / "keys", "west", SITES) == []
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o600}
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    keys = PairKeys.load(tmp_path / "keys", "east", SITES)
    assert keys.keys["north"].hex() not in repr(keys)
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(keys)
    with pytest.raises(FileNotFoundError, match=r"north\+west.key.*site 'north' makes it"):
        PairKeys.load(tmp_path / "keys", "north", SITES)
    made[0].write_text("{}")
    with pytest.raises(ValueError, match=r"keys: east\+north.key"):
        PairKeys.load(tmp_path / "keys", "east", SITES)
    for sites in (["east"], ["east", "east"], ["north", "west"]):
        with pytest.raises(ValueError, match="sites"):
            new_keys(tmp_path / "keys", "east", sites)
    other = PairKeys("east", {"north": bytes(32)}, tmp_path)
    with pytest.raises(ValueError, match="keys are those of site 'east'"):
        SiteSketch.of(sketch_of("line")[0], "north", "p", keys=other)


# -- files ---------------------------------------------------------------------------------------------------


def test_a_file_says_that_it_is_secret(tmp_path):
    part = SiteSketch.of(sketch_of("line")[0], "east", "spring", columns=["age"], max_contributions=2)
    part.save(tmp_path / "east.sketch")
    assert stat.S_IMODE((tmp_path / "east.sketch").stat().st_mode) == 0o600
    with np.load(tmp_path / "east.sketch") as data:
        header = json.loads(str(data["header"]))
    assert header["secret"] is True
    assert header["notice"].startswith("SECRET")
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(part)
    assert repr(part) == "SiteSketch(pass 'spring', sites east)"


def test_other_files_are_refused(tmp_path):
    for content in (b"", b"age\n3\n"):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ValueError, match="x is not a sketch of format fogline-site-2"):
            SiteSketch.load(tmp_path / "x")
    np.savez(tmp_path / "new.npz", header=np.array(json.dumps({"format": "fogline-site-99"})))
    with pytest.raises(ValueError, match="of format 'fogline-site-99'"):
        SiteSketch.load(tmp_path / "new.npz")
    for version in (1, 2):
        np.savez(tmp_path / "bad.npz", header=np.array(json.dumps({"format": f"fogline-site-{version}"})))
        with pytest.raises(ValueError, match="damaged"):
            SiteSketch.load(tmp_path / "bad.npz")
    with pytest.raises(FileNotFoundError, match="no file"):
        SiteSketch.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "change",
    [
        {"max_contributions": 0},
        {"max_contributions": "3"},
        {"site": "../x"},
        {"enforced": 1},
        {"unit": ""},
        {"more": 1},
    ],
    ids=str,
)
def test_a_header_that_no_site_writes_is_refused(tmp_path, change):
    SiteSketch.of(sketch_of("line")[0], "east", "spring").save(tmp_path / "s")
    with np.load(tmp_path / "s") as data:
        header, arrays = json.loads(str(data["header"])), {name: data[name] for name in data.files if name != "header"}
    header["members"][0].update(change)
    with (tmp_path / "s").open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(ValueError, match="header of s is damaged"):
        SiteSketch.load(tmp_path / "s")


# -- the release ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "disjoint", "contributions", "words"),
    [
        ([1, 1, 1], False, 3, "3 sites, a person may be at all of them"),
        ([1, 1, 1], True, 1, "each person declared to be at one of them"),
        ([2, 1, 4], False, 7, "a person may be at all of them"),
        ([2, 1, 4], True, 4, "each person declared to be at one of them"),
    ],
)
def test_contributions_add_up_over_sites(bounds, disjoint, contributions, words):
    parts = [
        SiteSketch.of(sketch_of("line", i)[0], site, "spring", max_contributions=c)
        for i, (site, c) in enumerate(zip(SITES, bounds, strict=True))
    ]
    density = merge_sites(parts).release(**BUDGET, disjoint_persons=disjoint)
    assert density.guarantee.max_contributions == contributions
    assert density.guarantee.certified
    assert words in str(density.guarantee)
    alone = sketch_of("line")[0].release(**BUDGET, max_contributions=contributions)
    assert density.noise_scale == alone.noise_scale


@pytest.mark.parametrize(
    ("enforced", "disjoint", "told"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_a_bound_is_enforced_only_if_nothing_of_it_is_declared(enforced, disjoint, told):
    parts = []
    for i, site in enumerate(SITES):
        people = table(sketch_of("line", i)[1], unit=np.arange(300))
        cut = count(people, DensitySketch(BOXES["line"]).spec) if enforced else sketch_of("line", i)[0]
        parts.append(SiteSketch.of(cut, site, "p", unit="patient"))
    guarantee = merge_sites(parts).release(**BUDGET, disjoint_persons=disjoint).guarantee
    assert guarantee.enforced is told
    assert guarantee.unit == "patient"
    assert guarantee.max_contributions == (1 if disjoint else 3)


def test_modes_are_read_from_a_merged_release():
    whole = merge_sites([SiteSketch.of(sketch_of("line", i)[0], site, "p") for i, site in enumerate(SITES)])
    with seeded_noise(3):
        density = whole.release(**BUDGET)
    found = PrivateModes(n_modes=1).read(density)
    assert found.density_ is density
    assert found.guarantee_ == density.guarantee
    assert found.n_features_in_ == 1
    np.testing.assert_array_equal(found.modes_, density.modes(1).positions)
    with pytest.raises(TypeError, match="density must be a PrivateDensity"):
        PrivateModes().read(np.zeros(3))


def test_a_file_is_released_once(tmp_path):
    path = tmp_path / "east.sketch"
    SiteSketch.of(sketch_of("line")[0], "east", "spring").save(path)
    with pytest.raises(TypeError, match="epsilon"):
        release_file(path)
    with pytest.raises(ValueError, match="neighbours"):
        release_file(path, **BUDGET, neighbours="both")
    with pytest.raises(TypeError, match="disjoint"):
        release_file(path, **BUDGET, disjoint=True)
    release_file(path, **BUDGET)
    with pytest.raises(AlreadyReleased):
        release_file(path, **BUDGET)
    with pytest.raises(FileNotFoundError):
        release_file(tmp_path / "nowhere", **BUDGET)


def test_a_link_does_not_hide_that_a_file_was_released(tmp_path):
    path, link = tmp_path / "east.sketch", tmp_path / "link.sketch"
    SiteSketch.of(sketch_of("line")[0], "east", "spring").save(path)
    link.symlink_to(path)
    release_file(link, **BUDGET)
    assert link.is_symlink()
    with pytest.raises(AlreadyReleased):
        release_file(path, **BUDGET)


def test_a_ledger_pays_for_each_pass_once(tmp_path):
    path = tmp_path / "all.sketch"
    merge_sites([SiteSketch.of(sketch_of("line", i)[0], site, "spring") for i, site in enumerate(SITES)]).save(path)
    with Ledger.create(
        tmp_path / "budget", dataset="hospitals", epsilon=1.5, delta=1e-5, high_water=tmp_path / "marks"
    ) as ledger:
        first = release_file(path, **BUDGET, ledger=ledger)
        again = release_file(path, **BUDGET, ledger=ledger)
        assert first == again
        spent = first.receipt["amount"]
        path2 = tmp_path / "next.sketch"
        SiteSketch.of(sketch_of("line")[0], "east", "summer", max_contributions=3).save(path2)  # of a person, as before
        with pytest.raises(LedgerRefused):
            release_file(path2, epsilon=1.4, delta=1e-6, ledger=ledger)
        other = release_file(path2, epsilon=0.2, delta=1e-6, ledger=ledger)
        assert other.receipt["amount"] < spent
        assert other != first
    with pytest.raises(AlreadyReleased):  # without the ledger nobody would count it
        release_file(path, **BUDGET)


def test_a_site_that_released_before_needs_its_ledger(key_folders):
    sketch, _ = sketch_of("line")
    with seeded_noise(1):
        sketch.release(**BUDGET)
    plain = SiteSketch.of(sketch, "east", "spring")
    keys = {site: PairKeys.load(key_folders[site], site, SITES) for site in SITES}
    parts = [SiteSketch.of(sketch, "east", "spring", keys=keys["east"])]
    parts += [SiteSketch.of(sketch_of("line", 5)[0], site, "spring", keys=keys[site]) for site in SITES[1:]]
    for whole in (plain, merge_sites(parts)):
        with pytest.raises(AlreadyReleased):
            whole.release(**BUDGET)


# -- privacy -------------------------------------------------------------------------------------------------


def federated(relation, disjoint):
    """Release of three sites; the records of the audit are spread over them, as one person's may be."""

    def release(data):
        parts = [
            SiteSketch.of(DensitySketch([(2.0, 10.0)], bandwidths=[0.1]).update(data[i::3]), site, "spring")
            for i, site in enumerate(SITES)
        ]
        return merge_sites(parts).release(**BUDGET, neighbours=relation, disjoint_persons=disjoint)

    return release


class FixedRuns:
    """Run ids that repeat: they are random, and an audit compares everything."""

    def bytes(self, size):
        return bytes(size)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("disjoint", [True, False])
def test_replay_of_three_sites(monkeypatch, relation, disjoint):
    monkeypatch.setattr(site_module, "SystemSource", FixedRuns)
    pairs = canary_pairs([(2.0, 10.0)], neighbours=relation, n=30, block=None, max_contributions=1 if disjoint else 3)
    report = replay(federated(relation, disjoint), pairs[::3])
    assert report.passed, str(report)
    assert report.largest_ratio > 0.99


def test_a_person_counted_at_one_site_only_would_be_noticed(monkeypatch):
    """Mutant: the sum over sites is taken for a maximum."""
    monkeypatch.setattr(site_module, "SystemSource", FixedRuns)
    monkeypatch.setattr(site_module, "sum", max, raising=False)
    pairs = canary_pairs([(2.0, 10.0)], neighbours="add-remove", n=30, block=None, max_contributions=3)
    data = [Pair(pair.name, [pair.D], [pair.D_prime], "add-remove") for pair in pairs[:3]]
    report = replay(lambda wrapped: federated("add-remove", False)(wrapped[0]), data)
    assert not report.passed
