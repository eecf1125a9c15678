"""Bugs that only a message shows which comes late: after one that was sent behind it, or after the
role has changed for which it was asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...metadata.apply import leaders as apply_leaders
from ...partitions.fetcher import LeaderFetcher
from ...partitions.follower import FollowerState
from ...partitions.partition import Partition
from ...wire import ErrorCode
from .replacing import replaced


def _stale_isr_change() -> contextlib.AbstractContextManager[None]:
    """A change of the ISR is carried out although the partition has changed since it was computed
    (RULES D2): who had to leave in between is in sync again."""

    def put(original: Callable[..., ErrorCode]) -> Callable[..., ErrorCode]:
        def refusal(draft: Any, proposer: int, partition: Any, change: Any) -> ErrorCode:
            change = replace(change, partition_epoch=partition.partition_epoch)
            return original(draft, proposer, partition, change)

        return refusal

    return replaced(apply_leaders, "_refusal", put)


@contextlib.contextmanager
def _late_fetch_answer() -> Iterator[None]:
    """What a leader has sent is appended, whoever is followed by then (RULES D6). It must go on
    where the log ends; after a cut that may be so although the log is another one."""

    def append_fetched(_: Callable[..., bool]) -> Callable[..., bool]:
        def append(self: Partition, state: FollowerState, records: Any, **rest: int) -> bool:
            watermark = rest["leader_high_watermark"]
            if records is not None and len(records):
                self.log.append_as_follower(records, committed=watermark)
            state.on_leader_watermark(watermark, synced_offset=self.log.synced_offset)
            return True

        return append

    def is_followed(_: Callable[..., bool]) -> Callable[..., bool]:
        return lambda self, followed: True

    with (
        replaced(Partition, "append_fetched", append_fetched),
        replaced(LeaderFetcher, "_is_followed", is_followed),
    ):
        yield


LATE_BUGS: Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "stale-isr-change": _stale_isr_change,
    "late-fetch-answer": _late_fetch_answer,
}
"""By name."""
