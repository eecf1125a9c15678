"""Each guard at the level of messages: what it lets through, changes, holds and swallows."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from uuid import UUID

import pytest

from logboat.raftlog import RaftSettings
from logboat.raftlog.guards import (
    ALL_GUARDS,
    Backtracking,
    DurableFirst,
    Guard,
    NoForwarding,
    NoNeedlessTruncation,
    NoResending,
    OldSnapshots,
    PinnedDirectories,
    PreVoting,
    SnapshotCommit,
    SnapshotSpin,
    TermOfAnswers,
)
from logboat.raftlog.journal import Journal
from logboat.raftlog.messages import (
    Ack,
    Append,
    CalledVoteRequest,
    Forward,
    Message,
    Pinned,
    PreVote,
    PreVoteRequest,
    SnapshotChunk,
    SnapshotOffer,
    Stale,
    TimeoutNow,
    Vote,
    VoteRequest,
)
from logboat.seam import Fatal, TaskScope
from tests.seam.memory_disk import MemoryDisk


class Node:
    """What a guard sees of its node, set by hand."""

    def __init__(self, journal: Journal) -> None:
        self.node_id = 1
        self.peers: Sequence[int] = (2, 3)
        self.settings = RaftSettings()
        self.journal = journal
        self.commit_index = 0
        self.applied_index = 0
        self.confirmations = 0
        self.leading = False
        self.time = 100.0
        self.directories: dict[int, UUID] = {}
        self.handed_on: list[tuple[int, Message]] = []
        self.said: list[tuple[int, Message]] = []
        self.refreshed = 0
        self.failure: BaseException | None = None

    @property
    def term(self) -> int:
        return self.journal.term

    def now(self) -> float:
        return self.time

    def directory_of(self, peer: int) -> UUID | None:
        return self.directories.get(peer)

    def hand_on(self, guard: Guard, peer: int, message: Message) -> None:
        self.handed_on.append((peer, message))

    def send(self, peer: int, message: Message) -> None:
        self.said.append((peer, message))

    def confirm(self) -> None:
        self.confirmations += 1
        self.journal.append(self.journal.last_index + 1, self.term, b"\0")

    def refresh(self) -> None:
        self.refreshed += 1

    def fail(self, error: BaseException) -> None:
        self.failure = error


async def a_node(*terms: int, term: int | None = None) -> Node:
    """A node whose log holds an entry of each given term, from index 1 on."""
    journal = await Journal.open(MemoryDisk("q"), "q", segment_bytes=4096, rng=Random(0))
    journal.set_term(term or max(terms, default=0), None)
    for index, entry_term in enumerate(terms, start=1):
        journal.append(index, entry_term, b"\0" + bytes([index]))
    return Node(journal)


def append(prev_index: int, prev_term: int, *terms: int, commit: int = 0, term: int = 9) -> Append:
    entries = [
        (b"\0" + bytes([index]), index, entry_term)
        for index, entry_term in enumerate(terms, start=prev_index + 1)
    ]
    return Append(term, commit, prev_index, prev_term, entries)


def ack(next_index: int, *, term: int = 0, success: bool = True, reset: bool = False) -> Ack:
    return Ack(term, next_index, reset, success)


def chunk(index: int, term: int, *, commit: int = 0, message_term: int = 9) -> SnapshotChunk:
    return SnapshotChunk(message_term, commit, index, term, 4, 0, b"data")


# G1


async def test_g1_tags_an_acknowledgement_with_the_term_in_which_it_was_given() -> None:
    guard = TermOfAnswers(await a_node(term=7))
    assert guard.on_send(2, ack(5)) == ack(5, term=7)


async def test_g1_drops_an_acknowledgement_of_another_term() -> None:
    guard = TermOfAnswers(await a_node(1, 1, term=7))
    assert guard.on_receive(2, ack(3, term=6)) is None
    assert guard.on_receive(2, ack(3, term=8)) is None
    assert guard.on_receive(2, ack(3, term=7)) is not None


async def test_g1_drops_an_acknowledgement_beyond_the_own_log() -> None:
    guard = TermOfAnswers(await a_node(1, 1, term=7))
    assert guard.on_receive(2, ack(4, term=7)) is None


async def test_g1_counts_voters_and_not_votes() -> None:
    guard = TermOfAnswers(await a_node(term=7))
    assert guard.on_receive(2, Vote(7)) == Vote(7)
    assert guard.on_receive(2, Vote(7)) is None
    assert guard.on_receive(3, Vote(7)) == Vote(7)
    assert guard.on_receive(2, Vote(8)) == Vote(8)


# G2


async def test_g2_commits_nothing_by_a_snapshot_in_transit() -> None:
    node = await a_node(1, 1, 1)
    node.commit_index = 1
    guard = SnapshotCommit(node)
    message = guard.on_receive(2, chunk(10, 5, commit=12))
    assert isinstance(message, SnapshotChunk)
    assert message.commit_index == 1
    assert guard.on_receive(2, append(3, 1, commit=12)) == append(3, 1, commit=12)


# G4


async def test_g4_keeps_acknowledged_entries_behind_a_resent_append() -> None:
    node = await a_node(1, 1, 1, 1, 1, term=9)
    guard = NoNeedlessTruncation(node)
    shown = guard.on_receive(2, append(1, 1, 1, 1, commit=5))
    # The engine sees an append at the end of its log and has nothing to cut.
    assert shown == Append(9, 3, 5, 1, [])
    # What it acknowledges is what the message verified.
    assert guard.on_send(2, ack(6)) == ack(4)
    guard.after_receive(2)
    assert guard.on_send(2, ack(6)) == ack(6)


async def test_g4_keeps_the_log_behind_an_old_heartbeat() -> None:
    node = await a_node(1, 1, 1, 1, term=9)
    node.commit_index = 2
    guard = NoNeedlessTruncation(node)
    assert guard.on_receive(2, append(1, 1, commit=4)) == Append(9, 2, 4, 1, [])
    assert guard.on_send(2, ack(5)) == ack(2)


async def test_g4_skips_what_the_log_holds_and_passes_the_rest() -> None:
    guard = NoNeedlessTruncation(await a_node(1, 1, 1, term=9))
    assert guard.on_receive(2, append(1, 1, 1, 1, 2, commit=4)) == append(3, 1, 2, commit=4)


async def test_g4_lets_a_conflict_truncate_from_the_conflict_on() -> None:
    guard = NoNeedlessTruncation(await a_node(1, 1, 2, 2, term=9))
    assert guard.on_receive(2, append(1, 1, 1, 3)) == append(2, 1, 3)


async def test_g4_leaves_a_mismatch_to_the_engine() -> None:
    guard = NoNeedlessTruncation(await a_node(1, 1, 2, term=9))
    for refused in (append(3, 1, 1), append(7, 1, 1), append(2, 2)):
        before = Append(
            refused.term, refused.commit_index, refused.prev_index, refused.prev_term, []
        )
        before.entries = list(refused.entries)
        assert guard.on_receive(2, refused) == before


# G5


async def test_g5_jumps_over_the_whole_conflicting_term() -> None:
    guard = Backtracking(await a_node(1, 1, 4, 4, 4, 4, term=9))
    guard.on_receive(2, append(6, 5))
    assert guard.on_send(2, ack(6, success=False, reset=True)) == ack(3, success=False, reset=True)


async def test_g5_holds_its_hint_against_later_messages_of_the_same_backlog() -> None:
    guard = Backtracking(await a_node(1, 1, 4, 4, term=9))
    guard.on_receive(2, append(4, 5))
    guard.on_send(2, ack(4, success=False, reset=True))
    guard.after_receive(2)
    # The engine would now say: start at my end.
    guard.on_receive(2, append(90, 5))
    assert guard.on_send(2, ack(5, success=False, reset=True)) == ack(3, success=False, reset=True)
    guard.after_receive(2)
    guard.on_receive(2, append(2, 1))
    guard.on_send(2, ack(5))
    guard.after_receive(2)
    guard.on_receive(2, append(90, 5))
    assert guard.on_send(2, ack(5, success=False, reset=True)) == ack(5, success=False, reset=True)


async def test_g5_never_points_below_the_commit_index() -> None:
    node = await a_node(1, 1, 4, 4, 4, term=9)
    node.commit_index = 4
    guard = Backtracking(node)
    guard.on_receive(2, append(5, 5))
    assert guard.on_send(2, ack(5, success=False, reset=True)) == ack(5, success=False, reset=True)


async def test_g5_answers_a_compacted_position_with_the_commit_index() -> None:
    node = await a_node(*[1] * 8, term=9)
    node.journal.compact_to(5)
    node.commit_index = 6
    guard = Backtracking(node)
    guard.on_receive(2, append(2, 1))
    # The engine would answer with the end of a tail that may be divergent.
    assert guard.on_send(2, ack(9, success=False, reset=True)) == ack(7, success=False, reset=True)


async def test_g5_leads_a_leader_not_beyond_its_own_log() -> None:
    guard = Backtracking(await a_node(1, 1, term=9))
    message = guard.on_receive(2, ack(150, success=False, reset=True))
    assert message == ack(3, success=False, reset=True)


# G6


async def test_g6_hides_a_follower_for_a_moment_when_there_is_no_snapshot_to_send() -> None:
    node = await a_node(term=9)
    guard = SnapshotSpin(node)
    assert guard.on_send(2, SnapshotOffer(9, 0, available=True)) is not None
    assert guard.shows(2)
    assert guard.on_send(2, SnapshotOffer(9, 0, available=False)) is None
    assert not guard.shows(2)
    assert guard.shows(3)
    assert guard.next_due() == pytest.approx(node.time + 0.05)
    node.time += 0.06
    guard.on_time(node.time)
    assert guard.shows(2)
    assert guard.next_due() is None
    assert node.refreshed == 2


# G7


async def test_g7_answers_the_engines_wish_to_forward_itself() -> None:
    node = await a_node(term=9)
    assert NoForwarding(node).on_send(2, Forward(4)) is None
    assert node.handed_on == [(2, Forward(4))]


# G8


async def test_g8_drops_a_snapshot_behind_the_commit_index() -> None:
    node = await a_node(1, 1, 1, term=9)
    node.journal.compact_to(3)
    node.commit_index = 3
    guard = OldSnapshots(node)
    assert guard.on_receive(2, chunk(2, 1)) is None
    assert node.said == [(2, Ack(9, 4, reset=True, success=False))]


async def test_g8_drops_a_snapshot_whose_last_entry_the_log_holds() -> None:
    # Installing it would empty the log: entries 4 and 5, acknowledged, with it.
    node = await a_node(1, 1, 1, 1, 1, term=9)
    node.commit_index = 1
    guard = OldSnapshots(node)
    assert guard.on_receive(2, chunk(3, 1)) is None
    assert node.said == [(2, Ack(9, 4, reset=True, success=False))]


async def test_g8_passes_a_snapshot_that_replaces_a_divergent_tail() -> None:
    node = await a_node(1, 1, 2, 2, term=9)
    node.commit_index = 2
    assert OldSnapshots(node).on_receive(2, chunk(4, 5)) is not None
    assert OldSnapshots(node).on_receive(2, chunk(40, 5)) is not None


# G9


async def test_g9_lets_answers_wait_for_everything_written_and_appends_for_the_term() -> None:
    node = await a_node(1, 1, term=9)
    guard = DurableFirst(node)
    assert node.journal.written == 3
    for answer in (ack(3), Vote(9), VoteRequest(9, 2, 1)):
        assert guard.depends_on(answer) == 3
    assert guard.depends_on(append(2, 1)) == node.journal.term_position == 1


async def test_g9_holds_an_acknowledgement_until_the_own_log_is_synced_that_far() -> None:
    node = await a_node(1, 1, 1, term=9)
    guard = DurableFirst(node)
    assert guard.on_receive(2, ack(3, term=9)) is None
    assert guard.on_receive(2, ack(4, term=9)) is None
    assert guard.on_receive(3, ack(0, term=9, success=False)) is not None
    guard.on_synced()
    assert node.handed_on == []
    scope = TaskScope(lambda error: None)
    scope.spawn(node.journal.run(scope), name="journal")
    await node.journal.wait_clean()
    await scope.close()
    guard.on_synced()
    assert node.handed_on == [(2, ack(4, term=9))]
    assert guard.on_receive(2, ack(4, term=9)) is not None


async def test_g9_keeps_the_order_of_one_peers_answers() -> None:
    node = await a_node(1, 1, term=9)
    guard = DurableFirst(node)
    assert guard.on_receive(2, ack(3, term=9)) is None
    assert guard.on_receive(2, ack(1, term=9, success=False, reset=True)) is None


async def test_g9_stops_a_lone_voters_ticks_until_its_log_is_synced() -> None:
    node = await a_node(1, term=9)
    node.peers = ()
    guard = DurableFirst(node)
    assert not guard.may_tick()
    scope = TaskScope(lambda error: None)
    scope.spawn(node.journal.run(scope), name="journal")
    await node.journal.wait_clean()
    await scope.close()
    assert guard.may_tick()
    node.peers = (2, 3)
    node.journal.append(2, 9, b"\0")
    assert DurableFirst(node).may_tick()


# G10


async def test_g10_shows_no_peer_to_a_follower_until_a_majority_agrees() -> None:
    node = await a_node(1, 1, term=3)
    guard = PreVoting(node)
    assert not guard.shows(2)
    node.time += 0.59
    guard.on_time(node.time)
    assert node.said == []
    node.time += 0.02
    guard.on_time(node.time)
    assert node.said == [(2, PreVoteRequest(1, 3, 2, 1)), (3, PreVoteRequest(1, 3, 2, 1))]
    assert guard.on_receive(2, PreVote(1, agreed=False, term=3)) is None
    assert not guard.shows(2)
    assert guard.on_receive(3, PreVote(1, agreed=True, term=3)) is None
    assert guard.shows(2)
    assert guard.shows(3)


async def test_g10_grants_one_campaign_and_not_for_ever() -> None:
    node = await a_node(1, term=3)
    guard = PreVoting(node)
    for step in (0.7, 2.0):
        node.time += step
        guard.on_time(node.time)
        guard.on_receive(3, PreVote(guard._round, agreed=True, term=3))
        assert guard.granted
        if step == 0.7:
            node.time += 1.3
            guard.on_time(node.time)
        else:
            guard.on_campaign()
        assert not guard.granted


async def test_g10_hears_no_answer_to_an_earlier_question() -> None:
    node = await a_node(1, term=3)
    guard = PreVoting(node)
    node.time += 0.7
    guard.on_time(node.time)
    node.time += 0.2
    guard.on_time(node.time)
    guard.on_receive(3, PreVote(1, agreed=True, term=3))
    assert not guard.granted


@pytest.mark.parametrize(
    ("case", "agreed"),
    [
        ("quiet", True),
        ("heard a leader", False),
        ("leads itself", False),
        ("asker's log is shorter", False),
        ("asker's last term is older", False),
    ],
)
async def test_g10_agrees_only_without_a_leader_and_to_a_log_not_behind(
    case: str, agreed: bool
) -> None:
    node = await a_node(1, 2, term=3)
    guard = PreVoting(node)
    node.time += 1
    asked = PreVoteRequest(5, 3, 2, 2)
    if case == "heard a leader":
        guard.on_receive(3, append(2, 2, term=3))
        node.time += 0.5
    elif case == "leads itself":
        node.leading = True
    elif case == "asker's log is shorter":
        asked = PreVoteRequest(5, 3, 1, 2)
    elif case == "asker's last term is older":
        asked = PreVoteRequest(5, 3, 9, 1)
    assert guard.on_receive(2, asked) is None
    assert node.said == [(2, PreVote(5, agreed, 3))]


async def test_g10_drops_requests_for_votes_while_a_leader_is_fresh() -> None:
    node = await a_node(1, term=3)
    guard = PreVoting(node)
    node.time += 1
    request = VoteRequest(4, 1, 1)
    assert guard.on_receive(2, request) is request
    guard.on_receive(3, append(1, 1, term=3))
    assert guard.on_receive(2, request) is None
    node.time += 0.7
    assert guard.on_receive(2, request) is request
    node.leading = True
    assert guard.on_receive(2, request) is None


async def test_g10_tells_a_stale_leader_of_the_higher_term() -> None:
    node = await a_node(1, term=8)
    guard = PreVoting(node)
    assert guard.on_receive(2, append(1, 1, term=5)) is None
    assert node.said == [(2, Stale(8))]


async def test_g10_makes_a_stale_leader_step_down_by_a_hopeless_request() -> None:
    node = await a_node(1, term=5)
    guard = PreVoting(node)
    assert guard.on_receive(2, Stale(8)) is None
    node.leading = True
    assert guard.on_receive(2, Stale(8)) == VoteRequest(8, 0, -1)
    assert guard.on_receive(2, Stale(5)) is None


async def test_g10_learns_a_higher_term_from_the_answers_to_its_question() -> None:
    node = await a_node(1, term=5)
    guard = PreVoting(node)
    assert guard.on_receive(2, PreVote(0, agreed=False, term=9)) == VoteRequest(9, 0, -1)


async def test_g10_takes_a_grant_back_when_the_leader_is_heard_again() -> None:
    node = await a_node(1, term=3)
    guard = PreVoting(node)
    node.time += 0.7
    guard.on_time(node.time)
    guard.on_receive(3, PreVote(1, agreed=True, term=3))
    assert guard.granted
    assert guard.on_receive(2, append(1, 1, term=3)) is not None
    assert not guard.granted


async def test_g10_a_voter_that_its_leader_calls_may_campaign_once_unasked() -> None:
    node = await a_node(1, term=3)
    guard = PreVoting(node)
    guard.on_receive(2, append(1, 1, term=3))
    assert not guard.shows(2)
    call = TimeoutNow(3)
    assert guard.on_receive(2, call) is call
    assert guard.shows(2)
    guard.on_receive(2, append(1, 1, term=3))
    assert guard.shows(2), "whoever calls is still heard until the election"
    guard.on_campaign()
    asked = guard.on_send(3, VoteRequest(4, 1, 1))
    assert asked == CalledVoteRequest(4, 1, 1)
    assert not guard.shows(2)
    guard.on_campaign()
    again = VoteRequest(5, 1, 1)
    assert guard.on_send(3, again) is again, "the next campaign is its own"


async def test_g10_a_call_of_another_term_or_too_long_ago_grants_nothing() -> None:
    node = await a_node(1, term=3)
    guard = PreVoting(node)
    for term in (2, 4):
        assert guard.on_receive(2, TimeoutNow(term)) is None
    assert not guard.shows(2)
    guard.on_receive(2, TimeoutNow(3))
    node.time += node.settings.election_max_s
    guard.on_time(node.time)
    assert not guard.shows(2)
    request = VoteRequest(4, 1, 1)
    guard.on_campaign()
    assert guard.on_send(3, request) is request
    node.leading = True
    assert guard.on_receive(2, TimeoutNow(3)) is None


async def test_g10_hears_a_called_request_although_the_leader_is_fresh() -> None:
    node = await a_node(1, term=3)
    guard = PreVoting(node)
    guard.on_receive(2, append(1, 1, term=3))
    assert guard.on_receive(3, VoteRequest(9, 9, 9)) is None
    called = CalledVoteRequest(9, 9, 9)
    assert guard.on_receive(3, called) is called
    node.leading = True
    assert guard.on_receive(3, called) is called, "and so does the leader that called"


# Resending


async def test_entries_on_their_way_over_the_same_connection_are_not_sent_again() -> None:
    guard = NoResending(await a_node(1, 1, 1, 1, term=9))
    assert guard.on_send(2, append(0, 0, 1, 1)) == append(0, 0, 1, 1)
    # After an acknowledgement of entry 1 the engine begins at 2 again.
    assert guard.on_send(2, append(1, 1, 1, 1)) == append(2, 1, 1)
    assert guard.on_send(2, append(1, 1)) == append(1, 1)
    assert guard.on_send(3, append(1, 1, 1, 1)) == append(1, 1, 1, 1)


@pytest.mark.parametrize("change", ["refusal", "connection", "snapshot", "term"])
async def test_entries_are_sent_again_when_they_may_not_have_arrived(change: str) -> None:
    guard = NoResending(await a_node(1, 1, 1, 1, term=9))
    guard.on_send(2, append(0, 0, 1, 1))
    term = 9
    if change == "refusal":
        guard.on_receive(2, ack(1, success=False, reset=True))
    elif change == "connection":
        guard.on_link(2)
    elif change == "snapshot":
        guard.on_send(2, SnapshotOffer(9, 0, available=True))
    else:
        term = 10
    again = append(0, 0, 1, 1, term=term)
    assert guard.on_send(2, again) == append(0, 0, 1, 1, term=term)


# B3


async def test_b3_hears_nothing_from_another_directory_than_the_pinned_one() -> None:
    node = await a_node(1, term=3)
    node.directories = {2: UUID(int=2), 3: UUID(int=33)}
    guard = PinnedDirectories(node, UUID(int=1))
    assert guard.on_receive(3, Vote(3)) == Vote(3)
    guard.pin({1: UUID(int=1), 2: UUID(int=2), 3: UUID(int=3)})
    assert guard.on_receive(2, Vote(3)) == Vote(3)
    assert guard.on_receive(3, Vote(3)) is None
    assert guard.on_receive(3, ack(2)) is None
    # Not the leader: it may be behind, so it says nothing.
    assert node.said == []
    assert node.failure is None


async def test_b3_a_leader_tells_a_stranger_only_what_was_confirmed_after_it_was_heard() -> None:
    node = await a_node(1, 3, term=3)
    node.directories = {2: UUID(int=2), 3: UUID(int=33)}
    node.leading, node.applied_index = True, 2
    guard = PinnedDirectories(node, UUID(int=1))
    guard.pin({1: UUID(int=1), 2: UUID(int=2), 3: UUID(int=3)})
    for _ in range(3):
        assert guard.on_receive(3, ack(2)) is None
    # The leader might have been replaced without knowing, and the stranger be pinned elsewhere.
    assert (node.said, node.confirmations) == ([], 1)
    node.applied_index = 3
    assert guard.on_receive(3, ack(2)) is None
    assert node.said == [(3, Pinned(UUID(int=3)))]
    # Another directory is another question, and so is another term.
    node.directories[3] = UUID(int=34)
    guard.on_receive(3, ack(2))
    node.journal.set_term(4, None)
    guard.on_receive(3, ack(2))
    assert (len(node.said), node.confirmations) == (1, 3)


async def test_b3_a_replaced_voter_is_heard_as_soon_as_its_pin_is_applied() -> None:
    node = await a_node(3, term=3)
    node.directories = {3: UUID(int=33)}
    node.leading, node.applied_index = True, 1
    guard = PinnedDirectories(node, UUID(int=1))
    guard.pin({3: UUID(int=3)})
    assert guard.on_receive(3, ack(2)) is None
    guard.pin({3: UUID(int=33)})
    node.applied_index = 2
    assert guard.on_receive(3, ack(2)) == ack(2)
    assert node.said == []


async def test_b3_a_leader_pinned_elsewhere_ends_once_its_image_is_of_its_own_term() -> None:
    node = await a_node(1, 3, term=3)
    node.leading, node.applied_index = True, 1
    guard = PinnedDirectories(node, UUID(int=11))
    guard.pin({1: UUID(int=1)})
    guard.on_role()
    # Entries of earlier terms are still being applied: its own pin may be among them.
    assert node.failure is None
    node.applied_index = 2
    guard.on_role()
    assert isinstance(node.failure, Fatal)


async def test_b3_lets_a_replaced_voter_pass_the_time_of_its_predecessor() -> None:
    node = await a_node(1, term=3)
    guard = PinnedDirectories(node, UUID(int=11))
    guard.pin({1: UUID(int=1), 2: UUID(int=2)})
    assert node.failure is None
    guard.pin({1: UUID(int=11), 2: UUID(int=2)})
    assert node.failure is None


async def test_b3_ends_a_node_that_is_told_of_another_directory() -> None:
    node = await a_node(1, term=3)
    guard = PinnedDirectories(node, UUID(int=1))
    assert guard.on_receive(2, Pinned(UUID(int=1))) is None
    assert node.failure is None
    assert guard.on_receive(2, Pinned(UUID(int=5))) is None
    assert isinstance(node.failure, Fatal)
    assert "replace-voter" in str(node.failure)


def test_each_guard_says_what_it_corrects_and_has_a_name_of_its_own() -> None:
    names = [guard.name for guard in ALL_GUARDS]
    assert len(set(names)) == len(names)
    assert {"G1", "G2", "G4", "G5", "G6", "G7", "G8", "G9", "G10"} <= set(names)
    assert all("Corrects:" in (guard.__doc__ or "") for guard in ALL_GUARDS)
