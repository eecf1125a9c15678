"""Every topic setting that this broker honours.

Names, types, defaults and ranges as Kafka 4.4 has them, in our words. One default differs:
`flush.messages` is 1, synced mode (RULES C1).
"""

from __future__ import annotations

from collections.abc import Mapping

from .config_definition import MAX_LONG, ConfigType, Definition, at_least, between, by_name

TOPIC_CONFIGS: Mapping[str, Definition] = by_name(
    [
        Definition(
            "cleanup.policy",
            ConfigType.LIST,
            "delete",
            "Delete old segments, compact by key, both; empty list keeps everything.",
            values=("compact", "delete"),
            synonyms=(("log.cleanup.policy", 1),),
        ),
        Definition(
            "compression.gzip.level",
            ConfigType.INT,
            "-1",
            "Gzip level used when the broker compresses.",
            check=between(1, 9, or_=-1),
            synonyms=(("compression.gzip.level", 1),),
        ),
        Definition(
            "compression.lz4.level",
            ConfigType.INT,
            "9",
            "LZ4 level used when the broker compresses.",
            check=between(1, 17),
            synonyms=(("compression.lz4.level", 1),),
        ),
        Definition(
            "compression.type",
            ConfigType.STRING,
            "producer",
            "Codec stored; producer keeps whatever the producer used.",
            values=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
            synonyms=(("compression.type", 1),),
        ),
        Definition(
            "compression.zstd.level",
            ConfigType.INT,
            "3",
            "Zstd level used when the broker compresses.",
            check=between(-131_072, 22),
            synonyms=(("compression.zstd.level", 1),),
        ),
        Definition(
            "delete.retention.ms",
            ConfigType.LONG,
            "86400000",
            "How long tombstones survive compaction.",
            check=at_least(0),
            synonyms=(("log.cleaner.delete.retention.ms", 1),),
        ),
        Definition(
            "file.delete.delay.ms",
            ConfigType.LONG,
            "60000",
            "Wait between dropping a file from the log and deleting it.",
            check=at_least(0),
            synonyms=(("log.segment.delete.delay.ms", 1),),
        ),
        Definition(
            "flush.messages",
            ConfigType.LONG,
            "1",
            "Messages after which an fsync is forced.",
            check=at_least(1),
            synonyms=(("log.flush.interval.messages", 1),),
        ),
        Definition(
            "flush.ms",
            ConfigType.LONG,
            str(MAX_LONG),
            "Time after which an fsync is forced.",
            check=at_least(0),
            synonyms=(
                ("log.flush.interval.ms", 1),
                ("log.flush.scheduler.interval.ms", 1),
            ),
        ),
        Definition(
            "index.interval.bytes",
            ConfigType.INT,
            "4096",
            "Bytes of log between two offset index entries.",
            check=at_least(0),
            synonyms=(("log.index.interval.bytes", 1),),
        ),
        Definition(
            "max.compaction.lag.ms",
            ConfigType.LONG,
            str(MAX_LONG),
            "Longest a record may stay uncompacted.",
            check=at_least(1),
            synonyms=(("log.cleaner.max.compaction.lag.ms", 1),),
        ),
        Definition(
            "max.message.bytes",
            ConfigType.INT,
            "1048588",
            "Largest record batch accepted (after compression).",
            check=at_least(0),
            synonyms=(("message.max.bytes", 1),),
        ),
        Definition(
            "message.timestamp.after.max.ms",
            ConfigType.LONG,
            "3600000",
            "How far a create time may lie ahead of the broker's clock.",
            check=at_least(0),
            synonyms=(("log.message.timestamp.after.max.ms", 1),),
        ),
        Definition(
            "message.timestamp.before.max.ms",
            ConfigType.LONG,
            str(MAX_LONG),
            "How far a create time may lie behind the broker's clock.",
            check=at_least(0),
            synonyms=(("log.message.timestamp.before.max.ms", 1),),
        ),
        Definition(
            "message.timestamp.type",
            ConfigType.STRING,
            "CreateTime",
            "Timestamps from the producer or set at append.",
            values=("CreateTime", "LogAppendTime"),
            synonyms=(("log.message.timestamp.type", 1),),
        ),
        Definition(
            "min.cleanable.dirty.ratio",
            ConfigType.DOUBLE,
            "0.5",
            "Share of uncleaned log that makes it worth compacting.",
            check=between(0, 1),
            synonyms=(("log.cleaner.min.cleanable.ratio", 1),),
        ),
        Definition(
            "min.compaction.lag.ms",
            ConfigType.LONG,
            "0",
            "Least time a record stays uncompacted.",
            check=at_least(0),
            synonyms=(("log.cleaner.min.compaction.lag.ms", 1),),
        ),
        Definition(
            "min.insync.replicas",
            ConfigType.INT,
            "1",
            "In-sync replicas a write with acks=all needs.",
            check=at_least(1),
            synonyms=(("min.insync.replicas", 1),),
        ),
        Definition(
            "retention.bytes",
            ConfigType.LONG,
            "-1",
            "Size per partition above which old segments go; -1 no limit.",
            synonyms=(("log.retention.bytes", 1),),
        ),
        Definition(
            "retention.ms",
            ConfigType.LONG,
            "604800000",
            "Age above which old segments go; -1 no limit.",
            check=at_least(-1),
            synonyms=(
                ("log.retention.ms", 1),
                ("log.retention.minutes", 60_000),
                ("log.retention.hours", 3_600_000),
            ),
        ),
        Definition(
            "segment.bytes",
            ConfigType.INT,
            "1073741824",
            "Segment size at which another is started.",
            check=at_least(1_048_576),
            synonyms=(("log.segment.bytes", 1),),
        ),
        Definition(
            "segment.index.bytes",
            ConfigType.INT,
            "10485760",
            "Largest index file; preallocated while active.",
            check=at_least(4),
            synonyms=(("log.index.size.max.bytes", 1),),
        ),
        Definition(
            "segment.jitter.ms",
            ConfigType.LONG,
            "0",
            "Random shortening of the segment age limit.",
            check=at_least(0),
            synonyms=(
                ("log.roll.jitter.ms", 1),
                ("log.roll.jitter.hours", 3_600_000),
            ),
        ),
        Definition(
            "segment.ms",
            ConfigType.LONG,
            "604800000",
            "Segment age at which another is started even if not full.",
            check=at_least(1),
            synonyms=(
                ("log.roll.ms", 1),
                ("log.roll.hours", 3_600_000),
            ),
        ),
        Definition(
            "unclean.leader.election.enable",
            ConfigType.BOOLEAN,
            "false",
            "Let a replica outside the in-sync set lead, losing data.",
            synonyms=(("unclean.leader.election.enable", 1),),
        ),
    ]
)
