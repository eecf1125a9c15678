"""Death before the n-th change of a disk: run once for every n, and no write is left untested."""

from __future__ import annotations

from .drive import DiskCall, Keep
from .host import Host


class CrashPoint:
    """Kills `host` (or cuts its power, with `keep`) before the `number`-th change, counted from 1.

    Reads and the beginnings of syncs are not counted: to die before one of them is to die before
    the next change. `reached` tells whether there was such a change at all.
    """

    def __init__(self, host: Host, number: int, keep: Keep | None) -> None:
        self.reached = False
        self._host = host
        self._left = number
        self._keep = keep
        host.drive.on_call = self

    def __call__(self, call: DiskCall) -> None:
        if not call.changes or self.reached:
            return
        self._left -= 1
        if self._left == 0:
            self.reached = True
            if self._keep is None:
                self._host.kill()
            else:
                self._host.power_off(self._keep)
