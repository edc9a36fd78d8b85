"""Units of sites: taken from the sketch, one name at all of them, in plain and masked files; whose records they are."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest

from fogline import DensitySketch
from fogline.density.random_spec import plan_spec
from fogline.federation import PairKeys, SiteSketch, merge_sites, new_keys, release_file
from fogline.federation.site_sketch import Member
from fogline.releases import origins
from fogline.releases import sketch as count
from fogline.releases.density_sketch import AlreadyReleased
from fogline.releases.origins import UNCOUNTED
from fogline.sources.registry import table
from fogline.testing import seeded_noise

pytestmark = pytest.mark.quick

LINE = plan_spec([(0, 10)], [0.1], None)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SITES = ["east", "west"]


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def rows(seed=0, n=60):
    return np.random.default_rng(seed).uniform(0, 10, (n, 1))


def cut_to(most, unit="patient", seed=0):
    frame = pd.DataFrame({"x": rows(seed)[:, 0], unit: np.arange(60) % 20})
    return count(table(frame, ["x"], unit=unit), LINE, max_contributions=most)


def plain(seed=0):
    return DensitySketch.of(LINE).update(rows(seed))


@pytest.fixture
def keys(tmp_path):
    new_keys(tmp_path / "keys", "east", SITES)
    return {site: PairKeys.load(tmp_path / "keys", site, SITES) for site in SITES}


def by_file(part, folder):
    path = folder / f"{part.sites[0]}.sketch"
    part.save(path)
    return SiteSketch.load(path)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("filed", [False, True])
def test_a_site_is_what_its_sketch_is(tmp_path, keys, masked, filed):
    parts = [
        SiteSketch.of(cut_to(most), site, "p", keys=keys[site] if masked else None)
        for site, most in zip(SITES, (5, 2), strict=True)
    ]
    if filed:
        parts = [by_file(part, tmp_path) for part in parts]
    whole = merge_sites(parts)
    if filed:
        whole.save(tmp_path / "all.sketch")
        whole = SiteSketch.load(tmp_path / "all.sketch")
    assert whole.unit == "patient"
    told = whole.release(**BUDGET).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("patient", 7, True)
    with pytest.raises(ValueError, match="at least 7"):  # nor by way of the sketch inside
        whole.sketch.release(**BUDGET)


def test_disjoint_persons_take_the_largest_cut():
    whole = merge_sites([SiteSketch.of(cut_to(most), site, "p") for site, most in zip(SITES, (5, 2), strict=True)])
    told = whole.release(**BUDGET, disjoint_persons=True).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("patient", 5, False)
    alone = SiteSketch.of(cut_to(4), "east", "p").release(**BUDGET, disjoint_persons=True).guarantee
    assert (alone.max_contributions, alone.enforced) == (4, True)


def test_no_site_says_less_than_its_sketch():
    cut = cut_to(5)
    with pytest.raises(ValueError, match="max_contributions must be at least 5"):
        SiteSketch.of(cut, "east", "p", max_contributions=1)
    for row in ("record", "line of the file"):
        with pytest.raises(ValueError, match="not released for rows"):
            SiteSketch.of(cut, "east", "p", unit=row)
    with pytest.raises(ValueError, match="enforced: the records of this sketch were not cut"):
        SiteSketch.of(plain(), "east", "p", unit="patient", enforced=True)
    loose = SiteSketch.of(cut, "east", "p", max_contributions=6, enforced=False).release(**BUDGET).guarantee
    assert (loose.max_contributions, loose.enforced) == (6, False)


@pytest.mark.parametrize("masked", [False, True])
def test_units_of_other_names_do_not_fall_back_to_rows(keys, masked):
    east = SiteSketch.of(cut_to(1), "east", "p", keys=keys["east"] if masked else None)
    for sketch, unit in ((cut_to(1, "pat_nr"), "pat_nr"), (plain(), "record")):
        west = SiteSketch.of(sketch, "west", "p", keys=_again(keys["west"], unit) if masked else None)
        with pytest.raises(ValueError, match=f"differ in unit: patient and {unit}"):
            east.merge(west)
        with pytest.raises(ValueError, match=f"differ in unit: {unit} and patient"):
            west.merge(east)


def _again(keys, name):
    """The same keys, as another machine would have them: its state directory does not know of the first pass."""
    folder = keys.folder / name
    folder.mkdir()
    os.environ["XDG_STATE_HOME"] = str(folder)  # the fixture puts it back
    return PairKeys(keys.site, keys.keys, folder)


def test_one_name_of_the_unit_joins_them():
    parts = [
        SiteSketch.of(cut_to(2, name), site, "p", unit="patient") for site, name in (("east", "pid"), ("west", "nr"))
    ]
    told = merge_sites(parts).release(**BUDGET).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("patient", 4, True)
    declared = SiteSketch.of(plain(), "west", "p", unit="patient", max_contributions=3)
    told = merge_sites([SiteSketch.of(cut_to(2), "east", "p"), declared]).release(**BUDGET).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("patient", 5, False)


def test_rows_of_either_name_are_rows(tmp_path):
    parts = [
        SiteSketch.of(plain(), site, "p", unit=unit)
        for site, unit in zip(SITES, ("record", "line of the file"), strict=True)
    ]
    whole = merge_sites([by_file(part, tmp_path) for part in parts])
    assert whole.unit == "record"
    assert whole.release(**BUDGET, disjoint_persons=True).guarantee.unit == "record"


# -- files of version 1 -------------------------------------------------------------------------------------------


def as_version_1(path, **changes):
    """Rewrite a file as version 1 had it."""
    with np.load(path) as data:
        header, arrays = json.loads(str(data["header"])), {n: data[n] for n in data.files if n != "header"}
    header["format"] = "fogline-site-1"
    header["payers"] = sorted(set(header.pop("runs").values()))
    for member in header["members"]:
        del member["on_trust"]
        member.update(changes)
    with path.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
    return path


@pytest.mark.parametrize("masked", [False, True])
def test_an_old_site_is_taken_on_trust(tmp_path, keys, masked):
    parts = []
    for site in SITES:
        path = tmp_path / f"{site}.sketch"
        SiteSketch.of(cut_to(1), site, "p", keys=keys[site] if masked else None).save(path)
        parts.append(SiteSketch.load(as_version_1(path)))
    told = merge_sites(parts).release(**BUDGET).guarantee
    assert (told.unit, told.max_contributions, told.enforced) == ("patient", 2, False)
    assert "on trust" in told.mechanism


def test_an_old_site_of_rows_may_have_been_cut(tmp_path):
    path = tmp_path / "east.sketch"
    SiteSketch.of(cut_to(1), "east", "p").save(path)
    as_version_1(path, unit="record", enforced=False)  # what version 1 made of a cut sketch
    told = SiteSketch.load(path).release(**BUDGET).guarantee
    assert not told.enforced
    assert "one record (as declared, not enforced)" in str(told)
    with np.load(path) as data:
        assert json.loads(str(data["header"]))["payers"] == [UNCOUNTED]  # a reader of version 1 knows as well
    origins._KNOWN.clear()
    with pytest.raises(AlreadyReleased):
        SiteSketch.load(path).release(**BUDGET)


def test_an_old_sum_of_unlike_units_is_refused(tmp_path):
    path = tmp_path / "all.sketch"
    merge_sites([SiteSketch.of(cut_to(1), site, "p") for site in SITES]).save(path)
    as_version_1(path)
    with np.load(path) as data:
        header, arrays = json.loads(str(data["header"])), {n: data[n] for n in data.files if n != "header"}
    header["members"][0]["unit"] = "nr"
    with path.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(ValueError, match="unlike units"):
        SiteSketch.load(path)


# -- identity -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
def test_one_sketch_is_not_two_sites(tmp_path, keys, masked):
    sketch = plain()
    parts = [SiteSketch.of(sketch, site, "p", keys=keys[site] if masked else None) for site in SITES]
    with pytest.raises(ValueError, match="the same records"):
        merge_sites(parts)
    files = [by_file(part, tmp_path) for part in parts]
    origins._KNOWN.clear()
    with pytest.raises(ValueError, match="the same records"):
        merge_sites([files[0], SiteSketch.load(tmp_path / "west.sketch")])
    if not masked:
        with pytest.raises(ValueError, match="the same records"):
            files[0].sketch.merge(sketch)


@pytest.mark.parametrize("masked", [False, True])
def test_copies_of_a_sum_are_released_once(tmp_path, keys, masked):
    for seed, site in enumerate(SITES):
        SiteSketch.of(plain(seed), site, "p", keys=keys[site] if masked else None).save(tmp_path / f"{site}.sketch")
    parts = [tmp_path / f"{site}.sketch" for site in SITES]
    merge_sites(map_load(parts)).save(tmp_path / "all.sketch")
    shutil.copy(tmp_path / "all.sketch", tmp_path / "copy.sketch")
    with seeded_noise(0):
        release_file(tmp_path / "all.sketch", **BUDGET)
    origins._KNOWN.clear()
    for again in (
        lambda: release_file(tmp_path / "copy.sketch", **BUDGET),
        lambda: SiteSketch.load(tmp_path / "copy.sketch").release(**BUDGET),
        lambda: merge_sites(map_load(parts)).release(**BUDGET),
    ):
        with pytest.raises(AlreadyReleased):
            again()
    if not masked:
        with pytest.raises(AlreadyReleased):
            release_file(parts[0], **BUDGET)


def map_load(paths):
    return [SiteSketch.load(path) for path in paths]


def test_a_release_after_masking_goes_into_the_masked_file(tmp_path, keys):
    sketch = plain()
    part = SiteSketch.of(sketch, "east", "p", keys=keys["east"])
    with seeded_noise(0):
        sketch.release(**BUDGET)
    part.save(tmp_path / "east.sketch")
    whole = merge_sites(
        [SiteSketch.load(tmp_path / "east.sketch"), SiteSketch.of(plain(1), "west", "p", keys=keys["west"])]
    )
    with pytest.raises(AlreadyReleased):
        whole.release(**BUDGET)


def test_a_released_site_stays_so_in_every_file(tmp_path):
    part = SiteSketch.of(plain(), "east", "p")
    with seeded_noise(0):
        part.release(**BUDGET)
    part.save(tmp_path / "after.sketch")
    origins._KNOWN.clear()
    shutil.rmtree(tmp_path / "state", ignore_errors=True)
    with pytest.raises(AlreadyReleased):
        release_file(tmp_path / "after.sketch", **BUDGET)


def test_a_copy_of_the_keys_does_not_mask_a_pass_again(tmp_path, keys):
    SiteSketch.of(plain(), "east", "p", keys=keys["east"])
    shutil.copytree(tmp_path / "keys", tmp_path / "copy")
    (tmp_path / "copy" / "passes-east.txt").unlink()
    again = PairKeys.load(tmp_path / "copy", "east", SITES)
    with pytest.raises(ValueError, match="masked before with a copy of these keys"):
        SiteSketch.of(plain(1), "east", "p", keys=again)
    assert SiteSketch.of(plain(1), "east", "q", keys=again).missing == ("west",)


def test_a_fork_does_not_hand_over_what_its_parent_may_release():
    sketch = plain()
    sketch._process += 1
    with pytest.raises(AlreadyReleased, match="another process"):
        SiteSketch.of(sketch, "east", "p")


def test_keys_of_other_sites_are_refused(tmp_path, keys):
    with pytest.raises(TypeError, match="list of names"):
        new_keys(tmp_path / "k", "east", "east")
    with pytest.raises(ValueError, match="'south' among them"):
        PairKeys.load(tmp_path / "keys", "south", SITES)
    path = tmp_path / "keys" / "east+west.key"
    content = json.loads(path.read_text())
    for change in ({"sites": ["east", "north"]}, {"key": "00"}, {"key": "xyz"}):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(ValueError, match="is not a key"):
            PairKeys.load(tmp_path / "keys", "west", SITES)


def test_a_masked_file_of_another_length_is_damaged(tmp_path, keys):
    SiteSketch.of(plain(), "east", "p", keys=keys["east"]).save(tmp_path / "east.sketch")
    with np.load(tmp_path / "east.sketch") as data:
        header, masked = data["header"], data["state_0"]
    for state in (masked[:-1], masked.astype(np.int64), masked[None]):
        with (tmp_path / "east.sketch").open("wb") as file:
            np.savez(file, header=header, state_0=state)
        with pytest.raises(ValueError, match="damaged"):
            SiteSketch.load(tmp_path / "east.sketch")


def test_rows_are_not_cut():
    with pytest.raises(ValueError, match="rows are not cut"):
        Member("east", "run", 1, "record", enforced=True)


def test_the_larger_sum_is_taken(tmp_path):
    east, west = (SiteSketch.of(plain(i), site, "p") for i, site in enumerate(SITES))
    both = east.merge(west)
    assert east.merge(both) is both
    assert both.merge(west) is both
