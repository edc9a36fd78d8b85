"""Branches of modal regression, read from a released density."""
