"""G6: no spinning for a snapshot."""

from __future__ import annotations

from ..messages import Message, SnapshotOffer
from .guard import Guard, GuardContext

PAUSE_S = 0.05


class SnapshotSpin(Guard):
    """Corrects: while a follower needs a snapshot that is not available, the leader spins.

    The engine sends empty snapshot messages in a loop for a whole heartbeat period (finding E).
    There is no snapshot to give while one is on its way to that follower already. The follower is
    then reported disconnected, which ends the loop, and connected again 50 ms later.
    """

    name = "G6"

    def __init__(self, node: GuardContext) -> None:
        super().__init__(node)
        self._hidden_until: dict[int, float] = {}

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, SnapshotOffer) and not message.available:
            self._hidden_until[peer] = self.node.now() + PAUSE_S
            self.node.refresh()
            return None
        return message

    def shows(self, peer: int) -> bool:
        return peer not in self._hidden_until

    def next_due(self) -> float | None:
        return min(self._hidden_until.values(), default=None)

    def on_time(self, now: float) -> None:
        over = [peer for peer, until in self._hidden_until.items() if until <= now]
        for peer in over:
            del self._hidden_until[peer]
        if over:
            self.node.refresh()
