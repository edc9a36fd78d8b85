"""Where records come from: arrays, frames, files, databases, clusters. An engine adds up exactly and keeps nothing."""

from fogline.engines.counted import CountedFile
from fogline.engines.feed import feed, sketch
from fogline.engines.files import FileTable
from fogline.engines.registry import table
from fogline.engines.tables import ReadFailed, Table

__all__ = ["CountedFile", "FileTable", "ReadFailed", "Table", "feed", "sketch", "table"]
