"""All forms in which hostile tables are written, and the sources that are tried on them."""

from fogline.audit.forms.base import Form, Opened, Place, is_available
from fogline.audit.forms.sources import SOURCES, Source, source_named

__all__ = ["SOURCES", "Form", "Opened", "Place", "Source", "is_available", "source_named"]
