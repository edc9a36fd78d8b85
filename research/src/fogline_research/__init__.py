"""The laboratory of fogline: the papers' algorithms as printed, baselines, reruns of tables, and the long audit.

Nothing here is needed to publish a release, and little of it is private. It is a distribution of its own
(``fogline-research``), so that ``pip install fogline`` brings none of it; ``fogline reproduce`` comes with it.
"""

__version__ = "0.2.0"
