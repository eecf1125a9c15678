"""The suite that tries to break Logboat: simulation, faults, histories, checkers.

`simulation` runs whole nodes of a cluster in one process on virtual time; a seed replays a run
exactly. Nothing in the product imports this part.
"""
