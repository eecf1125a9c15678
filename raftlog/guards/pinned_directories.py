"""B3: a voter is its directory."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from ...seam import Fatal, frozen
from ..messages import Message, Pinned
from .guard import Guard, GuardContext


@frozen
class _Stranger:
    """A directory that was heard in a voter's name while this node led."""

    directory_id: UUID | None
    term: int
    last_index: int
    """The own log's end when it was first heard."""


class PinnedDirectories(Guard):
    """A voter that lost its disk has lost its votes and its acknowledgements (RULES B3).

    Once the quorum has pinned a directory id for a voter, nothing that comes from another directory
    under the same node id is heard. Every node swallows what it knows to be wrong; only the leader
    tells the stranger, which ends then. A pin that is told must not be older than one that
    `replace-voter` has acknowledged, or a rightly replaced voter would be ended by a peer that is
    behind. So the leader says it only when an entry that it appended after it had heard the
    stranger is applied: it led at that time, and its image holds every pin decided before.

    `Pinned` is believed because only a holder of the cluster's secret can send it.
    """

    name = "B3"

    def __init__(self, node: GuardContext, directory_id: UUID) -> None:
        super().__init__(node)
        self._directory_id = directory_id
        self._pins: dict[int, UUID] = {}
        self._strangers: dict[int, _Stranger] = {}
        """By the node id that they claim."""

    def pin(self, pins: Mapping[int, UUID]) -> None:
        """The pins of the newest image; earlier ones are forgotten."""
        self._pins = dict(pins)
        self.on_role()

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Pinned):
            self._check(message.directory_id)
            return None
        pinned = self._pins.get(peer)
        if pinned is not None and self.node.directory_of(peer) != pinned:
            self._refuse(peer, pinned)
            return None
        return message

    def on_role(self) -> None:
        """A leader finds out by itself, once its image holds what was decided before its term.

        A replaced voter that catches up passes the time when its predecessor was the pinned one,
        perhaps while it leads already.
        """
        node = self.node
        mine = self._pins.get(node.node_id)
        if mine is None or mine == self._directory_id or not node.leading:
            return
        if node.journal.term_at(node.applied_index) == node.term:
            self._check(mine)

    def _refuse(self, peer: int, pinned: UUID) -> None:
        node = self.node
        if not node.leading:
            return
        directory_id, stranger = node.directory_of(peer), self._strangers.get(peer)
        if stranger is None or stranger.directory_id != directory_id or stranger.term != node.term:
            last_index = node.journal.last_index
            self._strangers[peer] = _Stranger(directory_id, node.term, last_index)
            node.confirm()
        elif node.applied_index > stranger.last_index:
            # Of this term: a leader's entries stay while it leads. Told anew, it is looked up anew.
            del self._strangers[peer]
            node.send(peer, Pinned(pinned))

    def _check(self, pinned: UUID) -> None:
        if pinned != self._directory_id:
            self.node.fail(
                Fatal(
                    f"the quorum knows node {self.node.node_id} by directory {pinned}, this one is "
                    f"{self._directory_id}: it cannot vote. If the old one is lost, run `logboat "
                    f"quorum replace-voter {self.node.node_id} {self._directory_id}` and start "
                    "this node again"
                )
            )
