"""DeleteTopics (20)."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from ...seam import frozen
from ...wire import ZERO_UUID, ErrorCode
from ...wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ..commands import DeleteTopics, Origin
from ..image import ClusterImage
from ..results import Item, Result
from ..steps import TOPIC, Steps, beside_the_loop
from .answer import ControllerAnswer
from .office import NOT_IN_FIRST_ATTEMPT, Decided, Office

_UNKNOWN_NAME = Item(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)


async def delete_topics(
    office: Office,
    request: DeleteTopicsRequest,
    version: int,
    deadline: float,
    origin: Origin | None,
) -> ControllerAnswer[DeleteTopicsResponse]:
    """Versions 1-6; from 6 on by name or id.

    A name becomes an id here, so that the command never hits a topic created meanwhile.
    """
    wanted = _deletions(request)
    verdicts = await beside_the_loop(_check_all(office, wanted))
    ids = tuple(verdict for verdict in verdicts if isinstance(verdict, UUID))
    if office.active and not ids and origin is None:
        decided = Decided(Result(), 0)
    else:
        decided = await office.propose(lambda epoch: DeleteTopics(epoch, ids, origin), deadline)
    responses = await beside_the_loop(_answers(office, wanted, verdicts, decided))
    return ControllerAnswer(DeleteTopicsResponse(responses=responses), decided.index)


def _answers(
    office: Office, wanted: list[_Deletion], verdicts: list[UUID | Item], decided: Decided
) -> Steps[list[DeleteTopicsResponse.DeletableTopicResult]]:
    items = _ItemsOf(decided.result)
    responses = []
    for entry, verdict in zip(wanted, verdicts, strict=True):
        if decided.result.refused and (isinstance(verdict, UUID) or not office.active):
            item = Item(decided.result.error, decided.result.message)
        else:
            item = items.find(entry, verdict)
        responses.append(_answer(entry, item))
        yield TOPIC
    return responses


def _answer(entry: _Deletion, item: Item) -> DeleteTopicsResponse.DeletableTopicResult:
    if item.error == ErrorCode.UNKNOWN_TOPIC_ID and entry.name is not None:
        item = _UNKNOWN_NAME
    return DeleteTopicsResponse.DeletableTopicResult(
        # Null is legal from version 6 on, where alone a topic can be asked for by id.
        name=entry.name if entry.name is not None else item.topic or None,
        topic_id=item.topic_id or entry.topic_id,
        error_code=item.error,
        error_message=item.message or None,
    )


class _ItemsOf:
    """A result's items by topic; of several the first."""

    def __init__(self, result: Result) -> None:
        self._items = result.items
        self._by_id: dict[UUID | None, int] = {}
        self._by_name: dict[str | None, int] = {}
        for number, item in enumerate(result.items):
            self._by_id.setdefault(item.topic_id, number)
            self._by_name.setdefault(item.topic, number)

    def find(self, entry: _Deletion, verdict: UUID | Item) -> Item:
        """By name, too: a repeated request (A5) is decided as it was the first time, whatever the
        name means by now."""
        found = [self._by_id.get(entry.topic_id), self._by_name.get(entry.name)]
        if isinstance(verdict, UUID):
            found.append(self._by_id.get(verdict))
        known = [number for number in found if number is not None]
        if known:
            return self._items[min(known)]
        return verdict if isinstance(verdict, Item) else NOT_IN_FIRST_ATTEMPT


@frozen
class _Deletion:
    name: str | None
    topic_id: UUID


def _deletions(request: DeleteTopicsRequest) -> list[_Deletion]:
    if request.topics:
        return [_Deletion(topic.name, topic.topic_id) for topic in request.topics]
    return [_Deletion(name, ZERO_UUID) for name in request.topic_names]


def _check_all(office: Office, wanted: list[_Deletion]) -> Steps[list[UUID | Item]]:
    image, named = office.image, Counter[UUID]()
    for entry in wanted:
        topic = None if entry.name is None else image.topics.get(entry.name)
        # A set of at most two: who gives both name and id of a topic names it once.
        named.update({entry.topic_id} | (set() if topic is None else {topic.topic_id}))
        yield 1
    verdicts = []
    for entry in wanted:
        verdicts.append(_check_deletion(office, image, entry, named))
        yield TOPIC
    return verdicts


def _check_deletion(
    office: Office, image: ClusterImage, entry: _Deletion, named: Counter[UUID]
) -> UUID | Item:
    if entry.name is not None and entry.topic_id != ZERO_UUID:
        return Item(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if entry.name is None and entry.topic_id == ZERO_UUID:
        return Item(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    enabled = office.settings.default_configs.get("delete.topic.enable", "true")
    if enabled.strip().lower() == "false":
        return Item(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    topic_id = entry.topic_id
    if entry.name is not None:
        topic = image.topics.get(entry.name)
        if topic is None:
            return _UNKNOWN_NAME
        topic_id = topic.topic_id
    if named[topic_id] > 1:
        kind = "name" if entry.name is not None else "id"
        return Item(ErrorCode.INVALID_REQUEST, f"Duplicate topic {kind}.")
    return topic_id
