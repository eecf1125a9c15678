"""Scope `cluster` of the simulation: whole nodes under a schedule, every event looked at.

`run` carries a schedule out and judges it, `inject` knows how to do each fault here, `watched`
looks into the nodes, `ledger` at their disks: which record stands where, who promised what. The
clients are those of `clients`, their history goes to the checkers. `controls` break the product
from outside, one rule at a time, to show that the scope sees it; `command` spreads seeds.
"""
