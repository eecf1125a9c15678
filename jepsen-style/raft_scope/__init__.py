"""Scope `raft` of the simulation: the quorum's log under every fault, its invariants watched.

`shape` draws what kind of run a seed is, `faults` hurts it, `watched_quorum` and `watch` look at
every event, `run` puts them together and judges, `command` spreads seeds over processes. `controls`
are quorums without one guard or without any: they show that the scope can fail.
"""
