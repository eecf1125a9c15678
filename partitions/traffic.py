"""What has gone through this node's partitions since its process began: for people, by topic."""

from __future__ import annotations

from ..seam import frozen
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


class TopicTraffic:
    """One topic's. Bytes are those of record batches as they lie in the log, headers included."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replicated_in",
        "replicated_out",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        """Records appended as leader."""
        self.bytes_in = 0
        self.bytes_out = 0
        """Read by consumers."""
        self.replicated_in = 0
        """Bytes that followers here have copied."""
        self.replicated_out = 0
        """Bytes read by followers elsewhere."""
        self.produces = 0
        """Partitions in produce requests, as Kafka counts them; so the next three."""
        self.failed_produces = 0
        """See `is_failure`."""
        self.fetches = 0
        """Of consumers and followers."""
        self.failed_fetches = 0


@frozen
class TrafficSeen:
    """As it was at one moment."""

    topic: str
    messages_in: int
    bytes_in: int
    bytes_out: int
    replicated_in: int
    replicated_out: int
    produces: int
    failed_produces: int
    fetches: int
    failed_fetches: int


class Traffic:
    """One entry for each topic that has, or had, a replica here; a topic's goes when it is deleted.
    Partitions come and go, which must not look as if a counter went back."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicTraffic] = {}

    def of(self, topic: str) -> TopicTraffic:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicTraffic()
        return found

    def forget(self, topic: str) -> None:
        self._topics.pop(topic, None)

    def seen(self) -> tuple[TrafficSeen, ...]:
        """By topic name. A microsecond for each topic."""
        return tuple(
            TrafficSeen(
                name,
                one.messages_in,
                one.bytes_in,
                one.bytes_out,
                one.replicated_in,
                one.replicated_out,
                one.produces,
                one.failed_produces,
                one.fetches,
                one.failed_fetches,
            )
            for name, one in sorted(self._topics.items())
        )
