"""Canary pairs for tests: fewer of those that differ by a reflection of the box only."""


def few_corners(pairs):
    """Leave out all corners of a box of many columns but three: the two ends of its diagonal and one in between.

    Of 64 canaries in five columns 32 are corners. Sums, balls and boxes treat all columns alike, so that corners differ
    by a reflection; `make audit` takes them all.
    """
    return [pair for pair in pairs if not pair.name.startswith("corner ") or _kept(pair.name.removeprefix("corner "))]


def _kept(corner):
    return len(set(corner)) == 1 or corner == "01" * (len(corner) // 2) + "0" * (len(corner) % 2)
