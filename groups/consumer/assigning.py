"""The assignment of one epoch while it is made; other members beat on meanwhile (KIP-1263)."""

from __future__ import annotations

from collections.abc import Mapping

from ...seam import frozen
from .assignors import Assignor, Subscriber
from .member import ConsumerMember, Subscribed
from .partition_sets import PartitionSet
from .records import ConsumerRecord, target_record
from .seen_topics import SeenTopics
from .slices import Effort, Sliced


@frozen
class Dealt:
    targets: Mapping[str, PartitionSet]
    """Of everybody who was a member when it began."""
    records: Mapping[str, ConsumerRecord]
    """Of those among them whose target is another now."""


class Assigning:
    """Of the group as it was when the assignment began. Who joined since has to wait for the next;
    what became of the others is noted (`gone`) and counts in the end."""

    def __init__(
        self,
        group_id: str,
        epoch: int,
        members: Mapping[str, ConsumerMember],
        targets: Mapping[str, PartitionSet],
        seen: SeenTopics,
        assignor: Assignor,
    ) -> None:
        self.epoch = epoch
        self._group_id = group_id
        self._gone: list[tuple[str, str | None]] = []
        self._steps = _deal(group_id, dict(members), dict(targets), seen, assignor)

    def gone(self, member_id: str, successor: str | None = None) -> None:
        """The member left, or another has its place now (KIP-345)."""
        self._gone.append((member_id, successor))

    def go_on(self) -> Dealt | None:
        """One slice. It is done when something is returned."""
        try:
            next(self._steps)
        except StopIteration as end:
            dealt: Dealt = end.value
            return self._as_it_is_now(dealt) if self._gone else dealt
        return None

    def _as_it_is_now(self, dealt: Dealt) -> Dealt:
        targets, records = dict(dealt.targets), dict(dealt.records)
        for member_id, successor in self._gone:
            target = targets.pop(member_id, None)
            records.pop(member_id, None)
            if successor is not None and target is not None:
                targets[successor] = target
                records[successor] = target_record(self._group_id, successor, target)
        return Dealt(targets, records)


def _deal(
    group_id: str,
    members: Mapping[str, ConsumerMember],
    before: Mapping[str, PartitionSet],
    seen: SeenTopics,
    assignor: Assignor,
) -> Sliced[Dealt]:
    effort = Effort()
    subscribers: dict[str, Subscriber] = {}
    alike: dict[tuple[str | None, Subscribed], Subscriber] = {}
    for name, member in members.items():
        subscription = member.subscription
        known = alike.get((member.instance_id, subscription))
        if known is None:
            known = Subscriber(member.instance_id, seen.ids_of(subscription))
            alike[member.instance_id, subscription] = known
        subscribers[name] = known
        if effort.spent(1):
            yield
    counts = seen.counts(dict.fromkeys(subscription for _, subscription in alike))
    targets = yield from assignor(subscribers, counts, before, effort)
    records: dict[str, ConsumerRecord] = {}
    for name, target in targets.items():
        old = before.get(name)
        changed = old is not target and old != target
        if changed:
            records[name] = target_record(group_id, name, target)
        if effort.spent(8 if changed else 1):
            yield
    return Dealt(targets, records)
