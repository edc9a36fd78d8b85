"""May sites that cannot pool their tables publish one density? Their exact sums are added, and noise once."""

import matplotlib.pyplot as plt
import numpy as np

from fogline import DensitySketch, PrivateModes
from fogline.federation import SiteSketch, merge_sites
from fogline.testing import seeded_noise


def draw(n=2_000):
    """Draw it, from n made patients per site."""
    rng = np.random.default_rng(0)
    sketches = [
        SiteSketch.of(DensitySketch([(0, 125)]).update(rng.normal(centre, 8, (n, 1))), site, "2026-spring")
        for site, centre in (("north", 30), ("south", 55), ("west", 80))
    ]
    with seeded_noise(1):  # so that the picture repeats: leave it out to be private
        shape = merge_sites(sketches).release(epsilon=1.0, delta=1e-6)
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    PrivateModes().read(shape).plot(axes)
    axes.set(xlabel="age", title="Example: ages at three hospitals, epsilon 1")
    return figure


if __name__ == "__main__":
    draw().savefig("sites.svg")
