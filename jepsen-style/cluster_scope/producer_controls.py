"""Bugs in what a log remembers of idempotent producers (KIP-98), to show that the scope sees them.

Most need a producer with several batches in flight; the first two a leader that fell in between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...partitions.refused_batches import RefusedBatches
from ...partitions.storage import PartitionLog
from ...partitions.storage.producer_states import ProducerStates, RememberedBatch, Undo
from .replacing import replaced

Patch = Callable[[], contextlib.AbstractContextManager[None]]


def _windows_not_refilled() -> contextlib.AbstractContextManager[None]:
    """A log that is opened or cut knows the last batch below its snapshot, not those before it."""

    def put(_: Callable[..., None]) -> Callable[..., None]:
        def refill_windows(self: ProducerStates, older: Any) -> None:
            return

        return refill_windows

    return replaced(ProducerStates, "refill_windows", put)


def _followers_forget_producers() -> contextlib.AbstractContextManager[None]:
    """A follower copies batches, and leads without knowing whose they were."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        def append_as_follower(self: PartitionLog, records: Any, **rest: int) -> Any:
            known = self.producers
            self.producers = ProducerStates(known.map_end_offset)
            try:
                return original(self, records, **rest)
            finally:
                known.map_end_offset = self.producers.map_end_offset
                self.producers = known

        return append_as_follower

    return replaced(PartitionLog, "append_as_follower", put)


def _duplicate_gets_the_newest_offset() -> contextlib.AbstractContextManager[None]:
    """A batch that was sent again is told where the producer's last one stands."""

    def put(original: Callable[..., RememberedBatch | None]) -> Callable[..., Any]:
        def check(self: ProducerStates, batch: Any, *rest: Any) -> RememberedBatch | None:
            first = original(self, batch, *rest)
            entry = self.entry(batch.producer_id)
            return first if first is None or entry is None else entry.batches[-1]

        return check

    return replaced(ProducerStates, "check", put)


def _window_of_one() -> contextlib.AbstractContextManager[None]:
    """Of each producer only the last batch is known again."""

    def put(original: Callable[..., Undo]) -> Callable[..., Undo]:
        def apply(self: ProducerStates, batch: Any) -> Undo:
            undo = original(self, batch)
            entry = self._entries[batch.producer_id]
            self._entries[batch.producer_id] = entry._replace(batches=entry.batches[-1:])
            return undo

        return apply

    return replaced(ProducerStates, "apply", put)


def _refused_batches_are_passed() -> contextlib.AbstractContextManager[None]:
    """What comes behind a refused batch is judged by itself, so a producer that the log does not
    know may begin with its second one."""

    def put(_: Callable[..., None]) -> Callable[..., None]:
        def require_not_behind(self: RefusedBatches, *batch: Any) -> None:
            return

        return require_not_behind

    return replaced(RefusedBatches, "require_not_behind", put)


@contextlib.contextmanager
def _sequences_not_checked() -> Iterator[None]:
    """A batch behind one that was refused is appended: neither is it refused for the first one's
    sake, nor for its sequence."""

    def put(_: Callable[..., None]) -> Callable[..., None]:
        def check_sequence(self: ProducerStates, batch: Any, entry: Any) -> None:
            return

        return check_sequence

    with _refused_batches_are_passed(), replaced(ProducerStates, "_check_sequence", put):
        yield


PRODUCER_BUGS: Mapping[str, Patch] = {
    "windows-not-refilled": _windows_not_refilled,
    "followers-forget-producers": _followers_forget_producers,
    "duplicate-gets-the-newest-offset": _duplicate_gets_the_newest_offset,
    "window-of-one": _window_of_one,
    "sequences-not-checked": _sequences_not_checked,
    "refused-batches-are-passed": _refused_batches_are_passed,
}
"""By name."""
