"""A moment by which a call ends, whatever happens on the way."""

from __future__ import annotations

import asyncio


class Deadline:
    """Loop time. Made inside a running loop."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(asyncio.get_running_loop().time() + seconds)

    @property
    def left(self) -> float:
        """Seconds, 0 when it has passed."""
        return max(0.0, self.at - asyncio.get_running_loop().time())

    @property
    def passed(self) -> bool:
        return self.left == 0.0
