"""Many sites, of which some send twice, wrong, late or nothing: the sum is exact, or it is clearly refused."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.federation import SiteSketch, merge_sites

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from many_sites import SPEC, keys_of, masked_sites

NAMES = [f"site{k:02d}" for k in range(40)]


@pytest.fixture
def sites(tmp_path):
    return masked_sites(NAMES, tmp_path, "spring")


def total(whole):
    return int(whole.sketch.table().sum())


def test_the_sum_over_all_sites_is_exact_in_any_order(sites):
    parts, records = sites
    whole = merge_sites(parts)
    assert (total(whole), whole.missing, whole.checks) == (records, (), {})
    shuffled = list(np.random.default_rng(1).permutation(40))
    halves = [merge_sites([parts[k] for k in some]) for some in (shuffled[:25], shuffled[25:])]
    assert total(merge_sites(halves)) == records


def test_a_site_that_sends_twice_counts_once(sites):
    parts, records = sites
    assert total(merge_sites([*parts, parts[3], parts[3]])) == records


def test_a_site_that_counts_anew_is_refused(sites, tmp_path):
    parts, _ = sites
    (tmp_path / "again").mkdir()
    other, _ = masked_sites(NAMES, tmp_path / "again", "summer", seed=5)
    with pytest.raises(ValueError, match="differ in pass"):
        merge_sites([*parts[:5], other[5]])
    second = replace(parts[3], members=(replace(parts[3].members[0], run="f" * 32),))
    with pytest.raises(ValueError, match="two sketches of different runs"):
        merge_sites([parts[3], second])
    with pytest.raises(ValueError, match="masked before"):
        SiteSketch.of(DensitySketch.of(SPEC), "site03", "spring", keys=keys_of("site03", NAMES, tmp_path))


def test_a_site_that_sends_nothing_is_named_and_a_second_round_does_without(sites, tmp_path):
    parts, _ = sites
    some = merge_sites([part for k, part in enumerate(parts) if k not in (7, 21)])
    assert some.missing == ("site07", "site21")
    with pytest.raises(ValueError, match="site07, site21 are missing"):
        some.release(epsilon=1.0, delta=1e-6)
    rest = [name for name in NAMES if name not in some.missing]
    again, records = masked_sites(rest, tmp_path, "spring, second round", seed=2)
    assert total(merge_sites(again)) == records
    with pytest.raises(ValueError, match="differ in"):  # the late site's file of the first round
        merge_sites([*again, parts[7]])


def test_a_site_that_sends_wrong_numbers_under_its_masks(sites):
    """Masks that are left are refused; counts below zero are cut, since a refusal would tell of others' records."""
    parts, records = sites
    changed = replace(parts[3], masked=parts[3].masked ^ np.uint64(2**63))
    with pytest.raises(ValueError, match="do not cancel"):
        merge_sites([*parts[:3], changed, *parts[4:]])
    fewer = replace(parts[3], masked=parts[3].masked - np.uint64(10**6))
    assert total(merge_sites([*parts[:3], fewer, *parts[4:]])) == 0
    # A lie that adds counts cannot be seen by anybody: this is what the threat model says, with its size.
    more = replace(parts[3], masked=parts[3].masked + np.uint64(1000))
    assert total(merge_sites([*parts[:3], more, *parts[4:]])) == records + 1000 * SPEC.n_leaves


def test_a_site_with_a_wrong_key_is_named(sites):
    parts, _ = sites
    wrong = replace(parts[3], checks={**parts[3].checks, "site03+site09": "0" * 32})
    with pytest.raises(ValueError, match=r"'site0[39]' and 'site0[39]' masked with different keys"):
        merge_sites([*parts[:3], wrong, *parts[4:]])


def test_all_at_once_is_the_same_as_one_by_one(sites):
    parts, records = sites
    one_by_one = parts[0]
    for part in parts[1:]:
        one_by_one = one_by_one.merge(part)
    whole = merge_sites(parts)
    assert (one_by_one.members, one_by_one.checks) == (whole.members, whole.checks)
    assert np.array_equal(one_by_one.sketch.table(), whole.sketch.table())
    assert {origin.run for origin in one_by_one.sketch.origins} == {origin.run for origin in whole.sketch.origins}
    assert total(whole) == records


@pytest.mark.parametrize("count", [2, 3, 7, 33])
def test_sites_without_masks_are_each_counted_once(count):
    parts = [
        SiteSketch.of(DensitySketch.of(SPEC).update([[float(k)]] * (k + 1)), f"site{k:02d}", "spring")
        for k in range(count)
    ]
    whole = merge_sites([*parts, parts[-1]])
    assert total(whole) == count * (count + 1) // 2
    assert len(whole.sketch.origins) == len(whole.members) == count


def test_records_of_one_origin_under_two_names_are_refused(sites, tmp_path):
    sketch = DensitySketch.of(SPEC).update([[1.0]])
    plain = [SiteSketch.of(sketch, name, "spring") for name in ("a", "b")]
    third = SiteSketch.of(DensitySketch.of(SPEC).update([[2.0]]), "c", "spring")
    with pytest.raises(ValueError, match="same records"):
        merge_sites([plain[0], third, plain[1]])
    names = ["a", "b", "c"]
    hidden = [SiteSketch.of(sketch, name, "spring", keys=keys_of(name, names, tmp_path)) for name in names]
    with pytest.raises(ValueError, match="same records"):
        merge_sites(hidden)


def test_a_site_that_nobody_masked_with_is_refused(sites):
    """It would be added up as it is, unseen under the masks of the others."""
    parts, _ = sites
    stray = replace(parts[0], members=(replace(parts[0].members[0], site="stranger"),), checks={})
    with pytest.raises(ValueError, match="not among those"):
        merge_sites([*parts, stray])
    bare = replace(parts[0], sketch=DensitySketch.of(SPEC), masked=None, checks={})
    with pytest.raises(ValueError, match="some are masked"):
        merge_sites([bare, *parts[1:]])
