"""DeleteTopics (20)."""

from __future__ import annotations

from uuid import UUID

from ...seam import frozen
from ...wire import ZERO_UUID, ErrorCode
from ...wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ..commands import DeleteTopics, Origin
from ..results import Item, Result
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
    verdicts = [_check_deletion(office, entry, wanted) for entry in wanted]
    ids = tuple(verdict for verdict in verdicts if isinstance(verdict, UUID))
    if office.active and not ids and origin is None:
        decided = Decided(Result(), 0)
    else:
        decided = await office.propose(lambda epoch: DeleteTopics(epoch, ids, origin), deadline)
    responses = [
        _answer(office, entry, verdict, decided)
        for entry, verdict in zip(wanted, verdicts, strict=True)
    ]
    return ControllerAnswer(DeleteTopicsResponse(responses=responses), decided.index)


def _answer(
    office: Office, entry: _Deletion, verdict: UUID | Item, decided: Decided
) -> DeleteTopicsResponse.DeletableTopicResult:
    item = _item(office, entry, verdict, decided)
    if item.error == ErrorCode.UNKNOWN_TOPIC_ID and entry.name is not None:
        item = _UNKNOWN_NAME
    return DeleteTopicsResponse.DeletableTopicResult(
        # Null is legal from version 6 on, where alone a topic can be asked for by id.
        name=entry.name if entry.name is not None else item.topic or None,
        topic_id=item.topic_id or entry.topic_id,
        error_code=item.error,
        error_message=item.message or None,
    )


def _item(office: Office, entry: _Deletion, verdict: UUID | Item, decided: Decided) -> Item:
    if decided.result.refused and (isinstance(verdict, UUID) or not office.active):
        return Item(decided.result.error, decided.result.message)
    for item in decided.result.items:
        # By name: a repeated request (A5) is decided as it was the first time, whatever the name
        # means by now.
        if item.topic_id == verdict or item.topic_id == entry.topic_id or item.topic == entry.name:
            return item
    return verdict if isinstance(verdict, Item) else NOT_IN_FIRST_ATTEMPT


@frozen
class _Deletion:
    name: str | None
    topic_id: UUID


def _deletions(request: DeleteTopicsRequest) -> list[_Deletion]:
    if request.topics:
        return [_Deletion(topic.name, topic.topic_id) for topic in request.topics]
    return [_Deletion(name, ZERO_UUID) for name in request.topic_names]


def _check_deletion(office: Office, entry: _Deletion, wanted: list[_Deletion]) -> UUID | Item:
    if entry.name is not None and entry.topic_id != ZERO_UUID:
        return Item(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if entry.name is None and entry.topic_id == ZERO_UUID:
        return Item(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    enabled = office.settings.default_configs.get("delete.topic.enable", "true")
    if enabled.strip().lower() == "false":
        return Item(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    topic_id = entry.topic_id
    if entry.name is not None:
        topic = office.image.topics.get(entry.name)
        if topic is None:
            return _UNKNOWN_NAME
        topic_id = topic.topic_id
    twice = [
        other
        for other in wanted
        if other == entry
        or other.topic_id == topic_id
        or (other.name is not None and other.name == office.image.topic_names.get(topic_id))
    ]
    if len(twice) > 1:
        kind = "name" if entry.name is not None else "id"
        return Item(ErrorCode.INVALID_REQUEST, f"Duplicate topic {kind}.")
    return topic_id
