"""What is broken on purpose in this process, until when, and how it is mended.

Only a node that was told so (`--with-faults`) has such switches; its loop, disk and clock look at
them (`faulty_network`, `faulty_disk`, `faulty_clock`). Every fault ends by itself, by the loop's
clock, which none of them moves: whoever asked for it may be gone by then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

from .fault_history import FaultHistory

LONGEST_PAUSE_S = 30.0
PAUSE_DELAY_S = 0.05
"""Until a pause begins, so that its request is answered before."""

DOZE_S = 0.05
"""Between two looks whether a pause is over early."""


class Link(Protocol):
    """A connection to another node."""

    def apply(self) -> None:
        """The switches have changed."""
        ...


class FaultSwitches:
    """What is broken now, and the connections that it concerns. Chances are between 0 and 1."""

    def __init__(self, rng: Random, history: FaultHistory) -> None:
        """`rng`: what is lost, where some of it is to be lost."""
        self.history = history
        self.disk_is_full = False
        """Read by threads, too: files are preallocated beside the loop."""
        self.clock_offset_ms = 0
        self._rng = rng
        self._cut: dict[int, None] = {}
        self._delays: dict[int, float] = {}
        self._losses: dict[int, float] = {}
        self._links: dict[Link, None] = {}
        self._timers: dict[tuple[str, int | None], asyncio.TimerHandle] = {}
        self._healed = asyncio.Event()
        self._wakes = 0

    @property
    def cut(self) -> list[int]:
        """Nodes that nothing is sent to and nothing is read from."""
        return sorted(self._cut)

    @property
    def delays(self) -> Mapping[int, float]:
        """Seconds that bytes to a node are held."""
        return dict(sorted(self._delays.items()))

    @property
    def losses(self) -> Mapping[int, float]:
        """The chance that something sent to a node is lost, and its connection with it."""
        return dict(sorted(self._losses.items()))

    # Breaking

    def cut_off(self, node_id: int, for_s: float) -> None:
        self._cut[node_id] = None
        self._end_later("partition", node_id, for_s, lambda: self._cut.pop(node_id, None))
        self._apply()

    def delay(self, node_id: int, delay_s: float, for_s: float) -> None:
        self._delays[node_id] = delay_s
        self._end_later("delay", node_id, for_s, lambda: self._delays.pop(node_id, None))

    def lose(self, node_id: int, chance: float, for_s: float) -> None:
        self._losses[node_id] = chance
        self._end_later("drop", node_id, for_s, lambda: self._losses.pop(node_id, None))

    def fill_disk(self, for_s: float) -> None:
        self.disk_is_full = True
        self._end_later("disk-full", None, for_s, self._give_room)

    def shift_clock(self, offset_ms: int, for_s: float) -> None:
        """The wall clock, by so much; clocks that measure durations go on as they were."""
        self.clock_offset_ms = offset_ms
        self._end_later("clock", None, for_s, self._set_clock)

    def pause(self, for_s: float) -> None:
        """The whole process stands still in a moment, while clock and deadlines run on."""
        seconds, wakes = min(for_s, LONGEST_PAUSE_S), self._wakes

        def stand_still() -> None:
            end = time.monotonic() + seconds
            while self._wakes == wakes and (left := end - time.monotonic()) > 0:
                time.sleep(min(left, DOZE_S))

        asyncio.get_running_loop().call_later(PAUSE_DELAY_S, stand_still)

    def wake(self) -> None:
        """No pause that was asked for lasts any longer. Called by the handler of a signal: who
        stands still hears nothing else."""
        self._wakes += 1

    def heal(self) -> None:
        self.wake()
        self._cut.clear()
        self._delays.clear()
        self._losses.clear()
        self._give_room()
        self._set_clock()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._apply()

    # Asked by who is to be hurt

    def is_cut(self, node_id: int | None) -> bool:
        return node_id in self._cut

    def delay_to(self, node_id: int | None) -> float:
        return 0.0 if node_id is None else self._delays.get(node_id, 0.0)

    def loses(self, node_id: int | None) -> bool:
        """Whether what is being sent to this node is lost: thrown anew at every call."""
        chance = 0.0 if node_id is None else self._losses.get(node_id, 0.0)
        return chance > 0 and self._rng.random() < chance

    async def reachable(self, node_id: int | None) -> None:
        while self.is_cut(node_id):
            await self._healed.wait()

    def enter(self, link: Link) -> None:
        self._links[link] = None

    def leave(self, link: Link) -> None:
        self._links.pop(link, None)

    def _give_room(self) -> None:
        self.disk_is_full = False

    def _set_clock(self) -> None:
        self.clock_offset_ms = 0

    def _end_later(
        self, kind: str, node_id: int | None, for_s: float, end: Callable[[], object]
    ) -> None:
        """The last word counts: the same fault asked for again lasts from then on."""
        previous = self._timers.pop((kind, node_id), None)
        if previous is not None:
            previous.cancel()

        def ended() -> None:
            del self._timers[kind, node_id]
            end()
            self._apply()

        self._timers[kind, node_id] = asyncio.get_running_loop().call_later(for_s, ended)

    def _apply(self) -> None:
        healed, self._healed = self._healed, asyncio.Event()
        healed.set()
        for link in list(self._links):
            link.apply()
