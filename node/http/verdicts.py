"""What became of records, said to whoever sent them.

`outcome` is "applied": written as asked for; "failed": not written, and never will be by this
request; or "unknown": it may have been written, and this node will not learn it any more. After a
failure the rest of the error document says why, and whether trying again may help.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from .errors import ApiError
from .records_in import RecordIn
from .writing import Outcome, Written, stored_timestamp

APPLIED = "applied"
FAILED = "failed"
UNKNOWN = "unknown"


def error_verdict(error: ApiError, partition: int | None) -> dict[str, Any]:
    """`partition` None: the record never got as far as having one."""
    where = {} if partition is None else {"partition": partition}
    return {"outcome": FAILED, **where, **error.document()}


def record_verdict(
    outcome: Outcome, partition: int, place: int, record: RecordIn
) -> dict[str, Any]:
    """Of the record that stands at `place` in its batch."""
    if isinstance(outcome, ApiError):
        return error_verdict(outcome, partition)
    return {
        "outcome": APPLIED,
        "partition": partition,
        "offset": outcome.base_offset + place,
        "timestamp": stored_timestamp(outcome, record),
    }


def batch_verdict(outcome: Outcome, partition: int, count: int) -> dict[str, Any]:
    """Of a whole batch whose sender formed it."""
    if isinstance(outcome, ApiError):
        return error_verdict(outcome, partition)
    return {
        "outcome": APPLIED,
        "partition": partition,
        "base_offset": outcome.base_offset,
        "count": count,
    }


def verdict_lines(
    outcome: Outcome, partition: int, first: int, records: Sequence[RecordIn]
) -> Iterable[bytes]:
    """`record_verdict` of consecutive records, a line of JSON each; `first` is their place."""
    if isinstance(outcome, Written):
        # The most frequent text of the whole API, so its numbers are filled in by hand.
        offset, time = outcome.base_offset + first, outcome.log_append_time_ms
        if time < 0:
            return [
                b'{"outcome":"applied","partition":%d,"offset":%d,"timestamp":%d}\n'
                % (partition, offset + place, record.timestamp)
                for place, record in enumerate(records)
            ]
        return [
            b'{"outcome":"applied","partition":%d,"offset":%d,"timestamp":%d}\n'
            % (partition, offset + place, time)
            for place in range(len(records))
        ]
    line = json_line(error_verdict(outcome, partition))
    return [line] * len(records)


def json_line(document: Any) -> bytes:
    return orjson.dumps(document) + b"\n"
