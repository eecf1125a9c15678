"""Lines to records: read as they come, written in batches, counted, and told of when they fail."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, cast

from .failure import ExitStatus, Failure
from .input_lines import input_lines
from .line_format import LineFormat
from .node_api import NodeApi
from .progress import progress
from .record_document import data_from, headers_from
from .sdk.client import Client
from .sdk.codecs import Bytes
from .sdk.errors import ClientError, DeadlineExceeded, OutcomeUnknown, TopicNotFound, Unreachable
from .sdk.producer import Producer
from .sdk.records import Header, RecordMetadata
from .sdk_work import run_to_the_end, status_of
from .terminal import say

FAILURES_TOLD = 5
ASK_AGAIN_SECONDS = 1.0
"""At the soonest, how many partitions there are: many lines may name one that is not there."""

LAST_PARTITION = 2**31 - 1
"""Kafka gives no partition a greater number."""


@dataclass(frozen=True, slots=True)
class LineShape:
    """What a line is."""

    key: str | None = None
    key_separator: str | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    empty_is_null: bool = False
    is_json: bool = False
    format: LineFormat | None = None
    """Not with a separator or JSON, nor does it name what is given here for all lines."""


@dataclass(frozen=True, slots=True)
class ProduceOptions:
    topic: str
    files: tuple[str, ...]
    shape: LineShape
    acks: str
    rate: float | None
    timeout: float
    dead_letter: str | None
    quiet: bool
    url: str


@dataclass(frozen=True, slots=True)
class Line:
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    partition: int | None
    timestamp: int | None


class NoRecord(ValueError):
    """A line that says none."""


_CLUSTERS_FAULT = (Unreachable, OutcomeUnknown, DeadlineExceeded, TopicNotFound)
"""Failures after which further lines would fail alike, and slowly."""


@dataclass(slots=True)
class _Failures:
    dead_letter: BinaryIO | None
    count: int = 0
    first: BaseException | None = None
    hopeless: bool = False
    """Nothing more is read."""
    told: set[str] = field(default_factory=set)

    def note(self, line: bytes, error: BaseException) -> None:
        self.count += 1
        self.first = self.first or error
        self.hopeless |= isinstance(error, _CLUSTERS_FAULT)
        if self.dead_letter is not None:
            self.dead_letter.write(line + b"\n")
        if str(error) not in self.told and len(self.told) < FAILURES_TOLD:
            self.told.add(str(error))
            say(f"logboat: not written: {error}")


def produce_lines(options: ProduceOptions) -> ExitStatus:
    """How the command ends. Raises Failure."""
    with ExitStack() as open_files:
        failures = _Failures(_dead_letter(options, open_files))
        written = run_to_the_end(_produce(options, failures))
    if not options.quiet:
        failed = f", {failures.count} were not" if failures.count else ""
        say(f"{written} records written to {options.topic}{failed}.")
    return ExitStatus.GOOD if failures.first is None else status_of(failures.first)


def _dead_letter(options: ProduceOptions, open_files: ExitStack) -> BinaryIO | None:
    if options.dead_letter is None:
        return None
    try:
        return open_files.enter_context(open(options.dead_letter, "wb"))
    except OSError as error:
        raise Failure(f"cannot write {options.dead_letter}: {error.strerror}") from error


async def _produce(options: ProduceOptions, failures: _Failures) -> int:
    acks = cast(Literal["all", "1"], options.acks)
    async with Client(*NodeApi(options.url).urls, request_timeout=options.timeout) as client:
        partitions = await _partitions(client, options)
        producer = client.producer(
            key=Bytes(), value=Bytes(), acks=acks, delivery_timeout=options.timeout
        )
        # Who types the lines would have them painted over.
        silent = options.quiet or (
            not options.files and sys.stdin is not None and sys.stdin.isatty()
        )
        shown = nullcontext() if silent else progress(_rates(producer, failures))
        try:
            async with shown:
                await _take_all(producer, options, partitions, failures)
                await producer.flush()
        finally:
            await producer.close()
        return producer.stats.delivered


class _Partitions:
    """Those of the topic, as of when it was asked last. There may be more meanwhile, never less."""

    def __init__(self, client: Client, topic: str, count: int) -> None:
        self._client = client
        self._topic = topic
        self._count = count
        self._asked_at = time.monotonic()

    @classmethod
    async def of(cls, client: Client, topic: str) -> _Partitions:
        return cls(client, topic, await client.reader().partitions(topic))

    async def lacks(self, partition: int) -> str | None:
        """What to say of a partition that is not there. Raises ClientError."""
        if partition >= self._count and time.monotonic() - self._asked_at > ASK_AGAIN_SECONDS:
            self._count = await self._client.reader().partitions(self._topic)
            self._asked_at = time.monotonic()
        if partition < self._count:
            return None
        there = f"its partitions are 0 to {self._count - 1}" if self._count > 1 else "only 0"
        return f"{self._topic} has no partition {partition}, {there}"


async def _partitions(client: Client, options: ProduceOptions) -> _Partitions:
    """Looked at before a line is read that nobody could write."""
    partitions = await _Partitions.of(client, options.topic)
    if options.shape.partition is not None:
        lacks = await partitions.lacks(options.shape.partition)
        if lacks is not None:
            raise Failure(lacks)
    return partitions


async def _take_all(
    producer: Producer[bytes, bytes],
    options: ProduceOptions,
    partitions: _Partitions,
    failures: _Failures,
) -> None:
    started = time.monotonic()
    async for number, line in input_lines(options.files):
        if options.rate is not None:
            await asyncio.sleep(started + (number - 1) / options.rate - time.monotonic())
        await _take(producer, options, partitions, number, line, failures)
        if failures.hopeless:
            say(f"logboat: what follows line {number} is not read")
            return


async def _take(
    producer: Producer[bytes, bytes],
    options: ProduceOptions,
    partitions: _Partitions,
    number: int,
    text: bytes,
    failures: _Failures,
) -> None:
    try:
        line = parsed(text, number, options.shape)
        if line.partition is not None:
            # The cluster's answer would be that of a topic that is gone.
            lacks = await partitions.lacks(line.partition)
            if lacks is not None:
                raise NoRecord(f"line {number}: {lacks}")
        placed = await producer.enqueue(
            options.topic,
            line.value,
            key=line.key,
            partition=line.partition,
            headers=line.headers,
            timestamp=line.timestamp,
        )
    except (ClientError, NoRecord) as error:
        failures.note(text, error)
        return

    def decided(done: asyncio.Future[RecordMetadata]) -> None:
        error = done.exception()
        if error is not None:
            failures.note(text, error)

    placed.add_done_callback(decided)


def parsed(text: bytes, number: int, shape: LineShape) -> Line:
    """Raises NoRecord."""
    if shape.is_json:
        return _from_json(text, number, shape)
    partition = shape.partition
    key = None if shape.key is None else shape.key.encode("utf-8", "surrogateescape")
    value = text
    if shape.key_separator:
        separator = shape.key_separator.encode("utf-8", "surrogateescape")
        key, found, value = text.partition(separator)
        if not found:
            raise NoRecord(f"line {number}: no {shape.key_separator!r} in {_shown(text)}")
    elif shape.format is not None:
        fields = _fields(text, number, shape.format)
        key, value = fields.get("k", key), fields.get("v", b"")
        if "p" in fields:
            partition = _partition(fields["p"], number)
    empty = shape.empty_is_null and not value
    return Line(key, None if empty else value, shape.headers, partition, None)


def _fields(text: bytes, number: int, format_: LineFormat) -> dict[str, bytes]:
    fields = format_.taken_apart(text)
    if fields is None:
        raise NoRecord(f"line {number}: {_shown(text)} is not of the form {format_.text!r}")
    return fields


def _partition(digits: bytes, number: int) -> int:
    # `int` alone would take signs, blanks and "1_0", and choke on thousands of digits.
    if not digits.isdigit() or len(digits) > 10 or (partition := int(digits)) > LAST_PARTITION:
        raise NoRecord(f"line {number}: {_shown(digits)} is no partition")
    return partition


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))


def _from_json(text: bytes, number: int, shape: LineShape) -> Line:
    try:
        document = json.loads(text)
        if not isinstance(document, dict) or "value" not in document:
            raise TypeError('no object with a "value"')
        partition, timestamp = document.get("partition"), document.get("timestamp")
        for name, found in (("partition", partition), ("timestamp", timestamp)):
            if found is not None and (type(found) is not int or not 0 <= found < 2**63):
                raise ValueError(f"{found!r} is no {name}")
        return Line(
            data_from(document.get("key"), document.get("key_encoding")),
            data_from(document["value"], document.get("value_encoding")),
            (*headers_from(document), *shape.headers),
            partition if shape.partition is None else shape.partition,
            timestamp,
        )
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise NoRecord(f"line {number} is no record: {error}") from error


def _rates(producer: Producer[bytes, bytes], failures: _Failures) -> Callable[[], str]:
    started = time.monotonic()

    def line() -> str:
        stats, seconds = producer.stats, time.monotonic() - started
        return (
            f"{stats.delivered} records, {stats.delivered / seconds:,.0f}/s, "
            f"{stats.delivered_bytes / seconds / 1e6:.1f} MB/s, {stats.waiting} on their way, "
            f"{failures.count} failed"
        )

    return line
