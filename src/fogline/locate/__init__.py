"""Where the records are: private principal components, and the exact projection on them."""

from fogline.locate.private_pca import PrivateComponents
from fogline.locate.projection import Projection, RecordLattice

__all__ = ["PrivateComponents", "Projection", "RecordLattice"]
