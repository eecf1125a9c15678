"""Records that the broker writes for itself, between those of producers or beside them."""

from __future__ import annotations

from .aborted_txn import AbortedTxn
from .control_record_type import ControlRecordTypeSchema
from .end_txn_marker import EndTxnMarker
from .kraft_version import KRaftVersionRecord
from .leader_change import LeaderChangeMessage
from .snapshot_footer import SnapshotFooterRecord
from .snapshot_header import SnapshotHeaderRecord
from .voters import VotersRecord

__all__ = [
    "AbortedTxn",
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
]
