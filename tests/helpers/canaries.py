"""Canary pairs for tests: no more of them than a test needs."""

from fogline.audit import replay


def few_corners(pairs):
    """Leave out all corners of a box of many columns but three: the two ends of its diagonal and one in between.

    Of 64 canaries in five columns 32 are corners. Sums, balls and boxes treat all columns alike, so that corners differ
    by a reflection; `make audit` takes them all.
    """
    return [pair for pair in pairs if not pair.name.startswith("corner ") or _kept(pair.name.removeprefix("corner "))]


def _kept(corner):
    return len(set(corner)) == 1 or corner == "01" * (len(corner) // 2) + "0" * (len(corner) % 2)


def by_turns(pairs, relation):
    """Leave out every second canary: one half under "replace", the other half under "add-remove".

    How a record is read does not depend on the relation, so that a test of both relations meets each kind of record
    once. What does depend on it is the sensitivity: the corners that attain it stay. `make audit` takes all.
    """
    left_out = 1 if relation == "add-remove" else 0
    return [pair for number, pair in enumerate(pairs) if number % 2 != left_out or pair.name.startswith(_IN_BOTH)]


_IN_BOTH = ("empty and", "one record that", "opposite corners")


def first_failure(fit, pairs, words):
    """Replay pair after pair until one fails in these words: a mutant need not be caught more than once.

    Returns the report that ends with that pair. If none fails so, an error says what was found instead.
    """
    reports, left = [], list(pairs)
    while left:
        reports.append(replay(fit, left, thorough=True, until_failure=True))
        if not reports[-1].passed and words in str(reports[-1]):
            return reports[-1]
        # One pair failed, but in other words: go on behind it. What is found of all pairs together is no pair.
        seen = {pair.name for pair in reports[-1].pairs}
        left = [pair for pair in left if pair.name not in seen]
    raise AssertionError(f"no pair failed with {words!r}:\n" + "\n".join(map(str, reports)))
