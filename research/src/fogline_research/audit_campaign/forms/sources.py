"""Sources: a form and what is measured on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from fogline_research.audit_campaign.forms.arrays import ARRAY_FORMS
from fogline_research.audit_campaign.forms.base import Form
from fogline_research.audit_campaign.forms.files import FILE_FORMS
from fogline_research.audit_campaign.forms.frames import FRAME_FORMS
from fogline_research.audit_campaign.forms.servers import SERVER_FORMS
from fogline_research.audit_campaign.hostile_tables import Shape

if TYPE_CHECKING:
    from fogline_research.audit_campaign.isolation_measures import Measure

__all__ = ["SOURCES", "Source", "source_named"]


@dataclass(frozen=True)
class Source:
    """A form of tables, and the exact state that is compared.

    Parameters
    ----------
    name : str
    form : Form
    state : {"grid", "leaves", "random", "strata"}
    """

    name: str
    form: Form
    state: str = "grid"

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of the tables; random features have four columns."""
        if self.state == "random":
            return tuple(dict.fromkeys(replace(shape, columns=4) for shape in self.form.shapes))
        if self.state == "strata":
            return tuple(shape for shape in self.form.shapes if shape.ids is not None and shape.columns == 1)
        return self.form.shapes

    @property
    def is_labelled(self) -> bool:
        """Whether ids are labels of strata and cut nothing."""
        return self.state == "strata"

    @property
    def unbundled(self) -> Source:
        """The same with one walk in a table."""
        return replace(self, form=replace(self.form, bundle=1))

    def measure(self, shape: Shape) -> Measure:
        """What is compared for tables of a shape."""
        measure: Measure = _measure(self.state, shape.columns)
        return measure


@cache
def _measure(state: str, columns: int) -> Any:
    from fogline_research.audit_campaign.isolation_measures import (
        GridMeasure,
        LeafMeasure,
        RandomMeasure,
        StrataMeasure,
    )

    kinds: dict[str, Any] = {
        "grid": GridMeasure,
        "leaves": LeafMeasure,
        "random": RandomMeasure,
        "strata": StrataMeasure,
    }
    return kinds[state](columns)


def _all_sources() -> tuple[Source, ...]:
    forms: Sequence[Form] = (*ARRAY_FORMS, *FRAME_FORMS, *FILE_FORMS, *SERVER_FORMS)
    by_name = {form.name: form for form in forms}
    random = [by_name[name] for name in RANDOM if name in by_name]
    leaves = [by_name[name] for name in LEAVES if name in by_name]
    strata = [by_name[name] for name in STRATA if name in by_name]
    return (
        *(Source(form.name, form) for form in forms),
        *(Source(f"{form.name}, random features", form, "random") for form in random),
        *(Source(f"{form.name}, leaves", form, "leaves") for form in leaves),
        *(Source(f"strata: {form.name}", form, "strata") for form in strata),
    )


RANDOM = (
    "numpy array",
    "list",
    "np.matrix",
    "unit ids in a list",
    "CSV, CRLF",
    "Parquet by pyarrow, read without pyarrow",
)
LEAVES = (
    "numpy array",
    "list",
    "unit ids in a list",
    "pandas (numpy)",
    "CSV, CRLF",
    "Parquet by pyarrow",
    "Parquet by pyarrow, read without pyarrow",
    "SQLite",
)
STRATA: tuple[str, ...] = ("unit ids in a list", "unit ids in an object array", "CSV, CRLF")
STRATA += ("Arrow table", "pandas (numpy)", "Parquet by pyarrow", "SQLite")

SOURCES: tuple[Source, ...] = _all_sources()
"""Everything that isolation is tried on."""


def source_named(name: str) -> Source:
    """The source of that name."""
    for source in SOURCES:
        if source.name == name:
            return source
    raise ValueError(f"source: there is no source {name!r}; there are {', '.join(source.name for source in SOURCES)}")
