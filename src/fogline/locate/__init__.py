"""Where the records are: private projections, one cluster, terrific balls and slabs, Gaussian learners."""

from fogline.locate.answers import Ball, NotSeparable
from fogline.locate.frames import Frame
from fogline.locate.gaussian import Gaussian
from fogline.locate.partition import Partition
from fogline.locate.private_pca import PrivateComponents
from fogline.locate.projection import Projection, RecordLattice
from fogline.locate.spherical_gaussian import SphericalGaussian

__all__ = [
    "Ball",
    "Frame",
    "Gaussian",
    "NotSeparable",
    "Partition",
    "PrivateComponents",
    "Projection",
    "RecordLattice",
    "SphericalGaussian",
]
