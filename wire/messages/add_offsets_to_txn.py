"""API key 25: AddOffsetsToTxn."""

from __future__ import annotations

from ..schema import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, versions="0-4", flexible="3+"):
    """Add a group's offsets to a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, versions="0-4", flexible="3+"):
    """Whether they were added."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
