"""The crossing: exact sums of records go in, noisy numbers with a guarantee come out.

:class:`~fogline.releases.density_sketch.DensitySketch` counts records exactly and releases them once;
:func:`~fogline.releases.passes.sketch` counts those of any source.
"""

from typing import TYPE_CHECKING

from fogline._lazy import lazy_names

if TYPE_CHECKING:
    from fogline.releases.density_sketch import DensitySketch
    from fogline.releases.passes import count_into, sketch

__all__ = ["DensitySketch", "count_into", "sketch"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "DensitySketch": "density_sketch",
        "count_into": "passes",
        "sketch": "passes",
    },
)
