"""Carrying out calls on the instances of this node."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ApiError
from ..partition_ends import EARLIEST, LATEST
from .calls import Answer, Call, Operation, decode_call, encode_answer
from .formats import Format
from .group_link import CommittedOffset
from .instance import Instance
from .instances import Instances

log = logging.getLogger(__name__)

NOTHING = Answer()


async def answer_call(instances: Instances, data: bytes) -> bytes:
    """For another node."""
    try:
        return encode_answer(await perform(instances, decode_call(data)))
    except ApiError as error:
        return encode_answer(error)
    except Exception:
        log.exception("a call of another node failed")
        return encode_answer(
            ApiError(500, "internal error; the log of the instance's node says more")
        )


async def perform(instances: Instances, call: Call) -> Answer:
    """Raises ApiError; 40403 when the instance is not here."""
    if call.operation is Operation.HOLDS:
        if not instances.holds(call.group_id, call.name):
            raise instances.gone(call.group_id, call.name)
        return NOTHING
    if call.operation is Operation.DELETE:
        await instances.end(call.group_id, call.name)
        return NOTHING
    with instances.using(call.group_id, call.name) as instance:
        return await _perform(instance, call.operation, call.arguments)


async def _perform(instance: Instance, operation: Operation, given: Mapping[str, Any]) -> Answer:
    match operation:
        case Operation.SUBSCRIBE:
            await instance.subscribe(given["topics"], given["pattern"])
        case Operation.SUBSCRIPTION:
            return Answer(instance.subscription())
        case Operation.UNSUBSCRIBE:
            await instance.unsubscribe()
        case Operation.ASSIGN:
            instance.assign(_places(given["partitions"]))
        case Operation.ASSIGNMENT:
            rows = [_row(*where) for where in instance.assignment()]
            return Answer({"partitions": rows})
        case Operation.POLL:
            wanted = instance.config.format
            if given["format"] is not None:
                wanted = Format(given["format"])
            polled = await instance.poll(given["timeout_ms"], given["max_bytes"], wanted)
            return Answer({"format": str(wanted)}, polled.body, polled.delivery)
        case Operation.TAKE_BACK:
            instance.take_back(given["delivery"])
        case Operation.COMMIT:
            await instance.commit(_commits(given["offsets"]))
        case Operation.COMMITTED:
            return Answer({"offsets": await _committed(instance, given["partitions"])})
        case Operation.SEEK:
            await instance.seek(
                {(topic, partition): at for topic, partition, at in given["offsets"]}
            )
            await instance.seek_to(
                {(topic, partition): at for topic, partition, at in given["timestamps"]}
            )
        case Operation.SEEK_TO_BEGINNING:
            await instance.seek_to(dict.fromkeys(_places(given["partitions"]), EARLIEST))
        case Operation.SEEK_TO_END:
            await instance.seek_to(dict.fromkeys(_places(given["partitions"]), LATEST))
        case _:
            raise AssertionError(operation)
    return NOTHING


def _places(partitions: Sequence[Sequence[Any]]) -> list[tuple[str, int]]:
    return [(topic, partition) for topic, partition in partitions]


def _commits(
    offsets: Sequence[Sequence[Any]] | None,
) -> dict[tuple[str, int], CommittedOffset] | None:
    if offsets is None:
        return None
    return {
        (topic, partition): CommittedOffset(offset, metadata)
        for topic, partition, offset, metadata in offsets
    }


async def _committed(
    instance: Instance, partitions: Sequence[Sequence[Any]] | None
) -> list[dict[str, Any]]:
    found = await instance.committed(None if partitions is None else _places(partitions))
    return [
        {**_row(*where), "offset": one.offset, "metadata": one.metadata}
        for where, one in sorted(found.items())
    ]


def _row(topic: str, partition: int) -> dict[str, Any]:
    return {"topic": topic, "partition": partition}
