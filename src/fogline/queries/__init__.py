"""Where the records are: private projections, one cluster, terrific balls and slabs, Gaussian learners."""

from typing import TYPE_CHECKING

from fogline._lazy import lazy_names

if TYPE_CHECKING:
    from fogline.queries.ball_search import Ball, NotSeparable
    from fogline.queries.gaussian import Gaussian, SphericalGaussian
    from fogline.queries.lattice import CentredBallLattice, Projection, RecordLattice
    from fogline.queries.moments import PrivateComponents
    from fogline.queries.partition import Partition

__all__ = [
    "Ball",
    "CentredBallLattice",
    "Gaussian",
    "NotSeparable",
    "Partition",
    "PrivateComponents",
    "Projection",
    "RecordLattice",
    "SphericalGaussian",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Ball": "ball_search",
        "CentredBallLattice": "lattice",
        "Gaussian": "gaussian",
        "NotSeparable": "ball_search",
        "Partition": "partition",
        "PrivateComponents": "moments",
        "Projection": "lattice",
        "RecordLattice": "lattice",
        "SphericalGaussian": "gaussian",
    },
)
