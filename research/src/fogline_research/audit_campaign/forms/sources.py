"""Sources: a form and what is measured on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from fogline_research.audit_campaign.forms.arrays import ARRAY_FORMS
from fogline_research.audit_campaign.forms.base import Form
from fogline_research.audit_campaign.forms.files import FILE_FORMS
from fogline_research.audit_campaign.forms.frames import FRAME_FORMS
from fogline_research.audit_campaign.forms.printed import PRINTED_FORMS
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
    state : {"grid", "leaves", "random", "strata", "release", "named releases", "profile", "profile found", "printed"}
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
        if self.state == "named releases":
            return tuple(dict.fromkeys(replace(shape, columns=2) for shape in self.form.shapes))
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
        NamedReleasesMeasure,
        PrintedMeasure,
        ProfileMeasure,
        RandomMeasure,
        ReleaseMeasure,
        StrataMeasure,
    )

    kinds: dict[str, Any] = {
        "grid": GridMeasure,
        "leaves": LeafMeasure,
        "random": RandomMeasure,
        "strata": StrataMeasure,
        "release": ReleaseMeasure,
        "named releases": NamedReleasesMeasure,
        "profile": ProfileMeasure,
        "profile found": partial(ProfileMeasure, found=True),
        "printed": PrintedMeasure,
    }
    return kinds[state](columns)


def _all_sources() -> tuple[Source, ...]:
    forms: Sequence[Form] = (*ARRAY_FORMS, *FRAME_FORMS, *FILE_FORMS, *SERVER_FORMS)
    by_name = {form.name: form for form in forms}
    random = [by_name[name] for name in RANDOM if name in by_name]
    leaves = [by_name[name] for name in LEAVES if name in by_name]
    strata = [by_name[name] for name in STRATA if name in by_name]
    # as it is given to an estimator a frame goes the same way as without it; what is refused by its type is so above
    whole = [form for form in forms if not form.name.endswith(", as it is") and not form.is_refused]
    # several densities want to read a source once more
    named = [form for form in whole if form.name.startswith(NAMED) and form.name != "Arrow reader"]
    profiled = [form for form in whole if form.name.startswith(PROFILED)]
    return (
        *(Source(form.name, form) for form in forms),
        *(Source(f"{form.name}, random features", form, "random") for form in random),
        *(Source(f"{form.name}, leaves", form, "leaves") for form in leaves),
        *(Source(f"strata: {form.name}", form, "strata") for form in strata),
        *(Source(f"fogline.release: {form.name}", _verb(form), "release") for form in whole),
        *(Source(f"fogline.release, named densities: {form.name}", _verb(form), "named releases") for form in named),
        *(Source(f"fogline.profile: {form.name}", _verb(form), "profile") for form in profiled),
        *(Source(f"fogline.profile, ranges found: {form.name}", _verb(form), "profile found") for form in profiled),
        *(Source(form.name, form, "printed") for form in PRINTED_FORMS),
    )


def _verb(form: Form) -> Form:
    """The same form given to a verb that releases: now and then it is carried on to what it publishes."""
    return replace(form, options={**form.options, "read to the end": (False,) * 99 + (True,)}, pairs=SHORTER)


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

NAMED = ("pandas", "polars", "Arrow", "CSV", "Parquet", "SQLite", "Postgres", "DuckDB")
"""Beginnings of the names of forms whose columns have names."""

SHORTER = 12
"""Pairs that the tests try on a verb: it reads through the same readers, which are tried on a hundred."""

PROFILED = (
    "numpy array",
    "unit ids",
    "pandas",
    "polars (eager)",
    "Arrow table",
    "CSV",
    "Parquet",
    "SQLite",
    "Postgres",
)
"""Beginnings of the names of forms that a profile reads."""

SOURCES: tuple[Source, ...] = _all_sources()
"""Everything that isolation is tried on."""


def source_named(name: str) -> Source:
    """The source of that name."""
    for source in SOURCES:
        if source.name == name:
            return source
    raise ValueError(f"source: there is no source {name!r}; there are {', '.join(source.name for source in SOURCES)}")
