"""How far another node has come, in the terms of DescribeQuorum (KIP-836). Times are the loop's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """One voter or observer, as the leader sees it."""

    match_index: int = 0
    """Everything up to here is there; never goes back within a term of the leader."""
    caught_up_at: float | None = None
    """The last time by which it held everything that this node had to give then."""
    _confirmed_at: float | None = None
    _end_then: int = 0

    def confirm(self, match_index: int, *, last_index: int, now: float) -> None:
        """It holds everything up to `match_index`; this node's own log ends with `last_index`."""
        self.match_index = max(self.match_index, match_index)
        if self.match_index >= last_index:
            self.caught_up_at = now
        elif self._confirmed_at is not None and self.match_index >= self._end_then:
            # All there was when it was heard the time before: it is behind by no more than that.
            self.caught_up_at = self._confirmed_at
        self._confirmed_at, self._end_then = now, last_index
