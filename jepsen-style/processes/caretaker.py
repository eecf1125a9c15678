"""Keeps nodes running whose disks were damaged, and does what an operator does about them.

Such a node may end by itself, and is started again. One that never starts well gets a new disk; and
what is said to the quorum for a new disk (`logboat quorum replace-voter`, RULES B3) is said until
it is heard.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from uuid import UUID

from ...client.cluster.probe import ask
from ...partitions.storage.meta_properties import META_PROPERTIES, MetaProperties
from ...testing import LocalCluster
from .damage import wipe
from .keeper import Keeper

LOOK_S = 0.2
ASK_S = 2.0
TRIES = 4
"""Starts on a damaged disk that fail one after the other before it is replaced."""
WELL_S = 5.0
"""A process that has lived for this long, and answers, has started well. On a busy machine it may
take longer than that to find out what is wrong with its disk."""
ADMITTED_WITHIN_S = 60.0
"""A new disk, once its node runs."""


class Caretaker:
    def __init__(self, cluster: LocalCluster, keeper: Keeper) -> None:
        self._cluster = cluster
        self._keeper = keeper
        self._nodes: dict[int, float] = {}
        """Whose disks are damaged -> when it was last started."""
        self._well: dict[int, None] = {}
        """Those that have started well since then."""
        self._failed_starts: Counter[int] = Counter()
        self._strangers: dict[int, None] = {}
        """Whose new disk the quorum has not admitted yet."""

    def take_on(self, node_id: int) -> None:
        """From now on its disk may fail it at any time."""
        if node_id not in self._nodes:
            self._keeper.excuse([node_id])
            self._nodes[node_id] = time.monotonic()

    def replace_disk(self, node_id: int) -> None:
        """By an empty one. It must not run."""
        wipe(Path(self._cluster.data_dir(node_id)))
        self._failed_starts[node_id] = 0
        self._strangers[node_id] = None

    async def mind(self) -> None:
        """Until cancelled."""
        while True:
            for node_id in list(self._nodes):
                if not self._keeper.holds_down(node_id):
                    await self.look_after(node_id)
            await asyncio.sleep(LOOK_S)

    async def admitted(self, node_id: int) -> None:
        """Return when the node has started well, perhaps with another disk, and the quorum knows
        its disk; it is noted as a failure when that takes too long."""
        end = time.monotonic() + ADMITTED_WITHIN_S
        self._note_start(node_id)
        while node_id in self._strangers or not self._has_started_well(node_id):
            if time.monotonic() > end:
                self._keeper.failures.append(
                    f"failed: the new disk of node {node_id} is not taken up"
                )
                return
            await asyncio.sleep(LOOK_S)

    def _has_started_well(self, node_id: int) -> bool:
        if self._keeper.holds_down(node_id):
            return True  # Another fault is about it now.
        return self._cluster.is_running(node_id) and node_id in self._well

    def _note_start(self, node_id: int) -> None:
        self._nodes[node_id] = time.monotonic()
        self._well.pop(node_id, None)

    async def look_after(self, node_id: int) -> None:
        if not self._cluster.is_running(node_id):
            self._failed_starts[node_id] += node_id not in self._well
            if node_id not in self._strangers and self._failed_starts[node_id] > TRIES:
                await asyncio.to_thread(self.replace_disk, node_id)
            self._note_start(node_id)
            self._keeper.start([node_id])
        elif node_id not in self._well and await self._is_well(node_id):
            self._well[node_id] = None
            self._failed_starts[node_id] = 0
        if node_id in self._strangers and await asyncio.to_thread(self._is_admitted, node_id):
            del self._strangers[node_id]

    async def _is_well(self, node_id: int) -> bool:
        if time.monotonic() - self._nodes[node_id] < WELL_S:
            return False
        return await asyncio.to_thread(self._answers, node_id)

    def _answers(self, node_id: int) -> bool:
        address = self._cluster.node(node_id).http
        return ask(address, "/api/v1/cluster", timeout_seconds=ASK_S) is not None

    def _is_admitted(self, node_id: int) -> bool:
        """Asks for it when it is not."""
        directory = self._directory(node_id)
        if directory is None:
            return False
        if not self._cluster.node(node_id).votes:
            return True
        for other in self._cluster.node_ids:
            if other == node_id or not self._cluster.is_running(other):
                continue
            address = self._cluster.node(other).http
            known = ask(address, "/api/v1/quorum", timeout_seconds=ASK_S)
            if known is None or known.status != 200:
                continue
            for voter in known.body["voters"]:
                if voter["node_id"] == node_id and voter["directory_id"] == str(directory):
                    return True
            ask(
                address,
                f"/api/v1/quorum/voters/{node_id}",
                method="PUT",
                body={"directory_id": str(directory)},
                timeout_seconds=ASK_S,
            )
            return False
        return False

    def _directory(self, node_id: int) -> UUID | None:
        """None: the node has not formatted its disk yet."""
        try:
            written = Path(self._cluster.data_dir(node_id), META_PROPERTIES).read_bytes()
        except FileNotFoundError:
            return None
        return MetaProperties.decode(written).directory_id
