"""AddRaftVoter (80) among nodes: a voter comes back with another data directory (RULES B3).

The node ids of the voters are fixed. What Kafka says with this request, "this node with this
directory is a voter from now on", is said here of a voter whose directory was lost. It is committed
before the new directory is heard, so by a majority of the others, who then hold everything that was
promised with the lost one's help.
"""

from __future__ import annotations

import asyncio

from ...wire import ErrorCode
from ...wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ..commands import PinVoterDirectory
from .answer import ControllerAnswer
from .office import Office

NO_DIRECTORY = 0


async def replace_voter(
    office: Office, request: AddRaftVoterRequest, version: int, deadline: float
) -> ControllerAnswer[AddRaftVoterResponse]:
    """Versions 0-1. The same directory again changes nothing.

    Errors: INCONSISTENT_CLUSTER_ID, VOTER_NOT_FOUND (that node does not vote), INVALID_REQUEST (no
    directory), DUPLICATE_VOTER (the voter lives with its directory), INVALID_UPDATE_VERSION (its
    pin was moved meanwhile).
    """

    def answer(
        error: ErrorCode, message: str = "", index: int = 0
    ) -> ControllerAnswer[AddRaftVoterResponse]:
        response = AddRaftVoterResponse(error_code=error, error_message=message or None)
        return ControllerAnswer(response, index)

    sessions = office.sessions
    if sessions is None:
        return answer(ErrorCode.NOT_CONTROLLER)
    image, node_id, directory_id = office.image, request.voter_id, request.voter_directory_id
    if request.cluster_id not in (None, image.cluster_id):
        return answer(ErrorCode.INCONSISTENT_CLUSTER_ID)
    if node_id not in office.voters:
        voters = ", ".join(map(str, sorted(office.voters)))
        return answer(
            ErrorCode.VOTER_NOT_FOUND, f"node {node_id} is no voter; the voters are {voters}"
        )
    if directory_id.int == NO_DIRECTORY:
        return answer(ErrorCode.INVALID_REQUEST, "no directory is named")
    pinned = image.voter_directories.get(node_id)
    broker = image.brokers.get(node_id)
    if (
        broker is not None
        and broker.directory_id == pinned != directory_id
        and sessions.lives(node_id, asyncio.get_running_loop().time())
    ):
        # It would end itself at once, and with it a majority perhaps.
        return answer(
            ErrorCode.DUPLICATE_VOTER, f"voter {node_id} is alive with directory {pinned}"
        )
    decided = await office.propose(
        lambda epoch: PinVoterDirectory(epoch, node_id, directory_id, pinned), deadline
    )
    return answer(decided.result.error, decided.result.message, decided.index)
