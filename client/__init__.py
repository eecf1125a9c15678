"""What users touch: the `logboat` command line and the HTTP client library.

This part talks HTTP and starts `python -m logboat.node` as processes; it imports nothing of the
node, so that `logboat --help` costs an interpreter and typer, and a client never drags in a
broker. It is no node either: time, processes and files are the machine's own here, not the seam's.

    from logboat.client import Client

loads aiohttp; `import logboat.client` alone does not, for the command line's sake.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sdk.client import Client
    from .sdk.codecs import Bytes, Json, Text
    from .sdk.consumer import (
        Assigned,
        Consumer,
        ConsumerState,
        ConsumerStats,
        Health,
        Lost,
        Revoked,
    )
    from .sdk.errors import (
        ClientError,
        Closed,
        DeadlineExceeded,
        DecodeFailed,
        ForkedProcess,
        GroupLost,
        NotDelivered,
        NotEnoughReplicas,
        OutcomeUnknown,
        PartitionRevoked,
        RecordTooLarge,
        Refused,
        TopicNotFound,
        Unreachable,
    )
    from .sdk.producer import CloseReport, Producer, ProducerStats
    from .sdk.reader import Extent, Page, Reader
    from .sdk.records import Record, RecordMetadata, TopicPartition
    from .sdk.sync_client import SyncClient
    from .sdk.tail import Gap, Tail

_MODULES = {
    "client": ("Client",),
    "codecs": ("Bytes", "Json", "Text"),
    "consumer": (
        "Assigned",
        "Consumer",
        "ConsumerState",
        "ConsumerStats",
        "Health",
        "Lost",
        "Revoked",
    ),
    "errors": (
        "ClientError",
        "Closed",
        "DeadlineExceeded",
        "DecodeFailed",
        "ForkedProcess",
        "GroupLost",
        "NotDelivered",
        "NotEnoughReplicas",
        "OutcomeUnknown",
        "PartitionRevoked",
        "RecordTooLarge",
        "Refused",
        "TopicNotFound",
        "Unreachable",
    ),
    "producer": ("CloseReport", "Producer", "ProducerStats"),
    "reader": ("Extent", "Page", "Reader"),
    "records": ("Record", "RecordMetadata", "TopicPartition"),
    "sync_client": ("SyncClient",),
    "tail": ("Gap", "Tail"),
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".sdk.{module}", __name__), name)


__all__ = [
    "Assigned",
    "Bytes",
    "Client",
    "ClientError",
    "CloseReport",
    "Closed",
    "Consumer",
    "ConsumerState",
    "ConsumerStats",
    "DeadlineExceeded",
    "DecodeFailed",
    "Extent",
    "ForkedProcess",
    "Gap",
    "GroupLost",
    "Health",
    "Json",
    "Lost",
    "NotDelivered",
    "NotEnoughReplicas",
    "OutcomeUnknown",
    "Page",
    "PartitionRevoked",
    "Producer",
    "ProducerStats",
    "Reader",
    "Record",
    "RecordMetadata",
    "RecordTooLarge",
    "Refused",
    "Revoked",
    "SyncClient",
    "Tail",
    "Text",
    "TopicNotFound",
    "TopicPartition",
    "Unreachable",
]
