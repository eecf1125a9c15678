"""Faults on purpose: `logboat chaos`.

What a node breaks in itself (its network, disk, clock, a pause) it is asked for over HTTP, and it
ends by itself; what happens to processes happens to those of this machine. `plan.py` is the format
of `chaos run`, `roles.py` finds out whom it means, `running.py` carries it out and undoes it.
"""
