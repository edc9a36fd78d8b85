"""Modes of a released density: peaks, their significance, and where they are."""
