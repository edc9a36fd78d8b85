"""The simulator has no doctests, and is imported once: it registers a file system with SQLite under its name."""

collect_ignore_glob = ["*.py"]
