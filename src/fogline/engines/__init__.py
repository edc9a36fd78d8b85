"""Where records come from: arrays, frames, files. An engine adds exact counts to a sketch, keeps nothing."""

from fogline.engines.counted import CountedFile
from fogline.engines.feed import feed
from fogline.engines.files import FileTable

__all__ = ["CountedFile", "FileTable", "feed"]
