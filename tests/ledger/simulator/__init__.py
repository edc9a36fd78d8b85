"""A seeded, deterministic simulator of the ledger: `python -m tests.ledger.simulator`; see docs/ledger-simulator.md.

`disk` is the disk, `sqlite` lets SQLite write to it, `machine` runs processes in turns and gives each its own copy of
the ledger's real code, `plan` draws from a seed what happens, `model` is what must hold, `run` carries a plan out.
"""
