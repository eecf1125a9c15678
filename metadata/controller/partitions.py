"""CreatePartitions (37): a topic grows (KIP-195)."""

from __future__ import annotations

from collections import Counter

from ...wire import ErrorCode
from ...wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ..apply import apply_in_steps
from ..commands import CreatePartitions, MorePartitions
from ..image import TopicImage
from ..placement import PlacementError, check_assignment, place_replicas
from ..results import Item, Result
from ..steps import TOPIC, Steps, beside_the_loop
from .answer import ControllerAnswer
from .office import Decided, Office
from .topic_creation import MAX_PARTITIONS_PER_REQUEST

Wanted = CreatePartitionsRequest.CreatePartitionsTopic


async def create_partitions(
    office: Office, request: CreatePartitionsRequest, version: int, deadline: float
) -> ControllerAnswer[CreatePartitionsResponse]:
    """Versions 0-3. Each topic stands for itself; the count is the compare-and-set token."""
    names = Counter(topic.name for topic in request.topics)
    verdicts: dict[str, Item | MorePartitions] = {}
    for topic in request.topics:
        if names[topic.name] > 1:
            verdicts[topic.name] = Item(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        else:
            verdicts[topic.name] = await beside_the_loop(_plan(office, topic))
    planned = tuple(verdict for verdict in verdicts.values() if isinstance(verdict, MorePartitions))
    if office.epoch is not None and request.validate_only:
        image = office.image
        command = CreatePartitions(office.epoch, planned)
        _, result = await beside_the_loop(apply_in_steps(image, image.index, command))
        decided = Decided(result, image.index)
    elif office.active and not planned:
        decided = Decided(Result(), 0)
    else:
        decided = await office.propose(lambda epoch: CreatePartitions(epoch, planned), deadline)
    items = iter(decided.result.items)
    results = []
    for name, verdict in verdicts.items():
        if decided.result.refused and (isinstance(verdict, MorePartitions) or not office.active):
            item = Item(decided.result.error, decided.result.message)
        elif isinstance(verdict, Item):
            item = verdict
        else:
            item = next(items)
        results.append(
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=name, error_code=item.error, error_message=item.message or None
            )
        )
    return ControllerAnswer(CreatePartitionsResponse(results=results), decided.index)


def _plan(office: Office, wanted: Wanted) -> Steps[MorePartitions | Item]:
    yield TOPIC
    topic = office.image.topics.get(wanted.name)
    if topic is None:
        return Item(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    have = len(topic.partitions)
    if wanted.count == have:
        return Item(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if wanted.count < have:
        return Item(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {wanted.name} currently has {have} partition(s); {wanted.count} would not "
            f"be an increase.",
        )
    more = wanted.count - have
    if more > MAX_PARTITIONS_PER_REQUEST:
        return Item(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
    try:
        assignments = yield from _assignments(office, topic, wanted, more)
        return MorePartitions(topic.topic_id, have, assignments)
    except PlacementError as error:
        return Item(error.error, error.message)


def _assignments(
    office: Office, topic: TopicImage, wanted: Wanted, more: int
) -> Steps[tuple[tuple[int, ...], ...]]:
    factor = len(topic.partitions[0].replicas)
    brokers = office.image.brokers
    if wanted.assignments is None:
        return (
            yield from place_replicas(
                brokers, partitions=more, replication_factor=factor, rng=office.rng
            )
        )
    if len(wanted.assignments) != more:
        raise PlacementError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but only "
            f"{len(wanted.assignments)} assignment(s) were specified.",
        )
    # The topic's own factor comes first, so that another one is named as the inconsistent one.
    given = [assignment.broker_ids for assignment in wanted.assignments]
    if len(given[0]) != factor:
        raise PlacementError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes a partition with {len(given[0])} "
            f"replica(s), but this is not consistent with previous partitions, which have "
            f"{factor} replica(s).",
        )
    return check_assignment(given, brokers)
