"""Checks of privacy claims by experiment: replay, noise fit, distinguishing attacks."""
