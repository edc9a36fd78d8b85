"""The long audit, ``python -m fogline_research.audit_campaign``: everything certified is replayed, attacked, isolated."""
