"""Checkers: pure functions from a history to a verdict, with the reason and the evidence.

`linearizability` is the general search over any sequential model; `polynomial` decides the
frequent special cases at any length and hands out a certificate; `transactions` looks for
cycles; `data` holds the models a fold decides; `kafka` is the suite for partitioned logs.
"""

from .verdict import Anomaly, Status, Verdict

__all__ = ["Anomaly", "Status", "Verdict"]
