"""Settings change; what apply itself reads of them (min ISR, unclean election) follows at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ...wire import ErrorCode
from ..commands import AlterConfigs, BrokerConfigs, TopicConfigs
from ..draft import ImageDraft
from ..image import ClusterImage, TopicImage
from ..results import Item, Result
from ..steps import DECISION, Steps
from ..topic_configs import CLUSTER_DEFAULT, MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION

Applied = tuple[ClusterImage, Result]


def alter_configs(image: ClusterImage, index: int, command: AlterConfigs) -> Steps[Applied]:
    """Compare-and-set against the settings that each change was computed from."""
    draft = ImageDraft(image)
    items = []
    for topic in command.topics:
        items.append((yield from _alter_topic(draft, topic)))
    configs = dict(image.configs)
    for broker in command.brokers:
        items.append((yield from _alter_broker(draft, configs, broker)))
    if configs != image.configs:
        draft.set("configs", dict(sorted(configs.items())))
    return draft.finish(), Result(items=tuple(items))


def _alter_topic(draft: ImageDraft, change: TopicConfigs) -> Steps[Item]:
    yield DECISION
    topic = draft.topic_by_id(change.topic_id)
    if topic is None:
        return Item(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic does not exist.")
    if topic.configs != change.before:
        return Item(ErrorCode.INVALID_UPDATE_VERSION, "the settings have changed meanwhile")
    yield from _resolve(
        draft,
        replace(topic, configs=MappingProxyType(dict(change.after))),
        change.min_insync_replicas,
        change.unclean_leader_election,
    )
    return Item()


def _alter_broker(
    draft: ImageDraft, configs: dict[str, Mapping[str, str]], change: BrokerConfigs
) -> Steps[Item]:
    yield DECISION
    if configs.get(change.broker, {}) != change.before:
        return Item(ErrorCode.INVALID_UPDATE_VERSION, "the settings have changed meanwhile")
    if change.after:
        configs[change.broker] = MappingProxyType(dict(change.after))
    else:
        configs.pop(change.broker, None)
    if change.broker == CLUSTER_DEFAULT:
        for topic in list(draft.topics.values()):
            has_min = MIN_INSYNC_REPLICAS in topic.configs
            has_unclean = UNCLEAN_LEADER_ELECTION in topic.configs
            yield from _resolve(
                draft,
                topic,
                topic.min_insync_replicas if has_min else change.min_insync_replicas,
                topic.unclean_leader_election if has_unclean else change.unclean_leader_election,
            )
    return Item()


def _resolve(
    draft: ImageDraft, topic: TopicImage, min_insync_replicas: int, unclean: bool
) -> Steps[None]:
    """A smaller minimum may empty an ELR, a permission may end a partition's leaderless time."""
    yield from draft.decide_anew(
        replace(topic, min_insync_replicas=min_insync_replicas, unclean_leader_election=unclean)
    )
