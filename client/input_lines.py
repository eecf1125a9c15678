"""Lines of files and of standard input, as they come."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from io import UnsupportedOperation

import typer

from .failure import Failure

READ_BYTES = 1 << 16
LONGEST_LINE = 64 << 20
"""No node takes a record of that size."""


async def input_lines(files: Sequence[str]) -> AsyncIterator[tuple[int, bytes]]:
    """(number, line without its break): what stands in a pipe already, without waiting for more.
    Without files, or where one is named `-`, standard input. Raises Failure."""
    number = 0
    for name in files or ("-",):
        with _opened(name) as read:
            pieces: list[bytes] = []
            while block := await read():
                first, *others = block.split(b"\n")
                pieces.append(first)
                if sum(map(len, pieces)) > LONGEST_LINE:
                    raise Failure(f"line {number + 1} is longer than {LONGEST_LINE >> 20} MiB")
                for line in others:
                    number += 1
                    yield number, b"".join(pieces)
                    pieces = [line]
            if any(pieces):
                number += 1
                yield number, b"".join(pieces)


@contextmanager
def _opened(name: str) -> Iterator[Callable[[], Awaitable[bytes]]]:
    """What gives the next block, empty at the end."""
    if name == "-":
        yield _standard_input()
        return
    try:
        with open(name, "rb", buffering=0) as file:
            yield lambda: _read(file.fileno())
    except OSError as error:
        raise Failure(f"cannot read {name}: {error.strerror}") from error


def _standard_input() -> Callable[[], Awaitable[bytes]]:
    if sys.stdin is None:
        raise Failure("standard input is closed")
    stream = typer.get_binary_stream("stdin")
    try:
        descriptor = stream.fileno()
    except UnsupportedOperation:

        async def all_at_once() -> bytes:  # There is no file behind it.
            return stream.read()

        return all_at_once
    return lambda: _read(descriptor)


async def _read(descriptor: int) -> bytes:
    """Waits on the loop, not in a thread: one that waits at a terminal could not be ended, and the
    command would wait for it."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:
        return os.read(descriptor, READ_BYTES)  # A file on disk is always ready.
    try:
        await ready.wait()
        return os.read(descriptor, READ_BYTES)
    finally:
        loop.remove_reader(descriptor)
