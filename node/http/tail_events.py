"""What a tail says, as server-sent events or as lines of JSON.

=========  ==================================================================================
event      meaning
=========  ==================================================================================
open       first of all: from where the tail reads
record     (in server-sent events the unnamed kind) one record
reset      the reader's position was void; `reason` says why, reading goes on at `to_offset`
stalled    a partition cannot be read just now, and why; the tail goes on trying
end        the last: the topic was deleted, or the node stops
heartbeat  nothing has come for a while (in server-sent events a comment)
=========  ==================================================================================

All but heartbeats and `stalled` carry the id to go on from.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from uuid import UUID

import orjson

from .errors import ApiError
from .records_out import OutEncodings, record_document
from .tail_position import Position, place_text, places_text
from .tail_reader import Chunk, Reset

RETRY_MS = 1_000
"""After which a browser connects anew."""


class Form(StrEnum):
    """By media type."""

    SSE = "text/event-stream"
    LINES = "application/x-ndjson"


class TailEvents:
    """The events of one tail, as bytes."""

    def __init__(self, form: Form, topic_id: UUID, encodings: OutEncodings) -> None:
        self._form = form
        self._topic_id = topic_id
        self._encodings = encodings

    @property
    def name(self) -> tuple[object, ...]:
        """Tails of one name render a chunk of the same single partition alike."""
        return self._form, self._encodings

    def records(self, chunk: Chunk, partition: int, others: Mapping[int, Position]) -> bytes:
        prefix, suffix = f"{self._topic_id}:", ""
        if others:
            suffix = "," + places_text(others)
        pieces = []
        for stored in chunk.records:
            document = {
                "partition": partition,
                "leader_epoch": stored.leader_epoch,
                **record_document(stored, self._encodings),
            }
            place = place_text(partition, stored.leader_epoch, stored.record.offset)
            event_id = f"{prefix}{place}{suffix}"
            if self._form is Form.SSE:
                text = orjson.dumps(document)
                pieces.append(b"id: %s\ndata: %s\n\n" % (event_id.encode(), text))
            else:
                line = {"event": "record", "id": event_id, **document}
                pieces.append(orjson.dumps(line) + b"\n")
        return b"".join(pieces)

    def opened(self, topic: str, positions: Mapping[int, Position]) -> bytes:
        document = {
            "topic": topic,
            "partitions": [
                {"partition": partition, "offset": position.next_offset}
                for partition, position in positions.items()
            ],
        }
        opened = self._named("open", document, positions)
        return b"retry: %d\n" % RETRY_MS + opened if self._form is Form.SSE else opened

    def reset(self, topic: str, reset: Reset, positions: Mapping[int, Position]) -> bytes:
        document = {
            "topic": topic,
            "partition": reset.partition,
            "reason": reset.reason,
            "from_offset": reset.before.next_offset,
            "to_offset": reset.after.next_offset,
        }
        return self._named("reset", document, positions)

    def stalled(self, partition: int, why: ApiError) -> bytes:
        return self._named("stalled", {"partition": partition, **why.document()}, None)

    def end(self, reason: str, positions: Mapping[int, Position]) -> bytes:
        return self._named("end", {"reason": reason}, positions)

    def heartbeat(self) -> bytes:
        return b": heartbeat\n\n" if self._form is Form.SSE else b'{"event":"heartbeat"}\n'

    def _named(
        self, event: str, document: dict[str, Any], positions: Mapping[int, Position] | None
    ) -> bytes:
        event_id = None
        if positions is not None:
            event_id = f"{self._topic_id}:{places_text(positions)}"
        if self._form is Form.SSE:
            head = f"id: {event_id}\n" if event_id else ""
            return f"{head}event: {event}\ndata: ".encode() + orjson.dumps(document) + b"\n\n"
        named = {"id": event_id} if event_id else {}
        return orjson.dumps({"event": event, **named, **document}) + b"\n"
