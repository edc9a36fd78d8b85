"""Attacks on masked passes by somebody who did not write them: what a lying site, merger or file can learn."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.federation import SiteSketch, merge_sites
from fogline.federation import site_sketch as site_module
from fogline.mechanisms.randomness import SystemSource

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from many_sites import SPEC, keys_of

NAMES = ["east", "liar", "north"]
RANDOM = DensitySketch([(0, 1)] * 5, features=64).spec


def passed(folder, rows, lie, spec=SPEC, signed=False):
    """A masked pass in which one site adds numbers that no records make, and what the merging party reads."""
    folder.mkdir()
    parts = []
    for name in NAMES:
        sketch = DensitySketch.of(spec)
        if name != "liar":
            sketch.update(rows[name])
        part = SiteSketch.of(sketch, name, "spring", keys=keys_of(name, NAMES, folder))
        if name == "liar":
            part = replace(part, masked=part.masked + lie.astype(np.int64).view(np.uint64), signed=signed)
        parts.append(part)
    return parts


def outcome(parts):
    """What anybody can see of a merge: that it was refused, or that it was not."""
    try:
        return merge_sites(parts)
    except ValueError as error:
        return str(error)


HERE = {"east": [[30.0]] * 7, "north": [[30.0]] * 5}
GONE = {"east": [[30.0]] * 6, "north": [[30.0]] * 5}
CELL = int(np.flatnonzero(DensitySketch.of(SPEC).update([[30.0]]).table().ravel())[0])


def one(value, size=64, cell=CELL):
    lie = np.zeros(size, dtype=np.int64)
    lie[cell] = value
    return lie


LIES = {
    "takes as many as there are": one(-12),
    "takes more than there are": one(-13),
    "adds up to the most that is taken on trust": one(2**41 - 12),
    "adds up to the most of a cell": one(2**36 - 12),
    "adds until words would wrap": one(2**63 - 12),
    "takes until words would wrap": one(-(2**63)),
}


def moved_by_one_record(folder, lie, *, spec=SPEC, rows=(HERE, GONE), signed=False):
    """States that are read from two neighbours, or nothing where both are refused in the same words."""
    names = ("here", "gone")
    seen = [outcome(passed(folder / name, each, lie, spec, signed)) for name, each in zip(names, rows, strict=True)]
    if any(isinstance(each, str) for each in seen):
        assert seen[0] == seen[1]
        return None
    for name, whole in zip(names, seen, strict=True):  # what is read from its file is the same
        whole.save(folder / f"{name}.sketch")
        kept = SiteSketch.load(folder / f"{name}.sketch")
        assert np.array_equal(kept.sketch.table(), whole.sketch.table())
    return [site_module.state_vector(whole.sketch) for whole in seen]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_whether_a_merge_is_refused_tells_a_lying_site_nothing(tmp_path, lie, signed):
    """The lie makes the sum reach a bound with the last record and not without: a refusal would tell of that record."""
    states = moved_by_one_record(tmp_path, lie, signed=signed)
    assert (states is None) == ("wrap" in next(name for name, each in LIES.items() if each is lie))
    if states is not None:
        assert np.abs(states[0] - states[1]).sum() <= 1  # one record moves one cell by one, or is cut away


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("entry", [0, 1, 70])
@pytest.mark.parametrize("value", [-12, -13, 2**41 - 12, -(2**60), 2**60])
def test_nor_with_random_features(tmp_path, value, entry, signed):
    size = site_module.vector_size(RANDOM)
    rows = [{name: [[0.3] * 5] * len(each) for name, each in crowd.items()} for crowd in (HERE, GONE)]
    states = moved_by_one_record(tmp_path, one(value, size, entry), spec=RANDOM, rows=rows, signed=signed)
    alone = site_module.state_vector(DensitySketch.of(RANDOM).update([[0.3] * 5]))
    assert np.all(np.abs(states[0] - states[1]) <= np.abs(alone))


def test_the_limit_beyond_which_masks_are_left_cannot_be_foreseen():
    drawn = [site_module._limit() for _ in range(300)]
    assert len(set(drawn)) == 300
    assert 2**61 <= min(drawn) < 1.1 * 2**61
    assert 1.9 * 2**61 < max(drawn) < 2**62


def test_the_limit_does_not_come_from_noise_that_a_test_or_a_program_can_seed(monkeypatch):
    asked = []
    monkeypatch.setattr(SystemSource, "bytes", lambda self, size: asked.append(size) or b"\x00" * size)
    assert site_module._limit() == 2**61
    assert asked == [8]


def test_masks_that_are_left_are_refused(tmp_path):
    """A file of another round, with the header of this one: its masks do not cancel, and the sum is noise."""
    parts, other = passed(tmp_path / "one", HERE, one(0)), passed(tmp_path / "two", HERE, one(0))
    with pytest.raises(ValueError, match="do not cancel"):
        merge_sites([*parts[:2], replace(parts[2], masked=other[2].masked)])


def test_a_file_changed_on_its_way_is_refused(tmp_path):
    """By the sums of its archive, and not only where the sum over all sites would look odd."""
    part = passed(tmp_path / "sites", HERE, one(0))[0]
    part.save(tmp_path / "east.sketch")
    content = bytearray((tmp_path / "east.sketch").read_bytes())
    refused = 0
    for place in range(60, len(content) - 60, max(1, len(content) // 40)):
        changed = bytes(content[:place]) + bytes([content[place] ^ 1]) + bytes(content[place + 1 :])
        (tmp_path / "changed.sketch").write_bytes(changed)
        try:
            kept = SiteSketch.load(tmp_path / "changed.sketch")
        except ValueError:
            refused += 1
            continue
        assert np.array_equal(kept.masked, part.masked)  # a byte that means nothing, such as a time
    assert refused > 20


def test_a_merger_that_hides_a_file_reads_that_site_from_two_rounds(tmp_path):
    """No mask prevents it, so the threat model says it: sums of two rounds differ by the site that was left out."""
    three = merge_sites(passed(tmp_path / "first", HERE, one(9)))
    names = ["east", "north"]
    (tmp_path / "second").mkdir()
    again = [
        SiteSketch.of(
            DensitySketch.of(SPEC).update(HERE[name]), name, "second", keys=keys_of(name, names, tmp_path / "second")
        )
        for name in names
    ]
    two = merge_sites(again)
    assert (three.sketch.table() - two.sketch.table()).ravel().tolist() == one(9).tolist()


def test_a_site_cannot_send_for_another(tmp_path):
    """A file that claims to hold a second site's counts leaves that site's masks in the sum."""
    parts = passed(tmp_path / "sites", HERE, one(0))
    north = replace(parts[2].members[0], run="0" * 32)
    both = replace(parts[1], members=(*parts[1].members, north))
    with pytest.raises(ValueError, match="two sketches of different runs"):
        merge_sites([both, parts[0], parts[2]])
    with pytest.raises(ValueError, match="do not cancel"):
        merge_sites([parts[0], both])
