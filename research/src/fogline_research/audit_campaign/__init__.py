"""The long audit, ``python -m fogline_research.audit_campaign``: all that is certified is replayed and attacked."""
