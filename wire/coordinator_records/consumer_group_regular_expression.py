"""Record type 16 of `__consumer_offsets`: ConsumerGroupRegularExpression."""

from __future__ import annotations

from ..schema import array, int64, string
from ..versioned import CoordinatorKey, Versioned


class ConsumerGroupRegularExpressionKey(CoordinatorKey, versions="0", record_type=16):
    """Key of the record for a regular expression of a consumer group (KIP-848) and the topics it
    matched.
    """

    group_id: str = string()
    regular_expression: str = string()


class ConsumerGroupRegularExpressionValue(Versioned, versions="0", flexible="0+"):
    """A regular expression of a consumer group (KIP-848) and the topics it matched."""

    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()
