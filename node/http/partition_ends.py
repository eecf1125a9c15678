"""Where partitions begin and end, asked of their leaders side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from ...seam import frozen
from ...wire.messages.list_offsets import ListOffsetsRequest
from .errors import ApiError, from_kafka
from .leaders import Leaders
from .ports import HttpNode

Place = tuple[str, int]
"""(topic, partition)."""

EARLIEST, LATEST = -2, -1
AT_ONCE = 32
"""Partitions asked about at the same time."""


@frozen
class Ends:
    log_start_offset: int
    end_offset: int
    """What consumers may read up to: the high watermark."""
    at_timestamp: int | None = None
    """First offset at or after the asked time; the end when nothing is that young."""


async def partition_ends(
    node: HttpNode, leaders: Leaders, places: Iterable[Place], *, timestamp_ms: int | None = None
) -> dict[Place, Ends]:
    """Of the partitions that exist and have a leader; the others are left out."""
    room = asyncio.Semaphore(AT_ONCE)
    found: dict[Place, Ends] = {}
    at = partial(offset_at, node, leaders, give_up_at=leaders.give_up_at())

    async def ask(place: Place) -> None:
        async with room:
            try:
                start, end = await at(place, EARLIEST), await at(place, LATEST)
                young = None if timestamp_ms is None else await at(place, timestamp_ms)
            except ApiError:
                return
        found[place] = Ends(start, end, end if young == -1 else young)

    async with asyncio.TaskGroup() as tasks:
        for place in places:
            tasks.create_task(ask(place))
    return found


async def offset_at(
    node: HttpNode,
    leaders: Leaders,
    place: Place,
    timestamp: int,
    *,
    give_up_at: float | None = None,
) -> int:
    """The first offset at or after a time, or `EARLIEST` or `LATEST`; -1 when nothing is that
    young. Raises ApiError."""
    give_up_at = leaders.give_up_at() if give_up_at is None else give_up_at

    async def read(leader: int) -> int:
        answer = await node.list_offsets(leader, _request(place, timestamp), give_up_at)
        part = answer.topics[0].partitions[0]
        if part.error_code:
            raise from_kafka(part.error_code)
        return part.offset

    return await leaders.reading(*place, read, give_up_at)


def _request(place: Place, timestamp: int) -> ListOffsetsRequest:
    topic, partition = place
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
