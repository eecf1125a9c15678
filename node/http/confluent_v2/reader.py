"""Reading many partitions at once: leaders are asked side by side, and the first that has records
ends the wait for all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ....metadata.image import NO_LEADER
from ....seam import frozen
from ....wire import ErrorCode
from ....wire.messages.fetch import FetchRequest, FetchResponse
from ..batches import FetchedRecords
from ..consume import decoded
from ..leaders import NOT_THERE_YET
from ..ports import AnswerLost, HttpNode, Unreachable
from .membership import Place

PAUSE_S = 0.1
"""Before leaders are asked again that were none, or could not be reached."""

GRACE_S = 5.0
"""Beyond the wait that a leader was asked for; then its answer is lost."""


@frozen
class Wanted:
    """One partition, and where to go on in it."""

    place: Place
    topic: str
    offset: int


@frozen
class Fetched:
    wanted: Wanted
    records: FetchedRecords


@frozen
class OutOfRange:
    wanted: Wanted


@frozen
class Reading:
    """How much to read, and when to be content with nothing."""

    max_bytes: int
    min_bytes: int
    read_committed: bool


async def read(
    node: HttpNode, wanted: Sequence[Wanted], reading: Reading
) -> list[Fetched | OutOfRange]:
    """What is there now, in the order of `wanted`.

    Raises ApiError when what is stored cannot be decoded.
    """
    found = await _ask_leaders(node, wanted, reading, 0)
    order = {one.place: number for number, one in enumerate(wanted)}
    return sorted(found, key=lambda one: order[one.wanted.place])


async def until_there_is_more(
    node: HttpNode, wanted: Sequence[Wanted], reading: Reading, until: float
) -> None:
    """Returns when a leader has something for `read`, or at `until` (loop time).

    A wait may last for a minute, and there may be a thousand of them: each asks for a byte, which
    brings one batch, and lets it go.
    """
    loop = asyncio.get_running_loop()
    peek = Reading(1, reading.min_bytes, reading.read_committed)
    while (left := until - loop.time()) > 0:
        if await _ask_leaders(node, wanted, peek, max(1, int(left * 1000))):
            return
        # Somebody had nothing to wait with; the others are asked again, too.
        await asyncio.sleep(min(PAUSE_S, max(0.0, until - loop.time())))


async def _ask_leaders(
    node: HttpNode, wanted: Sequence[Wanted], reading: Reading, wait_ms: int
) -> list[Fetched | OutOfRange]:
    by_leader: dict[int, list[Wanted]] = {}
    image = node.image()
    for one in wanted:
        partition = image.partition(one.topic, one.place[1])
        if partition is not None and partition.leader != NO_LEADER:
            by_leader.setdefault(partition.leader, []).append(one)
    if not by_leader:
        return []
    asked = [
        asyncio.ensure_future(_ask(node, leader, own, reading, wait_ms))
        for leader, own in by_leader.items()
    ]
    try:
        found: list[Fetched | OutOfRange] = []
        waiting = set(asked)
        while waiting and not found:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            found += [one for task in asked if task in done for one in task.result()]
        return found
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def _ask(
    node: HttpNode, leader: int, wanted: Sequence[Wanted], reading: Reading, wait_ms: int
) -> list[Fetched | OutOfRange]:
    """Empty also when the leader is none, or cannot be asked: it is asked again."""
    topics: dict[tuple[str, object], FetchRequest.FetchTopic] = {}
    for one in wanted:
        topic = topics.setdefault(
            (one.topic, one.place[0]),
            FetchRequest.FetchTopic(topic=one.topic, topic_id=one.place[0], partitions=[]),
        )
        topic.partitions.append(
            FetchRequest.FetchTopic.FetchPartition(
                partition=one.place[1],
                fetch_offset=one.offset,
                partition_max_bytes=reading.max_bytes,
            )
        )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=reading.min_bytes,
        max_bytes=reading.max_bytes,
        isolation_level=int(reading.read_committed),
        topics=list(topics.values()),
    )
    deadline = asyncio.get_running_loop().time() + wait_ms / 1000 + GRACE_S
    try:
        response = await node.fetch(leader, request, deadline)
    except (Unreachable, AnswerLost):
        return []
    if response.error_code:
        return []
    return await _found(response, {one.place: one for one in wanted}, node)


async def _found(
    response: FetchResponse, wanted: Mapping[Place, Wanted], node: HttpNode
) -> list[Fetched | OutOfRange]:
    found: list[Fetched | OutOfRange] = []
    topics = node.image().topics
    for topic in response.responses:
        topic_id = topic.topic_id
        if not topic_id.int and topic.topic in topics:
            topic_id = topics[topic.topic].topic_id
        for answer in topic.partitions:
            one = wanted.get((topic_id, answer.partition_index))
            if one is None or answer.error_code in NOT_THERE_YET:
                continue
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                found.append(OutOfRange(one))
            elif not answer.error_code:
                records = await decoded(answer.records, one.offset)
                if records.records or records.next_offset > one.offset:
                    found.append(Fetched(one, records))
    return found
