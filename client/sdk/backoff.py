"""How long to wait before asking again: full jitter, so that many clients do not come together."""

from __future__ import annotations

from random import Random

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 2.0


class Backoff:
    """Of one call. The n-th wait is drawn from [0, 50 ms x 2^n], at most 2 s; a node that names a
    time (`Retry-After`) is believed."""

    __slots__ = ("_attempts", "_rng")

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._attempts = 0

    def next_wait(self, retry_after: float | None = None) -> float:
        """Seconds."""
        ceiling = min(LONGEST_SECONDS, FIRST_SECONDS * 2**self._attempts)
        self._attempts += 1
        if retry_after is not None:
            return retry_after
        return float(self._rng.random() * ceiling)
