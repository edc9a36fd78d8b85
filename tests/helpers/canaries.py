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


def first_failure(fit, pairs, words):
    """Replay pair after pair until one fails in these words: a mutant need not be caught more than once.

    Returns the report of that pair. If none fails so, an error says what was found instead.
    """
    reports = []
    for pair in pairs:
        reports.append(replay(fit, [pair]))
        if not reports[-1].passed and words in str(reports[-1]):
            return reports[-1]
    raise AssertionError(f"no pair failed with {words!r}:\n" + "\n".join(map(str, reports)))
