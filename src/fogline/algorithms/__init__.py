"""Adaptive algorithms: they ask the curator, decide on what was released, and ask again. They never see a record."""
