"""`consume -g`: as a member of a group. What was printed is committed."""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from typing import Any, Literal

from .node_api import NodeApi
from .record_format import RecordFormat
from .sdk.client import Client
from .sdk.codecs import Bytes
from .sdk.records import Record
from .sdk_work import run_to_the_end


def consume_as_member(
    topics: Sequence[str],
    group: str,
    printer: RecordFormat,
    *,
    start: Literal["earliest", "latest"],
    count: int | None,
    url: str,
) -> None:
    """Raises Failure."""
    run_to_the_end(_consume(topics, group, printer, start, count, NodeApi(url).url))


async def _consume(
    topics: Sequence[str],
    group: str,
    printer: RecordFormat,
    start: Literal["earliest", "latest"],
    count: int | None,
    url: str,
) -> None:
    left = count
    async with (
        Client(url) as client,
        client.consumer(*topics, group=group, key=Bytes(), value=Bytes(), start=start) as consumer,
    ):
        async for batch in consumer.batches(max_records=left or 500, max_wait=0.0):
            for record in batch:
                sys.stdout.write(printer.line(document_of(record)))
            sys.stdout.flush()
            await consumer.commit(*batch)
            if left is not None:
                left -= len(batch)
                if left <= 0:
                    return


def document_of(record: Record[bytes, bytes]) -> dict[str, Any]:
    """As the HTTP API shows records: text where it is text."""
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    for name, data in (("key", record.key), ("value", record.value)):
        document[name], encoding = _said(data)
        if encoding:
            document[f"{name}_encoding"] = encoding
    headers: list[dict[str, str | None]] = []
    for name, data in record.headers:
        value, encoding = _said(data)
        header = {"key": name, "value": value}
        if encoding:
            header["encoding"] = encoding
        headers.append(header)
    document["headers"] = headers
    return document


def _said(data: bytes | None) -> tuple[str | None, str | None]:
    if data is None:
        return None, None
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"
