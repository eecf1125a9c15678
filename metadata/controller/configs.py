"""AlterConfigs (33) and IncrementalAlterConfigs (44) for topics, brokers and groups (KIP-226,
KIP-339, KIP-848).

Both compute the whole new settings of a resource from those in the image and propose them as
compare-and-set, so that two changes at once never swallow each other; the loser is computed anew.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType

from ...seam import frozen
from ...wire import ErrorCode
from ...wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ...wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ..broker_configs import BROKER_CONFIGS
from ..commands import AlterConfigs, BrokerConfigs, TopicConfigs
from ..config_definition import ConfigType, Definition, InvalidConfig, UpdateMode, split_list
from ..group_configs import (
    GROUP_CONFIGS,
    configs_of_group,
    key_of_group,
    validate_defaults_of_groups,
    validate_group_configs,
)
from ..image import ClusterImage
from ..results import Item
from ..topic_config_definitions import TOPIC_CONFIGS
from ..topic_configs import (
    CLUSTER_DEFAULT,
    FLUSH_MESSAGES,
    MIN_INSYNC_REPLICAS,
    BrokerSettings,
    refuse_mode_change,
    resolve_topic,
    validate_topic_configs,
)
from .answer import ControllerAnswer
from .office import NOT_ACTIVE, Office

ATTEMPTS = 5
"""How often a change that lost against another is computed anew."""


class ResourceType(IntEnum):
    """The kinds of resource that have settings here."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Operation(IntEnum):
    """KIP-339."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@frozen
class Step:
    name: str
    operation: Operation
    value: str | None


@frozen
class Wanted:
    """What one request asks of one resource."""

    type: int
    name: str
    steps: tuple[Step, ...]
    from_scratch: bool
    """AlterConfigs: what is not named goes back to its default."""


class Refused(Exception):
    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.item = Item(error, message)


async def incremental_alter_configs(
    office: Office, request: IncrementalAlterConfigsRequest, version: int, deadline: float
) -> ControllerAnswer[IncrementalAlterConfigsResponse]:
    """Versions 0-1. APPEND and SUBTRACT are for lists."""
    wanted: list[Wanted | Item] = []
    for resource in request.resources:
        steps = []
        unknown = [c.name for c in resource.configs if c.config_operation not in tuple(Operation)]
        for config in resource.configs:
            if not unknown:
                steps.append(Step(config.name, Operation(config.config_operation), config.value))
        wanted.append(
            Item(ErrorCode.INVALID_REQUEST, f"Unknown operation on {unknown[0]}")
            if unknown
            else Wanted(
                resource.resource_type, resource.resource_name, tuple(steps), from_scratch=False
            )
        )
    items, index = await _alter(office, wanted, request.validate_only, deadline)
    response = IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=item.error,
                error_message=item.message or None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, item in zip(request.resources, items, strict=True)
        ]
    )
    return ControllerAnswer(response, index)


async def alter_configs(
    office: Office, request: AlterConfigsRequest, version: int, deadline: float
) -> ControllerAnswer[AlterConfigsResponse]:
    """Versions 0-2: the settings given replace all others."""
    wanted: list[Wanted | Item] = [
        Wanted(
            resource.resource_type,
            resource.resource_name,
            tuple(Step(config.name, Operation.SET, config.value) for config in resource.configs),
            from_scratch=True,
        )
        for resource in request.resources
    ]
    items, index = await _alter(office, wanted, request.validate_only, deadline)
    response = AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=item.error,
                error_message=item.message or None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, item in zip(request.resources, items, strict=True)
        ]
    )
    return ControllerAnswer(response, index)


async def _alter(
    office: Office, wanted: Sequence[Wanted | Item], validate_only: bool, deadline: float
) -> tuple[list[Item], int]:
    """One verdict for each resource, in order, and the index they depend on."""
    if not office.active:
        return [Item(NOT_ACTIVE.error, NOT_ACTIVE.message) for _ in wanted], 0
    counts = Counter((one.type, one.name) for one in wanted if isinstance(one, Wanted))
    verdicts: list[Item | None] = [
        one
        if isinstance(one, Item)
        else Item(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        if counts[one.type, one.name] > 1
        else None
        for one in wanted
    ]
    index = 0
    for _ in range(ATTEMPTS):
        open_ = [position for position, verdict in enumerate(verdicts) if verdict is None]
        topics: list[tuple[int, TopicConfigs]] = []
        brokers: list[tuple[int, BrokerConfigs]] = []
        for position in open_:
            one = wanted[position]
            assert isinstance(one, Wanted)
            try:
                change = _plan(office, one)
            except Refused as refused:
                verdicts[position] = refused.item
            else:
                if isinstance(change, TopicConfigs):
                    topics.append((position, change))
                else:
                    brokers.append((position, change))
        if validate_only:
            return [verdict or Item() for verdict in verdicts], office.image.index
        if not topics and not brokers:
            break
        make = _command([change for _, change in topics], [change for _, change in brokers])
        decided = await office.propose(make, deadline)
        index = decided.index
        positions = [position for position, _ in (*topics, *brokers)]
        if decided.result.refused:
            for position in positions:
                verdicts[position] = Item(decided.result.error, decided.result.message)
            break
        for position, item in zip(positions, decided.result.items, strict=True):
            lost = item.error == ErrorCode.INVALID_UPDATE_VERSION
            verdicts[position] = None if lost else item
        if None not in verdicts or asyncio.get_running_loop().time() >= deadline:
            break
    lost_for_good = Item(
        ErrorCode.OPERATION_NOT_ATTEMPTED, "Others keep changing the same settings; try again."
    )
    return [lost_for_good if verdict is None else verdict for verdict in verdicts], index


def _command(
    topics: list[TopicConfigs], brokers: list[BrokerConfigs]
) -> Callable[[int], AlterConfigs]:
    return lambda epoch: AlterConfigs(epoch, tuple(topics), tuple(brokers))


def _plan(office: Office, wanted: Wanted) -> TopicConfigs | BrokerConfigs:
    repeated = [n for n, count in Counter(step.name for step in wanted.steps).items() if count > 1]
    if repeated:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {', '.join(repeated)}"
        )
    try:
        if wanted.type == ResourceType.TOPIC:
            return _plan_topic(office, wanted)
        if wanted.type == ResourceType.BROKER:
            return _plan_broker(office, wanted)
        if wanted.type == ResourceType.GROUP:
            return _plan_group(office, wanted)
    except InvalidConfig as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from error
    raise Refused(
        ErrorCode.INVALID_REQUEST, f"Resources of type {wanted.type} have no settings here."
    )


def _plan_topic(office: Office, wanted: Wanted) -> TopicConfigs:
    topic = office.image.topics.get(wanted.name)
    if topic is None:
        raise Refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{wanted.name}' does not exist."
        )
    after = _after(topic.configs, wanted, TOPIC_CONFIGS)
    validate_topic_configs(after)
    refuse_mode_change(topic, after)
    if FLUSH_MESSAGES in topic.configs:
        # Deleting the line, or leaving it out, does not change the mode (RULES C1).
        after[FLUSH_MESSAGES] = topic.configs[FLUSH_MESSAGES]
    resolved = resolve_topic(after, office.broker_settings())
    return TopicConfigs(
        topic_id=topic.topic_id,
        before=topic.configs,
        after=after,
        min_insync_replicas=resolved.min_insync_replicas,
        unclean_leader_election=resolved.unclean_leader_election,
    )


def _plan_broker(office: Office, wanted: Wanted) -> BrokerConfigs:
    _check_broker_name(office.image, wanted.name)
    before = office.image.configs.get(wanted.name, MappingProxyType({}))
    after = _after(before, wanted, BROKER_CONFIGS)
    changed = [n for n in {**before, **after} if before.get(n) != after.get(n)]
    for name in changed:
        _check_broker_setting(wanted.name, name, after)
    defaults = {name: after[name] for name in changed if name in after}
    validate_defaults_of_groups(defaults, office.broker_settings())
    # What topics inherit once this has become the cluster's default.
    inherited = BrokerSettings(
        dynamic=MappingProxyType({}),
        dynamic_default=after if wanted.name == CLUSTER_DEFAULT else MappingProxyType({}),
        static=office.settings.default_configs,
    )
    resolved = resolve_topic(MappingProxyType({}), inherited)
    return BrokerConfigs(
        broker=wanted.name,
        before=before,
        after=after,
        min_insync_replicas=resolved.min_insync_replicas,
        unclean_leader_election=resolved.unclean_leader_election,
    )


def _plan_group(office: Office, wanted: Wanted) -> BrokerConfigs:
    if not wanted.name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    before = configs_of_group(office.image, wanted.name)
    after = _after(before, wanted, GROUP_CONFIGS)
    validate_group_configs(after, office.broker_settings())
    return BrokerConfigs(
        broker=key_of_group(wanted.name),
        before=before,
        after=after,
        # Read for the cluster's default only.
        min_insync_replicas=1,
        unclean_leader_election=False,
    )


def _check_broker_name(image: ClusterImage, name: str) -> None:
    if name == CLUSTER_DEFAULT:
        return
    if not (name.isascii() and name.isdigit() and name == str(int(name))):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, not {name!r}.")
    if int(name) not in image.brokers:
        raise Refused(ErrorCode.INVALID_REQUEST, f"No such broker: {name}.")


def _check_broker_setting(broker: str, name: str, after: Mapping[str, str]) -> None:
    definition = BROKER_CONFIGS.get(name)
    if definition is None:
        raise InvalidConfig(f"Unknown broker config name: {name}")
    if definition.update == UpdateMode.READ_ONLY:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: Set({name})"
        )
    if definition.update == UpdateMode.PER_BROKER and broker == CLUSTER_DEFAULT:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs at default cluster level: Set({name})",
        )
    if name == MIN_INSYNC_REPLICAS and broker != CLUSTER_DEFAULT:
        # Which replicas are eligible would depend on who leads (KIP-966).
        raise InvalidConfig(f"Broker-level {name} cannot be altered while ELR is enabled.")
    if name == MIN_INSYNC_REPLICAS and name not in after:
        raise InvalidConfig(f"Cluster-level {name} cannot be removed while ELR is enabled.")
    if name in after:
        definition.validate(after[name])


def _after(
    before: Mapping[str, str], wanted: Wanted, definitions: Mapping[str, Definition]
) -> dict[str, str]:
    after = {} if wanted.from_scratch else dict(before)
    for step in wanted.steps:
        if step.operation == Operation.DELETE:
            after.pop(step.name, None)
            continue
        if step.value is None:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {step.name}")
        if step.operation == Operation.SET:
            after[step.name] = step.value
        else:
            after[step.name] = _edited_list(after, step, definitions.get(step.name))
    return after


def _edited_list(settings: Mapping[str, str], step: Step, definition: Definition | None) -> str:
    if definition is None or definition.type != ConfigType.LIST:
        raise InvalidConfig(
            f"Can't {step.operation.name} to key {step.name} because its type is not LIST."
        )
    items = split_list(settings.get(step.name, definition.default or ""))
    given = split_list(step.value or "")
    if step.operation == Operation.APPEND:
        items += [item for item in given if item not in items]
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)
