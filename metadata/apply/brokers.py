"""Brokers come, are fenced, return, shut down and go (RULES B1-B3, B6, C1)."""

from __future__ import annotations

from dataclasses import replace

from ...wire import ErrorCode
from ..commands import (
    FenceBroker,
    RegisterBroker,
    SetControlledShutdown,
    UnfenceBroker,
    UnregisterBroker,
)
from ..draft import ImageDraft
from ..image import FAILED_SYNC_EPOCH, BrokerImage, ClusterImage
from ..levels import level_of
from ..results import Result, refuse
from ..steps import Steps
from .dedupe import forget
from .incarnations import stale_incarnation

Applied = tuple[ClusterImage, Result]


def register_broker(image: ClusterImage, index: int, command: RegisterBroker) -> Steps[Applied]:
    """Atomically: fence the old incarnation, take its leaderships, install the new broker epoch.

    * The same incarnation again is the answer it got before: nothing moves.
    * The same directory supersedes at once, for its exclusive lock proves the old process dead;
      another directory is refused while the old broker is unfenced (B2).
    * Every leadership goes with leader epoch + 1, with replication factor 1 too, so that no
      (partition, leader epoch, offset) is written twice (B1).
    * A new directory leaves every ISR and ELR (B3). After an unclean restart page-cache topics do
      the same, synced ones see a clean fencing, unless it was a failed sync that ended the old
      process (C1).
    """
    level = level_of(image)
    if not command.min_level <= level <= command.max_level:
        return image, refuse(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the cluster is at level {level}, the broker supports {command.min_level} to "
            f"{command.max_level}",
        )
    old = image.brokers.get(command.node_id)
    if old is not None and old.incarnation_id == command.incarnation_id:
        return image, Result(value=old.broker_epoch)
    if old is not None and old.directory_id != command.directory_id and not old.fenced:
        return image, refuse(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"broker {command.node_id} lives with directory {old.directory_id}",
        )
    draft = ImageDraft(image)
    draft.put_broker(
        BrokerImage(
            node_id=command.node_id,
            broker_epoch=index,
            incarnation_id=command.incarnation_id,
            directory_id=command.directory_id,
            kafka=command.kafka,
            internode=command.internode,
            http=command.http,
            rack=command.rack,
            fenced=True,
            in_controlled_shutdown=False,
            min_level=command.min_level,
            max_level=command.max_level,
        )
    )
    # Without an old registration the broker may still be named as replica: it was unregistered,
    # and nothing is known about its disk.
    yield from draft.take_away(
        command.node_id,
        unclean=old is None or command.previous_broker_epoch != old.broker_epoch,
        distrusted=command.previous_broker_epoch == FAILED_SYNC_EPOCH,
        lost_disk=old is None or command.directory_id != old.directory_id,
    )
    return forget(draft.finish(), command.node_id), Result(value=index)


def fence_broker(image: ClusterImage, index: int, command: FenceBroker) -> Steps[Applied]:
    """Out of every ISR, by the rules into the ELR; leaders elected in the same step."""
    stale = stale_incarnation(image, command.node_id, command.broker_epoch)
    if stale is not None:
        return image, stale
    broker = image.brokers[command.node_id]
    if broker.fenced:
        return image, Result()
    draft = ImageDraft(image)
    draft.put_broker(
        replace(broker, fenced=True, in_controlled_shutdown=False, controlled_shutdown_index=-1)
    )
    yield from draft.take_away(command.node_id)
    return draft.finish(), Result()


def unfence_broker(image: ClusterImage, index: int, command: UnfenceBroker) -> Steps[Applied]:
    """Leaderless partitions may elect it. It joins an ISR only through its leader (D3)."""
    stale = stale_incarnation(image, command.node_id, command.broker_epoch)
    if stale is not None:
        return image, stale
    broker = image.brokers[command.node_id]
    if not broker.fenced:
        return image, Result()
    draft = ImageDraft(image)
    draft.put_broker(replace(broker, fenced=False))
    yield from draft.elect_where_leaderless(among=command.node_id)
    return draft.finish(), Result()


def set_controlled_shutdown(
    image: ClusterImage, index: int, command: SetControlledShutdown
) -> Steps[Applied]:
    """Moves its leaderships; the index is what every active broker must have read (B6)."""
    stale = stale_incarnation(image, command.node_id, command.broker_epoch)
    if stale is not None:
        return image, stale
    broker = image.brokers[command.node_id]
    if broker.fenced or broker.in_controlled_shutdown:
        return image, Result()
    draft = ImageDraft(image)
    draft.put_broker(replace(broker, in_controlled_shutdown=True, controlled_shutdown_index=index))
    yield from draft.take_away(command.node_id)
    return draft.finish(), Result()


def unregister_broker(image: ClusterImage, index: int, command: UnregisterBroker) -> Steps[Applied]:
    """Forgotten; whatever comes later under this node id starts with an unknown disk."""
    if command.node_id not in image.brokers:
        return image, refuse(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {command.node_id} is not registered"
        )
    draft = ImageDraft(image)
    draft.remove_broker(command.node_id)
    yield from draft.take_away(command.node_id, unclean=True, lost_disk=True)
    return forget(draft.finish(), command.node_id), Result()
