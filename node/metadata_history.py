"""The last changes of a node's metadata, by name, for those who ask what changed (HTTP)."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NotRequired, TypedDict

from ..metadata.image import ImageChange

MAX_CHANGES = 1_000
MAX_NAMES = 10_000
"""Topics and nodes named by all changes together; older changes are forgotten first."""


class MetadataChange(TypedDict):
    """One step of the metadata: names of what changed, to be read anew."""

    index: int
    topics_changed: list[str]
    topics_deleted: list[str]
    nodes_changed: list[int]
    controller_id: NotRequired[int]
    """The new active controller."""
    configs_changed: NotRequired[bool]
    """Dynamic settings of nodes or of the cluster."""


class MetadataChanges(TypedDict):
    """What changed after the asked index."""

    index: int
    """Ask on from here."""
    compacted: bool
    """The changes go further back than what is kept: read everything anew."""
    changes: list[MetadataChange]


class MetadataHistory:
    """The last changes of one node's image. `on_image` is to be subscribed to the machine."""

    def __init__(self) -> None:
        self.index = 0
        """Of the image."""
        self._floor = 0
        """Changes up to here are not kept."""
        self._changes: deque[MetadataChange] = deque()
        self._names = 0
        self._moved = asyncio.Event()

    def on_image(self, change: ImageChange) -> None:
        self.index = change.after.index
        if change.before.index == 0:
            # Where this node came in.
            self._floor = self.index
            return
        told = _told(change)
        if told is None:
            return
        self._changes.append(told)
        self._names += _size(told)
        while self._changes and (self._names > MAX_NAMES or len(self._changes) > MAX_CHANGES):
            gone = self._changes.popleft()
            self._names -= _size(gone)
            self._floor = gone["index"]
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def after(self, index: int) -> MetadataChanges:
        changes = [change for change in self._changes if change["index"] > index]
        return {"index": self.index, "compacted": index < self._floor, "changes": changes}

    async def wait_after(self, index: int, seconds: float) -> MetadataChanges:
        """As soon as there is anything to tell, or when the time is up."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    moved, found = self._moved, self.after(index)
                    if found["changes"] or found["compacted"]:
                        return found
                    await moved.wait()
        except TimeoutError:
            return self.after(index)


def _told(change: ImageChange) -> MetadataChange | None:
    """None when nothing changed that anybody would read anew."""
    before, after = change.before, change.after
    told: MetadataChange = {
        "index": after.index,
        "topics_changed": [topic.name for topic in change.changed_topics],
        "topics_deleted": [topic.name for topic in change.deleted_topics],
        "nodes_changed": list(change.changed_brokers),
    }
    if before.controller_id != after.controller_id:
        told["controller_id"] = after.controller_id
    if before.configs != after.configs:
        told["configs_changed"] = True
    if len(told) == 4 and not _size(told):
        return None
    return told


def _size(change: MetadataChange) -> int:
    return sum(
        len(names)
        for names in (
            change["topics_changed"],
            change["topics_deleted"],
            change["nodes_changed"],
        )
    )
