"""Requests and answers that never arrive, or late: a look at the frames to nodes, of clients and of
other nodes alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from ..schedule import sealed_frames as sealed
from ..simulation import Host, World
from ..simulation.cluster import INTERNODE_PORT, KAFKA_PORT
from ..simulation.endpoint import Endpoint

Value = TypeVar("Value")

_LISTENERS = (KAFKA_PORT, INTERNODE_PORT)
_LENGTH = 4
_API_ENDS_AT = _LENGTH + 2
"""In a client's request the API key follows the length."""


class _Frames:
    """Cuts a byte stream into frames; keeps the first bytes of each."""

    def __init__(self, head_bytes: int, *, uncounted: int = 0, messages: int = 0) -> None:
        """`uncounted`: bytes of a frame that its length leaves out. `messages`: of a handshake,
        which come first and leave nothing out."""
        self.handshake: list[bytes] = []
        """Those that came, whole."""
        self._head_bytes = head_bytes
        self._uncounted = uncounted
        self._messages = messages
        self._head = bytearray()
        self._left = 0

    def take(self, data: bytes) -> list[bytes]:
        """The heads of frames that are whole with `data`."""
        whole = []
        position = 0
        while position < len(data):
            if self._left:
                step = min(self._left, len(data) - position)
                self._left -= step
                position += step
                continue
            wanted = self._wanted() - len(self._head)
            self._head += data[position : position + wanted]
            position += wanted
            if len(self._head) >= _LENGTH and len(self._head) == self._wanted():
                whole += self._end_of_head()
        return whole

    def _wanted(self) -> int:
        """Bytes of the head; just those of the length before that is known."""
        if len(self._head) < _LENGTH:
            return _LENGTH
        counted = int.from_bytes(self._head[:_LENGTH], "big")
        if self._shakes_hands:
            return _LENGTH + counted
        return min(self._head_bytes, _LENGTH + self._uncounted + counted)

    @property
    def _shakes_hands(self) -> bool:
        return len(self.handshake) < self._messages

    def _end_of_head(self) -> list[bytes]:
        """The head, if it is of a frame."""
        head = bytes(self._head)
        self._head.clear()
        if self._shakes_hands:
            self.handshake.append(head)
            return []
        counted = int.from_bytes(head[:_LENGTH], "big")
        self._left = _LENGTH + self._uncounted + counted - len(head)
        return [head]


class _Conversation:
    """One connection to a node: which APIs were asked and not answered yet."""

    def __init__(self, *, between_nodes: bool) -> None:
        self._between_nodes = between_nodes
        self._asked: deque[int] = deque()
        """API keys."""
        if between_nodes:
            apart = sealed.SEAL_BYTES
            self._requests = _Frames(
                sealed.API_ENDS_AT, uncounted=apart, messages=sealed.DIALER_MESSAGES
            )
            self._answers = _Frames(_LENGTH, uncounted=apart, messages=sealed.LISTENER_MESSAGES)
        else:
            self._requests, self._answers = _Frames(_API_ENDS_AT), _Frames(_LENGTH)

    @property
    def is_of_interest(self) -> bool:
        """As far as is known: a node that dials says what for."""
        hello = next(iter(self._requests.handshake), None)
        return hello is None or sealed.service_of(hello[_LENGTH:]) == sealed.KAFKA

    def requests(self, data: bytes) -> Iterator[int]:
        """The API keys of those that begin in it."""
        for head in self._requests.take(data):
            api = sealed.api_of(head) if self._between_nodes else _api_of(head)
            self._asked.append(api)
            yield api

    def answers(self, data: bytes) -> Iterator[int]:
        """The API keys that those are for which begin in it."""
        for _ in self._answers.take(data):
            if self._asked:
                yield self._asked.popleft()


def _api_of(head: bytes) -> int:
    return int.from_bytes(head[_LENGTH:_API_ENDS_AT], "big")


Mark = tuple[str, int]
"""A node's host, and an API key."""


class FrameFaults:
    """While a node's requests or answers of an API are **lost**, the first one takes its connection
    with it: what came later on it could not be told apart. `silently`, the asker is not told.

    Are they **late**, each connection that is open then holds one of them back, and all behind it:
    what its asker does meanwhile on another connection, or asks of another node, overtakes it."""

    def __init__(self, world: World) -> None:
        self.lost = 0
        self.delayed = 0
        self._world = world
        self._requests_lost: dict[Mark, bool] = {}
        """-> silently."""
        self._answers_lost: dict[Mark, bool] = {}
        self._requests_late: dict[Mark, _Late] = {}
        self._answers_late: dict[Mark, _Late] = {}
        self._conversations: dict[Endpoint, _Conversation] = {}
        """By the node's end."""
        self._muted: dict[Endpoint, None] = {}
        world.network.on_send = self._on_send

    def lose_requests(self, node: Host, api: int, *, silently: bool) -> Callable[[], None]:
        """What anybody asks of the node. The result ends it."""
        return _marked(self._requests_lost, (node.name, api), silently)

    def lose_answers(self, node: Host, api: int, *, silently: bool) -> Callable[[], None]:
        """What the node answers anybody. The result ends it."""
        return _marked(self._answers_lost, (node.name, api), silently)

    def delay_requests(self, node: Host, api: int, *, by_s: float) -> Callable[[], None]:
        """One that is asked of the node, on each connection. The result ends it."""
        return _marked(self._requests_late, (node.name, api), self._late(node, by_s))

    def delay_answers(self, node: Host, api: int, *, by_s: float) -> Callable[[], None]:
        """One that the node gives, on each connection. The result ends it."""
        return _marked(self._answers_late, (node.name, api), self._late(node, by_s))

    def _late(self, node: Host, by_s: float) -> _Late:
        here = [end for end in self._conversations if end.host is node and not end.closed]
        return _Late(by_s, dict.fromkeys(here))

    def _on_send(self, sender: Endpoint, data: bytes) -> bool:
        """False: the bytes are swallowed."""
        if sender in self._muted:
            return False
        if sender.remote[1] in _LISTENERS:
            lost, late = self._requests_lost, self._requests_late
            where, node = sender.peer, sender.remote_host
            apis = self._conversation(where).requests
        elif sender.local[1] in _LISTENERS:
            lost, late = self._answers_lost, self._answers_late
            where, node = sender, sender.host
            apis = self._conversation(where).answers
        else:
            return True
        if not self._conversations[where].is_of_interest:
            return True
        for api in apis(data):
            mark = (node.name, api)
            if mark in late and where in late[mark].to_come:
                del late[mark].to_come[where]
                self._hold_back(sender, late[mark].by_s)
            if mark in lost:
                return self._lose(sender, silently=lost[mark])
        return True

    def _conversation(self, node_end: Endpoint) -> _Conversation:
        found = self._conversations.get(node_end)
        if found is None:
            found = _Conversation(between_nodes=node_end.local[1] == INTERNODE_PORT)
            self._conversations[node_end] = found
        return found

    def _hold_back(self, sender: Endpoint, by_s: float) -> None:
        """Nothing that is sent from here overtakes within its connection (`Link.carry`)."""
        self.delayed += 1
        sender.last_arrival = max(sender.last_arrival, self._world.now + by_s)

    def _lose(self, sender: Endpoint, *, silently: bool) -> bool:
        self.lost += 1
        if silently:
            self._muted[sender] = None
        else:
            sender.fail()
            sender.peer.fail()
        return False


class _Late(NamedTuple):
    by_s: float
    to_come: dict[Endpoint, None]
    """The connections, by the node's end, on which none was late yet."""


def _marked(marks: dict[Mark, Value], mark: Mark, value: Value) -> Callable[[], None]:
    marks[mark] = value

    def stop() -> None:
        marks.pop(mark, None)

    return stop
