"""`soak FOLDER [--minutes M] [--runs N] [--seed S] [--root]`: one run after the other, each with
another seed, mode and size, for as long as it is let.

What a run does depends only on its number, and the folder remembers which numbers are done: after
an interruption the same command goes on with the run that was interrupted. Of runs that held a line
is kept, of all others everything.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from ..schedule import Schedule
from .draw import MODES, draw
from .means import find_means
from .outcome import Word
from .run import Outcome, run_schedule

FINISHED = "finished.jsonl"
SIZES = (3, 5, 4)
MINUTES = 2.0
INTERRUPTED = 130

Run = Callable[[Schedule, Path], Outcome]


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of a soak."""

    number: int
    seed: int
    nodes: int
    mode: str

    @classmethod
    def of(cls, number: int, first_seed: int) -> Turn:
        """Every mode with every size comes up within six of them."""
        return cls(
            number=number,
            seed=first_seed + number,
            nodes=SIZES[number // len(MODES) % len(SIZES)],
            mode=MODES[number % len(MODES)],
        )

    def schedule(self, minutes: float, *, root: bool) -> Schedule:
        return draw(self.seed, nodes=self.nodes, minutes=minutes, mode=self.mode, root=root)

    @property
    def folder_name(self) -> str:
        return f"run-{self.number:05}"


@dataclass(frozen=True, slots=True)
class Finished:
    """What is remembered of a run, whatever became of its folder."""

    number: int
    seed: int
    nodes: int
    mode: str
    word: str
    operations: int
    acknowledged: int
    lost: int
    faults: int


class Soak:
    def __init__(self, folder: Path, first_seed: int, minutes: float, *, root: bool) -> None:
        self._folder = folder
        self._first_seed = first_seed
        self._minutes = minutes
        self._root = root
        folder.mkdir(parents=True, exist_ok=True)
        self.finished = list(self._remembered())

    def go_on(self, runs: int | None, run: Run) -> Iterator[Outcome]:
        """Up to that many altogether, those of earlier times included; without end for None."""
        while runs is None or len(self.finished) < runs:
            turn = Turn.of(len(self.finished), self._first_seed)
            folder = self._new_folder(turn)
            outcome = run(turn.schedule(self._minutes, root=self._root), folder)
            self._remember(turn, outcome)
            if outcome.word is Word.HELD:
                shutil.rmtree(folder, ignore_errors=True)
            yield outcome

    def _new_folder(self, turn: Turn) -> Path:
        """Not that of an interrupted attempt: its guardian may yet be ending what runs in there."""
        attempts = sorted(self._folder.glob(f"{turn.folder_name}.*"))
        number = 1 + max((int(path.suffix[1:]) for path in attempts), default=0)
        for path in attempts:
            shutil.rmtree(path, ignore_errors=True)
        return self._folder / f"{turn.folder_name}.{number}"

    @property
    def failed(self) -> list[Finished]:
        return [one for one in self.finished if one.word != Word.HELD.value]

    @property
    def line(self) -> str:
        sums = {
            name: sum(getattr(one, name) for one in self.finished)
            for name in ("operations", "acknowledged", "lost", "faults")
        }
        word = "failed" if self.failed else "held"
        return (
            f"soak: {word} | runs={len(self.finished)} failed={len(self.failed)} "
            f"ops={sums['operations']} acknowledged={sums['acknowledged']} "
            f"lost={sums['lost']} faults={sums['faults']}"
        )

    def _remember(self, turn: Turn, outcome: Outcome) -> None:
        finished = Finished(
            **asdict(turn),
            word=outcome.word.value,
            operations=outcome.tally.operations,
            acknowledged=outcome.tally.acknowledged,
            lost=outcome.tally.lost,
            faults=outcome.tally.strikes,
        )
        with (self._folder / FINISHED).open("ab", buffering=0) as file:
            file.write(orjson.dumps(asdict(finished), option=orjson.OPT_APPEND_NEWLINE))
        self.finished.append(finished)

    def _remembered(self) -> Iterator[Finished]:
        path = self._folder / FINISHED
        text = path.read_bytes() if path.exists() else b""
        # A line that was torn by the interruption belongs to a run that is done again.
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            path.write_bytes(whole)
        for line in whole.splitlines():
            yield Finished(**orjson.loads(line))


def soak(arguments: Sequence[str]) -> int:
    """Runs on real processes with rotating seeds, modes and sizes; goes on where it was stopped."""
    parser = argparse.ArgumentParser(prog="soak", description=soak.__doc__)
    parser.add_argument("folder", type=Path, help="remembers what is done, keeps what failed")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of each run")
    parser.add_argument("--runs", type=int, help="altogether; without, until it is interrupted")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--root", action="store_true", help="as for `run`")
    options = parser.parse_args(arguments)
    means = find_means(root=options.root)
    made = Soak(options.folder, options.seed, options.minutes, root=options.root)
    for line in means.lines():
        print(line)
    if made.finished:
        print(f"going on after {len(made.finished)} runs", flush=True)
    status = 0
    try:
        for outcome in made.go_on(
            options.runs, lambda schedule, folder: run_schedule(schedule, folder, means=means)
        ):
            kept = "" if outcome.word is Word.HELD else f" | kept in {outcome.folder}"
            print(f"{outcome.line}{kept}", flush=True)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on", file=sys.stderr)
        status = INTERRUPTED
    print(made.line, flush=True)
    return status or (1 if made.failed else 0)
