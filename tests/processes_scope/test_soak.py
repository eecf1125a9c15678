"""A soak rotates, goes on after an interruption, and keeps what failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from logboat.jepsen_style.processes.coverage import Coverage
from logboat.jepsen_style.processes.draw import MODES
from logboat.jepsen_style.processes.outcome import Tally, Word
from logboat.jepsen_style.processes.run import Outcome
from logboat.jepsen_style.processes.soak import FINISHED, SIZES, Soak, Turn
from logboat.jepsen_style.schedule import Schedule


class Runner:
    """Runs nothing; the words come in turn, an exception is an interruption."""

    def __init__(self, *words: Word | type[BaseException]) -> None:
        self._words = list(words)
        self.seeds: list[int] = []
        self.folders: list[str] = []

    def __call__(self, schedule: Schedule, folder: Path) -> Outcome:
        folder.mkdir()
        self.folders.append(folder.name)
        (folder / "history.jsonl").write_text("what happened")
        self.seeds.append(schedule.seed)
        word = self._words.pop(0)
        if not isinstance(word, Word):
            raise word
        lost = int(word is Word.VIOLATION)
        tally = Tally(operations=10, acknowledged=5, lost=lost, strikes=3)
        return Outcome(word, tally, folder, Coverage([]))


def test_every_mode_with_every_size_comes_up_and_no_seed_twice() -> None:
    turns = [Turn.of(number, 7) for number in range(12)]
    assert {(turn.mode, turn.nodes) for turn in turns[:6]} == {
        (mode, nodes) for mode in MODES for nodes in SIZES
    }
    assert [turn.seed for turn in turns] == list(range(7, 19))


def test_an_interrupted_soak_goes_on_with_the_run_that_was_interrupted(tmp_path: Path) -> None:
    first = Runner(Word.HELD, Word.HELD, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        list(Soak(tmp_path, 1, 0.5, root=False).go_on(4, first))
    assert (tmp_path / "run-00002.1").exists()
    # The interruption may also tear the line that was just written.
    with (tmp_path / FINISHED).open("ab") as file:
        file.write(b'{"number": 2, "se')
    second = Runner(Word.HELD, Word.HELD)
    soak = Soak(tmp_path, 1, 0.5, root=False)
    assert len(list(soak.go_on(4, second))) == 2
    assert second.folders == ["run-00002.2", "run-00003.1"]
    assert not (tmp_path / "run-00002.1").exists()
    assert first.seeds + second.seeds == [1, 2, 3, 3, 4]
    assert soak.line == "soak: held | runs=4 failed=0 ops=40 acknowledged=20 lost=0 faults=12"
    assert list(Soak(tmp_path, 1, 0.5, root=False).go_on(4, Runner())) == []


def test_a_failed_run_is_kept_whole_and_never_forgotten(tmp_path: Path) -> None:
    list(Soak(tmp_path, 1, 0.5, root=False).go_on(2, Runner(Word.VIOLATION, Word.HELD)))
    assert (tmp_path / "run-00000.1" / "history.jsonl").read_text() == "what happened"
    assert not (tmp_path / "run-00001.1").exists()
    soak = Soak(tmp_path, 1, 0.5, root=False)
    list(soak.go_on(3, Runner(Word.HELD)))
    assert (tmp_path / "run-00000.1").exists()
    assert [one.seed for one in soak.failed] == [1]
    assert soak.line.startswith("soak: failed | runs=3 failed=1 ops=30 acknowledged=15 lost=1")
