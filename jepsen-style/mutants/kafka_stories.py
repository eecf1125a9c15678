"""Short stories about a partitioned log: the fault of one anomaly class, or just short of it.

A story tells what clients asked and were answered on key `x`; noise on other keys and other
processes surrounds it. `bad` False tells the nearest story that is no fault, so a checker that is
too eager is caught as well as one that is blind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from ..checkers.kafka import KafkaSettings
from ..history import History, Outcome

Micro = list[Any]


class Story:
    """Events in order. Producers are processes 0-4, consumers 5-9, noise 20 and above."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.history = History()
        self.settings = KafkaSettings()
        self._noise = random.random() < 0.5
        self._noise_offset = 0
        self.base = random.randrange(5)
        """The first offset of x, so that nothing hangs on zero."""

    def begin(self, process: int, micros: list[Micro], function: str = "txn") -> None:
        self._maybe_noise()
        self.history.invoke(process, function, micros, self.history.events)

    def end(self, process: int, micros: list[Micro] | None, outcome: Outcome = Outcome.OK) -> None:
        self._maybe_noise()
        self.history.complete(process, outcome, micros, self.history.events)

    def do(self, process: int, asked: list[Micro], answered: list[Micro]) -> None:
        self.begin(process, asked)
        self.end(process, answered)

    def send(self, process: int, value: int, offset: int, key: str = "x") -> None:
        self.do(process, [["send", key, value]], [["send", key, [offset, value]]])

    def poll(self, process: int, *pairs: tuple[int, int], key: str = "x") -> None:
        found = {key: [list(pair) for pair in pairs]}
        self.do(process, [["poll"]], [["poll", found]])

    def assign(self, process: int, *keys: str) -> None:
        self.history.invoke(process, "assign", list(keys), self.history.events)
        self.history.complete(process, Outcome.OK, list(keys), self.history.events)

    def see(self, function: str, **value: Any) -> None:
        self.history.observe({"process": "observer", "f": function, "value": value})

    def _maybe_noise(self) -> None:
        if not self._noise or self.random.random() < 0.5:
            return
        self._noise = False
        offset = self._noise_offset
        self._noise_offset += 1
        self.send(20, offset, offset, key="noise")
        self.poll(21, (offset, offset), key="noise")
        self._noise = True


def clean(story: Story, bad: bool) -> None:
    base = story.base
    for value in range(story.random.randrange(1, 4)):
        story.send(value % 2, value, base + 2 * value)
        story.poll(5, (base + 2 * value, value))


def inconsistent_offsets(story: Story, bad: bool) -> None:
    base = story.base
    story.send(0, 1, base)
    story.send(1, 2, base if bad else base + 1)
    story.poll(5, (base, 1), (base + 1, 2)) if not bad else story.poll(5, (base, 1))


def duplicate(story: Story, bad: bool) -> None:
    base = story.base
    story.send(0, 1, base)
    story.send(0, 2, base + 1)
    story.poll(5, (base, 1), (base + 1, 2), *([(base + 2, 1)] if bad else []))


def lost_write(story: Story, bad: bool) -> None:
    base = story.base
    for value in (1, 2, 3):
        story.send(0, value, base + value)
    if bad:
        story.poll(5, (base + 1, 1))
        story.poll(6, (base + 3, 3))
    else:
        story.poll(5, (base + 1, 1), (base + 2, 2))


def lost_indeterminate(story: Story, bad: bool) -> None:
    """A send that timed out and was never seen is no loss, whatever comes after it."""
    story.begin(0, [["send", "x", 9]])
    story.end(0, None, Outcome.INFO)
    lost_write(story, bad)


def unseen(story: Story, bad: bool) -> None:
    base = story.base
    story.send(0, 1, base)
    story.send(0, 2, base + 1)
    story.poll(5, (base, 1), *([] if bad else [(base + 1, 2)]))


def retention(story: Story, bad: bool) -> None:
    """The head was removed by the log start: no loss below it, a loss at it."""
    base = story.base
    for value in (1, 2, 3):
        story.send(0, value, base + value)
    start = base + (1 if bad else 2)
    story.do(6, [["earliest", "x"]], [["earliest", "x", start]])
    story.poll(5, (base + 2, 2), (base + 3, 3))


def deletion(story: Story, bad: bool) -> None:
    """The head was deleted by a client who was never answered: no loss below, a loss at it."""
    _head_gone(story, bad, "delete-records")


def outlived(story: Story, bad: bool) -> None:
    """Retention has let a replica drop the head: no loss below where it begins, a loss at it."""
    _head_gone(story, bad, "retention")


def _head_gone(story: Story, bad: bool, why: str) -> None:
    base = story.base
    for value in (1, 2, 3):
        story.send(0, value, base + value)
    story.see(why, key="x", before=base + (1 if bad else 2))
    story.poll(5, (base + 2, 2), (base + 3, 3))


def compacted_topic(story: Story, bad: bool) -> None:
    """Its topic says that x is compacted: what a later record replaces may be gone, and a tombstone
    as well; the last value of a key (`bad`) may not."""
    story.see("durability", topic="x", mode="synced", compacted=True)
    base = story.base
    values: list[Any] = [["a", 0], ["a", 1], ["b", 2] if bad else ["b", 2, None], ["c", 3]]
    for number, value in enumerate(values):
        story.do(0, [["send", "x", value]], [["send", "x", [base + number, value]]])
    found = [[base + 1, values[1]], [base + 3, values[3]]]
    story.do(5, [["poll"]], [["poll", {"x": found}]])


def compaction(story: Story, bad: bool) -> None:
    story.settings = KafkaSettings(compacted=frozenset({"x"}))
    base = story.base
    keys = ("a", "b", "c") if bad else ("a", "b", "a")
    for number, key in enumerate(keys):
        value: Any = [key, number]
        offset = base + number
        story.do(0, [["send", "x", value]], [["send", "x", [offset, value]]])
    found = [[base + 1, ["b", 1]], [base + 2, [keys[2], 2]]]
    story.do(5, [["poll"]], [["poll", {"x": found}]])


def aborted_read(story: Story, bad: bool) -> None:
    base = story.base
    story.begin(0, [["send", "x", 1]])
    story.end(0, [["send", "x", 1]], Outcome.FAIL if bad else Outcome.INFO)
    story.poll(5, (base, 1))


def phantom(story: Story, bad: bool) -> None:
    story.send(0, 1, story.base)
    story.poll(5, (story.base, 1), *([(story.base + 1, 7)] if bad else []))


def precommitted_read(story: Story, bad: bool) -> None:
    base = story.base
    story.send(1, 5, base)
    send, sent = ["send", "x", 1], ["send", "x", [base + 1, 1]]
    found = [[base, 5], *([[base + 1, 1]] if bad else [])]
    story.do(0, [send, ["poll"]], [sent, ["poll", {"x": found}]])
    story.poll(5, (base, 5), (base + 1, 1))


def three(story: Story, gap: int = 1) -> list[tuple[int, int]]:
    pairs = [(story.base + gap * number, number) for number in range(3)]
    for offset, value in pairs:
        story.send(0, value, offset)
    story.poll(9, *pairs)
    return pairs


def int_poll_skip(story: Story, bad: bool) -> None:
    pairs = three(story, gap=2)
    story.poll(5, pairs[0], *([] if bad else [pairs[1]]), pairs[2])


def int_nonmonotonic_poll(story: Story, bad: bool) -> None:
    pairs = three(story)
    story.poll(5, *((pairs[1], pairs[0]) if bad else (pairs[0], pairs[1])))


def int_repeated_poll(story: Story, bad: bool) -> None:
    pairs = three(story)
    story.poll(5, pairs[0], pairs[0] if bad else pairs[1])


def poll_skip(story: Story, bad: bool) -> None:
    pairs = three(story, gap=2)
    story.poll(5, pairs[0])
    if not bad and story.random.random() < 0.5:
        story.assign(5, "y")
        story.assign(5, "x")
        story.poll(5, pairs[2])
    else:
        story.poll(5, pairs[2] if bad else pairs[1])


def nonmonotonic_poll(story: Story, bad: bool) -> None:
    pairs = three(story)
    story.poll(5, pairs[0], pairs[1])
    story.poll(5 if bad else 6, pairs[story.random.randrange(2)])


def kept_assignment(story: Story, bad: bool) -> None:
    """An assignment that keeps the key keeps its position."""
    pairs = three(story)
    story.poll(5, pairs[0], pairs[1])
    story.assign(5, *(("x", "y") if bad else ("y",)))
    story.poll(5, pairs[0])


def rebalance(story: Story, bad: bool) -> None:
    story.settings = KafkaSettings(sub_via="assign" if bad else "subscribe")
    pairs = three(story)
    story.poll(5, *pairs)
    story.poll(5, *pairs)


def nonmonotonic_send(story: Story, bad: bool) -> None:
    base = story.base
    first, second = (base + 2, base + 1) if bad else (base + 1, base + 2)
    story.send(0, 1, first)
    story.send(0, 2, second)
    story.poll(5, *sorted(((first, 1), (second, 2))))


def nonmonotonic_unknown_send(story: Story, bad: bool) -> None:
    """The earlier send is indeterminate, so only its process's own order tells."""
    base = story.base
    story.begin(0, [["send", "x", 1]])
    story.end(0, None, Outcome.INFO)
    first, second = (base + 2, base + 1) if bad else (base + 1, base + 2)
    story.send(0, 2, second)
    story.poll(5, *sorted(((first, 1), (second, 2))))


def int_nonmonotonic_send(story: Story, bad: bool) -> None:
    base = story.base
    first, second = (base + 2, base + 1) if bad else (base + 1, base + 2)
    story.do(
        0,
        [["send", "x", 1], ["send", "x", 2]],
        [["send", "x", [first, 1]], ["send", "x", [second, 2]]],
    )
    story.poll(5, *sorted(((first, 1), (second, 2))))


def int_send_skip(story: Story, bad: bool) -> None:
    base = story.base
    story.begin(0, [["send", "x", 1], ["send", "x", 2]])
    if bad:
        story.send(1, 3, base + 1)
    story.end(0, [["send", "x", [base, 1]], ["send", "x", [base + 2, 2]]])
    story.poll(5, (base, 1), *([(base + 1, 3)] if bad else []), (base + 2, 2))


def append_order_inversion(story: Story, bad: bool) -> None:
    base = story.base
    story.begin(0, [["send", "x", 1]])
    if not bad:
        story.begin(1, [["send", "x", 2]])
    story.end(0, [["send", "x", [base + 1, 1]]])
    if bad:
        story.begin(1, [["send", "x", 2]])
    story.end(1, [["send", "x", [base, 2]]])
    story.poll(5, (base, 2), (base + 1, 1))


def write_cycle(story: Story, bad: bool) -> None:
    """G0: two transactions, each above the other on one key."""
    story.begin(0, [["send", "x", 1], ["send", "y", 2]])
    story.begin(1, [["send", "x", 3], ["send", "y", 4]])
    a, b = (1, 0) if bad else (0, 1)
    story.end(0, [["send", "x", [0, 1]], ["send", "y", [a, 2]]])
    story.end(1, [["send", "x", [1, 3]], ["send", "y", [b, 4]]])
    story.poll(5, (0, 1), (1, 3))
    story.poll(6, *sorted(((a, 2), (b, 4))), key="y")


def read_cycle(story: Story, bad: bool) -> None:
    """G1c: each of two transactions read what the other sent."""
    story.begin(0, [["send", "x", 1], ["poll"]])
    story.begin(1, [["send", "y", 2], ["poll"]])
    story.end(0, [["send", "x", [0, 1]], ["poll", {"y": [[0, 2]]} if bad else {}]])
    story.end(1, [["send", "y", [0, 2]], ["poll", {"x": [[0, 1]]}]])
    story.poll(5, (0, 2), key="y")


def read_from_the_future(story: Story, bad: bool) -> None:
    """G1c by real time: a poll completed before the send that it read was invoked."""
    base = story.base
    if bad:
        story.poll(5, (base, 1))
        story.send(0, 1, base)
    else:
        story.send(0, 1, base)
        story.poll(5, (base, 1))


def intermediate_read(story: Story, bad: bool) -> None:
    base = story.base
    story.do(
        0,
        [["send", "x", 1], ["send", "x", 2]],
        [["send", "x", [base, 1]], ["send", "x", [base + 1, 2]]],
    )
    story.poll(6, (base, 1), *([] if bad else [(base + 1, 2)]))
    story.poll(5, (base, 1), (base + 1, 2))


def stale_end(story: Story, bad: bool) -> None:
    base = story.base
    story.send(0, 1, base)
    answer = base if bad else base + 1
    story.do(6, [["latest", "x"]], [["latest", "x", answer]])
    story.poll(5, (base, 1))


def end_went_back(story: Story, bad: bool) -> None:
    story.do(6, [["latest", "x"]], [["latest", "x", 7]])
    story.do(7, [["latest", "x"]], [["latest", "x", 6 if bad else 7]])


def lost_commit(story: Story, bad: bool) -> None:
    for offset in (3, 5):
        commit = ["commit", "g", "x", offset]
        story.do(6, [commit], [commit])
    answer = 3 if bad else 5
    story.do(7, [["committed", "g", "x"]], [["committed", "g", "x", answer]])


def two_owners(story: Story, bad: bool) -> None:
    for process, member, keys in ((5, "a", ["x"]), (6, "b", ["x", "y"] if bad else ["y"])):
        answer = ["assignment", "g", 3, member, keys]
        story.do(process, [["assignment", "g"]], [answer])


def generation_went_back(story: Story, bad: bool) -> None:
    for process, generation in ((5, 3), (6, 2 if bad else 3)):
        answer = ["assignment", "g", generation, str(process), []]
        story.do(process, [["assignment", "g"]], [answer])


def stale_commit(story: Story, bad: bool) -> None:
    """A commit of the generation before (`bad`), or of the one that is."""
    for process, generation, member in ((5, 3, "a"), (6, 4, "b")):
        answer = ["assignment", "g", generation, member, ["x"]]
        story.do(process, [["assignment", "g"]], [answer])
    commit = ["commit", "g", "x", 3, 3 if bad else 4]
    story.do(7, [commit], [commit])


def skipped_by_group(story: Story, bad: bool) -> None:
    """A stranger has read all, and the group has not (`bad`)."""
    pairs = three(story)
    answer = ["assignment", "g", 1, "a", ["x"]]
    story.do(5, [["assignment", "g"]], [answer])
    story.poll(5, pairs[0])
    story.poll(6 if bad else 5, pairs[1])
    story.see("group-done", group="g", ends={"x": pairs[2][0]})


def topics(story: Story, bad: bool) -> None:
    """A topic is created twice, or is still described after it was deleted."""
    create, delete = ["create-topic", "t", {"partitions": 3}], ["delete-topic", "t"]
    describe = ["describe-topic", "t"]
    story.do(6, [create], [create])
    if story.random.random() < 0.5:
        story.do(7, [create], [create if bad else [*create, "exists"]])
        return
    story.do(7, [delete], [delete])
    story.do(6, [describe], [[*describe, {"partitions": 3} if bad else None]])


def unknown_deletion(story: Story, bad: bool) -> None:
    """A deletion timed out. The topic may be gone and (`bad`) must then stay gone."""
    create, describe = ["create-topic", "t", {}], ["describe-topic", "t"]
    story.do(6, [create], [create])
    story.begin(8, [["delete-topic", "t"]])
    story.end(8, None, Outcome.INFO)
    seen: tuple[Any, Any] = (None, {}) if bad else ({}, None)
    for found in seen:
        story.do(7, [describe], [[*describe, found]])


def leaders(story: Story, bad: bool) -> None:
    clean(story, False)
    story.see("leader", key="x", epoch=1, leader=1)
    story.see("leader", key="x", epoch=1 if bad else 2, leader=2)


def epochs(story: Story, bad: bool) -> None:
    clean(story, False)
    story.see("leader", key="x", epoch=4, leader=1)
    story.see("leader", key="x", epoch=3 if bad else 5, leader=2)


def stale_isr(story: Story, bad: bool) -> None:
    clean(story, False)
    story.see("leader", key="x", epoch=4, leader=1)
    story.see("isr", key="x", epoch=3 if bad else 4, isr=[1, 2])


def high_watermark(story: Story, bad: bool) -> None:
    clean(story, False)
    story.see("high-watermark", key="x", node=1, incarnation=1, high_watermark=5)
    incarnation = 1 if bad else 2
    story.see("high-watermark", key="x", node=1, incarnation=incarnation, high_watermark=4)


def sequences(story: Story, bad: bool) -> None:
    clean(story, False)
    second = story.random.choice((1, 3)) if bad else 2
    story.see("batches", key="x", batches=[[0, 9, 0, 0, 2], [2, 9, 0, second, 1]])


def first_sequence(story: Story, bad: bool) -> None:
    """A log of which nothing was deleted begins with each producer's sequence 0."""
    clean(story, False)
    first = 2 if bad else 0
    story.see("batches", key="x", log_start=0, batches=[[0, 9, 0, first, 2]])
    story.see("batches", key="y", log_start=4, batches=[[4, 9, 0, 2, 2]])


def producer_epochs(story: Story, bad: bool) -> None:
    """A producer bumps its epoch, and another one with a larger epoch stands in between."""
    clean(story, False)
    last = [4, 9, 0, 2, 2] if bad else [4, 9, 1, 2, 2]
    batches = [[0, 9, 0, 0, 2], [2, 9, 1, 0, 2], [3, 8, 5, 0, 1], last]
    story.see("batches", key="x", batches=batches)


def replicas(story: Story, bad: bool) -> None:
    clean(story, False)
    batches = [[0, 1, "a"], [2, 1, "b"], [4, 1, "c"]]
    other = [[0, 1, "a"], [2, 1, "B" if bad else "b"], [4, 1, "C"]]
    story.see("replica", key="x", node=1, log_start=0, high_watermark=6, batches=batches)
    story.see("replica", key="x", node=2, log_start=0, high_watermark=4, batches=other)


def epoch_records(story: Story, bad: bool) -> None:
    """Two replicas hold another record each at one offset: of one leader epoch, or of two."""
    clean(story, False)
    mine, theirs = [[0, 1, "a"], [2, 1, "b"]], [[0, 1, "a"], [2, 1 if bad else 2, "c"]]
    story.see("replica", key="x", node=1, log_start=0, high_watermark=2, batches=mine)
    story.see("replica", key="x", node=2, log_start=0, high_watermark=2, batches=theirs)


def lost_at_rest(story: Story, bad: bool) -> None:
    """The last record was acknowledged and read; in the end no replica reaches that far."""
    base = story.base
    story.send(0, 1, base)
    story.send(0, 2, base + 1)
    story.poll(5, (base, 1), (base + 1, 2))
    end = base + (1 if bad else 2)
    for node in (1, 2):
        story.see("replica", key="x", node=node, log_start=end, high_watermark=end, batches=[])


def replaced(story: Story, bad: bool) -> None:
    """Another record took the place of an acknowledged one; its last holder was only killed, or
    was wiped and the promise void.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1])
    story.send(0, 1, base)
    story.see("fault", kind="kill" if bad else "wipe", node=1)
    story.begin(1, [["send", "x", 2]])
    story.end(1, None, Outcome.INFO)
    story.poll(5, (base, 2))


def one_acknowledgement(story: Story, bad: bool) -> None:
    """Lost although acknowledged: by the leader alone, which promises nothing, or by all."""
    story.settings = KafkaSettings(acks_all=bad)
    lost_write(story, True)


def truncation(story: Story, bad: bool) -> None:
    base = story.base
    story.send(0, 1, base)
    story.poll(5, (base, 1))
    story.see("truncate", key="x", node=2, to=base if bad else base + 1, in_sync=True)


def last_replica(story: Story, bad: bool) -> None:
    """A record is gone. `bad`: one member of the ISR kept its disk, so it is a violation; else the
    last holder's disk was wiped, and the loss lies outside the guarantee.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1, 2])
    story.send(0, 1, base)
    story.see("fault", kind="wipe", node=1)
    story.see("fault", kind="kill" if bad else "wipe", node=2)
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def begun_again(story: Story, bad: bool) -> None:
    """The log begins again below records that were read: its only holder was wiped, or (`bad`) was
    only killed. No record is missed by anybody, and all order is gone.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1])
    story.send(0, 1, base + 1)
    story.send(0, 2, base + 2)
    story.poll(5, (base + 1, 1), (base + 2, 2))
    story.see("fault", kind="kill" if bad else "wipe", node=1)
    story.send(0, 3, base)
    story.poll(5, (base, 3))


def begun_again_too_early(story: Story, bad: bool) -> None:
    """The log began again before (`bad`) or after the wipe that is to explain it."""
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1])
    story.send(0, 1, base + 1)
    story.poll(5, (base + 1, 1))
    if not bad:
        story.see("fault", kind="wipe", node=1)
    story.send(0, 2, base)
    story.poll(5, (base, 2))
    if bad:
        story.see("fault", kind="wipe", node=1)


def passed_over(story: Story, bad: bool) -> None:
    """A reader passes over two records that were lost to a wipe; or over a third (`bad`), which
    was acknowledged when the promise was in force again.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1])
    for value in (1, 2, 3):
        story.send(0, value, base + value)
    story.poll(5, (base + 1, 1))
    story.see("fault", kind="wipe", node=1)
    if bad:
        story.see("isr", key="x", epoch=2, isr=[1, 2])
        story.send(0, 4, base + 4)
    story.send(0, 5, base + 5)
    story.poll(5, (base + 5, 5))


def replaced_too_early(story: Story, bad: bool) -> None:
    """Another record was read in the place of one, before (`bad`) or after the wipe."""
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1])
    for process, value in ((0, 1), (1, 2)):
        story.begin(process, [["send", "x", value]])
        story.end(process, None, Outcome.INFO)
    story.poll(5, (base, 1))
    if not bad:
        story.see("fault", kind="wipe", node=1)
    story.poll(6, (base, 2))
    if bad:
        story.see("fault", kind="wipe", node=1)


def entered_again(story: Story, bad: bool) -> None:
    """A wiped replica copies the log and re-enters the ISR before the other is wiped (`bad`: the
    promise held), or it never re-enters.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1, 2], partition_epoch=7)
    story.send(0, 1, base)
    story.see("fault", kind="wipe", node=1)
    story.see("isr", key="x", epoch=1, isr=[2], partition_epoch=8)
    if bad:
        story.see("isr", key="x", epoch=1, isr=[1, 2], partition_epoch=9)
    story.see("fault", kind="wipe", node=2)
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def elected_without_a_holder(story: Story, bad: bool) -> None:
    """The last holder leaves, and by the same change one enters who lost the record: as the last
    leader that was known. `bad`: it entered while the holder was there to copy from.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1, 2])
    story.send(0, 1, base)
    story.see("fault", kind="wipe", node=2)
    story.see("isr", key="x", epoch=2, isr=[], elr=[1])
    if bad:
        story.see("isr", key="x", epoch=2, isr=[1])
        story.see("isr", key="x", epoch=2, isr=[1, 2])
    story.see("isr", key="x", epoch=3, isr=[2])
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def power_cut(story: Story, bad: bool) -> None:
    """A power cut takes the page cache, and nothing that was synced (`bad`)."""
    base = story.base
    story.see("durability", mode="synced" if bad else "page-cache")
    story.see("isr", key="x", epoch=1, isr=[1])
    story.send(0, 1, base)
    story.see("fault", kind="power-cut", node=1)
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def power_cut_of_one_topic(story: Story, bad: bool) -> None:
    """The same where each topic has a promise of its own: x's partition is synced (`bad`), or is
    the one that trusts the page cache.
    """
    base, key = story.base, "x-3"
    modes = ("page-cache", "synced") if bad else ("synced", "page-cache")
    topics = list(zip(("other", "x"), modes, strict=True))
    story.random.shuffle(topics)
    for topic, mode in topics:
        story.see("durability", topic=topic, mode=mode)
    story.see("isr", key=key, epoch=1, isr=[1])
    story.send(0, 1, base, key)
    story.see("fault", kind="power-cut", node=1)
    story.send(0, 2, base + 1, key)
    story.poll(5, (base + 1, 2), key=key)


def few_disks_were_hurt(story: Story, bad: bool) -> None:
    """The ISR shrank to a node that was wiped then. Two replicas acknowledged: the other one must
    still have the record (`bad`), or may have lost it to a fault of its own.
    """
    base = story.base
    story.see("durability", topic="x", mode="synced", replication_factor=3, min_insync_replicas=2)
    story.see("isr", key="x", epoch=1, isr=[1, 2, 3])
    story.send(0, 1, base)
    story.see("isr", key="x", epoch=1, isr=[1])
    hurts = "kill" if bad else story.random.choice(("bit-flip", "failed-sync"))
    for kind, node in ((hurts, 2), ("wiped-disk", 1), ("wiped-disk", 1)):
        story.see("fault", kind=kind, node=node)
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def fewer_replicas_than_asked_for(story: Story, bad: bool) -> None:
    """A topic with one replica asks for two in sync: its one disk was wiped. `bad`: it has two."""
    base = story.base
    replicas = 2 if bad else 1
    story.see(
        "durability", topic="x", mode="synced", replication_factor=replicas, min_insync_replicas=2
    )
    story.see("isr", key="x", epoch=1, isr=[1])
    story.send(0, 1, base)
    story.see("fault", kind="wiped-disk", node=1)
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def page_cache_counts_no_disks(story: Story, bad: bool) -> None:
    """Whoever ended in disorder is no member any more in this mode, so one power cut may be one too
    many although two replicas acknowledged. `bad`: the other one is a member still.
    """
    base = story.base
    story.see(
        "durability", topic="x", mode="page-cache", replication_factor=2, min_insync_replicas=2
    )
    story.see("isr", key="x", epoch=1, isr=[1, 2])
    story.send(0, 1, base)
    story.see("fault", kind="kill", node=2)
    story.see("isr", key="x", epoch=1, isr=[1], elr=[2] if bad else [])
    story.see("fault", kind="power-cut", node=1)
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def missed_changes(story: Story, bad: bool) -> None:
    """No member held the record any more, as far as anybody looked. The observer missed changes
    meanwhile, in which a replica may have entered again: undecided. `bad`: one entered before its
    eyes.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1, 2], partition_epoch=4)
    story.send(0, 1, base)
    story.see("fault", kind="wipe", node=1)
    seen = ((5, [2]), (6, [1, 2])) if bad else ((8, [1, 2]),)
    for partition_epoch, isr in seen:
        story.see("isr", key="x", epoch=1, isr=isr, partition_epoch=partition_epoch)
    story.see("fault", kind="wipe", node=2)
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def late_change(story: Story, bad: bool) -> None:
    """The ISR grew by a second holder, which was proposed before the acknowledgement and seen only
    after the first holder was wiped: undecided. `bad`: seen in time, so that it was a violation.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1])
    proposed = story.history.events
    if bad:
        story.see("isr", key="x", epoch=1, isr=[1, 2], proposed=proposed)
    story.send(0, 1, base)
    story.see("fault", kind="wipe", node=1)
    if not bad:
        story.see("isr", key="x", epoch=1, isr=[1, 2], proposed=proposed)
    story.send(0, 2, base + 1)
    story.poll(5, (base + 1, 2))


def forgotten_group(story: Story, bad: bool) -> None:
    """A group forgets its commit and its generation with the only replica of the partition that
    keeps them, whose node was wiped; or (`bad`) was only killed.
    """
    home = "__consumer_offsets-4"
    story.see("group", group="g", key=home)
    story.see("isr", key=home, epoch=1, isr=[1])
    before: list[Micro] = [["assignment", "g", 7, "a", ["x"]], ["commit", "g", "x", 3]]
    after: list[Micro] = [
        ["committed", "g", "x", None],
        ["assignment", "g", 1, "b", ["x"]],
        ["assignment", "g", 7, "b", ["x"]],
    ]
    for call in before:
        story.do(6, [call], [call])
    story.see("fault", kind="kill" if bad else "wipe", node=1)
    for call in after:
        story.do(6, [call], [call])


def commit_after_the_loss(story: Story, bad: bool) -> None:
    """The partition of the group lost an old commit to a wipe, and (`bad`) one that was answered
    when the promise was in force again; else just the old one.
    """
    home = "__consumer_offsets-4"
    story.see("group", group="g", key=home)
    story.see("isr", key=home, epoch=1, isr=[1])
    old, new = ["commit", "g", "x", 3], ["commit", "g", "x", 5]
    story.do(6, [old], [old])
    if not bad:
        story.do(6, [new], [new])
    story.see("fault", kind="wipe", node=1)
    if bad:
        story.see("isr", key=home, epoch=2, isr=[1, 2])
        story.do(6, [new], [new])
    forgotten = ["committed", "g", "x", None]
    story.do(7, [forgotten], [forgotten])


def invented_commit(story: Story, bad: bool) -> None:
    """A group that lost its commit tells none; or (`bad`) one that nobody made."""
    home = "__consumer_offsets-4"
    story.see("group", group="g", key=home)
    story.see("isr", key=home, epoch=1, isr=[1])
    old = ["commit", "g", "x", 3]
    story.do(6, [old], [old])
    story.see("fault", kind="wipe", node=1)
    told = ["committed", "g", "x", 9 if bad else None]
    story.do(7, [told], [told])


def offset_used_again(story: Story, bad: bool) -> None:
    """Two clients read one offset before and after a wipe: each another record, none of which was
    sent after it was read; or (`bad`) the first read what was sent only later.
    """
    base = story.base
    story.see("isr", key="x", epoch=1, isr=[1])
    story.begin(0, [["send", "x", 1]])
    story.end(0, None, Outcome.INFO)
    story.begin(5, [["poll"]])
    story.poll(6, (base, 2 if bad else 1))
    story.see("fault", kind="wipe", node=1)
    story.send(1, 2, base)
    story.end(5, [["poll", {"x": [[base, 2]]}]])


def leaderless(story: Story, bad: bool) -> None:
    """Without a leader and without a look at the files nothing is decided."""
    story.see("leader", key="x", epoch=1, leader=1 if bad else None)
    unseen(story, True)


STORIES: Mapping[str, Callable[[Story, bool], None]] = {
    function.__name__: function
    for function in (
        clean,
        inconsistent_offsets,
        duplicate,
        lost_write,
        lost_indeterminate,
        unseen,
        retention,
        deletion,
        outlived,
        compacted_topic,
        compaction,
        aborted_read,
        phantom,
        precommitted_read,
        int_poll_skip,
        int_nonmonotonic_poll,
        int_repeated_poll,
        poll_skip,
        nonmonotonic_poll,
        kept_assignment,
        rebalance,
        nonmonotonic_send,
        nonmonotonic_unknown_send,
        int_nonmonotonic_send,
        int_send_skip,
        append_order_inversion,
        write_cycle,
        read_cycle,
        read_from_the_future,
        intermediate_read,
        stale_end,
        end_went_back,
        lost_commit,
        two_owners,
        generation_went_back,
        stale_commit,
        skipped_by_group,
        topics,
        unknown_deletion,
        leaders,
        epochs,
        stale_isr,
        high_watermark,
        sequences,
        first_sequence,
        producer_epochs,
        replicas,
        epoch_records,
        lost_at_rest,
        replaced,
        one_acknowledgement,
        truncation,
        last_replica,
        begun_again,
        begun_again_too_early,
        passed_over,
        replaced_too_early,
        entered_again,
        elected_without_a_holder,
        power_cut,
        power_cut_of_one_topic,
        few_disks_were_hurt,
        fewer_replicas_than_asked_for,
        page_cache_counts_no_disks,
        missed_changes,
        late_change,
        forgotten_group,
        commit_after_the_loss,
        invented_commit,
        offset_used_again,
        leaderless,
    )
}


def told(name: str, random: Random, *, bad: bool) -> Story:
    story = Story(random)
    STORIES[name](story, bad)
    return story
