"""Opening a control batch: the marker that ends a transaction."""

from __future__ import annotations

from ...seam import Buffer
from ...wire.control_records.end_txn_marker import EndTxnMarker
from ...wire.records import ControlType, control_type, decode_records, parse_header
from .producer_states import Marker

_VERSION_BYTES = 2
_VERSION_READ = 0
"""Newer versions only add fields behind those of version 0."""


def marker_of(batch: Buffer) -> Marker | None:
    """The COMMIT or ABORT marker in a whole control batch.

    None for other control types, and for a batch that compaction emptied. Raises RecordsError.
    """
    header = parse_header(batch)
    records = decode_records(batch)
    if not records:
        return None
    kind = control_type(records[0])
    if kind not in (ControlType.COMMIT, ControlType.ABORT):
        return None
    value = records[0].value or b""
    marker, _ = EndTxnMarker.decode_from(value[_VERSION_BYTES:], 0, _VERSION_READ)
    return Marker(
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        offset=header.last_offset,
        timestamp_ms=header.max_timestamp,
        coordinator_epoch=marker.coordinator_epoch,
        aborted=kind is ControlType.ABORT,
    )
