"""A topic's settings as storage needs them: typed, resolved once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from ...seam import frozen

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
NEVER_MS = 2**63 - 1


class CompressionType(Enum):
    """`compression.type`; the value of a codec is its number in the batch attributes."""

    PRODUCER = -1
    UNCOMPRESSED = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@frozen
class _Setting:
    """A topic setting, Kafka's default, and the broker settings that stand in for it in order."""

    name: str
    default: str
    synonyms: tuple[tuple[str, int], ...] = ()
    """(broker setting, factor from its unit to the topic setting's)."""


_SETTINGS = {
    setting.name: setting
    for setting in (
        _Setting("cleanup.policy", "delete", (("log.cleanup.policy", 1),)),
        _Setting("compression.type", "producer", (("compression.type", 1),)),
        _Setting("compression.gzip.level", "-1", (("compression.gzip.level", 1),)),
        _Setting("compression.lz4.level", "9", (("compression.lz4.level", 1),)),
        _Setting("compression.zstd.level", "3", (("compression.zstd.level", 1),)),
        _Setting("delete.retention.ms", "86400000", (("log.cleaner.delete.retention.ms", 1),)),
        _Setting("file.delete.delay.ms", "60000", (("log.segment.delete.delay.ms", 1),)),
        # Not Kafka's default of "never": synced is the default here (DESIGN 4, RULES C1).
        _Setting("flush.messages", "1", (("log.flush.interval.messages", 1),)),
        _Setting("index.interval.bytes", "4096", (("log.index.interval.bytes", 1),)),
        _Setting(
            "max.compaction.lag.ms", str(NEVER_MS), (("log.cleaner.max.compaction.lag.ms", 1),)
        ),
        _Setting("max.message.bytes", "1048588", (("message.max.bytes", 1),)),
        _Setting(
            "message.timestamp.after.max.ms",
            "3600000",
            (("log.message.timestamp.after.max.ms", 1),),
        ),
        _Setting(
            "message.timestamp.before.max.ms",
            str(NEVER_MS),
            (("log.message.timestamp.before.max.ms", 1),),
        ),
        _Setting("message.timestamp.type", "CreateTime", (("log.message.timestamp.type", 1),)),
        _Setting("min.cleanable.dirty.ratio", "0.5", (("log.cleaner.min.cleanable.ratio", 1),)),
        _Setting("min.compaction.lag.ms", "0", (("log.cleaner.min.compaction.lag.ms", 1),)),
        _Setting("min.insync.replicas", "1", (("min.insync.replicas", 1),)),
        _Setting("retention.bytes", "-1", (("log.retention.bytes", 1),)),
        _Setting(
            "retention.ms",
            "604800000",
            (
                ("log.retention.ms", 1),
                ("log.retention.minutes", MINUTE_MS),
                ("log.retention.hours", HOUR_MS),
            ),
        ),
        _Setting("segment.bytes", "1073741824", (("log.segment.bytes", 1),)),
        _Setting("segment.index.bytes", "10485760", (("log.index.size.max.bytes", 1),)),
        _Setting(
            "segment.jitter.ms",
            "0",
            (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
        ),
        _Setting("segment.ms", "604800000", (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS))),
        _Setting(
            "unclean.leader.election.enable", "false", (("unclean.leader.election.enable", 1),)
        ),
    )
}


@frozen
class LogConfig:
    """Effective settings of one partition's log. Bytes and milliseconds throughout; -1 = no limit.

    Ranges are checked where settings enter (`metadata/topic_configs.py`), not here.
    """

    synced: bool = True
    """RULES C1: `flush.messages=1`. Otherwise page-cache mode."""
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * HOUR_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = (1 << 20) + 12
    compression_type: CompressionType = CompressionType.PRODUCER
    codec: int = field(init=False, repr=False)
    """The codec that batches must have, as a number; -1: what the producer chose."""
    gzip_level: int = -1
    lz4_level: int = 9
    zstd_level: int = 3
    log_append_time: bool = False
    """`message.timestamp.type=LogAppendTime`."""
    timestamp_before_max_ms: int = NEVER_MS
    timestamp_after_max_ms: int = HOUR_MS
    compact: bool = False
    delete: bool = True
    retention_ms: int = 7 * 24 * HOUR_MS
    retention_bytes: int = -1
    delete_retention_ms: int = 24 * HOUR_MS
    file_delete_delay_ms: int = MINUTE_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_insync_replicas: int = 1
    unclean_leader_election: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "codec", self.compression_type.value)

    @property
    def compression_level(self) -> int | None:
        """Of `compression_type`, in Kafka's terms (KIP-390); None where the codec has none."""
        return {
            CompressionType.GZIP: self.gzip_level,
            CompressionType.LZ4: self.lz4_level,
            CompressionType.ZSTD: self.zstd_level,
        }.get(self.compression_type)

    @classmethod
    def resolve(
        cls, topic_configs: Mapping[str, str], broker_configs: Mapping[str, str]
    ) -> LogConfig:
        """The topic's own setting, else the first broker synonym that is set, else the default.

        Raises ValueError for text that does not parse.
        """

        def text(name: str) -> str:
            if name in topic_configs:
                return topic_configs[name].strip()
            setting = _SETTINGS[name]
            for synonym, factor in setting.synonyms:
                if synonym in broker_configs:
                    value = broker_configs[synonym].strip()
                    # A negative value means "no limit" in every unit.
                    return value if factor == 1 or int(value) < 0 else str(int(value) * factor)
            return setting.default

        def number(name: str) -> int:
            return int(text(name))

        policies = [policy.strip() for policy in text("cleanup.policy").split(",")]
        return cls(
            synced=number("flush.messages") == 1,
            segment_bytes=number("segment.bytes"),
            segment_ms=number("segment.ms"),
            segment_jitter_ms=number("segment.jitter.ms"),
            segment_index_bytes=number("segment.index.bytes"),
            index_interval_bytes=number("index.interval.bytes"),
            max_message_bytes=number("max.message.bytes"),
            compression_type=CompressionType[text("compression.type").upper()],
            gzip_level=number("compression.gzip.level"),
            lz4_level=number("compression.lz4.level"),
            zstd_level=number("compression.zstd.level"),
            log_append_time=text("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
            compact="compact" in policies,
            delete="delete" in policies,
            retention_ms=number("retention.ms"),
            retention_bytes=number("retention.bytes"),
            delete_retention_ms=number("delete.retention.ms"),
            file_delete_delay_ms=number("file.delete.delay.ms"),
            min_compaction_lag_ms=number("min.compaction.lag.ms"),
            max_compaction_lag_ms=number("max.compaction.lag.ms"),
            min_cleanable_dirty_ratio=float(text("min.cleanable.dirty.ratio")),
            min_insync_replicas=number("min.insync.replicas"),
            unclean_leader_election=text("unclean.leader.election.enable").lower() == "true",
        )
