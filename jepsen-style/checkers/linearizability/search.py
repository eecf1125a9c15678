"""The search of Wing & Gong, as improved by Lowe: depth first, with a memory of failed places.

The history is a doubly linked list of events, invocations and completions, in their order. At any
time the candidates for the next linearization point are the invocations before the first
completion that is left. A candidate whose step is legal is *lifted* out of the list, with its
completion, and the search goes on from the front. When it meets a completion, nothing before it
could be placed: the last choice is undone. Every (set of placed operations, state) is entered
once; the set is the bits of one integer.

What makes it quick here:

* states and calls become small integers, the step function a table filled as needed;
* calls that only look are placed at once where they are legal, and that choice is never
  revisited: placed earlier they constrain nothing;
* crashed operations (no completion in the list) are never forced: the search ends when all
  completed ones are placed. Equal crashed calls are interchangeable, so only the earliest unplaced
  one is tried, and one that would not change the state is not tried at all.

Example: `write 1` still open, `read -> 1` complete, `read -> 0` after it. The first read lifts
the write out before it; then `read -> 0` meets its own completion, undoing finds nothing else, and
the history has no linearization.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...history import NEVER
from .models import Call, Illegal, Model

TimedCall = tuple[Call, int, int, int]
"""(call, invoked, completed, index in the history)."""

UNTRIED = -2
NO_STEP = -1


@dataclass(frozen=True, slots=True)
class Stuck:
    """How far the best attempt came: the operations it placed, in order, and the completed one
    that could not be placed in time. Indexes are those of the history.
    """

    placed: tuple[int, ...]
    blocked: int
    state: Hashable


class Search:
    """One partition's search, which can be run in slices."""

    def __init__(self, calls: Sequence[TimedCall], model: Model) -> None:
        self.calls = calls
        self.steps = 0
        self.order: tuple[int, ...] | None = None
        """The linearization found: indexes of the history, in order."""
        self.stuck: Stuck | None = None
        self._model = model
        self._states: list[Hashable] = [model.initial]
        self._state_ids: dict[Hashable, int] = {model.initial: 0}
        self._prepare()

    def _prepare(self) -> None:
        """Number the events, link them, and intern the calls."""
        count = len(self.calls)
        kinds: dict[Call, int] = {}
        self._kind = [kinds.setdefault(call, len(kinds)) for call, *_ in self.calls]
        self._kinds = list(kinds)
        self._table: list[list[int]] = [[UNTRIED] * len(kinds)]
        self._looks = [self._model.looks_only(call) for call in self._kinds]
        events: list[tuple[int, int]] = []
        for number, (_, invoked, completed, _index) in enumerate(self.calls):
            events.append((invoked, number))
            if completed != NEVER:
                events.append((completed, count + number))
        events.sort()
        # Node 0 is the front; node 1 + n the invocation of call n, 1 + count + n its completion.
        nodes = [0, *(1 + event for _, event in events)]
        self._next = [0] * (2 * count + 1)
        self._previous = [0] * (2 * count + 1)
        for left, right in pairwise(nodes):
            self._next[left] = right
            self._previous[right] = left
        self._remaining = sum(completed != NEVER for _, _, completed, _ in self.calls)
        # The equal crashed call that must be placed before this one, as a bit; 0: none.
        self._after = [0] * count
        latest: dict[int, int] = {}
        for _, number in sorted((invoked, n) for n, (_, invoked, _, _) in enumerate(self.calls)):
            if self.calls[number][2] == NEVER:
                kind = self._kind[number]
                self._after[number] = latest.get(kind, 0)
                latest[kind] = 1 << number
        # By state: the sets of placed operations with which it was entered.
        self._seen: list[set[int]] = [set()]
        self._bit = [1 << number for number in range(count)]
        self._crashed = [completed == NEVER for _, _, completed, _ in self.calls]
        self._stack: list[tuple[int, int, int]] = []
        self._state = 0
        self._bits = 0
        self._deepest = -1
        self._node = self._next[0]

    def _number(self, reached: Hashable) -> int:
        """The number of a state; a new one gets a row of the table and a memory."""
        number = self._state_ids.get(reached)
        if number is None:
            number = self._state_ids[reached] = len(self._states)
            self._states.append(reached)
            self._table.append([UNTRIED] * len(self._kinds))
            self._seen.append(set())
        return number

    def run(self, budget: int) -> bool | None:
        """Search on for about `budget` steps. True: linearizable; False: not; None: not done."""
        following, previous = self._next, self._previous
        kind_of, table, looks, after_bit = self._kind, self._table, self._looks, self._after
        seen, stack, bit_of, crashed = self._seen, self._stack, self._bit, self._crashed
        count = len(self.calls)
        state, bits, node, remaining = self._state, self._bits, self._node, self._remaining
        deepest = self._deepest
        if not remaining:
            self.order = ()
            return True
        states, kinds, step = self._states, self._kinds, self._model.step
        row = table[state]
        for steps in range(budget):
            if 0 < node <= count:
                number = node - 1
                kind = kind_of[number]
                after = row[kind]
                if after == UNTRIED:
                    reached = step(states[state], kinds[kind])
                    after = NO_STEP if isinstance(reached, Illegal) else self._number(reached)
                    row[kind] = after
                if after == NO_STEP:
                    node = following[node]
                    continue
                lone = crashed[number]
                if lone and (
                    after == state or (after_bit[number] and not bits & after_bit[number])
                ):
                    node = following[node]
                    continue
                new_bits = bits | bit_of[number]
                entered = seen[after]
                if new_bits in entered:
                    # Legal, only looks, and already failed from there: then so does this place.
                    node = 0 if looks[kind] else following[node]
                    continue
                entered.add(new_bits)
                stack.append((number, state, bits))
                state, bits = after, new_bits
                row = table[state]
                # Lift the invocation and the completion.
                before, behind = previous[node], following[node]
                following[before] = behind
                previous[behind] = before
                if not lone:
                    completion = node + count
                    before, behind = previous[completion], following[completion]
                    following[before] = behind
                    if behind:
                        previous[behind] = before
                    remaining -= 1
                    if not remaining:
                        self.steps += steps + 1
                        self._remaining = 0
                        self.order = tuple(self.calls[number][3] for number, _, _ in stack)
                        return True
                node = following[0]
                continue
            # A completion that nothing could get past, or a place known to fail: undo.
            if node and len(stack) > deepest:
                deepest = len(stack)
                self.stuck = Stuck(
                    placed=tuple(self.calls[number][3] for number, _, _ in stack),
                    blocked=self.calls[node - 1 - count][3],
                    state=self._states[state],
                )
            while True:
                if not stack:
                    self.steps += steps + 1
                    return False
                number, state, bits = stack.pop()
                node = number + 1
                if not crashed[number]:
                    completion = node + count
                    before, behind = previous[completion], following[completion]
                    following[before] = completion
                    if behind:
                        previous[behind] = completion
                    remaining += 1
                before, behind = previous[node], following[node]
                following[before] = node
                previous[behind] = node
                if not looks[kind_of[number]]:
                    break
            row = table[state]
            node = following[node]
        self._state, self._bits, self._node = state, bits, node
        self._remaining, self._deepest = remaining, deepest
        self.steps += budget
        return None
