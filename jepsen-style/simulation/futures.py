"""Futures and tasks whose hash is a birth number.

Library code keeps sets of futures (`asyncio.wait`, `TaskGroup`); with the default hash, an
address, such sets are walked in another order in every process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .loop import HostLoop

T = TypeVar("T")


class SimFuture(asyncio.Future[T]):
    def __init__(self, loop: HostLoop) -> None:
        self._birth = loop.next_birth()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._birth


class SimTask(asyncio.Task[T]):
    def __init__(
        self, coro: Coroutine[Any, Any, T], loop: HostLoop, name: str, context: Context | None
    ) -> None:
        # Set first: the base class puts the task into a WeakSet.
        self._birth = loop.next_birth()
        super().__init__(coro, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._birth
