"""Families fitted to a released density by the least Hellinger distance."""
