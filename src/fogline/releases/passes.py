"""One way in for every kind of source: count its records into a sketch, and release that once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import LedgerLike, SourceLike
from fogline._validation import check_max_contributions, records
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import Spec
from fogline.releases.density_sketch import DensitySketch, ReleaseTerms, release_density
from fogline.releases.sketch_file import ROW_BY_ROW, Provenance
from fogline.sources.passes import facts_of, names_of
from fogline.sources.registry import as_source
from fogline.sources.tables import Source

__all__ = ["CountingPass", "count_into", "release_source", "sketch"]


def sketch(source: SourceLike, spec: Spec, *, max_contributions: int = 1) -> DensitySketch:
    """Sketch of a source's records: the same exact state from every engine.

    Parameters
    ----------
    source : array, frame, path or Source
        Whatever :func:`fogline.sources.registry.table` takes.
    spec : SketchSpec or RandomSpec
        Of :class:`fogline.DensitySketch`, its ``spec``.
    max_contributions : int, default 1
        Most records of a unit that count, where the source has a unit. A release of the sketch as it is then says that
        this was enforced.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> from fogline.datasets.tables import load_faithful
    >>> from fogline.releases import sketch
    >>> spec = DensitySketch(bounds=[(1, 6), (40, 100)]).spec
    >>> counts = sketch(load_faithful().path, spec).state()[1]      # secret
    >>> int(counts.sum())
    272
    """
    result = DensitySketch.of(spec)
    count_into(result, source, max_contributions=max_contributions)
    return result


def count_into(sketch: DensitySketch, source: SourceLike, *, max_contributions: int = 1) -> None:
    """Count the records of an array, a frame, a path or a :class:`Source` into a sketch.

    A source with a unit goes into an empty sketch, or into one that was cut by the same unit: what is left of a unit
    then adds up.
    """
    CountingPass(source, sketch, max_contributions).run()


def release_source(
    source: SourceLike,
    spec: Spec,
    terms: ReleaseTerms,
    ledger: LedgerLike | None = None,
    *,
    columns: Sequence[str] | None = None,
) -> PrivateDensity:
    """Release the density of a source once: what every estimator's ``fit`` does between validating and reading.

    Errors of the schema come first, then the noise is drawn (and, with a ledger, the budget reserved), and only then
    are the records counted. When that fails, with a ledger or without, the error is a constant, and nothing in the
    traceback below this call leads to them. `columns` names those of a source that has no names.
    """
    columns, facts = names_of(source) or columns, facts_of(source)
    one_pass = CountingPass(source, DensitySketch.of(spec), terms.max_contributions)
    del source
    try:
        terms.warn()
        return release_density(spec, terms, one_pass.run, ledger, columns=columns, facts=facts)
    finally:
        one_pass.forget()


class CountingPass:
    """One pass over a source: errors of its schema come when it is made, records are counted when it is run.

    Parameters
    ----------
    source : array, frame, path or Source
    sketch : DensitySketch
        What the records are counted into.
    max_contributions : int
        Most records of a unit that count, where the source has a unit.
    """

    def __init__(self, source: SourceLike, sketch: DensitySketch, max_contributions: int = 1) -> None:
        source, most = as_source(source), check_max_contributions(max_contributions)
        self._provenance = ROW_BY_ROW
        if isinstance(source, Source):
            source.require_width(sketch.spec.d)
            # what is cut by a unit is known to be; rows of an array are taken as they are
            if source.is_enforced:
                self._provenance = Provenance(unit=source.unit, most=most)
            source = source.bounded(most)
        else:
            source = records(source, sketch.spec.d)
        sketch.provenance.joined(self._provenance)  # refused here, before anything is read
        self._held: tuple[Any, DensitySketch] | None = (source, sketch)

    def run(self) -> NDArray[np.int64]:
        """Count the records and return the sketch's table."""
        if self._held is None:
            raise RuntimeError("this pass is over")
        source, sketch = self._held
        if isinstance(source, Source):
            sketch.add_state(*source.state(sketch.spec), provenance=self._provenance)
        else:
            sketch.update(source)
        return sketch.table()

    def forget(self) -> None:
        """Let go of the source and the sketch: an error's traceback must not lead to the records."""
        self._held = None
