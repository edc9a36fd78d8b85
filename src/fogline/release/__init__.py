"""Features, exact sums, one noisy release, and the density that comes out of it.

A record passes through this folder in one direction: put on a public grid (:mod:`~fogline.queries.fourier_sums`),
turned into exact integer Fourier sums (:mod:`~fogline.queries.fourier_sums`), or, beyond three axes, straight into exact
integer sums of random features (:mod:`~fogline.queries.random_feature_sums`), and noised once
(:mod:`~fogline.release.density_sketch`). Everything after that (:mod:`~fogline.density.private_density`,
:mod:`~fogline.density.modes.peaks`, :mod:`~fogline.density.modes.significance`, :mod:`~fogline.density.modes.scale_space`) reads
released numbers only.
"""

from fogline.release.density_sketch import DensitySketch
from fogline.density.private_density import PrivateDensity

__all__ = ["DensitySketch", "PrivateDensity"]
