"""The posterior of a density given released counts: a fit, draws, and all that is read from them with errors."""
