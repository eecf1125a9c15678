"""Requests and answers that never arrive: a look at the frames between clients and nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..simulation import Host, World
from ..simulation.cluster import KAFKA_PORT
from ..simulation.endpoint import Endpoint

_PREFIX = 4
"""Bytes of a frame's length; in a request the API key follows."""


class _Frames:
    """Cuts a byte stream into frames; keeps their first bytes."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._left = 0

    def take(self, data: bytes) -> list[bytes]:
        """The first six bytes of each frame that begins in `data`."""
        begun = []
        position = 0
        while position < len(data):
            if self._left:
                step = min(self._left, len(data) - position)
                self._left -= step
                position += step
                continue
            wanted = _PREFIX + 2 - len(self._head)
            self._head += data[position : position + wanted]
            position += wanted
            if len(self._head) == _PREFIX + 2:
                begun.append(bytes(self._head))
                self._left = int.from_bytes(self._head[:_PREFIX], "big") - 2
                self._head.clear()
        return begun


class LostFrames:
    """While a node's requests or answers of an API are lost, the first one takes its connection
    with it: what came later on it could not be told apart. `silently`, the asker is not told."""

    def __init__(self, world: World) -> None:
        self.lost = 0
        self._requests_lost: dict[tuple[str, int], bool] = {}
        """(node's host, API key) -> silently."""
        self._answers_lost: dict[tuple[str, int], bool] = {}
        self._requests: dict[Endpoint, _Frames] = {}
        self._answers: dict[Endpoint, _Frames] = {}
        self._keys: dict[Endpoint, deque[int]] = {}
        """API keys asked over the node's end and not answered yet."""
        self._muted: dict[Endpoint, None] = {}
        world.network.on_send = self._on_send

    def lose_requests(self, node: Host, api: int, *, silently: bool) -> Callable[[], None]:
        """The result ends it."""
        return _marked(self._requests_lost, (node.name, api), silently)

    def lose_answers(self, node: Host, api: int, *, silently: bool) -> Callable[[], None]:
        """The result ends it."""
        return _marked(self._answers_lost, (node.name, api), silently)

    def _on_send(self, sender: Endpoint, data: bytes) -> bool:
        """False: the bytes are swallowed."""
        if sender in self._muted:
            return False
        if sender.remote[1] == KAFKA_PORT:
            return self._pass_requests(sender, data)
        if sender.local[1] == KAFKA_PORT:
            return self._pass_answers(sender, data)
        return True

    def _pass_requests(self, sender: Endpoint, data: bytes) -> bool:
        keys = self._keys.setdefault(sender.peer, deque())
        for head in self._requests.setdefault(sender, _Frames()).take(data):
            api = int.from_bytes(head[_PREFIX:], "big")
            silently = self._requests_lost.get((sender.remote_host.name, api))
            if silently is not None:
                return self._lose(sender, silently=silently)
            keys.append(api)
        return True

    def _pass_answers(self, sender: Endpoint, data: bytes) -> bool:
        keys = self._keys.setdefault(sender, deque())
        for _ in self._answers.setdefault(sender, _Frames()).take(data):
            if not keys:
                continue
            silently = self._answers_lost.get((sender.host.name, keys.popleft()))
            if silently is not None:
                return self._lose(sender, silently=silently)
        return True

    def _lose(self, sender: Endpoint, *, silently: bool) -> bool:
        self.lost += 1
        if silently:
            self._muted[sender] = None
        else:
            sender.fail()
            sender.peer.fail()
        return False


def _marked(
    lost: dict[tuple[str, int], bool], key: tuple[str, int], silently: bool
) -> Callable[[], None]:
    lost[key] = silently

    def stop() -> None:
        lost.pop(key, None)

    return stop
