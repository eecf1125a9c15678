"""One sync of a directory for all who changed names in it.

A thousand logs made at once are a thousand names in the data directory; one sync puts all of them
on the device.
"""

from __future__ import annotations

import asyncio

from ...seam import Disk, Fatal


class SharedDirectorySync:
    """At most one sync is in flight; who asks meanwhile shares the next one, for a sync covers only
    what was changed before it began (RULES C5)."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._asked = 0
        """Calls so far."""
        self._covered = 0
        """Of those, how many a sync that succeeded began after."""
        self._failed: Fatal | None = None
        self._turn = asyncio.Lock()

    async def sync(self) -> None:
        """Every name changed before this call is on the device when it returns. Raises Fatal, also
        when an earlier sync failed: it is never tried again (RULES C4)."""
        self._asked += 1
        number = self._asked
        async with self._turn:
            if self._failed is not None:
                raise self._failed
            if self._covered >= number:
                return
            covers = self._asked
            try:
                await self._disk.sync_dir(self._path)
            except Fatal as failure:
                self._failed = failure
                raise
            self._covered = covers
