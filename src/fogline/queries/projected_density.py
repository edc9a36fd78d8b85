"""Random features of records on a few released directions: the density that clusters and components are read from.

The proof is in ``projected_density.proof.md`` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fogline._typing import IntArray
from fogline._validation import records as checked_records
from fogline.accounting.guarantee import Guarantee
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import RandomSpec
from fogline.queries.fourier_sums import lattice_sensitivity
from fogline.queries.lattice import Projection
from fogline.queries.query import Records
from fogline.queries.random_feature_sums import PhaseSums

__all__ = ["ProjectedDensityQuery"]


@dataclass(frozen=True, eq=False)
class ProjectedDensityQuery:
    """Sums of random features over projected records.

    Parameters
    ----------
    projection : Projection
        From earlier answers, like the specification.
    spec : RandomSpec
    guarantee : Guarantee
        What the density is released under.
    """

    projection: Projection
    spec: RandomSpec
    guarantee: Guarantee

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.spec.n_coefficients

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the sums of neighbours can be apart, in Euclidean norm."""
        return lattice_sensitivity(self.spec, neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the sum over all records whose image is in the box."""
        sums = PhaseSums(replace(self.spec))  # what a specification has computed would tell whether rows came
        d = self.spec.d
        records.each(lambda rows: sums.add_rows(checked_records(self.projection.coordinates(rows), d)))
        return sums.table()

    def decode(self, values: IntArray, noise_scale: float) -> PrivateDensity:
        """The density of the projected records."""
        return PrivateDensity(self.spec, values, scale=noise_scale, guarantee=self.guarantee)
