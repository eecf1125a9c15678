"""A host's wall clock: `seam.Clock` on virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .host import Host

EPOCH_S = 1_700_000_000.0
"""Wall time, in seconds since the Unix epoch, at which every run begins (November 2023)."""


class SimClock:
    """Wall time of one host; `host.step_wall_clock` makes it jump, as an administrator can."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def now_ms(self) -> int:
        return int(self._host.wall_time() * 1000)
