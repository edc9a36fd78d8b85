"""Released densities and all that is read from them: modes, branches, components, fits. Public and pure.

Nothing in this folder sees a record or draws noise: a :class:`~fogline.PrivateDensity` is made of released numbers,
and whatever is computed from it costs nothing more.
"""

from fogline.density.private_density import PrivateDensity

__all__ = ["PrivateDensity"]
