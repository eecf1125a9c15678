"""The node's settings of compaction, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....seam import frozen


@frozen
class CleanerSettings:
    enabled: bool = True
    """`log.cleaner.enable`."""
    backoff_ms: int = 15_000
    """`log.cleaner.backoff.ms`: between two looks when no log needed cleaning."""
    dedupe_buffer_bytes: int = 128 << 20
    """`log.cleaner.dedupe.buffer.size`: bound of the key map, of which there is one at a time."""
    max_bytes_per_second: float = float("inf")
    """`log.cleaner.io.max.bytes.per.second`, read and written together."""

    @classmethod
    def from_broker_configs(cls, configs: Mapping[str, str]) -> CleanerSettings:
        """What is absent keeps its default. Raises ValueError."""
        given: dict[str, Any] = {
            field: read(configs[name].strip())
            for name, (field, read) in _KAFKA_NAMES.items()
            if name in configs
        }
        return cls(**given)


def _flag(text: str) -> bool:
    return text.lower() == "true"


_KAFKA_NAMES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "log.cleaner.enable": ("enabled", _flag),
    "log.cleaner.backoff.ms": ("backoff_ms", int),
    "log.cleaner.dedupe.buffer.size": ("dedupe_buffer_bytes", int),
    "log.cleaner.io.max.bytes.per.second": ("max_bytes_per_second", float),
}
