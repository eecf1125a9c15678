"""Control batches: one record that the broker writes for itself, invisible to consumers."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct as Format

from ..control_records.end_txn_marker import EndTxnMarker
from .batch_header import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from .errors import InvalidBatch
from .record import Record, encode_batch


class ControlType(IntEnum):
    """The second half of a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_type(record: Record) -> ControlType | None:
    """What kind of control it is; `None` for one of the future, which readers skip.

    Raises:
        InvalidBatch: its key is too short.
    """
    if record.key is None or len(record.key) < _KEY.size:
        raise InvalidBatch("a control record without a type")
    _version, number = _KEY.unpack_from(record.key)
    try:
        return ControlType(number)
    except ValueError:
        return None


def encode_control_batch(
    kind: ControlType,
    value: bytes,
    *,
    timestamp: int,
    leader_epoch: int = NO_EPOCH,
    base_offset: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    transactional: bool = False,
) -> bytearray:
    """A batch with that one control record."""
    record = Record(key=_KEY.pack(0, kind), value=value, timestamp=timestamp)
    return encode_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        transactional=transactional,
        control=True,
    )


def encode_end_txn_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    leader_epoch: int = NO_EPOCH,
    base_offset: int = 0,
) -> bytearray:
    """The marker that ends a producer's transaction in one partition."""
    marker = EndTxnMarker(coordinator_epoch=coordinator_epoch)
    return encode_control_batch(
        ControlType.COMMIT if commit else ControlType.ABORT,
        _VERSION.pack(0) + b"".join(marker.encode(0)),
        timestamp=timestamp,
        leader_epoch=leader_epoch,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
    )


_KEY = Format(">hh")
_VERSION = Format(">h")
