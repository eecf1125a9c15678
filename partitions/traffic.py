"""What has gone through this node's partitions since its process began: for people, by topic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..wire import ErrorCode

_EXPECTED = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
    }
)
"""What leaders that change, and clients that are wrong, are told on a good day."""


def is_failure(error_code: int) -> bool:
    """Whether it tells of trouble at this node; Kafka's counts of failed requests leave out the
    rest, too."""
    return error_code not in _EXPECTED


@dataclass(slots=True)
class TopicTraffic:
    """One topic's. Bytes are those of record batches as they lie in the log, headers included."""

    topic: str
    messages_in: int = 0
    """Records appended as leader."""
    bytes_in: int = 0
    bytes_out: int = 0
    """Read by consumers."""
    replicated_in: int = 0
    """Bytes that followers here have copied."""
    replicated_out: int = 0
    """Bytes read by followers elsewhere."""
    produces: int = 0
    """Partitions in produce requests, as Kafka counts them; so the next three."""
    failed_produces: int = 0
    """See `is_failure`."""
    fetches: int = 0
    """Of consumers and followers."""
    failed_fetches: int = 0


class Traffic:
    """One entry for each topic that has, or had, a replica here; a topic's goes when it is deleted.
    Partitions come and go, which must not look as if a counter went back."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicTraffic] = {}

    def of(self, topic: str) -> TopicTraffic:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicTraffic(topic)
        return found

    def forget(self, topic: str) -> None:
        self._topics.pop(topic, None)

    def seen(self) -> tuple[TopicTraffic, ...]:
        """As it is at this moment: copies, by topic name. Two microseconds for each topic."""
        return tuple(replace(one) for _, one in sorted(self._topics.items()))
