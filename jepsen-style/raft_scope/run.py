"""One seed from start to verdict."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..simulation import World
from ..simulation.dice import stream
from ..simulation.errors import HostFailed, NotReached, WatchdogExpired
from ..simulation.scope import SeedResult
from .controls import guards_of, ticking
from .episodes import Episodes
from .faults import Faults
from .shape import shape_of
from .watched_quorum import WatchedQuorum

HURT_S = 22.0
"""Simulated seconds of faults; what follows brings every run above `LEAST_SIMULATED_S`."""
PINNED_FIRST = 0.75
"""Share of the seeds whose voters are pinned before any fault; in the others faults begin when all
voters have met, and only what is replaced is pinned."""
SETTLE_S = 20.0
"""After the last heal a proposal must be applied within this."""
LOOK_S = 0.1

LEAST_SIMULATED_S = 30.0
LEAST_ACKNOWLEDGED = 200
LEAST_FAULTS = 6
LEAST_KINDS = 3
LEAST_LEADERS = 2
"""Terms with a leader: one change of leader at least."""

LEAST_TRANSFERRED = 1

PROCESSOR_S = 60.0
"""Seconds of processor time for a run; a control may spin for ever (finding E)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What, besides the seed, makes the run."""

    nodes: int = 3
    bare: bool = False
    without: str | None = None
    compaction: int | None = None
    transfers: bool = False
    """Leaders also hand over, in the middle of everything else."""

    def seeds(self) -> None:
        """Any."""

    def run(self, seed: int) -> SeedResult:
        return run_seed(seed, self)

    def arguments(self, seed: int) -> str:
        """The options of the command that repeat it."""
        said = [f"--seeds {seed}:{seed + 1} --nodes {self.nodes}"]
        if self.bare:
            said.append("--bare")
        if self.without is not None:
            said.append(f"--without {self.without}")
        if self.compaction is not None:
            said.append(f"--compaction {self.compaction}")
        if self.transfers:
            said.append("--transfers")
        return " ".join(said)


def run_seed(seed: int, plan: Plan) -> SeedResult:
    """Run it; never raises for what the quorum does."""
    result = SeedResult(seed)
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with World(seed, processor_limit_s=PROCESSOR_S) as world:
            _run(world, plan, result)
            result.digest = world.trace.digest()
    except WatchdogExpired as error:
        result.stuck.append(f"spins: {error}")
    finally:
        logging.disable(level)
    return result


def _run(world: World, plan: Plan, result: SeedResult) -> None:
    shape = shape_of(world.seed, compaction=plan.compaction)
    guards = ticking(guards_of(bare=plan.bare, without=plan.without))
    quorum = WatchedQuorum(world, nodes=plan.nodes, shape=shape, guards=guards)
    faults = Faults(quorum, stream(world.seed, "faults"))
    try:
        _hurt_and_settle(world, plan, quorum, faults)
    except NotReached as error:
        result.stuck.append(f"stuck: {str(error)[:200]}")
    except HostFailed as error:
        result.stuck.append(f"failed: {str(error)[:200]}")
    else:
        result.violations += _judge(quorum)
        result.stuck += _floors(world, plan, quorum, faults)
    finally:
        result.acknowledged = len(quorum.acknowledged)
        result.faults = sum(faults.counts.values())
        result.simulated_s = world.now
        result.violations += [*quorum.violations, *quorum.endings.unexplained]


def _hurt_and_settle(world: World, plan: Plan, quorum: WatchedQuorum, faults: Faults) -> None:
    quorum.start()
    quorum.await_leader(within=SETTLE_S)
    pinned = pinned_first(world.seed)
    (_pin_everybody if pinned else _let_everybody_join)(world, quorum)
    quorum.propose_in_bursts(stream(world.seed, "proposals"))
    if plan.transfers:
        # With dice of their own: without transfers a seed is what it was.
        quorum.transfer_now_and_again(stream(world.seed, "transfers"))
    episodes = Episodes(quorum, faults, stream(world.seed, "schedule"))
    end = world.now + HURT_S
    if not pinned:
        episodes.play_unpinned()
    while world.now < end or not _hurt_enough(quorum, faults):
        episodes.play()
    episodes.play_last()
    _settle(world, quorum, faults)


def _hurt_enough(quorum: WatchedQuorum, faults: Faults) -> bool:
    return (
        sum(faults.counts.values()) >= LEAST_FAULTS
        and len(faults.counts) >= LEAST_KINDS
        and len(quorum.leader_of_term) >= LEAST_LEADERS
    )


def pinned_first(seed: int) -> bool:
    """Whether the voters are pinned before any fault."""
    return stream(seed, "pins").random() < PINNED_FIRST


def _let_everybody_join(world: World, quorum: WatchedQuorum) -> None:
    """Whoever missed the first meeting is pinned: no majority is sure without it (RULES B3)."""
    while outside := [number for number in quorum.hosts if not quorum.joined(number)]:
        if world.now > SETTLE_S:
            raise NotReached(f"{outside} do not take part")
        for number in outside:
            quorum.pin(number)
        world.run(3 * LOOK_S)


def _pin_everybody(world: World, quorum: WatchedQuorum) -> None:
    for number in quorum.hosts:
        command = quorum.pin(number)
        asked_at = world.now
        while command not in quorum.acknowledged:
            if world.now > SETTLE_S:
                raise NotReached("the first commands are not applied")
            if world.now > asked_at + 3:
                command, asked_at = quorum.pin(number), world.now
            world.run(LOOK_S)


def _settle(world: World, quorum: WatchedQuorum, faults: Faults) -> None:
    """A proposal made after the last heal is applied, and all voters come to hold the same."""
    end = world.now + SETTLE_S
    enough = max(LEAST_ACKNOWLEDGED, len(quorum.acknowledged) + 20)
    while len(quorum.acknowledged) < enough or faults.unpinned is not None:
        if world.now > end:
            raise NotReached("no proposal is applied after the last heal")
        world.run(LOOK_S)
    world.run(max(0.0, LEAST_SIMULATED_S - world.now))
    quorum.idle = True
    while not quorum.settled():
        if world.now > end + SETTLE_S:
            raise NotReached("the voters do not come to hold the same")
        world.run(LOOK_S)


def _judge(quorum: WatchedQuorum) -> list[str]:
    lost = [f"lost: {command!r} was acknowledged" for command in quorum.missing()]
    risen = [f"risen: {command!r} was refused for good" for command in quorum.resurrected()]
    return [*lost, *risen]


def _floors(world: World, plan: Plan, quorum: WatchedQuorum, faults: Faults) -> list[str]:
    reached = (
        (world.now, LEAST_SIMULATED_S, "simulated seconds"),
        (len(quorum.acknowledged), LEAST_ACKNOWLEDGED, "acknowledged commands"),
        (sum(faults.counts.values()), LEAST_FAULTS, "faults"),
        (len(faults.counts), LEAST_KINDS, "kinds of faults"),
        (len(quorum.leader_of_term), LEAST_LEADERS, "terms with a leader"),
        (quorum.transferred, LEAST_TRANSFERRED if plan.transfers else 0, "transfers"),
    )
    return [
        f"floor: {value:g} {what}, at least {floor:g} are needed"
        for value, floor, what in reached
        if value < floor
    ]
