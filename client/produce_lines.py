"""Lines to records: read as they come, written in batches, counted, and told of when they fail."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, cast

import typer

from .failure import ExitStatus, Failure
from .node_api import NodeApi
from .progress import progress
from .record_format import from_json_line
from .sdk.client import Client
from .sdk.codecs import Bytes
from .sdk.errors import (
    ClientError,
    DeadlineExceeded,
    OutcomeUnknown,
    Unreachable,
)
from .sdk.producer import Producer
from .sdk.records import Header, RecordMetadata
from .terminal import say

READ_BYTES = 1 << 16
FAILURES_TOLD = 5


@dataclass(frozen=True, slots=True)
class LineShape:
    """What a line is."""

    key: str | None = None
    key_separator: str | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    empty_is_null: bool = False
    is_json: bool = False


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


@dataclass(slots=True)
class _Line:
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    partition: int | None
    timestamp: int | None


@dataclass(slots=True)
class _Failures:
    dead_letter: BinaryIO | None
    count: int = 0
    causes: list[BaseException] = field(default_factory=list)

    def note(self, line: bytes, error: BaseException) -> None:
        self.count += 1
        if self.dead_letter is not None:
            self.dead_letter.write(line + b"\n")
        if len(self.causes) < FAILURES_TOLD:
            self.causes.append(error)
            say(f"logboat: not written: {error}")


def produce_lines(options: ProduceOptions) -> ExitStatus:
    """How the command ends."""
    with ExitStack() as open_files:
        failures = _Failures(_dead_letter(options, open_files))
        written = asyncio.run(_produce(options, failures))
    if not options.quiet:
        failed = f", {failures.count} were not" if failures.count else ""
        say(f"{written} records written to {options.topic}{failed}.")
    return _status(failures.causes)


def _dead_letter(options: ProduceOptions, open_files: ExitStack) -> BinaryIO | None:
    if options.dead_letter is None:
        return None
    try:
        return open_files.enter_context(open(options.dead_letter, "wb"))
    except OSError as error:
        raise Failure(f"cannot write {options.dead_letter}: {error.strerror}") from error


def _status(causes: list[BaseException]) -> ExitStatus:
    if not causes:
        return ExitStatus.GOOD
    if isinstance(causes[0], Unreachable):
        return ExitStatus.UNREACHABLE
    timed_out = isinstance(causes[0], OutcomeUnknown | DeadlineExceeded)
    return ExitStatus.TIMED_OUT if timed_out else ExitStatus.FAILED


async def _produce(options: ProduceOptions, failures: _Failures) -> int:
    acks = cast(Literal["all", "1"], options.acks)
    async with Client(NodeApi(options.url).url) as client:
        producer = client.producer(
            key=Bytes(), value=Bytes(), acks=acks, delivery_timeout=options.timeout
        )
        shown = nullcontext() if options.quiet else progress(_rates(producer, failures))
        try:
            async with shown:
                async for number, line in _lines(options.files):
                    await _pace(options.rate, number)
                    await _take(producer, options, number, line, failures)
                await producer.flush()
        finally:
            await producer.close()
        return producer.stats.delivered


async def _take(
    producer: Producer[bytes, bytes],
    options: ProduceOptions,
    number: int,
    text: bytes,
    failures: _Failures,
) -> None:
    line = _parsed(text, number, options.shape)
    try:
        placed = await producer.enqueue(
            options.topic,
            line.value,
            key=line.key,
            partition=line.partition,
            headers=line.headers,
            timestamp=line.timestamp,
        )
    except ClientError as error:
        failures.note(text, error)
        return

    def decided(done: asyncio.Future[RecordMetadata]) -> None:
        error = done.exception()
        if error is not None:
            failures.note(text, error)

    placed.add_done_callback(decided)


def _parsed(text: bytes, number: int, shape: LineShape) -> _Line:
    """Raises Failure."""
    if shape.is_json:
        return _from_json(text, number, shape)
    key = None if shape.key is None else shape.key.encode()
    value = text
    if shape.key_separator:
        key, found, value = text.partition(shape.key_separator.encode())
        if not found:
            shown = text[:40].decode("utf-8", "replace")
            raise Failure(f"line {number}: no {shape.key_separator!r} in {shown!r}")
    empty = shape.empty_is_null and not value
    return _Line(key, None if empty else value, shape.headers, shape.partition, None)


def _from_json(text: bytes, number: int, shape: LineShape) -> _Line:
    document = from_json_line(text.decode("utf-8", "surrogateescape"), number)
    try:
        headers = tuple(
            (header["key"], _bytes(header.get("value"), header.get("encoding")))
            for header in document.get("headers") or ()
        )
        return _Line(
            _bytes(document.get("key"), document.get("key_encoding")),
            _bytes(document["value"], document.get("value_encoding")),
            (*headers, *shape.headers),
            document.get("partition") if shape.partition is None else shape.partition,
            document.get("timestamp"),
        )
    except (TypeError, KeyError, ValueError) as error:
        raise Failure(f"line {number} is no record: {error!r}") from error


def _bytes(value: Any, encoding: str | None) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no string")
    return base64.b64decode(value, validate=True) if encoding == "base64" else value.encode()


async def _lines(files: tuple[str, ...]) -> AsyncIterator[tuple[int, bytes]]:
    """(number, line without its break): what stands in a pipe already, without waiting for more."""
    number = 0
    for name in files or ("-",):
        with _opened(name) as stream:
            left = b""
            while block := await asyncio.to_thread(stream.read1, READ_BYTES):  # type: ignore[attr-defined]
                *lines, left = (left + block).split(b"\n")
                for line in lines:
                    number += 1
                    yield number, line
            if left:
                number += 1
                yield number, left


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    if name == "-":
        return nullcontext(typer.get_binary_stream("stdin"))
    try:
        return open(name, "rb")
    except OSError as error:
        raise Failure(f"cannot read {name}: {error.strerror}") from error


async def _pace(rate: float | None, number: int) -> None:
    if rate is not None and number > 1:
        await asyncio.sleep(1 / rate)


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
