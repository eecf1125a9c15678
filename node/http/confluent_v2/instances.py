"""The consumer instances that live on this node. Nothing of them outlives it.

Bounds: `MAX_INSTANCES` at a time; one that nobody calls for its idle time is ended within a second
of it and leaves its group, so that others get its partitions. What ended is remembered for a while,
to tell its user why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from uuid import UUID

from ....seam import TaskScope
from ..admission import Room
from ..errors import ApiError
from ..leaders import Leaders
from ..ports import HttpNode
from .instance import Instance
from .instance_config import InstanceConfig

log = logging.getLogger(__name__)

MAX_INSTANCES = 1_000
MAX_REMEMBERED = 10_000
MAX_BYTES = 64 << 20
"""Records on their way to clients, of all instances together; further polls wait, in their time."""

SWEEP_S = 0.5
"""Between looks for idle instances."""

Key = tuple[str, str]
"""(group id, instance name)."""


class _Held:
    __slots__ = ("in_use", "instance", "last_used")

    def __init__(self, instance: Instance | None, now: float) -> None:
        self.instance = instance
        """None while the name is only taken: other nodes are being asked for it."""
        self.last_used = now
        self.in_use = 0


class Instances:
    """`start` and `stop` with the HTTP listener."""

    def __init__(
        self, node: HttpNode, leaders: Leaders, rng: Random, *, max_instances: int = MAX_INSTANCES
    ) -> None:
        self._node = node
        self._leaders = leaders
        self._rng = rng
        self._max = max_instances
        self._room = Room(MAX_BYTES)
        self._held: dict[Key, _Held] = {}
        self._ended: dict[Key, float] = {}
        """Expired -> after how many seconds of silence."""
        self._tasks = TaskScope(self._failed)
        self._stopped = False

    def start(self) -> None:
        self._tasks.spawn(self._sweep(), name="idle consumer instances")

    async def stop(self) -> None:
        """Members leave their groups, so that others need not wait for their sessions. May be
        called twice."""
        self._stopped = True
        await self._tasks.close()
        ending = [held.instance for held in self._held.values() if held.instance is not None]
        self._held.clear()
        await asyncio.gather(*(instance.close(commit=False) for instance in ending))

    def _failed(self, error: BaseException) -> None:
        log.error("the sweep of consumer instances failed", exc_info=error)

    def take_name(self, group_id: str, name: str | None) -> str:
        """Nobody else here gets the name until `let_go` or `make`. Raises ApiError 409 or 503."""
        if self._stopped:
            raise ApiError(
                503, "this node is stopping", error_code=50302, retriable=True, hint="ask another"
            )
        if len(self._held) >= self._max:
            raise ApiError(
                503,
                f"there are {self._max} consumer instances on this node",
                error_code=50301,
                retriable=True,
                hint="end those that are not needed, or ask another node",
            )
        if name is None:
            name = f"{self._node.node_id}-{self._rng.getrandbits(96):024x}"
        if (group_id, name) in self._held:
            raise name_is_taken(group_id, name)
        self._held[group_id, name] = _Held(None, self._now())
        return name

    def let_go(self, group_id: str, name: str) -> None:
        self._held.pop((group_id, name), None)

    def make(self, group_id: str, name: str, config: InstanceConfig) -> Instance:
        """Under a name that was taken."""
        member_id = UUID(int=self._rng.getrandbits(128), version=4)
        instance = Instance(
            self._node, self._leaders, group_id, name, config, member_id, self._room
        )
        held = self._held[group_id, name]
        held.instance, held.last_used = instance, self._now()
        self._ended.pop((group_id, name), None)
        instance.start()
        return instance

    def holds(self, group_id: str, name: str) -> bool:
        """Also a name that is only taken: two nodes must not both give it away."""
        return (group_id, name) in self._held

    @contextmanager
    def using(self, group_id: str, name: str) -> Iterator[Instance]:
        """It does not count as idle meanwhile. Raises ApiError 404, 40403."""
        held = self._held.get((group_id, name))
        if held is None or held.instance is None:
            raise self.gone(group_id, name)
        held.in_use += 1
        try:
            yield held.instance
        finally:
            held.in_use -= 1
            held.last_used = self._now()

    def gone(self, group_id: str, name: str) -> ApiError:
        """What is to be said of an instance that is not here."""
        seconds = self._ended.get((group_id, name))
        sentence = f"there is no consumer instance {name[:249]!r} in group {group_id[:249]!r}"
        if seconds is not None:
            sentence += f": it expired after {seconds:g} s without a request"
        return no_instance(sentence)

    async def end(self, group_id: str, name: str) -> None:
        """Its client has done with it. Raises ApiError 404, 40403."""
        with self.using(group_id, name) as instance:
            del self._held[group_id, name]
            await instance.close(commit=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            now = self._now()
            for key, held in list(self._held.items()):
                instance = held.instance
                if instance is None or held.in_use:
                    continue
                if now - held.last_used >= instance.config.idle_ms / 1000:
                    del self._held[key]
                    self._remember(key, instance.config.idle_ms / 1000)
                    # What it gave out may not have been read: nothing is committed.
                    self._tasks.spawn(
                        instance.close(commit=False), name=f"end of consumer {instance.name}"
                    )

    def _remember(self, key: Key, seconds: float) -> None:
        if len(self._ended) >= MAX_REMEMBERED:
            del self._ended[next(iter(self._ended))]
        self._ended[key] = seconds

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def no_instance(sentence: str) -> ApiError:
    return ApiError(
        404, sentence, error_code=40403, hint="create another one; instances end with their node"
    )


def name_is_taken(group_id: str, name: str) -> ApiError:
    return ApiError(
        409,
        f"group {group_id[:249]!r} has a consumer instance {name[:249]!r}",
        error_code=40902,
        hint="end it first, or create one without a name",
    )
