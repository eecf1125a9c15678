"""Consumer groups: who reads which partition, and how far each group has read.

A group lives on the leader of one partition of `__consumer_offsets`; its state is what that
partition's records say, replayed by whoever leads it next. A commit is answered only when its
record is replicated, so a coordinator's death loses no answered commit.

The rules are in plain classes (`classic_group.py`, `consumer/`, `offsets.py`); the coordinator is
the shell that keeps timers, waits for the log and answers. What the log is comes in as an
`OffsetStore`.
"""

from .consumer.settings import ConsumerGroupSettings
from .coordinator import GroupCoordinator
from .settings import ClientContext, GroupSettings
from .store import OFFSETS_TOPIC, Appended, LostRecords, OffsetStore, partition_for

__all__ = [
    "OFFSETS_TOPIC",
    "Appended",
    "ClientContext",
    "ConsumerGroupSettings",
    "GroupCoordinator",
    "GroupSettings",
    "LostRecords",
    "OffsetStore",
    "partition_for",
]
