"""All forms in which hostile tables are written, and the sources that are tried on them."""

from fogline_research.audit_campaign.forms.base import Form, Opened, Place, is_available
from fogline_research.audit_campaign.forms.sources import SOURCES, Source, source_named

__all__ = ["SOURCES", "Form", "Opened", "Place", "Source", "is_available", "source_named"]
