"""What a released count says of a release: that hardly anything was counted, or far less than was expected.

The noisy count is public. Text in a column of numbers, a wrong decimal mark, thousands separators or bounds that miss
the data leave a trace nowhere else: such records contribute nothing, silently. Everything here is post-processing of
released values and public parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fogline._validation import check_count
from fogline.accounting.cautions import release_cautions
from fogline.accounting.guarantee import Guarantee

if TYPE_CHECKING:
    from fogline.density.leaves import LeafRelease
    from fogline.density.private_density import PrivateDensity

__all__ = [
    "check_expected",
    "count_words",
    "is_nothing",
    "joined",
    "narrow_words",
    "nothing_counted",
    "release_message",
    "rounded_words",
]

DEVIATIONS = 3.0
"""A count within so many noise deviations of zero may stand for no record at all."""

FEW, MANY = 0.8, 2.0
"""A count is far from what is expected where it is below or above this part of it by more than the noise.

Fewer are told of sooner: thousands separators void the large values of a column and leave the small ones, often most.
"""

NARROW, NEARLY_ALL = 1024, 0.95
"""Where one part in so many of a column's range holds this share of the records, nothing inside it can be told."""


def check_expected(expect_records: object) -> int | None:
    """Return the number of records that a user expects, None if they do not say.

    Examples
    --------
    >>> check_expected(None), check_expected(20_000)
    (None, 20000)
    """
    return None if expect_records is None else check_count(expect_records, "expect_records")


def is_nothing(count: float, sd: float) -> bool:
    """Whether a released count cannot be told from none: there advice to spend more would be wrong.

    Parameters
    ----------
    count, sd : float
        Released number of records and the standard deviation of its noise.

    Examples
    --------
    >>> is_nothing(40.0, 16.0), is_nothing(400.0, 16.0)
    (True, False)
    """
    return count <= DEVIATIONS * sd


def count_words(
    count: float, sd: float, expect_records: int | None = None, *, columns: int = 1, bounded: bool = True
) -> str:
    """Say what is odd about a released count; empty if nothing is.

    Parameters
    ----------
    count, sd : float
        Released number of records and the standard deviation of its noise.
    expect_records : int, optional
        How many the user expects, about.
    columns : int
        Number of columns, for the wording.
    bounded : bool
        Whether records outside public bounds contribute nothing.

    Examples
    --------
    >>> count_words(1.0, 16.2)
    'the release counts 1 ± 16 records, which may be none: is the column numeric, are the decimal mark and the bounds
    right?'
    >>> count_words(698.4, 16.2, 20_000)
    'the release counts 698 ± 16 of the 20000 records that you expect: is every value a plain number (thousands
    separators, decimal mark), are the bounds right?'
    >>> count_words(11.0, 16.2, 8)
    'the release counts 11 ± 16 records, and at this budget the 8 that you expect are no more than noise'
    >>> count_words(19_140.0, 16.2, 20_000), count_words(698.4, 16.2)
    ('', '')
    """
    told = f"the release counts {_number(count, sd)} ± {_number(sd, sd)}"
    if is_nothing(count, sd):
        if expect_records is not None and is_nothing(expect_records, sd):
            return f"{told} records, and at this budget the {expect_records} that you expect are no more than noise"
        numeric = "is the column numeric" if columns == 1 else "are the columns numeric"
        right = "are the decimal mark and the bounds right" if bounded else "is the decimal mark right"
        return f"{told} records, which may be none: {numeric}, {right}?"
    if expect_records is None:
        return ""
    if count + DEVIATIONS * sd < FEW * expect_records:
        right = ", are the bounds right" if bounded else ""
        return (
            f"{told} of the {expect_records} records that you expect: is every value a plain number (thousands "
            f"separators, decimal mark){right}?"
        )
    if count - DEVIATIONS * sd > MANY * expect_records:
        return f"{told} records, far more than the {expect_records} that you expect: are records repeated?"
    return ""


def narrow_words(release: LeafRelease, columns: Sequence[str]) -> str:
    """Say which columns have nearly all of their records in a place too narrow to look into; empty if none has.

    Parameters
    ----------
    release : LeafRelease
    columns : sequence of str
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
    >>> spec = LeafSpec.plan([(0, 1e6)])
    >>> boxes = np.array([[[0, 1]], [[1, 2048]], [[2048, 4096]]])
    >>> stage = BucketCounts(boxes, np.array([5000, 3, -1]), Noise("laplace", 1.0))
    >>> narrow_words(LeafRelease(spec, stage, stage), ["cost"])
    'cost: nearly all records lie within 244, between 0 and 244.141, which is too narrow a part of the range to
    look into: unless they are one value, narrower bounds would show more (fogline bounds finds them privately)'
    """
    import numpy as np  # here: the count's words alone need nothing

    stage, spec, said = release.counts, release.spec, []
    if is_nothing(release.total, release.total_sd):
        return ""
    for axis, name in enumerate(columns):
        start, stop = stage.boxes[:, axis, 0], stage.boxes[:, axis, 1]
        narrow = stop - start <= max(spec.leaves[axis] // NARROW, 1)
        if spec.steps[axis] or not narrow.any():
            continue
        sums = np.bincount(start[narrow], stage.counts[narrow], minlength=spec.leaves[axis] + 1)
        ends = np.zeros(len(sums), dtype=np.int64)
        np.maximum.at(ends, start[narrow], stop[narrow])
        if sums.max() <= NEARLY_ALL * release.total:  # an edge of leaves may lie amid the records
            sums, ends = sums + sums[ends] * (ends > 0), np.maximum(ends, ends[ends])
        first = int(np.argmax(sums))
        if sums[first] > NEARLY_ALL * release.total:
            low, high = spec.edges(axis)[[first, int(ends[first])]]
            said.append(
                f"{name}: nearly all records lie within {high - low:.3g}, between {low:.6g} and {high:.6g}, which is "
                "too narrow a part of the range to look into: unless they are one value, narrower bounds would show "
                "more (fogline bounds finds them privately)"
            )
    return joined(*said)


def nothing_counted(density: PrivateDensity) -> str:
    """Say that nothing can be seen where hardly a record was counted; empty where enough were.

    Parameters
    ----------
    density : PrivateDensity
    """
    if not is_nothing(density.count, density.count_sd):
        return ""
    return joined("nothing stands above the fog", count_words(density.count, density.count_sd, columns=density.spec.d))


def rounded_words(column: str, step: float) -> str:
    """Say that a column that was declared continuous is rounded.

    Examples
    --------
    >>> rounded_words("age", 1.0)
    'age looks rounded to multiples of about 1: say so with steps=, if that is public'
    """
    return f"{column} looks rounded to multiples of about {step:.3g}: say so with steps=, if that is public"


def release_message(
    found: str,
    guarantee: Guarantee,
    count: float,
    sd: float,
    expect_records: int | None = None,
    *,
    columns: int = 1,
    bounded: bool = True,
) -> str:
    """Join what was found with what the budget and the count give cause to say.

    Parameters
    ----------
    found : str
        What a reading of the release says; it may say the words of the count already.
    guarantee : Guarantee
    count, sd, expect_records, columns, bounded
        As for :func:`count_words`.

    Returns
    -------
    str
        Sentences joined by semicolons, the question about the count last; empty if there is nothing to say.
    """
    told = found.split("; ")
    plain = {known: count_words(count, sd, columns=columns, bounded=known) for known in (True, False)}
    bounded = bounded or plain[True] in told  # the reading knows of bounds
    said = count_words(count, sd, expect_records, columns=columns, bounded=bounded)
    found = joined(*(words for words in told if words not in plain.values()))
    return joined(found, *release_cautions(guarantee.epsilon, guarantee.delta, count), said)


def joined(*said: str) -> str:
    """Join the sentences that there are.

    Examples
    --------
    >>> joined("one", "", "two")
    'one; two'
    """
    return "; ".join(words for words in said if words)


def _number(value: float, sd: float) -> str:
    """A count, or its noise, for people: whole numbers unless the noise is smaller than that."""
    return f"{value:.0f}" if sd >= 1 or value >= 100 else f"{value:.2g}"
