"""The requests of one connection: started as their APIs allow, answered in the order they came.

    waiting --start--> unanswered --reply is ready and it is the oldest--> sent

A request starts when it is the oldest, or when everything before it has started and may be
overtaken by its API (`Served.may_start_behind`): a client's pipelined produce requests are appended
in one turn of the loop, while an OffsetFetch still sees the OffsetCommit before it.

One that names thousands of partitions is decoded over several turns, and those behind it wait; so
is a long answer encoded (RULES F1).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from ..metadata.commands import Origin
from ..seam import Buffer, Fatal, OnFatal, TaskScope, all_at_once, with_pauses
from ..wire import ApiKey, Message, Steps
from .caller import Caller
from .dispatch import Dispatcher, unexpected
from .served import Call, CloseConnection, Reply, Served, is_reply


class _Entry:
    __slots__ = ("call", "last", "parts", "ready", "request", "served", "size", "task")

    def __init__(self, served: Served, call: Call, request: Message | None, size: int) -> None:
        self.served = served
        self.call = call
        self.request = request
        self.size = size
        self.ready = False
        self.parts: list[Buffer] | None = None
        """The encoded answer; None when the API sends none (acks=0)."""
        self.last = False
        """The connection ends after this answer."""
        self.task: asyncio.Task[None] | None = None


Send = Callable[[list[Buffer]], None]
Encode = Callable[[Call, Reply], Steps[list[Buffer]]]
Decoded = tuple[Served, Call, Message | None]
Received = tuple[memoryview, Origin | None]


class Pipeline:
    """`receive` takes a frame; `send` is called with each answer in order.

    The owner bounds it: it reads on only while `count` and `size` are below its limits, and is told
    by `on_progress` when they have sunk. `fail` ends the connection with a reason for the log.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        caller: Caller,
        *,
        encode: Encode,
        send: Send,
        fail: Callable[[str], None],
        on_progress: Callable[[int], None],
        tasks: TaskScope,
        on_fatal: OnFatal,
    ) -> None:
        self._dispatcher = dispatcher
        self._caller = caller
        self._encode = encode
        self._send = send
        self._fail = fail
        self._on_progress = on_progress
        self._tasks = tasks
        self._on_fatal = on_fatal
        self._undecoded: deque[Received] = deque()
        """Those behind one that is being decoded."""
        self._decoding: asyncio.Task[None] | None = None
        self._waiting: deque[_Entry] = deque()
        self._unanswered: deque[_Entry] = deque()
        self._unanswered_keys: dict[ApiKey, int] = {}
        self._pumping = False
        self._held = False
        self._closed = False
        self.count = 0
        """Requests received and not answered."""
        self.size = 0
        """Their bytes."""

    def receive(self, frame: memoryview, origin: Origin | None = None) -> None:
        self.count += 1
        self.size += len(frame)
        if self._decoding is None:
            self._decode(frame, origin)
        else:
            self._undecoded.append((frame, origin))

    def _decode(self, frame: memoryview, origin: Origin | None) -> None:
        """What takes more than one step goes on in a task."""
        steps = self._dispatcher.decode(frame, self._caller)
        try:
            next(steps)
        except StopIteration as end:
            self._take(end.value, len(frame), origin)
        except CloseConnection as error:
            self._fail(str(error))
        else:
            self._decoding = self._tasks.spawn(
                self._decode_rest(steps, len(frame), origin), name="decode a request"
            )

    async def _decode_rest(self, steps: Steps[Decoded], size: int, origin: Origin | None) -> None:
        try:
            decoded = await with_pauses(steps)
        except CloseConnection as error:
            self._decoding = None
            self._fail(str(error))
            return
        self._decoding = None
        self._take(decoded, size, origin)
        while self._undecoded and self._decoding is None:
            self._decode(*self._undecoded.popleft())

    def _take(self, decoded: Decoded, size: int, origin: Origin | None) -> None:
        if self._closed:
            return
        served, call, request = decoded
        call.origin = origin
        self._waiting.append(_Entry(served, call, request, size))
        self._pump()

    def hold(self) -> None:
        """The peer takes its answers too slowly: start nothing that makes new ones."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self._pump()

    def abandon(self) -> None:
        """The connection is gone: nothing waiting starts, no answer is sent any more."""
        self._closed = True
        self._undecoded.clear()
        if self._decoding is not None:
            self._decoding.cancel()
        self._waiting.clear()
        for entry in self._unanswered:
            if entry.call.on_gone is not None and not entry.ready:
                entry.call.on_gone()
            if entry.task is not None and entry.served.ends_with_client:
                entry.task.cancel()
        self._unanswered.clear()

    def _pump(self) -> None:
        """Start what may start and send what may be sent, until neither is left."""
        if self._pumping:
            return
        self._pumping = True
        released = 0
        try:
            while not self._closed:
                if self._unanswered and self._unanswered[0].ready:
                    released += self._answer_oldest()
                elif self._waiting and self._may_start(self._waiting[0]):
                    self._start(self._waiting.popleft())
                else:
                    break
        finally:
            self._pumping = False
        if released:
            self._on_progress(released)

    def _may_start(self, entry: _Entry) -> bool:
        if self._held:
            return False
        allowed = entry.served.may_start_behind
        return all(key in allowed for key in self._unanswered_keys)

    def _start(self, entry: _Entry) -> None:
        key = entry.served.key
        self._unanswered.append(entry)
        self._unanswered_keys[key] = self._unanswered_keys.get(key, 0) + 1
        try:
            result = self._dispatcher.handle(entry.served, entry.call, entry.request)
            entry.request = None
            if is_reply(result):
                self._answer_at_once(entry, result)
            else:
                entry.task = self._tasks.spawn(self._await(entry, result), name="request")
                # A task that is cancelled before its first step never gets to the handler.
                entry.task.add_done_callback(lambda _: result.close())
        except Fatal as error:
            self._on_fatal(error)
        except CloseConnection as error:
            self._fail(str(error))
        except Exception as error:
            self._finish_badly(entry, error)

    async def _await(self, entry: _Entry, reply: Coroutine[Any, Any, Reply]) -> None:
        try:
            answer = await reply
            if answer is not None and not self._closed:
                entry.parts = await with_pauses(self._encode(entry.call, answer))
            entry.ready = True
        except Fatal:
            raise  # The task's owner ends the process.
        except CloseConnection as error:
            self._fail(str(error))
        except Exception as error:
            self._finish_badly(entry, error)
        self._pump()

    def _answer_at_once(self, entry: _Entry, reply: Reply) -> None:
        """But for what is left to encode in other turns."""
        if reply is not None:
            steps = self._encode(entry.call, reply)
            try:
                next(steps)
            except StopIteration as end:
                entry.parts = end.value
            else:
                rest = self._encode_rest(entry, steps)
                entry.task = self._tasks.spawn(rest, name="encode an answer")
                return
        entry.ready = True

    async def _encode_rest(self, entry: _Entry, steps: Steps[list[Buffer]]) -> None:
        try:
            entry.parts = await with_pauses(steps)
            entry.ready = True
        except Exception as error:
            self._finish_badly(entry, error)
        self._pump()

    def _finish_badly(self, entry: _Entry, error: Exception) -> None:
        response = unexpected(entry.call, error)
        if response is not None:
            entry.parts = all_at_once(self._encode(entry.call, response))
        entry.ready = entry.last = True

    def _answer_oldest(self) -> int:
        entry = self._unanswered.popleft()
        key = entry.served.key
        left = self._unanswered_keys[key] - 1
        if left:
            self._unanswered_keys[key] = left
        else:
            del self._unanswered_keys[key]
        self.count -= 1
        self.size -= entry.size
        if entry.parts is not None:
            self._send(entry.parts)
        if entry.last:
            self._fail("a request failed")
        return entry.size
