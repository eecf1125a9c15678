"""Settings of replication, under Kafka's names. Times are milliseconds, sizes bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..seam import frozen

RACK_AWARE_SELECTOR = "RackAwareReplicaSelector"


@frozen
class ReplicationConfig:
    replica_lag_time_max_ms: int = 30_000
    """`replica.lag.time.max.ms`: an ISR member silent or behind for longer is taken out."""
    replica_fetch_wait_max_ms: int = 500
    """`replica.fetch.wait.max.ms`: how long a leader may hold a follower's fetch."""
    replica_fetch_max_bytes: int = 2 << 20
    """`replica.fetch.max.bytes`, per partition. Kafka's 1 MiB would sync more often than is good in
    synced mode, where a follower asks on only after a sync (RULES C2)."""
    replica_fetch_response_max_bytes: int = 2 << 20
    """`replica.fetch.response.max.bytes`: what can be signed, sent, checked and appended each
    within F1's 5 ms. Four times as much was not faster."""
    replica_fetch_backoff_ms: int = 50
    """`replica.fetch.backoff.ms`: first pause after a failure; doubles up to a second."""
    replica_socket_timeout_ms: int = 5_000
    """`replica.socket.timeout.ms`: beyond the long poll, before a leader counts as lost."""
    num_replica_fetchers: int = 1
    """`num.replica.fetchers`: channels to each leader, partitions spread over them."""
    fetch_max_bytes: int = 55 << 20
    """`fetch.max.bytes`: no answer to anybody is larger, but for one oversized first batch."""
    session_cache_slots: int = 1_000
    """`max.incremental.fetch.session.cache.slots`."""
    session_eviction_ms: int = 120_000
    """`min.incremental.fetch.session.eviction.ms`."""
    rack_aware_reads: bool = False
    """`replica.selector.class` is Kafka's RackAwareReplicaSelector: consumers are sent to an
    in-sync replica in their own rack (KIP-392)."""
    checkpoint_interval_ms: int = 5_000
    """`replica.high.watermark.checkpoint.interval.ms`."""
    retention_check_interval_ms: int = 300_000
    """`log.retention.check.interval.ms`."""
    alter_partition_timeout_ms: int = 2_000
    """An AlterPartition without an answer by then is sent again."""
    max_waiting_produces: int = 20_000
    """Per partition: produce requests beyond it are refused before they append anything."""

    @classmethod
    def from_broker_configs(cls, configs: Mapping[str, str]) -> ReplicationConfig:
        """Broker settings as text; what is absent keeps its default. Raises ValueError."""
        numbers: dict[str, Any] = {
            field: int(configs[name]) for name, field in _KAFKA_NAMES.items() if name in configs
        }
        selector = configs.get("replica.selector.class", "")
        return cls(**numbers, rack_aware_reads=selector.endswith(RACK_AWARE_SELECTOR))


_KAFKA_NAMES = {
    "replica.lag.time.max.ms": "replica_lag_time_max_ms",
    "replica.fetch.wait.max.ms": "replica_fetch_wait_max_ms",
    "replica.fetch.max.bytes": "replica_fetch_max_bytes",
    "replica.fetch.response.max.bytes": "replica_fetch_response_max_bytes",
    "replica.fetch.backoff.ms": "replica_fetch_backoff_ms",
    "replica.socket.timeout.ms": "replica_socket_timeout_ms",
    "num.replica.fetchers": "num_replica_fetchers",
    "fetch.max.bytes": "fetch_max_bytes",
    "max.incremental.fetch.session.cache.slots": "session_cache_slots",
    "min.incremental.fetch.session.eviction.ms": "session_eviction_ms",
    "replica.high.watermark.checkpoint.interval.ms": "checkpoint_interval_ms",
    "log.retention.check.interval.ms": "retention_check_interval_ms",
}
