"""B3: a voter is its directory."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from ...seam import Fatal
from ..messages import Message, Pinned
from .guard import Guard, GuardContext


class PinnedDirectories(Guard):
    """A voter that lost its disk has lost its votes and its acknowledgements (RULES B3).

    Once the quorum has pinned a directory id for a voter, nothing that comes from another directory
    under the same node id is heard, and that node is told so; it ends. `Pinned` is believed because
    only a holder of the cluster's secret can send it.
    """

    name = "B3"

    def __init__(self, node: GuardContext, directory_id: UUID) -> None:
        super().__init__(node)
        self._directory_id = directory_id
        self._pins: dict[int, UUID] = {}

    def pin(self, pins: Mapping[int, UUID]) -> None:
        """The pins of the newest image; earlier ones are forgotten.

        A pin of this very node counts only while it leads: a replaced voter that catches up passes
        the time when its predecessor was the pinned one. If it is not pinned in the end, it is told
        by the others.
        """
        self._pins = dict(pins)
        mine = self._pins.get(self.node.node_id)
        if mine is not None and self.node.leading:
            self._check(mine)

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Pinned):
            self._check(message.directory_id)
            return None
        pinned = self._pins.get(peer)
        if pinned is not None and self.node.directory_of(peer) != pinned:
            self.node.send(peer, Pinned(pinned))
            return None
        return message

    def _check(self, pinned: UUID) -> None:
        if pinned != self._directory_id:
            self.node.fail(
                Fatal(
                    f"the quorum knows node {self.node.node_id} by directory {pinned}, this one is "
                    f"{self._directory_id}: it cannot vote. If the old one is lost, run "
                    "`logboat quorum replace-voter`"
                )
            )
