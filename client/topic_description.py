"""What `topic describe` shows of a topic, in parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from .node_api import NodeApi, topic_path
from .terminal import Output, emit, headline, table


class Part(Enum):
    SUMMARY = "summary"
    CONFIGS = "configs"
    PARTITIONS = "partitions"


def describe_topic(api: NodeApi, name: str, parts: Sequence[Part], output: Output) -> None:
    """Without `parts` the partitions, under a line with the settings of its own. As JSON each part
    has its name; without parts it is the node's own document."""
    document = api.call("GET", topic_path(name))
    settings = _settings(api, name) if Part.CONFIGS in parts else []
    if output is Output.JSON:
        found = {Part.CONFIGS: settings, Part.PARTITIONS: document["partitions"]}
        summary = {key: document[key] for key in _SUMMARY}
        shown = {part.value: found.get(part, summary) for part in parts}
        emit(json.dumps(shown or document, indent=2))
    elif not parts:
        own = "".join(f" {key}={value}" for key, value in document["configs"].items())
        headline(f"{document['name']} ({document['topic_id']}){own}", output)
        emit(_partitions(document, output))
    else:
        tables = {
            Part.SUMMARY: lambda: _summary(document, output),
            Part.CONFIGS: lambda: settings_table(settings, output),
            Part.PARTITIONS: lambda: _partitions(document, output),
        }
        emit("\n\n".join(tables[part]() for part in parts))


_SUMMARY = ("name", "topic_id", "partition_count", "replication_factor")


def _settings(api: NodeApi, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.call("GET", f"{topic_path(name)}/configs")["configs"]
    return found


def _summary(document: dict[str, Any], output: Output) -> str:
    header = ("TOPIC", "ID", "PARTITIONS", "REPLICAS")
    return table(header, [tuple(str(document[key]) for key in _SUMMARY)], output)


def settings_table(settings: Sequence[dict[str, Any]], output: Output) -> str:
    rows = [
        (one["name"], "-" if one["value"] is None else one["value"], one["source"])
        for one in settings
    ]
    return table(("SETTING", "VALUE", "SOURCE"), rows, output)


def _partitions(document: dict[str, Any], output: Output) -> str:
    header = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "HIGH-WATERMARK")
    return table(header, [_row(partition) for partition in document["partitions"]], output)


def _row(partition: dict[str, Any]) -> tuple[str, ...]:
    local = partition["local"]
    return (
        str(partition["partition"]),
        "none" if partition["leader"] < 0 else str(partition["leader"]),
        str(partition["leader_epoch"]),
        ",".join(map(str, partition["replicas"])),
        ",".join(map(str, partition["isr"])),
        "-" if local is None else str(local["high_watermark"]),
    )
