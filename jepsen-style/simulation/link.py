"""One direction between two hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from .segment import Kind, Segment

if TYPE_CHECKING:
    from .endpoint import Endpoint
    from .world import World

RETRANSMISSION_S = 0.2
"""What a lost segment costs; a segment held by a block waits up to twice this after the heal."""


@dataclass(eq=False)
class Link:
    """A FIFO pipe per connection; connections overtake each other by jitter."""

    world: World
    dice: Random
    latency_s: float = 100e-6
    jitter_s: float = 100e-6
    bytes_per_s: float = 1e9
    loss: float = 0.0
    """Chance of a segment to be lost and sent again."""
    split: float = 0.0
    """Chance of a segment to be cut in two at a random place."""
    blocked: bool = False
    free_at: float = 0.0
    held: list[tuple[Endpoint, Segment]] = field(default_factory=list)
    """Sent while blocked. TCP keeps them; each connection holds at most one window."""

    def carry(self, sender: Endpoint, segment: Segment) -> None:
        """Deliver `segment` to the other end, later, in the connection's order."""
        if self.blocked:
            self.held.append((sender, segment))
            return
        departure = max(self.world.now, self.free_at) + len(segment.data) / self.bytes_per_s
        self.free_at = departure
        arrival = departure + self.delay()
        if self.loss and self.dice.random() < self.loss:
            arrival += RETRANSMISSION_S
        # One clock per connection and direction: nothing overtakes within it.
        arrival = max(arrival, sender.last_arrival)
        sender.last_arrival = arrival
        self.world.at_time(arrival, sender.peer.arrive, segment)

    def delay(self) -> float:
        return self.latency_s + self.dice.random() * self.jitter_s

    def split_at(self, size: int) -> int:
        """How many of `size` bytes the next segment takes."""
        if self.split and size > 1 and self.dice.random() < self.split:
            return 1 + int(self.dice.random() * (size - 1))
        return size

    def block(self) -> None:
        self.blocked = True

    def heal(self) -> None:
        """What was held is retransmitted, and nothing sent later overtakes it."""
        if not self.blocked:
            return
        self.blocked = False
        held, self.held = self.held, []
        resumed = self.world.now + self.dice.random() * 2 * RETRANSMISSION_S
        for sender, segment in held:
            if segment.kind is not Kind.ACK:
                sender.last_arrival = max(sender.last_arrival, resumed)
            self.carry(sender, segment)
