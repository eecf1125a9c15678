"""`logboat produce`: standard input to a topic; `logboat consume`: a topic to standard output."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Annotated, Any, TextIO

import typer

from .failure import ExitStatus, Failure
from .node_api import DEFAULT_URL, NodeApi, Url, topic_path
from .terminal import emit, say

BATCH_RECORDS = 500
BATCH_CHARACTERS = 100_000
"""Stays below the limit for one body even where JSON makes 12 bytes of a character."""

LOOK_SECONDS = 0.2
"""Between two looks at partitions that had nothing new."""

Name = Annotated[str, typer.Argument(metavar="TOPIC")]


def produce(
    topic: Name,
    key_separator: Annotated[
        str | None, typer.Option("-K", "--key-separator", help="Splits a line into key and value.")
    ] = None,
    partition: Annotated[int | None, typer.Option("-p", "--partition", min=0)] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Write each line of standard input as a record."""
    api = NodeApi(url)
    count = 0
    for records in _batches(typer.get_text_stream("stdin"), key_separator, partition):
        api.call("POST", f"{topic_path(topic)}/records", {"records": records})
        count += len(records)
    say(f"{count} records written to {topic}.")


def consume(
    topic: Name,
    offset: Annotated[
        str, typer.Option("-o", "--offset", help="start, end, a number, or -N from the end.")
    ] = "start",
    count: Annotated[int | None, typer.Option("-n", "--count", min=1, help="Then stop.")] = None,
    exit_at_end: Annotated[bool, typer.Option("-e", "--exit", help="Stop at the end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Whole records as JSON lines.")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Print a topic's records, without a group: offsets are not remembered."""
    query = _first_query(offset)
    api = NodeApi(url)
    partitions = api.call("GET", topic_path(topic))["partition_count"]
    queries = dict.fromkeys(range(partitions), query)
    left = count
    while True:
        quiet = True
        for number in queries:
            path = f"{topic_path(topic)}/partitions/{number}/records?{queries[number]}"
            answer = api.call("GET", path)
            queries[number] = f"offset={answer['next_offset']}"
            quiet = quiet and not answer["records"]
            for record in answer["records"]:
                emit(_line(record, number, as_json))
                left = None if left is None else left - 1
                if left == 0:
                    return
        if quiet and exit_at_end:
            return
        if quiet:
            time.sleep(LOOK_SECONDS)


def _batches(
    lines: TextIO, key_separator: str | None, partition: int | None
) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    characters = 0
    for line in lines:
        text = line.rstrip("\n")
        if batch and (len(batch) >= BATCH_RECORDS or characters + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(_record(text, key_separator, partition))
        characters += len(text)
    if batch:
        yield batch


def _record(text: str, key_separator: str | None, partition: int | None) -> dict[str, Any]:
    key, value = None, text
    if key_separator:
        key, found, value = text.partition(key_separator)
        if not found:
            raise Failure(f"no {key_separator!r} in the line {text[:40]!r}")
    return {"key": key, "value": value, "partition": partition}


def _first_query(offset: str) -> str:
    if offset == "start":
        return ""
    if offset == "end":
        return "tail=0"
    if offset.removeprefix("-").isdecimal():
        return f"tail={offset[1:]}" if offset.startswith("-") else f"offset={offset}"
    raise Failure(f"{offset!r} is neither start, end, a number nor -N", ExitStatus.USAGE)


def _line(record: dict[str, Any], partition: int, as_json: bool) -> str:
    if as_json:
        return json.dumps({"partition": partition, **record})
    value = record["value"]
    return "" if value is None else str(value)
