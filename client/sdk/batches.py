"""Records on their way to one partition, and the batches that they become."""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from .records import Headers, RecordMetadata

OVERHEAD_BYTES = 64
"""Counted for each record beside its key and value: JSON around it, and the log's own."""


class Pending(NamedTuple):
    """One record, and who waits for its place.

    A tuple, since there are tens of thousands of them a second.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    size: int
    expires_at: float
    """Loop time of its delivery deadline."""
    placed: asyncio.Future[RecordMetadata]


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    size = OVERHEAD_BYTES + (len(key) if key else 0) + (len(value) if value else 0)
    for name, data in headers:
        size += len(name) + len(data or b"") + OVERHEAD_BYTES
    return size


class Queue:
    """Of one partition, in order."""

    def __init__(self, max_batch_bytes: int) -> None:
        self.max_batch_bytes = max_batch_bytes
        self.max_batch_records = 1_000
        self._pending: deque[Pending] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def full(self) -> bool:
        """There is a batch's worth."""
        enough = len(self._pending) >= self.max_batch_records
        return enough or self._bytes >= self.max_batch_bytes

    def add(self, record: Pending) -> bool:
        """Whether there is a batch's worth now."""
        self._pending.append(record)
        self._bytes += record.size
        return self.full

    def take(self) -> list[Pending]:
        """The next batch: one record at least, however large."""
        pending, batch, size = self._pending, list[Pending](), 0
        while pending and len(batch) < self.max_batch_records:
            with_next = size + pending[0].size
            if batch and with_next > self.max_batch_bytes:
                break
            size = with_next
            batch.append(pending.popleft())
        self._bytes -= size
        return batch

    def put_back(self, batch: list[Pending]) -> None:
        self._pending.extendleft(reversed(batch))
        self._bytes += sum(record.size for record in batch)


@dataclass(frozen=True, slots=True)
class Identity:
    """By which the log recognises a repeated batch (KIP-98)."""

    producer_id: int
    producer_epoch: int


def encode_batch(
    batch: list[Pending], partition: int, identity: Identity | None, sequence: int
) -> bytes:
    """One line for POST /api/v1/topics/{topic}/records: strings where all of it is UTF-8, which
    comes back byte for byte, base64 where something is not."""
    try:
        document = _document(batch, lambda data: data.decode(), "string")
    except UnicodeDecodeError:
        document = _document(batch, lambda data: base64.b64encode(data).decode(), "base64")
    document["partition"] = partition
    if identity is not None:
        document["producer_id"] = identity.producer_id
        document["producer_epoch"] = identity.producer_epoch
        document["base_sequence"] = sequence
    return orjson.dumps(document) + b"\n"


def _document(batch: list[Pending], text: Any, encoding: str) -> dict[str, Any]:
    records = []
    for one in batch:
        record: dict[str, Any] = {
            "value": None if one.value is None else text(one.value),
            "timestamp": one.timestamp,
        }
        if one.key is not None:
            record["key"] = text(one.key)
        if one.headers:
            record["headers"] = [
                {"key": name, "value": None if data is None else text(data)}
                for name, data in one.headers
            ]
        records.append(record)
    return {
        "records": records,
        "key_encoding": encoding,
        "value_encoding": encoding,
        "header_encoding": encoding,
    }
