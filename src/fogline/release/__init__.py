"""The crossing: exact sums of records go in, noisy numbers with a guarantee come out.

:class:`~fogline.release.density_sketch.DensitySketch` counts records exactly and releases them once.
"""

from fogline.release.density_sketch import DensitySketch

__all__ = ["DensitySketch"]
