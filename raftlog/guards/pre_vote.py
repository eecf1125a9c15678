"""G10: ask before standing for election."""

from __future__ import annotations

from ..messages import (
    Append,
    CalledVoteRequest,
    Message,
    PreVote,
    PreVoteRequest,
    SnapshotChunk,
    Stale,
    TimeoutNow,
    VoteRequest,
)
from .guard import Guard, GuardContext

CAMPAIGN_POLL_S = 0.01
"""How often the engine may look at its election timer, which is private, once it may campaign."""


class PreVoting(Guard):
    """Corrects: whoever hears nothing raises its term, and deposes a healthy leader (RULES E3).

    The engine campaigns only when it believes to be connected to somebody. So while a node neither
    leads nor has been granted a campaign, its peers are reported disconnected (messages still
    flow). A node that has heard no leader for the smallest election timeout asks its peers; one
    agrees if it leads nothing, has heard no leader for that long either and the asker's log is not
    behind its own. A majority grants one campaign, within the largest election timeout; the
    engine's own random timer then chooses the moment.

    Requests for votes are dropped while a leader is fresh. Since that could strand a node whose
    term has run ahead, an append of a lower term is answered "stale", and its sender feeds itself
    a hopeless vote request of the higher term, by which its engine steps down. A node with a lower
    term learns the higher one from the answers to its question, in the same way.

    A leader that hands over (`transfer.py`) calls its successor, who then may campaign unasked, in
    this term of the leader's only; its requests say that it was called and are not dropped.
    """

    name = "G10"

    def __init__(self, node: GuardContext) -> None:
        super().__init__(node)
        self._heard_at = node.now()
        """When a leader of our term or a later one was last heard. A process that has just started
        counts as having heard one: it may be wrong only in the cautious direction."""
        self._quiet_since = node.now()
        """Heard no leader, led nothing and stood in no election since."""
        self._round = 0
        self._agreed: dict[int, None] = {}
        self._ask_at: float | None = None
        self._granted_until: float | None = None
        self._was_leading = False
        self._called = False
        """By the leader of this term, to take over; granted by that."""
        self._campaigns_called = False

    @property
    def granted(self) -> bool:
        return self._granted_until is not None

    def shows(self, peer: int) -> bool:
        return self.node.leading or self.granted

    def on_campaign(self) -> None:
        # One campaign per grant; the next one needs new answers, or a new call.
        self._campaigns_called, self._called = self._called, False
        self._granted_until = None
        self._quiet_since = self.node.now()
        self._ask_at = None

    def on_role(self) -> None:
        if self.node.leading:
            self._granted_until = None
            self._called = False
            self._was_leading = True
        elif self._was_leading:
            self._was_leading = False
            self._quiet_since = self.node.now()
            self._ask_at = None

    def next_due(self) -> float | None:
        if self.node.leading or not self.node.peers:
            return None
        if self._granted_until is not None:
            return min(self._granted_until, self.node.now() + CAMPAIGN_POLL_S)
        return self._ask_due()

    def on_time(self, now: float) -> None:
        if self.node.leading or not self.node.peers:
            return
        if self._granted_until is not None:
            if self._granted_until <= now:
                self._take_back()
            return
        if self._ask_due() <= now:
            self._ask(now)

    def _ask_due(self) -> float:
        if self._ask_at is not None:
            return self._ask_at
        return self._quiet_since + self.node.settings.election_min_s

    def _ask(self, now: float) -> None:
        self._ask_at = now + self.node.settings.heartbeat_s
        self._round += 1
        self._agreed = {}
        journal = self.node.journal
        for peer in self.node.peers:
            self.node.send(
                peer,
                PreVoteRequest(self._round, self.node.term, journal.last_index, journal.last_term),
            )

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Append | SnapshotChunk):
            return self._on_leader(peer, message)
        if isinstance(message, VoteRequest):
            called = isinstance(message, CalledVoteRequest)
            return message if called or not self._leader_is_fresh() else None
        if isinstance(message, TimeoutNow):
            return self._on_call(message)
        if isinstance(message, PreVoteRequest):
            agreed = not self._leader_is_fresh() and self._not_behind(message)
            self.node.send(peer, PreVote(message.round, agreed, self.node.term))
            return None
        if isinstance(message, PreVote):
            return self._on_answer(peer, message)
        if isinstance(message, Stale):
            return self._hopeless_request(message.term) if self.node.leading else None
        return message

    def _on_leader(self, peer: int, message: Append | SnapshotChunk) -> Message | None:
        if message.term < self.node.term:
            self.node.send(peer, Stale(self.node.term))
            return None
        self._heard_at = self._quiet_since = self.node.now()
        self._ask_at = None
        if self._called and message.term == self.node.term:
            return message  # Whoever called is still heard until the election.
        if self._granted_until is not None:
            self._take_back()
        return message

    def _on_call(self, message: TimeoutNow) -> Message | None:
        """The engine looks for itself whether its caller is the leader of its term."""
        if self.node.leading or message.term != self.node.term:
            return None
        self._called = True
        self._grant()
        return message

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, VoteRequest) and self._campaigns_called:
            return CalledVoteRequest(message.term, message.last_log_index, message.last_log_term)
        return message

    def _grant(self) -> None:
        self._granted_until = self.node.now() + self.node.settings.election_max_s
        self._agreed = {}
        self.node.refresh()

    def _take_back(self) -> None:
        self._granted_until = None
        self._called = False
        self.node.refresh()

    def _on_answer(self, peer: int, message: PreVote) -> Message | None:
        if self.node.leading:
            return None
        if message.round == self._round and message.agreed and not self.granted:
            self._agreed[peer] = None
            voters = len(self.node.peers) + 1
            if 2 * (len(self._agreed) + 1) > voters:
                self._grant()
        return self._hopeless_request(message.term)

    def _hopeless_request(self, term: int) -> Message | None:
        """Make the engine adopt a higher term: a request for votes that nobody can grant."""
        if term <= self.node.term:
            return None
        return VoteRequest(term, last_log_index=0, last_log_term=-1)

    def _leader_is_fresh(self) -> bool:
        if self.node.leading:
            return True
        return self.node.now() - self._heard_at < self.node.settings.election_min_s

    def _not_behind(self, asker: PreVoteRequest) -> bool:
        journal = self.node.journal
        theirs = (asker.last_log_term, asker.last_log_index)
        return theirs >= (journal.last_term, journal.last_index)
