"""Where records come from: arrays, frames, files, databases, clusters. An engine adds up exactly and keeps nothing."""

from fogline.sources.check import FileCheck, check
from fogline.sources.files import CountedFile, FileTable
from fogline.sources.reading import ReadingOptions
from fogline.sources.registry import table
from fogline.sources.tables import ReadFailed, Table

__all__ = [
    "CountedFile",
    "FileCheck",
    "FileTable",
    "ReadFailed",
    "ReadingOptions",
    "Table",
    "check",
    "table",
]
