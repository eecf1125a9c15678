"""Schedules from Hypothesis, which makes a failing one smaller by itself.

For tests: nobody else imports this, and Hypothesis is no dependency of what is shipped. Fewer
faults, earlier ones, shorter ones and milder options count as simpler. Within the guarantee as
those from seeds are: at most one disk is damaged, always the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from .kinds import KINDS
from .options import VALUES
from .quests import STRIKE_ALL
from .schedule import CONSUMER, Consumers, Fault, Group, Producers, Schedule, Target, Topic

TOPIC = Topic("orders", 2, 3, {"min.insync.replicas": "2"})
GROUP = Group("readers", TOPIC.name, protocol=CONSUMER)
"""Of schedules that strike its coordinator."""
STEP_MS = 200
"""Times are multiples of it: a smaller step would only make shrinking longer."""

SIMULATED = tuple(name for name, kind in KINDS.items() if kind.simulated)

DAMAGEABLE = 1
"""The node."""


@cache  # Made once for each kind, not once for each draw.
def faults(kind: str, *, hurt_ms: int) -> st.SearchStrategy[Fault]:
    """Of this kind, healed by `hurt_ms`."""
    steps = hurt_ms // (2 * STEP_MS)
    options = {name: st.sampled_from(values) for name, values in VALUES.get(kind, {}).items()}
    return st.builds(
        Fault,
        at_ms=st.integers(0, steps).map(lambda step: step * STEP_MS),
        kind=st.just(kind),
        target=_targets(kind),
        for_ms=st.integers(1, steps).map(lambda step: step * STEP_MS),
        options=st.fixed_dictionaries({}, optional=options),
    )


def _targets(kind: str) -> st.SearchStrategy[Target]:
    if kind in STRIKE_ALL:
        return st.just(Target("all"))
    if KINDS[kind].damages:
        return st.just(Target("node", number=DAMAGEABLE))
    partitions = st.integers(0, TOPIC.partitions - 1)
    return st.one_of(
        st.builds(Target, st.just("leader"), st.just(TOPIC.name), partitions),
        st.builds(Target, st.just("follower"), st.just(TOPIC.name), partitions, st.integers(0, 1)),
        st.just(Target("controller")),
        st.just(Target("coordinator", group=GROUP.name)),
    )


def schedules(
    kinds: Sequence[str] = SIMULATED,
    *,
    most: int = 8,
    hurt_ms: int = 2_000,
    seed: int = 1,
) -> st.SearchStrategy[Schedule]:
    """Up to `most` faults of these kinds on three nodes. The seed of the world is fixed: a seed
    does not shrink."""
    fault = st.one_of([faults(kind, hurt_ms=hurt_ms) for kind in kinds])
    # A tuple of places, most of them filled: a list would be short most of the time.
    places = st.tuples(*[st.none() | fault for _ in range(most)])
    return places.map(lambda drawn: _schedule([f for f in drawn if f], hurt_ms, seed))


def _schedule(drawn: Sequence[Fault], hurt_ms: int, seed: int) -> Schedule:
    groups = [GROUP] if any(fault.target.role == "coordinator" for fault in drawn) else []
    return Schedule(
        seed=seed,
        nodes=3,
        topics=(TOPIC,),
        producers=(Producers(TOPIC.name, batch_records=2),),
        consumers=(Consumers(TOPIC.name),),
        faults=tuple(sorted(drawn, key=lambda fault: fault.at_ms)),
        groups=tuple(groups),
        settings={"min.insync.replicas": "2", **GROUP.settings},
        hurt_ms=hurt_ms,
    )
