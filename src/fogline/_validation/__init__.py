"""The one place that validates input.

Two rules hold here. An error names the parameter and says what is wanted. And no error may depend on the
*values* of the records: what is wrong with a schema (types, shapes, column counts) is public, what is wrong
with a cell is not, so a missing or infinite value passes through `records` without a word.
"""

from typing import TYPE_CHECKING

from fogline._lazy import lazy_names

if TYPE_CHECKING:
    from fogline._validation.containment import contained, quiet
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
        check_pairs,
        check_positive,
        check_real,
        nearest,
        unknown_key,
    )
    from fogline._validation.process import (
        compiled_loops,
        plain_loops,
        source_text,
        state_directory,
        user_stacklevel,
        warn_deprecated,
    )
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
    "check_pairs",
    "check_positive",
    "check_real",
    "compiled_loops",
    "contained",
    "nearest",
    "plain_loops",
    "quiet",
    "records",
    "source_text",
    "state_directory",
    "unknown_key",
    "user_stacklevel",
    "warn_deprecated",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Neighbours": "parameters",
        "check_bounds": "parameters",
        "check_columns": "rows",
        "check_count": "parameters",
        "check_delta": "parameters",
        "check_dense": "rows",
        "check_epsilon": "parameters",
        "check_ledger": "parameters",
        "check_level": "parameters",
        "check_max_contributions": "parameters",
        "check_name": "parameters",
        "check_neighbours": "parameters",
        "check_pairs": "parameters",
        "check_positive": "parameters",
        "check_real": "parameters",
        "compiled_loops": "process",
        "contained": "containment",
        "nearest": "parameters",
        "plain_loops": "process",
        "quiet": "containment",
        "records": "rows",
        "source_text": "process",
        "state_directory": "process",
        "unknown_key": "parameters",
        "user_stacklevel": "process",
        "warn_deprecated": "process",
    },
)
