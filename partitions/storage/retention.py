"""Which segments a log has outlived (retention.ms, retention.bytes, DeleteRecords). Pure.

As Kafka does it: always the oldest first, whole segments, only such that lie wholly below the high
watermark; the last one only when it holds something, and then a new one is begun before it goes.
A reason stops at the first segment that it does not doom: one record from the future therefore
keeps its segment and those behind it from going by age (case R09), not from going by size or by
DeleteRecords.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...seam import frozen
from .log_config import LogConfig


class Aging(Protocol):
    """What is asked of a segment."""

    @property
    def base_offset(self) -> int: ...

    @property
    def next_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def newest_ms(self) -> int:
        """Its largest timestamp; where records bear none, when it was last written."""
        ...


@frozen
class Outlived:
    """The first `count` segments are to be deleted."""

    count: int
    below_start: int
    """Of these: because records below the log start are deleted anyway."""
    by_size: int
    by_age: int
    blocked_by_future: int | None
    """Base offset of a segment that cannot go by age because its newest record lies in the future,
    although the log has a limit of age."""


def outlived(
    segments: Sequence[Aging],
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
) -> Outlived:
    deletable = _deletable(segments, high_watermark)

    def more(count: int, doomed: Callable[[Aging], bool]) -> int:
        while count < deletable and doomed(segments[count]):
            count += 1
        return count

    below_start = more(0, lambda segment: segment.next_offset <= log_start_offset)
    if below_start == len(segments):
        below_start -= 1  # Hidden whole, the last one still grows; only age or size end it.
    if not config.delete:
        return Outlived(below_start, below_start, 0, 0, None)

    excess = sum(segment.size for segment in segments[below_start:]) - config.retention_bytes

    def too_much(segment: Aging) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    sized = below_start if config.retention_bytes < 0 else more(below_start, too_much)
    if config.retention_ms < 0:
        return Outlived(sized, below_start, sized - below_start, 0, None)
    aged = more(sized, lambda segment: now_ms - segment.newest_ms() > config.retention_ms)
    blocker = segments[aged] if aged < deletable else None
    return Outlived(
        count=aged,
        below_start=below_start,
        by_size=sized - below_start,
        by_age=aged - sized,
        blocked_by_future=(
            blocker.base_offset if blocker is not None and blocker.newest_ms() > now_ms else None
        ),
    )


def _deletable(segments: Sequence[Aging], high_watermark: int) -> int:
    """How many lie wholly below the watermark; an empty last one never goes."""
    count = sum(segment.next_offset <= high_watermark for segment in segments)
    if count == len(segments) and segments[-1].size == 0:
        count -= 1
    return count
