"""Repeated requests of one broker get the stored result (RULES A5).

One command per broker and kind is in flight at a time, so remembering the last one is enough: a
smaller sequence is a request that its sender has given up long ago, and whether it happened is not
known any more. A new broker epoch clears what was remembered (`brokers.register_broker`).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import cast

from ...wire import ErrorCode
from ..commands import CreateTopics, DeleteTopics
from ..image import ClusterImage
from ..levels import level_of
from ..packing import packer_of
from ..results import Result, refuse
from .incarnations import stale_incarnation

_RESULT = MappingProxyType({1: packer_of(Result, 1)})
"""By level of `logboat.version`."""


def remembered(image: ClusterImage, command: CreateTopics | DeleteTopics) -> Result | None:
    """What this command must answer without being applied; None when it is a new one."""
    origin = command.origin
    assert origin is not None
    stale = stale_incarnation(image, origin.broker_id, origin.broker_epoch)
    if stale is not None:
        return stale
    stored = image.dedupe.get((origin.broker_id, type(command).__name__))
    if stored is None or stored[0] != origin.broker_epoch or stored[1] < origin.sequence:
        return None
    if stored[1] > origin.sequence:
        return refuse(
            ErrorCode.REQUEST_TIMED_OUT,
            f"request {origin.sequence} of broker {origin.broker_id} is older than the last one "
            f"({stored[1]}): whether it happened is not known any more",
        )
    return cast(Result, _RESULT[level_of(image)].decode(stored[2]))


def remember(
    image: ClusterImage, command: CreateTopics | DeleteTopics, result: Result
) -> ClusterImage:
    origin = command.origin
    assert origin is not None
    stored = (origin.broker_epoch, origin.sequence, _RESULT[level_of(image)].encode(result))
    key = (origin.broker_id, type(command).__name__)
    return replace(image, dedupe=MappingProxyType({**image.dedupe, key: stored}))


def forget(image: ClusterImage, broker_id: int) -> ClusterImage:
    """A new incarnation repeats nothing of the old one."""
    kept = {key: stored for key, stored in image.dedupe.items() if key[0] != broker_id}
    if len(kept) == len(image.dedupe):
        return image
    return replace(image, dedupe=MappingProxyType(kept))
