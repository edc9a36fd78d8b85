"""Pack the built site into one archive, from which ``fogline docs`` serves it.

    python tools/pack_site.py build/site src/fogline/cli/site.zip

The archive has no time and no order of its own: the same pages give the same bytes. What a browser never asks for on
this machine is left out: maps of minified scripts, word lists of other languages, lists for search engines.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

MOST_BYTES = 6_000_000
"""A site that is larger should not go into the wheel unnoticed."""

TIME = (1980, 1, 1, 0, 0, 0)
LEFT_OUT = ("assets/javascripts/lunr/", "sitemap.xml", "objects.inv")


def is_served(name: str) -> bool:
    """Whether a file of the site goes into the archive.

    Examples
    --------
    >>> is_served("modes.html"), is_served("assets/javascripts/bundle.min.js.map"), is_served("sitemap.xml.gz")
    (True, False, False)
    """
    return not name.endswith(".map") and not name.startswith(LEFT_OUT)


def pack(site: Path, out: Path) -> int:
    """Write the archive, and return its size in bytes.

    Parameters
    ----------
    site : Path
        Folder of the built site.
    out : Path
        The archive; it takes the place of an older one once it is complete.
    """
    if not (site / "index.html").is_file():
        raise ValueError(f"{site} holds no built site")
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    fresh = out.with_name(f"{out.name}.new")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in filter(is_served, names):
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, (site / name).read_bytes())
    fresh.replace(out)
    return out.stat().st_size


def main(words: list[str]) -> int:
    """Pack, and fail if the archive is too large."""
    size = pack(Path(words[0]), Path(words[1]))
    print(f"{words[1]}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        print(f"more than {MOST_BYTES / 1e6:.0f} MB: leave something out", file=sys.stderr)
    return int(size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
