"""Features, exact sums, one noisy release, and the density that comes out of it.

A record passes through this folder in one direction: put on a public grid (:mod:`~fogline.sketch.histogram`),
turned into exact integer Fourier sums (:mod:`~fogline.sketch.fourier`), or, beyond three axes, straight into exact
integer sums of random features (:mod:`~fogline.sketch.random_features`), and noised once
(:mod:`~fogline.sketch.density_sketch`). Everything after that (:mod:`~fogline.sketch.private_density`,
:mod:`~fogline.sketch.landscape`, :mod:`~fogline.sketch.fog`, :mod:`~fogline.sketch.tracks`) reads
released numbers only.
"""

from fogline.sketch.density_sketch import DensitySketch
from fogline.sketch.private_density import PrivateDensity

__all__ = ["DensitySketch", "PrivateDensity"]
