"""The one place that validates input.

Two rules hold here. An error names the parameter and says what is wanted. And no error may depend on the
*values* of the records: what is wrong with a schema (types, shapes, column counts) is public, what is wrong
with a cell is not, so a missing or infinite value passes through `records` without a word.
"""

from fogline._validation.containment import contained, quiet
from fogline._validation.deprecation import user_stacklevel, warn_deprecated
from fogline._validation.parameters import (
    Neighbours,
    check_bounds,
    check_count,
    check_delta,
    check_epsilon,
    check_ledger,
    check_level,
    check_max_contributions,
    check_name,
    check_neighbours,
    check_positive,
    check_real,
)
from fogline._validation.places import source_text, state_directory
from fogline._validation.rows import check_columns, check_dense, records

__all__ = [
    "Neighbours",
    "check_bounds",
    "check_columns",
    "check_count",
    "check_delta",
    "check_dense",
    "check_epsilon",
    "check_ledger",
    "check_level",
    "check_max_contributions",
    "check_name",
    "check_neighbours",
    "check_positive",
    "check_real",
    "contained",
    "quiet",
    "records",
    "source_text",
    "state_directory",
    "user_stacklevel",
    "warn_deprecated",
]
