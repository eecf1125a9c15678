"""What an error of Kafka's becomes over HTTP, where the same code means two things."""

from __future__ import annotations

from logboat.node.http.errors import from_kafka
from logboat.wire import ErrorCode


def test_damaged_records_are_not_there_the_next_time_either() -> None:
    """Kafka calls the code retriable, for a batch may have been damaged on its way."""
    read = from_kafka(ErrorCode.CORRUPT_MESSAGE)
    assert (read.status, read.retriable) == (500, False)
    assert read.hint is not None
    assert "later offset" in read.hint
    assert from_kafka(ErrorCode.CORRUPT_MESSAGE, writes=True).retriable
