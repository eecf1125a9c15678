"""Where replicas go: striped over racks, in the spirit of Kafka's StripedReplicaPlacer.

Computed before the command is made, with the chance it is given; the command carries the result
(RULES A1). Goals, in this order: no two replicas of a partition on one broker; leaders only on
living brokers and spread evenly; replicas of a partition on as many racks as possible; every broker
about as many replicas as any other of its rack. Fenced brokers take replicas only when living ones
are too few, and never as leader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from ..wire import ErrorCode
from .image import BrokerImage
from .steps import DECISION, Steps


class PlacementError(Exception):
    """The assignment is impossible or illegal."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def place_replicas(
    brokers: Mapping[int, BrokerImage],
    *,
    partitions: int,
    replication_factor: int,
    rng: Random,
) -> Steps[tuple[tuple[int, ...], ...]]:
    """Replicas for each of `partitions` new partitions. Raises PlacementError."""
    usable = [broker for _, broker in sorted(brokers.items()) if not broker.in_controlled_shutdown]
    if not any(not broker.fenced for broker in usable):
        raise PlacementError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced."
        )
    if replication_factor > len(usable):
        raise PlacementError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(usable)} broker(s) are registered.",
        )
    living = sum(1 for broker in usable if not broker.fenced)
    stripes = _Stripes(usable, rng)
    placed: list[tuple[int, ...]] = []
    for number in range(partitions):
        if number and number % living == 0:
            # Every living broker has led once: mix again, so that followers do not repeat.
            stripes = _Stripes(usable, rng)
        placed.append(stripes.next(replication_factor))
        yield DECISION
    return tuple(placed)


@dataclass(slots=True)
class _Rack:
    living: list[int]
    fenced: list[int]


class _Stripes:
    """One shuffled round: each living broker leads once before any leads again."""

    def __init__(self, brokers: Sequence[BrokerImage], rng: Random) -> None:
        racks: dict[str, _Rack] = {}
        for broker in brokers:
            rack = racks.setdefault(broker.rack or "", _Rack([], []))
            (rack.fenced if broker.fenced else rack.living).append(broker.node_id)
        self._racks = [racks[name] for name in sorted(racks)]
        rng.shuffle(self._racks)
        for rack in self._racks:
            rng.shuffle(rack.living)
            rng.shuffle(rack.fenced)
        # Leaders: one of each rack in turn, so that neighbours in the order differ in rack.
        self._leaders = _interleave([rack.living for rack in self._racks])
        self._round = 0

    def next(self, replication_factor: int) -> tuple[int, ...]:
        turn = self._round
        self._round += 1
        leader = self._leaders[turn % len(self._leaders)]
        home = next(i for i, rack in enumerate(self._racks) if leader in rack.living)
        # The other racks come first, starting with the next one; the leader's own rack last.
        count = len(self._racks)
        others = [self._racks[(home + step) % count] for step in range(1, count + 1)]
        living = _interleave([_rotated(rack.living, turn) for rack in others])
        fenced = _interleave([_rotated(rack.fenced, turn) for rack in others])
        followers = [broker for broker in (*living, *fenced) if broker != leader]
        return (leader, *followers[: replication_factor - 1])


def _rotated(items: list[int], by: int) -> list[int]:
    if not items:
        return items
    by %= len(items)
    return items[by:] + items[:by]


def _interleave(lists: Sequence[list[int]]) -> list[int]:
    longest = max((len(items) for items in lists), default=0)
    return [items[i] for i in range(longest) for items in lists if i < len(items)]


def check_assignment(
    assignments: Sequence[Sequence[int]], brokers: Mapping[int, BrokerImage]
) -> tuple[tuple[int, ...], ...]:
    """A manual assignment, by partition number. Raises PlacementError with Kafka's sentences."""

    def refuse(message: str) -> PlacementError:
        return PlacementError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)

    for replicas in assignments:
        if not replicas:
            raise refuse("The manual partition assignment includes an empty replica list.")
        for position, broker in enumerate(replicas):
            if broker in replicas[:position]:
                raise refuse(
                    f"The manual partition assignment includes the broker {broker} more than once."
                )
            if broker not in brokers:
                raise refuse(
                    f"The manual partition assignment includes broker {broker}, but no such broker "
                    f"is registered."
                )
        if len(replicas) != len(assignments[0]):
            raise refuse(
                f"The manual partition assignment includes a partition with {len(replicas)} "
                f"replica(s), but this is not consistent with previous partitions, which have "
                f"{len(assignments[0])} replica(s)."
            )
    return tuple(tuple(replicas) for replicas in assignments)
