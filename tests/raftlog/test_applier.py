"""Committed commands reach the machine in order, so much work in one turn (RULES F1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logboat.raftlog.applier import WORK_PER_COMMAND, Applier
from logboat.raftlog.interface import Applied, Steps


class Diligent:
    """Its commands say in digits how much work they are; `done` is what has ended."""

    def __init__(self) -> None:
        self.steps = 0
        self.done: list[int] = []

    def apply(self, index: int, command: bytes) -> object:
        if command == b"at once":
            self.done.append(index)
            return f"result of {index}"
        return self._in_steps(index, command.decode())

    def _in_steps(self, index: int, works: str) -> Steps:
        for work in works:
            self.steps += 1
            yield int(work)
        self.done.append(index)
        return f"result of {index}"

    def capture(self) -> Callable[[], bytes]:
        raise AssertionError

    def decode(self, snapshot: bytes) -> Callable[[int], None]:
        raise AssertionError


def test_f1_a_long_command_is_applied_over_several_turns() -> None:
    machine = Diligent()
    applier = Applier(machine, work_per_turn=WORK_PER_COMMAND + 10)
    long = applier.submit(4, b"5" * 6)
    assert (machine.steps, long.applied, applier.next_index) == (2, None, 4)
    assert applier.turn()
    assert (machine.steps, long.applied, applier.next_index) == (6, None, 4)
    assert not applier.turn()
    assert (machine.done, applier.next_index) == ([4], None)
    assert long.applied == Applied(4, "result of 4")


def test_commands_wait_for_the_one_under_way_and_keep_their_order() -> None:
    machine, told = Diligent(), list[Applied]()
    applier = Applier(machine, work_per_turn=2 * WORK_PER_COMMAND)
    for index, command in ((1, b"9" * 3), (3, b"at once"), (4, b""), (5, b"1")):
        applier.submit(index, command).tell(told.append)
    assert (machine.done, told) == ([], [])
    while applier.turn():
        assert applier.next_index == ([1, 3, 4, 5])[len(told)]
    assert machine.done == [1, 3, 5]
    assert told == [
        Applied(1, "result of 1"),
        Applied(3, "result of 3"),
        Applied(4, None),
        Applied(5, "result of 5"),
    ]


def test_f1_many_small_commands_share_the_work_of_a_turn() -> None:
    machine = Diligent()
    applier = Applier(machine, work_per_turn=10 * WORK_PER_COMMAND)
    for index in range(1, 26):
        applier.submit(index, b"at once")
    assert machine.done == list(range(1, 11))
    assert applier.turn()
    assert machine.done == list(range(1, 21))
    assert not applier.turn()
    assert machine.done == list(range(1, 26))


def test_who_asks_late_is_told_at_once() -> None:
    applier, told = Applier(Diligent(), work_per_turn=100), list[Applied]()
    applier.submit(7, b"at once").tell(told.append)
    assert told == [Applied(7, "result of 7")]


def test_a_snapshot_takes_the_place_of_what_was_begun_and_of_what_waits() -> None:
    machine, told = Diligent(), list[Applied]()
    applier = Applier(machine, work_per_turn=WORK_PER_COMMAND + 1)
    applier.submit(1, b"999").tell(told.append)
    applier.submit(2, b"at once").tell(told.append)
    applier.drop()
    assert applier.next_index is None
    assert not applier.turn()
    applier.submit(9, b"at once").tell(told.append)
    assert (machine.done, told) == ([9], [Applied(9, "result of 9")])


def test_what_the_machine_raises_passes_through() -> None:
    class Broken(Diligent):
        def _in_steps(self, index: int, works: str) -> Steps:
            yield 100
            raise ValueError("poison")

    applier = Applier(Broken(), work_per_turn=50)
    applier.submit(1, b"1")
    with pytest.raises(ValueError, match="poison"):
        applier.turn()
