"""Where records come from: arrays, frames, files, databases, clusters. An engine adds up exactly and keeps nothing."""

from fogline.engines.check import FileCheck, check
from fogline.engines.counted import CountedFile
from fogline.engines.feed import feed, sketch
from fogline.engines.files import FileTable
from fogline.engines.reading import ReadingOptions
from fogline.engines.registry import table
from fogline.engines.tables import ReadFailed, Table

__all__ = [
    "CountedFile",
    "FileCheck",
    "FileTable",
    "ReadFailed",
    "ReadingOptions",
    "Table",
    "check",
    "feed",
    "sketch",
    "table",
]
