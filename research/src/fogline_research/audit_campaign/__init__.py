"""The long audit: replays, attacks and isolation of everything certified; ``python -m fogline_research.audit_campaign``."""
