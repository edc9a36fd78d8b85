"""Where records come from: arrays, frames, files, databases, clusters. Each adds up exactly and keeps nothing."""

from typing import TYPE_CHECKING

from fogline._lazy import lazy_names

if TYPE_CHECKING:
    from fogline.sources.files import CountedFile, FileTable
    from fogline.sources.reading import ReadingOptions
    from fogline.sources.registry import table
    from fogline.sources.tables import ReadFailed, Source

__all__ = [
    "CountedFile",
    "FileTable",
    "ReadFailed",
    "ReadingOptions",
    "Source",
    "table",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CountedFile": "files",
        "FileTable": "files",
        "ReadFailed": "tables",
        "ReadingOptions": "reading",
        "Source": "tables",
        "table": "registry",
    },
)
