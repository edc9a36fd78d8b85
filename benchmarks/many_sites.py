"""Federations of many simulated sites: how long a masked pass takes, and what becomes of sites that misbehave."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fogline import DensitySketch
from fogline.density.leaves import LeafSpec
from fogline.federation import PairKeys, SiteSketch, merge_sites

__all__ = ["SPEC", "keys_of", "masked_sites", "seconds_of"]

SPEC = LeafSpec.plan([(0, 60)], leaves=[64])


def keys_of(site: str, sites: Sequence[str], folder: Path) -> PairKeys:
    """Keys of a site as if they had been brought round, from a hash of each pair's names: for simulations only."""
    pairs = {other: "+".join(sorted((site, other))) for other in sites if other != site}
    keys = {other: hashlib.sha256(f"{folder} {pair}".encode()).digest() for other, pair in pairs.items()}
    home = folder / site
    home.mkdir(exist_ok=True)
    return PairKeys(site, keys, home)


def masked_sites(names: Sequence[str], folder: Path, pass_name: str, *, seed: int = 0) -> tuple[list[SiteSketch], int]:
    """A masked sketch per site, and the number of records in all."""
    rng = np.random.default_rng(seed)
    parts, total = [], 0
    for name in names:
        rows = rng.gamma(2, 5, (int(rng.integers(20, 80)), 1))
        total += int(np.sum(rows <= 60))
        sketch = DensitySketch.of(SPEC).update(rows)
        parts.append(SiteSketch.of(sketch, name, pass_name, keys=keys_of(name, names, folder)))
    return parts, total


def seconds_of(count: int) -> tuple[float, float]:
    """CPU seconds of masking at one site, and of merging all, for so many sites."""
    names = [f"site{k:04d}" for k in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        parts, total = masked_sites(names, Path(folder), "spring")
        masking = (time.process_time() - began) / count
        began = time.process_time()
        whole = merge_sites(parts)
        merging = time.process_time() - began
    assert whole.sketch is not None
    if int(whole.sketch.table().sum()) != total or whole.missing:
        raise RuntimeError("the sum over all sites is not that of their records")
    return masking, merging
