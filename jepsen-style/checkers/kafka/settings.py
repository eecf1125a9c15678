"""What a run promised, as far as it changes which anomalies fail it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...history import HistoryError


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """`ww_deps`: whether the order of offsets counts as write dependencies between transactions.
    `sub_via`: how consumers got their partitions; `subscribe` lets positions move in rebalances.
    `idempotent`: whether a value at two offsets is a bug or what plain retries may do.
    `compacted`: keys whose values are `[record key, value]`, of which only the last must stay;
    those whose topic says so (`promises`) need not be named.
    `acks_all`: whether sends waited for all in-sync replicas. Without that an answer promises
    nothing: only what was polled counts as a record.
    `final_reads`: whether the run ended by reading everything, so that what was not seen fails it.
    """

    ww_deps: bool = True
    sub_via: str = "assign"
    idempotent: bool = True
    acks_all: bool = True
    compacted: frozenset[str] = frozenset()
    final_reads: bool = True

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> KafkaSettings:
        """Raises HistoryError for a setting that does not exist: it would change nothing."""
        unknown = set(settings) - set(cls.__slots__)
        if unknown:
            raise HistoryError(f"unknown Kafka settings: {', '.join(sorted(unknown))}")
        chosen = dict(settings)
        if "compacted" in chosen:
            chosen["compacted"] = frozenset(chosen["compacted"])
        return cls(**chosen)
