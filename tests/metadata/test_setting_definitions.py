"""Settings of topics and brokers: legal values, and what is in force."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from logboat.metadata.broker_configs import BROKER_CONFIGS
from logboat.metadata.config_definition import (
    ConfigSource,
    ConfigType,
    Definition,
    InvalidConfig,
    UpdateMode,
)
from logboat.metadata.topic_config_definitions import TOPIC_CONFIGS
from logboat.metadata.topic_configs import (
    BrokerSettings,
    effective_topic_config,
    effective_topic_configs,
    resolve_topic,
    synonyms_of_topic_config,
    validate_topic_configs,
)

NONE: Mapping[str, str] = {}
NOTHING = BrokerSettings(NONE, NONE, NONE)
OURS = {"flush.messages", "log.flush.interval.messages"}
"""Their defaults differ from Kafka's on purpose (RULES C1)."""

NOT_KAFKAS = {
    "log.scrubber.enable",
    "log.scrubber.interval.ms",
    "log.scrubber.io.max.bytes.per.second",
}
"""Kafka does not read old data by itself."""

ALSO_ACTED_ON = {
    "group.consumer.assignment.interval.ms",
    "group.consumer.max.assignment.interval.ms",
    "group.consumer.min.assignment.interval.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.enable",
    "producer.id.expiration.check.interval.ms",
}
"""Kafka has them too; the list of facts counts them among what is of little use outside its JVM, or
not yet."""


def facts(scope: str) -> dict[str, dict[str, Any]]:
    root = Path(os.environ.get("LOGBOAT_TEST_DATA", Path(__file__).parents[3] / "shared"))
    file = root / "kafka-configs.json"
    if not file.exists():
        pytest.skip(f"no {file}")
    entries = json.loads(file.read_text())["configs"]
    return {
        entry["name"]: entry
        for entry in entries
        if entry["scope"] == scope
        and (entry["relevant"] == "yes" or entry["name"] in ALSO_ACTED_ON)
    }


@pytest.mark.parametrize(
    ("scope", "definitions"), [("topic", TOPIC_CONFIGS), ("broker", BROKER_CONFIGS)]
)
def test_definitions_are_kafkas(scope: str, definitions: Mapping[str, Definition]) -> None:
    known = facts(scope)
    assert sorted(set(definitions) - NOT_KAFKAS) == sorted(known)
    for name, entry in known.items():
        ours = definitions[name]
        assert ours.type.name.lower() == entry["type"], name
        if name not in OURS:
            assert ours.default == as_text(entry["default"]), name
        valid = entry.get("valid") or {}
        if entry["type"] in ("int", "long") and "min" in valid:
            with pytest.raises(InvalidConfig):
                ours.validate(str(valid["min"] - 1))
            ours.validate(str(valid["min"]))
        if "max" in valid and entry["type"] != "double":
            ours.validate(str(valid["max"]))
            with pytest.raises(InvalidConfig):
                ours.validate(str(valid["max"] + 1))
        if scope == "topic":
            synonyms = [synonym["broker"] for synonym in entry["synonyms"]]
            assert [synonym for synonym, _ in ours.synonyms] == synonyms
        else:
            mode = entry["update_mode"].upper().replace("-", "_")
            assert ours.update == UpdateMode[mode], name


def as_text(default: Any) -> str | None:
    if default is None or isinstance(default, str):
        return default
    if isinstance(default, bool):
        return str(default).lower()
    return ",".join(default) if isinstance(default, list) else str(default)


@pytest.mark.parametrize("definitions", [TOPIC_CONFIGS, BROKER_CONFIGS])
def test_every_default_is_legal(definitions: Mapping[str, Definition]) -> None:
    for definition in definitions.values():
        if definition.default is not None:
            definition.validate(definition.default)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("retention.ms", "soon", "Not a number of type LONG"),
        ("retention.ms", "1_000", "Not a number of type LONG"),
        ("retention.ms", "9" * 10_000, "Not a number of type LONG"),
        ("retention.ms", str(2**63), "Not a number of type LONG"),
        ("segment.bytes", str(2**31), "Not a number of type INT"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("compression.type", "rar", "String must be one of: uncompressed, zstd"),
        ("cleanup.policy", "shred", "String must be one of: compact, delete"),
        ("cleanup.policy", "delete,delete", "Duplicate value delete"),
        ("preallocated", "true", "Unknown topic config name: preallocated"),
        ("unclean.leader.election.enable", "yes", "either true or false"),
        ("min.cleanable.dirty.ratio", "nan", "Not a number of type DOUBLE"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
    ],
)
def test_illegal_value_is_named_in_kafkas_words(name: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence) as raised:
        validate_topic_configs({name: value})
    assert name in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", ""),
        ("compression.gzip.level", "-1"),
        ("min.cleanable.dirty.ratio", "5e-1"),
        ("retention.ms", " 7 "),
        ("unclean.leader.election.enable", "TRUE"),
    ],
)
def test_legal_values_pass(name: str, value: str) -> None:
    validate_topic_configs({name: value})


def test_least_compaction_lag_may_not_exceed_the_largest() -> None:
    with pytest.raises(InvalidConfig, match="conflict"):
        validate_topic_configs({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"})


def test_value_in_force_is_the_first_along_the_chain() -> None:
    def value(configs: Mapping[str, str], broker: BrokerSettings) -> tuple[str | None, int]:
        effective = effective_topic_config("retention.ms", configs, broker)
        return effective.value, effective.source

    static = BrokerSettings(NONE, NONE, {"log.retention.hours": "2"})
    default = BrokerSettings(NONE, {"log.retention.ms": "7"}, static.static)
    one = BrokerSettings({"log.retention.ms": "6"}, default.dynamic_default, static.static)
    assert value({"retention.ms": "5"}, one) == ("5", ConfigSource.DYNAMIC_TOPIC)
    assert value({}, one) == ("6", ConfigSource.DYNAMIC_BROKER)
    assert value({}, default) == ("7", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert value({}, static) == ("7200000", ConfigSource.STATIC_BROKER)
    assert value({}, NOTHING) == ("604800000", ConfigSource.DEFAULT)
    unlimited = BrokerSettings(NONE, NONE, {"log.retention.minutes": "-1"})
    assert value({}, unlimited) == ("-1", ConfigSource.STATIC_BROKER)
    assert synonyms_of_topic_config("retention.ms", {"retention.ms": "5"}, one) == [
        ("retention.ms", "5", ConfigSource.DYNAMIC_TOPIC),
        ("log.retention.ms", "6", ConfigSource.DYNAMIC_BROKER),
        ("log.retention.ms", "7", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "2", ConfigSource.STATIC_BROKER),
        ("log.retention.ms", "604800000", ConfigSource.DEFAULT),
    ]


def test_c1_synced_mode_is_the_default() -> None:
    assert resolve_topic({}, NOTHING).flush_messages == 1


def test_all_settings_are_described() -> None:
    assert list(effective_topic_configs({}, NOTHING)) == sorted(TOPIC_CONFIGS)
    assert TOPIC_CONFIGS["retention.ms"].type == ConfigType.LONG
