"""Commands about the cluster as a whole: controller, pins, producer ids, levels, digests."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ...wire import ErrorCode
from ..commands import (
    AllocateProducerIds,
    Digest,
    FeatureLevel,
    NewController,
    PinVoterDirectory,
)
from ..image import ClusterImage
from ..levels import (
    LATEST_LEVEL,
    LATEST_TRANSACTION_LEVEL,
    TRANSACTION_FEATURE,
    VERSION_FEATURE,
)
from ..results import Result, refuse
from .incarnations import stale_incarnation

MAX_PRODUCER_ID = 2**63 - 1

Applied = tuple[ClusterImage, Result]


def new_controller(image: ClusterImage, index: int, command: NewController) -> Applied:
    """The index becomes the controller epoch; a term that is not larger is refused (RULES A4)."""
    if command.term <= image.controller_term:
        return image, refuse(
            ErrorCode.NOT_CONTROLLER,
            f"term {command.term} is not larger than {image.controller_term}",
        )
    after = replace(
        image,
        controller_id=command.node_id,
        controller_epoch=index,
        controller_term=command.term,
    )
    return after, Result(value=index)


def pin_directory(image: ClusterImage, index: int, command: PinVoterDirectory) -> Applied:
    """Pins, or with `replaces` moves a pin; the same pin again changes nothing (RULES B3)."""
    pinned = image.voter_directories.get(command.node_id)
    if pinned == command.directory_id:
        return image, Result()
    if pinned != command.replaces:
        return image, refuse(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"voter {command.node_id} is pinned to directory {pinned}, not {command.replaces}",
        )
    pins = {**image.voter_directories, command.node_id: command.directory_id}
    return replace(image, voter_directories=MappingProxyType(dict(sorted(pins.items())))), Result()


def allocate_producer_ids(image: ClusterImage, index: int, command: AllocateProducerIds) -> Applied:
    """A block that nobody else ever gets. A repeated request wastes the first one's block."""
    stale = stale_incarnation(image, command.broker_id, command.broker_epoch)
    if stale is not None:
        return image, stale
    first = image.next_producer_id
    if command.count <= 0 or first > MAX_PRODUCER_ID - command.count:
        return image, refuse(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"no {command.count} producer ids are left"
        )
    return replace(image, next_producer_id=first + command.count), Result(value=first)


def feature_level(image: ClusterImage, index: int, command: FeatureLevel) -> Applied:
    """A level is used once every registered broker, fenced ones included, supports it (A2).

    That every voter supports it is checked before the command is made: a voter is a broker here.
    """
    if command.name == TRANSACTION_FEATURE:
        return _transaction_level(image, command.level)
    if command.name != VERSION_FEATURE:
        return image, refuse(
            ErrorCode.INVALID_UPDATE_VERSION, f"there is no feature {command.name!r}"
        )
    level = image.features[VERSION_FEATURE]
    if command.level < level or command.level > LATEST_LEVEL:
        return image, refuse(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{VERSION_FEATURE} cannot go from {level} to {command.level}",
        )
    for node_id, broker in image.brokers.items():
        if not broker.min_level <= command.level <= broker.max_level:
            return image, refuse(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"broker {node_id} supports {VERSION_FEATURE} {broker.min_level} to "
                f"{broker.max_level}, not {command.level}",
            )
    features = {**image.features, VERSION_FEATURE: command.level}
    return replace(image, features=MappingProxyType(features)), Result()


def _transaction_level(image: ClusterImage, level: int) -> Applied:
    """May go down, too: the level is what clients are to speak, and every node speaks all."""
    if not 0 <= level <= LATEST_TRANSACTION_LEVEL:
        return image, refuse(
            ErrorCode.INVALID_UPDATE_VERSION, f"{TRANSACTION_FEATURE} has no level {level}"
        )
    features = {**image.features, TRANSACTION_FEATURE: level}
    if level == 0:
        del features[TRANSACTION_FEATURE]
    return replace(image, features=MappingProxyType(dict(sorted(features.items())))), Result()


def digest(image: ClusterImage, index: int, command: Digest) -> Applied:
    """Compared by the machine (RULES A3); the image does not remember it."""
    return image, Result()
