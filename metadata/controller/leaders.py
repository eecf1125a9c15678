"""ElectLeaders (43): preferred and unclean elections on request (KIP-183, KIP-460)."""

from __future__ import annotations

from functools import partial

from ...wire import ErrorCode
from ...wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ..commands import ElectionType, ElectLeaders, PartitionId
from ..image import NO_LEADER, ClusterImage, PartitionImage
from ..results import Item
from .answer import ControllerAnswer
from .office import Office
from .rebalance import MAX_ELECTIONS


async def elect_leaders(
    office: Office, request: ElectLeadersRequest, version: int, deadline: float
) -> ControllerAnswer[ElectLeadersResponse]:
    """Versions 0-2; 1 added the kind of election. No list means all that need an election."""
    if request.election_type not in tuple(ElectionType):
        return ControllerAnswer(ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST), 0)
    election = ElectionType(request.election_type)
    image = office.image
    wanted = _named(request) if request.topic_partitions is not None else _all(image, election)
    known = [(name, number) for name, number in wanted if image.partition(name, number)]
    items: dict[tuple[str, int], Item] = {}
    index = 0
    # Each partition stands for itself, and a command has its bounds. Without any: are we in office?
    for first in range(0, len(known) or 1, MAX_ELECTIONS):
        piece = known[first : first + MAX_ELECTIONS]
        ids = tuple(PartitionId(image.topics[name].topic_id, number) for name, number in piece)
        make = partial(ElectLeaders, election=election, partitions=ids)
        decided = await office.propose(make, deadline)
        index = max(index, decided.index)
        if decided.result.refused:
            if first == 0:
                response = ElectLeadersResponse(error_code=decided.result.error)
                return ControllerAnswer(response, index)
            failed = Item(decided.result.error, decided.result.message)
            items |= dict.fromkeys(known[first:], failed)
            break
        items |= zip(piece, decided.result.items, strict=True)
    missing = Item(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic or partition.")
    results: dict[str, ElectLeadersResponse.ReplicaElectionResult] = {}
    for name, number in wanted:
        item = items.get((name, number), missing)
        results.setdefault(
            name, ElectLeadersResponse.ReplicaElectionResult(topic=name)
        ).partition_result.append(
            ElectLeadersResponse.PartitionResult(
                partition_id=number, error_code=item.error, error_message=item.message or None
            )
        )
    response = ElectLeadersResponse(replica_election_results=list(results.values()))
    return ControllerAnswer(response, index)


def _named(request: ElectLeadersRequest) -> list[tuple[str, int]]:
    return [
        (entry.topic, number)
        for entry in request.topic_partitions or ()
        for number in entry.partitions
    ]


def _all(image: ClusterImage, election: ElectionType) -> list[tuple[str, int]]:
    def needs(partition: PartitionImage) -> bool:
        if election == ElectionType.PREFERRED:
            return partition.leader != partition.replicas[0]
        return partition.leader == NO_LEADER

    return [
        (name, partition.partition)
        for name, topic in sorted(image.topics.items())
        for partition in topic.partitions
        if needs(partition)
    ]
