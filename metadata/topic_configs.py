"""Settings of topics: are they legal, what is in force, and where does that come from.

The chain for a topic setting: the topic's own; else its broker synonyms, each first as dynamic
setting of the broker, then as dynamic cluster default, then as static setting; else the default.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..seam import frozen
from .config_definition import ConfigSource, Definition, InvalidConfig
from .image import ClusterImage, TopicImage
from .topic_config_definitions import TOPIC_CONFIGS

FLUSH_MESSAGES = "flush.messages"
MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"

CLUSTER_DEFAULT = ""
"""Name under which `ClusterImage.configs` holds the dynamic defaults of all brokers."""


Synonym = tuple[str, str | None, ConfigSource]
"""(name, value, where it is set)."""


@frozen
class Effective:
    """The value in force and where it comes from."""

    value: str | None
    source: ConfigSource


@frozen
class BrokerSettings:
    """The settings a topic inherits from, strongest first. Texts, by Kafka's broker names."""

    dynamic: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    static: Mapping[str, str]

    @staticmethod
    def of(
        image: ClusterImage, static: Mapping[str, str], node_id: int | None = None
    ) -> BrokerSettings:
        """As broker `node_id` sees them; None: as nobody in particular (the controller)."""
        nothing: Mapping[str, str] = {}
        return BrokerSettings(
            dynamic=nothing if node_id is None else image.configs.get(str(node_id), nothing),
            dynamic_default=image.configs.get(CLUSTER_DEFAULT, nothing),
            static=static,
        )

    def sources(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        return (
            (ConfigSource.DYNAMIC_BROKER, self.dynamic),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.dynamic_default),
            (ConfigSource.STATIC_BROKER, self.static),
        )


@frozen
class ResolvedTopic:
    """What a command carries because apply may not look at defaults (RULES A1)."""

    min_insync_replicas: int
    flush_messages: int
    unclean_leader_election: bool


def validate_topic_configs(configs: Mapping[str, str]) -> None:
    """Raises InvalidConfig with Kafka's sentence about the first setting that is not legal."""
    for name, value in configs.items():
        definition = TOPIC_CONFIGS.get(name)
        if definition is None:
            raise InvalidConfig(f"Unknown topic config name: {name}")
        definition.validate(value)
    least = _number_or_default("min.compaction.lag.ms", configs)
    most = _number_or_default("max.compaction.lag.ms", configs)
    if least > most:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})"
        )


def refuse_mode_change(topic: TopicImage, configs: Mapping[str, str]) -> None:
    """A topic is synced or page-cache for life (RULES C1). Raises InvalidConfig."""
    wanted = int(configs.get(FLUSH_MESSAGES, topic.flush_messages))
    if wanted != topic.flush_messages:
        raise InvalidConfig(
            f"Invalid value {wanted} for configuration {FLUSH_MESSAGES}: it is fixed when the "
            f"topic is created, here to {topic.flush_messages}"
        )


def effective_topic_config(
    name: str, configs: Mapping[str, str], broker: BrokerSettings
) -> Effective:
    """The value of one setting for a topic with these settings of its own."""
    return effective(TOPIC_CONFIGS[name], configs, ConfigSource.DYNAMIC_TOPIC, broker)


def effective(
    definition: Definition,
    own: Mapping[str, str],
    own_source: ConfigSource,
    broker: BrokerSettings,
) -> Effective:
    """The strongest along the chain from a resource's own settings to the default."""
    if definition.name in own:
        return Effective(own[definition.name], own_source)
    for synonym, factor in definition.synonyms:
        for source, settings in broker.sources():
            text = settings.get(synonym)
            if text is not None:
                return Effective(_in_unit(definition, text, factor), source)
    return Effective(definition.default, ConfigSource.DEFAULT)


def synonyms_of_topic_config(
    name: str, configs: Mapping[str, str], broker: BrokerSettings
) -> list[Synonym]:
    return synonyms(TOPIC_CONFIGS[name], configs, ConfigSource.DYNAMIC_TOPIC, broker)


def synonyms(
    definition: Definition,
    own: Mapping[str, str],
    own_source: ConfigSource,
    broker: BrokerSettings,
) -> list[Synonym]:
    """All that is set along the chain, strongest first, as DescribeConfigs lists synonyms."""
    name = definition.name
    found: list[Synonym] = []
    if name in own:
        found.append((name, own[name], own_source))
    for synonym, _ in definition.synonyms:
        for source, settings in broker.sources():
            if synonym in settings:
                found.append((synonym, settings[synonym], source))
    if definition.synonyms:
        found.append((definition.synonyms[0][0], definition.default, ConfigSource.DEFAULT))
    return found


def effective_topic_configs(
    configs: Mapping[str, str], broker: BrokerSettings
) -> dict[str, Effective]:
    """All settings of a topic, sorted by name."""
    return {name: effective_topic_config(name, configs, broker) for name in sorted(TOPIC_CONFIGS)}


def resolve_topic(configs: Mapping[str, str], broker: BrokerSettings) -> ResolvedTopic:
    """The settings that apply and partitions read off the image."""

    def text(name: str) -> str:
        return effective_topic_config(name, configs, broker).value or ""

    return ResolvedTopic(
        min_insync_replicas=int(text(MIN_INSYNC_REPLICAS)),
        flush_messages=int(text(FLUSH_MESSAGES)),
        unclean_leader_election=text(UNCLEAN_LEADER_ELECTION).strip().lower() == "true",
    )


def with_fixed_mode(configs: Mapping[str, str], resolved: ResolvedTopic) -> dict[str, str]:
    """The settings to store: an inherited mode is written down, for defaults may change (C1)."""
    fixed = dict(configs)
    default = TOPIC_CONFIGS[FLUSH_MESSAGES].default
    if str(resolved.flush_messages) != default or FLUSH_MESSAGES in configs:
        fixed[FLUSH_MESSAGES] = str(resolved.flush_messages)
    return fixed


def _in_unit(definition: Definition, text: str, factor: int) -> str:
    # -1 means without limit in every unit.
    if factor == 1 or text.strip() == "-1":
        return text
    return str(definition.number(text) * factor)


def _number_or_default(name: str, configs: Mapping[str, str]) -> int:
    return int(configs.get(name) or TOPIC_CONFIGS[name].default or 0)
