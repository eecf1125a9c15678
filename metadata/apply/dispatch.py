"""Which rule applies which command, by level of `logboat.version` (RULES A2, A4, A5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...seam import all_at_once
from ...wire import ErrorCode
from ..commands import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartition,
    Command,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Digest,
    ElectLeaders,
    FeatureLevel,
    FenceBroker,
    NewController,
    PinVoterDirectory,
    RegisterBroker,
    ReorderReplicas,
    ReplicasLost,
    SetControlledShutdown,
    UnfenceBroker,
    UnregisterBroker,
)
from ..image import ClusterImage
from ..levels import level_of
from ..results import Result, refuse
from ..steps import Steps
from .brokers import (
    fence_broker,
    register_broker,
    set_controlled_shutdown,
    unfence_broker,
    unregister_broker,
)
from .cluster import allocate_producer_ids, digest, feature_level, new_controller, pin_directory
from .configs import alter_configs
from .dedupe import remember, remembered
from .leaders import alter_partition, elect_leaders, reorder_replicas, replicas_lost
from .topics import create_partitions, create_topics, delete_topics

Applied = tuple[ClusterImage, Result]

Rule = Callable[[ClusterImage, int, Any], Applied | Steps[Applied]]
"""In steps where it may look at many partitions."""

_LEVEL_1: Mapping[type[Command], Rule] = MappingProxyType(
    {
        NewController: new_controller,
        RegisterBroker: register_broker,
        FenceBroker: fence_broker,
        UnfenceBroker: unfence_broker,
        SetControlledShutdown: set_controlled_shutdown,
        UnregisterBroker: unregister_broker,
        CreateTopics: create_topics,
        DeleteTopics: delete_topics,
        CreatePartitions: create_partitions,
        AlterPartition: alter_partition,
        ElectLeaders: elect_leaders,
        ReorderReplicas: reorder_replicas,
        ReplicasLost: replicas_lost,
        AlterConfigs: alter_configs,
        AllocateProducerIds: allocate_producer_ids,
        PinVoterDirectory: pin_directory,
        FeatureLevel: feature_level,
        Digest: digest,
    }
)

_RULES: Mapping[int, Mapping[type[Command], Rule]] = MappingProxyType({1: _LEVEL_1})


def apply(image: ClusterImage, index: int, command: Command) -> Applied:
    """The image after the command at `index`, and the verdict for whoever proposed it."""
    return all_at_once(apply_in_steps(image, index, command))


def apply_in_steps(image: ClusterImage, index: int, command: Command) -> Steps[Applied]:
    """The same, leaving the loop to others in between (RULES F1)."""
    after, result = yield from _apply(image, index, command)
    return replace(after, index=index), result


def _apply(image: ClusterImage, index: int, command: Command) -> Steps[Applied]:
    if (
        not isinstance(command, NewController)
        and command.controller_epoch != image.controller_epoch
    ):
        return image, refuse(
            ErrorCode.NOT_CONTROLLER,
            f"made in controller epoch {command.controller_epoch}, "
            f"the controller epoch is {image.controller_epoch}",
        )
    if not isinstance(command, CreateTopics | DeleteTopics) or command.origin is None:
        return (yield from _by_its_rule(image, index, command))
    known = remembered(image, command)
    if known is not None:
        return image, known
    after, result = yield from _by_its_rule(image, index, command)
    return remember(after, command, result), result


def _by_its_rule(image: ClusterImage, index: int, command: Command) -> Steps[Applied]:
    outcome = _RULES[level_of(image)][type(command)](image, index, command)
    return outcome if isinstance(outcome, tuple) else (yield from outcome)
