"""BrokerRegistration (62), BrokerHeartbeat (63), UnregisterBroker (64), and pins of voters."""

from __future__ import annotations

import asyncio
from uuid import UUID

from ...raftlog import Applied
from ...wire import ErrorCode
from ...wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ...wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from ...wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ..broker_life import NextState, next_state
from ..commands import (
    Command,
    FenceBroker,
    PinVoterDirectory,
    RegisterBroker,
    SetControlledShutdown,
    UnfenceBroker,
    UnregisterBroker,
)
from ..image import BrokerImage, Endpoint
from ..levels import FIRST_LEVEL, VERSION_FEATURE
from ..listeners import CLIENT_LISTENER, HTTP_LISTENER, INTERNODE_LISTENER
from .answer import ControllerAnswer
from .office import Decided, Office


async def register_broker(
    office: Office, request: BrokerRegistrationRequest, version: int, deadline: float
) -> ControllerAnswer[BrokerRegistrationResponse]:
    """Versions 0-4; 2 added the directory ids, 3 the previous broker epoch.

    Which node may register under which id is the listener's business (RULES B5). Errors:
    INCONSISTENT_CLUSTER_ID, INVALID_REGISTRATION (an address or the directory id is missing, or the
    voter is pinned to another directory), UNSUPPORTED_VERSION, DUPLICATE_BROKER_REGISTRATION.
    """

    def answer(
        error: ErrorCode, index: int = 0, epoch: int = -1
    ) -> ControllerAnswer[BrokerRegistrationResponse]:
        response = BrokerRegistrationResponse(error_code=error, broker_epoch=epoch)
        return ControllerAnswer(response, index)

    sessions = office.sessions
    if sessions is None:
        return answer(ErrorCode.NOT_CONTROLLER)
    image, node_id = office.image, request.broker_id
    if request.cluster_id != image.cluster_id:
        return answer(ErrorCode.INCONSISTENT_CLUSTER_ID)
    endpoints = {
        listener.name: Endpoint(listener.host, listener.port) for listener in request.listeners
    }
    clients, internode = endpoints.get(CLIENT_LISTENER), endpoints.get(INTERNODE_LISTENER)
    if clients is None or internode is None or len(request.log_dirs) != 1:
        return answer(ErrorCode.INVALID_REGISTRATION)
    directory_id = request.log_dirs[0]
    if _pinned_elsewhere(office, node_id, directory_id):
        # Final for that process, so it is not said from an image that may be behind: this node
        # could have lost the quorum without knowing.
        confirmed = await office.quorum.barrier(deadline)
        if not isinstance(confirmed, Applied) or not office.active:
            return answer(ErrorCode.NOT_CONTROLLER)
        if _pinned_elsewhere(office, node_id, directory_id):
            return answer(ErrorCode.INVALID_REGISTRATION)
        return answer(ErrorCode.DUPLICATE_BROKER_REGISTRATION)  # Replaced just now: ask again.
    old = image.brokers.get(node_id)
    if (
        old is not None
        and old.directory_id != directory_id
        and sessions.lives(node_id, asyncio.get_running_loop().time())
    ):
        return answer(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    levels = _levels(request)
    decided = await office.propose(
        lambda epoch: RegisterBroker(
            controller_epoch=epoch,
            node_id=node_id,
            incarnation_id=request.incarnation_id,
            directory_id=directory_id,
            kafka=clients,
            internode=internode,
            http=endpoints.get(HTTP_LISTENER),
            rack=request.rack,
            previous_broker_epoch=request.previous_broker_epoch,
            min_level=levels[0],
            max_level=levels[1],
        ),
        deadline,
    )
    if decided.result.refused:
        return answer(decided.result.error, decided.index)
    broker_epoch = decided.result.value
    # From here on silence counts; the broker has yet to say what it has read.
    sessions.touch(node_id, broker_epoch, asyncio.get_running_loop().time())
    await _pin_if_new(office, node_id, directory_id, deadline)
    return answer(ErrorCode.NONE, decided.index, broker_epoch)


async def heartbeat(
    office: Office, request: BrokerHeartbeatRequest, version: int, deadline: float
) -> ControllerAnswer[BrokerHeartbeatResponse]:
    """Versions 0-2. The state table stands in `broker_life`.

    Errors: BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH; the broker then registers again.
    """

    def failed(error: ErrorCode, index: int = 0) -> ControllerAnswer[BrokerHeartbeatResponse]:
        return ControllerAnswer(BrokerHeartbeatResponse(error_code=error), index)

    node_id, metadata_index = request.broker_id, request.current_metadata_offset
    known = office.image.brokers.get(node_id)
    if known is not None:
        # Before the checks below: nothing may be awaited between them and what they allow.
        await _pin_if_new(office, node_id, known.directory_id, deadline)
    sessions = office.sessions
    if sessions is None:
        return failed(ErrorCode.NOT_CONTROLLER)
    broker = office.image.brokers.get(node_id)
    if broker is None:
        return failed(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if broker.broker_epoch != request.broker_epoch:
        return failed(ErrorCode.STALE_BROKER_EPOCH)
    now = asyncio.get_running_loop().time()
    sessions.touch(node_id, broker.broker_epoch, now, metadata_index)
    state = next_state(
        office.image,
        broker,
        wants_fence=request.want_fence,
        wants_shutdown=request.want_shut_down,
        metadata_index=metadata_index,
        index_read_by=sessions.metadata_index,
    )
    decided = await _move(office, broker, state, deadline)
    if decided is not None and decided.result.refused:
        return failed(decided.result.error, decided.index)
    response = BrokerHeartbeatResponse(
        is_caught_up=metadata_index >= broker.broker_epoch,
        is_fenced=state in (NextState.FENCED, NextState.SHUT_DOWN_NOW),
        should_shut_down=state is NextState.SHUT_DOWN_NOW,
    )
    return ControllerAnswer(response, 0 if decided is None else decided.index)


async def _move(
    office: Office, broker: BrokerImage, state: NextState, deadline: float
) -> Decided | None:
    """Have the change of state decided; None when the broker is in that state already."""
    kind: type[FenceBroker] | type[UnfenceBroker] | type[SetControlledShutdown]
    if state in (NextState.FENCED, NextState.SHUT_DOWN_NOW) and not broker.fenced:
        # Told to go means fenced first: nobody may count on it from now on.
        kind = FenceBroker
    elif state is NextState.UNFENCED and broker.fenced:
        kind = UnfenceBroker
    elif state is NextState.CONTROLLED_SHUTDOWN and not broker.in_controlled_shutdown:
        kind = SetControlledShutdown
    else:
        return None

    def make(epoch: int) -> Command:
        return kind(epoch, broker.node_id, broker.broker_epoch)

    return await office.propose(make, deadline)


async def unregister_broker(
    office: Office, request: UnregisterBrokerRequest, version: int, deadline: float
) -> ControllerAnswer[UnregisterBrokerResponse]:
    """Version 0. Errors: BROKER_ID_NOT_REGISTERED."""
    decided = await office.propose(
        lambda epoch: UnregisterBroker(epoch, request.broker_id), deadline
    )
    if not decided.result.refused and office.sessions is not None:
        office.sessions.end(request.broker_id)
    response = UnregisterBrokerResponse(
        error_code=decided.result.error, error_message=decided.result.message or None
    )
    return ControllerAnswer(response, decided.index)


def _pinned_elsewhere(office: Office, node_id: int, directory_id: UUID) -> bool:
    """An emptied disk may not speak for the voter before `quorum replace-voter` (RULES B3)."""
    return office.image.voter_directories.get(node_id, directory_id) != directory_id


async def _pin_if_new(office: Office, node_id: int, directory_id: UUID, deadline: float) -> None:
    """A voter that is heard for the first time; should it fail, the next heartbeat tries again."""
    if node_id in office.voters and node_id not in office.image.voter_directories:
        await office.propose(
            lambda epoch: PinVoterDirectory(epoch, node_id, directory_id, replaces=None), deadline
        )


def _levels(request: BrokerRegistrationRequest) -> tuple[int, int]:
    for feature in request.features:
        if feature.name == VERSION_FEATURE:
            return feature.min_supported_version, feature.max_supported_version
    return FIRST_LEVEL, FIRST_LEVEL
