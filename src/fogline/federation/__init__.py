"""Several holders of data, one release: each site writes its sketch, one merges, noise is added once.

`site_sketch` is a site's sketch and the sum of several, with its file; `masks` hides each site's counts from whoever
merges, by random numbers that cancel in the sum; `pair_keys` are the secrets of pairs of sites behind the masks.
"""

import os

if os.name != "posix":  # pragma: no cover
    raise ImportError("fogline.federation needs the file locks and forced writes of a POSIX system")

from fogline.federation.masks import PairKeys, new_keys
from fogline.federation.site_sketch import SiteSketch, merge_sites, release_file

__all__ = ["PairKeys", "SiteSketch", "merge_sites", "new_keys", "release_file"]
