"""Principal components of private records, as a release of their own."""

from __future__ import annotations

from fractions import Fraction

from fogline import _validation, units
from fogline._typing import BoundsLike, LedgerLike, SourceLike
from fogline.accounting.guarantee import Guarantee
from fogline.queries.lattice import RecordLattice
from fogline.queries.moments import MOST_COLUMNS, MomentQuery, PrivateComponents, SpreadQuery, components_of
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import as_source, names_of, unit_of, width_of

__all__ = ["private_pca"]

PROOF = "private-pca"
CODE_VERSION = "components-1"

SCALE_SHARE = Fraction(1, 5)
"""Share of the budget for count, mean and spread; the second moment has the rest."""


def private_pca(
    X: SourceLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    bounds: BoundsLike = None,
    components: int | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    ledger: LedgerLike | None = None,
) -> tuple[PrivateComponents, Guarantee]:
    """Release the leading directions of the records.

    Parameters
    ----------
    X : array, frame, path or engine table
        One row per record.
    epsilon, delta : float
        Privacy budget; both required.
    bounds : array-like of shape (d, 2)
        Public range of each column; one pair serves all. Columns are compared in units of these ranges.
    components : int, optional
        Number of directions; by default those that stand out of the noise, at least one.
    neighbours, max_contributions, ledger
        As for :class:`fogline.PrivateModes`.

    Returns
    -------
    components, guarantee
        ``components.projection.components`` are the directions, in half ranges.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import private_pca
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(5, 0.3, size=(20000, 6))
    >>> X[:, 0] += 2 * rng.normal(size=20000)
    >>> found, guarantee = private_pca(X, epsilon=1.0, delta=1e-5, bounds=(0, 10), components=1)
    >>> bool(abs(found.projection.components[0, 0]) > 0.99)
    True
    """
    source = as_source(X)
    terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions, unit_of(source), ledger=ledger)
    _validation.check_ledger(ledger)
    width = width_of(source)
    box = units.resolve_bounds(bounds, names_of(source), width=width)
    lattice = RecordLattice.of(box)
    # The size of a second moment grows with the square of the columns.
    if lattice.d > MOST_COLUMNS:
        raise ValueError(f"bounds has {lattice.d} columns: the second moment of at most {MOST_COLUMNS} can be released")
    wanted = None if components is None else _validation.check_count(components, "components")
    if wanted is not None and wanted > lattice.d:
        raise ValueError(f"components must be at most {lattice.d}, got {wanted}")
    columns = names_of(source)
    curator = Curator(source, terms, width=lattice.d)
    del X, source
    found, guarantee, _ = curator.release(
        lambda curator: _components(lattice, wanted, curator),
        mechanism="discrete Gaussian noise on first and second moments",
        proof=PROOF,
        name="components",
        code_version=CODE_VERSION,
        parameters={
            "bounds": box.tolist(),
            "components": wanted,
            "columns": None if columns is None else list(columns),
        },
        max_payload=8 * (2 * lattice.d + 2 + lattice.d * (lattice.d + 3) // 2 + lattice.d**2) + 2**16,
        ledger=ledger,
    )
    return found, guarantee


def _components(lattice: RecordLattice, wanted: int | None, curator: Curator) -> PrivateComponents:
    """Both releases, and the directions that are read from them."""
    spread = curator.ask(SpreadQuery(lattice), SCALE_SHARE, "scale")
    moments = curator.ask(MomentQuery.around(spread, lattice), 1 - SCALE_SHARE, "projection")
    found = components_of(moments, lattice, lattice.d, wanted)
    return found.with_numbers(curator.remember("projection", found.numbers))
