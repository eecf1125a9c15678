"""`consume -g`: as a member of a group. What was printed is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from .node_api import NodeApi
from .record_printer import RecordPrinter, until_nobody_reads
from .sdk.client import Client
from .sdk.codecs import Bytes
from .sdk.consumer import Consumer
from .sdk_work import run_to_the_end

BATCH_RECORDS = 500


def consume_as_member(
    topics: Sequence[str],
    group: str,
    printer: RecordPrinter,
    *,
    start: Literal["earliest", "latest"],
    url: str,
) -> None:
    """Raises Failure, BrokenPipeError."""
    run_to_the_end(_consume(topics, group, printer, start, NodeApi(url).urls))


async def _consume(
    topics: Sequence[str],
    group: str,
    printer: RecordPrinter,
    start: Literal["earliest", "latest"],
    urls: Sequence[str],
) -> None:
    async with Client(*urls) as client:
        reader = client.reader()
        for topic in topics:
            # A group waits for a topic that may come to be; who mistyped its name waits in vain.
            await reader.partitions(topic)
        async with client.consumer(
            *topics, group=group, key=Bytes(), value=Bytes(), start=start
        ) as consumer:
            printing = asyncio.ensure_future(_print(consumer, printer))
            gone = asyncio.ensure_future(until_nobody_reads())
            try:
                await asyncio.wait([printing, gone], return_when=asyncio.FIRST_COMPLETED)
                if not printing.done():
                    raise BrokenPipeError
                printing.result()
            finally:
                for task in (printing, gone):
                    task.cancel()
                await asyncio.gather(printing, gone, return_exceptions=True)


async def _print(consumer: Consumer[bytes, bytes], printer: RecordPrinter) -> None:
    async for batch in consumer.batches(max_records=printer.left or BATCH_RECORDS, max_wait=0.0):
        batch = batch if printer.left is None else batch[: printer.left]
        for record in batch:
            printer.print(record)
        printer.flush()
        await consumer.commit(*batch)
        if printer.full:
            return
