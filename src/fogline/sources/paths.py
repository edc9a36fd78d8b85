"""Which files a path stands for, by their names alone: nothing is opened, and no numerical library is needed."""

from __future__ import annotations

import glob
from pathlib import Path

__all__ = ["ADDRESSES", "TEXT", "is_parquet", "is_text", "matching_files"]

ADDRESSES = ("postgres://", "postgresql://", "sqlite://")
"""How the address of a database begins."""

TEXT = (".csv", ".tsv", ".txt")
COMPRESSED = (".gz", ".zst")
PARQUET = (".parquet", ".pq")


def is_text(file: Path) -> bool:
    """Whether the name is that of a text file, perhaps compressed."""
    suffix = file.suffix.lower()
    return suffix in TEXT or (suffix in COMPRESSED and Path(file.stem).suffix.lower() in TEXT)


def is_parquet(file: Path) -> bool:
    """Whether the name is that of a Parquet file."""
    return file.suffix.lower() in PARQUET


def matching_files(path: str | Path) -> list[Path]:
    """Files that a path stands for, all of one kind: a file, a folder's, or those that match a pattern.

    A path that names a file is that file, whatever signs are in its name.
    """
    place = Path(path)
    if place.is_file():
        if not (is_text(place) or is_parquet(place)):
            raise ValueError(
                "path: expected a .csv, .tsv, .txt or .parquet file (text perhaps with .gz or .zst), "
                f"got {''.join(place.suffixes[-2:])!r}"
            )
        return [place]
    found = place.rglob("*") if place.is_dir() else map(Path, glob.iglob(str(path), recursive=True))
    files = sorted(
        file
        for file in found
        if file.is_file() and (is_text(file) or is_parquet(file)) and not file.name.startswith((".", "_"))
    )
    if not files:
        raise FileNotFoundError(f"path: there is no file {str(path)!r}")
    if len(set(map(is_parquet, files))) > 1:
        raise ValueError(f"path: {str(path)!r} has both text and Parquet files; name one kind by a pattern")
    return files
