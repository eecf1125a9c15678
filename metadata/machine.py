"""The state machine that the quorum's log drives on every node.

It holds the image, hands each change to the parts in log order, lets handlers wait until the image
has reached an index (RULES A6), and notices when this node's image is not the leader's (RULES A3).
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from ..seam import Fatal, OnFatal, TaskScope, offload
from .apply import apply_in_steps
from .codec import SHORT_BYTES, decode_command, decode_in_steps
from .commands import Digest
from .image import ClusterImage, ImageChange
from .results import Result
from .snapshot import (
    compare,
    decode_snapshot,
    digest_of,
    empty_image,
    encode_snapshot,
    share_unchanged,
)
from .steps import Steps

DIGEST_INTERVAL = 1_000
"""Commands between two digests (RULES A3)."""

DIGESTS_KEPT = 8
"""Own digests that wait for the leader's, and the leader's that wait for our own."""

OnChange = Callable[[ImageChange], None]


class MetadataMachine:
    """`raftlog.StateMachine` over the cluster image. Everything runs in the loop's thread."""

    def __init__(self, *, cluster_id: str, on_fatal: OnFatal) -> None:
        self._image = empty_image(cluster_id)
        self._tasks = TaskScope(on_fatal)
        self._on_change: list[OnChange] = []
        self._on_digest: list[Callable[[int, bytes], None]] = []
        # (index, arrival number, future): woken when the image has reached the index. As many as
        # there are client requests in flight, which the node bounds.
        self._waiters: list[tuple[int, int, asyncio.Future[bool]]] = []
        self._arrivals = 0
        self._own_digests: dict[int, bytes] = {}
        self._leader_digests: dict[int, bytes] = {}

    @property
    def image(self) -> ClusterImage:
        return self._image

    def subscribe(self, on_change: OnChange) -> None:
        """Hand every coming change to `on_change`, in log order; it must not block or raise.

        Whoever comes late is first handed one change from the empty image to the present one.
        """
        self._on_change.append(on_change)
        if self._image.index > 0:
            on_change(compare(empty_image(self._image.cluster_id), self._image))

    def subscribe_to_digests(self, on_digest: Callable[[int, bytes], None]) -> None:
        """Hand over (index, digest) of this node's image every DIGEST_INTERVAL commands."""
        self._on_digest.append(on_digest)

    async def wait_for(self, index: int, deadline: float) -> bool:
        """True when the image has reached `index` (RULES A6); False at `deadline` (loop time)."""
        if self._image.index >= index:
            return True
        loop = asyncio.get_running_loop()
        reached: asyncio.Future[bool] = loop.create_future()
        self._arrivals += 1
        heapq.heappush(self._waiters, (index, self._arrivals, reached))
        timer = loop.call_at(deadline, _give_up, reached)
        try:
            return await reached
        finally:
            timer.cancel()
            if self._image.index < index:
                self._waiters = [waiter for waiter in self._waiters if waiter[2] is not reached]
                heapq.heapify(self._waiters)

    async def close(self) -> None:
        """Only after the log has stopped: applying a command may start a digest."""
        await self._tasks.close()

    # --- raftlog.StateMachine ---

    def apply(self, index: int, command: bytes) -> Steps[Result]:
        """Raises Fatal for a command that this release does not know (RULES A2)."""
        before = self._image
        short = len(command) <= SHORT_BYTES
        decoded = decode_command(command) if short else (yield from decode_in_steps(command))
        after, result = yield from apply_in_steps(before, index, decoded)
        if before.index // DIGEST_INTERVAL < index // DIGEST_INTERVAL:
            self._tasks.spawn(self._compute_digest(after), name=f"digest of image {index}")
        if isinstance(decoded, Digest):
            self._leader_digests[decoded.index] = decoded.digest
            self._compare_digests(decoded.index)
        self._move_to(after)
        return result

    def capture(self) -> Callable[[], bytes]:
        """The present image, to be encoded beside the loop."""
        image = self._image
        return lambda: encode_snapshot(image)

    def decode(self, snapshot: bytes) -> Callable[[int], None]:
        """What jumps to a snapshot; one change covers the way there (RULES A7). Raises Fatal.

        Decoding 10,000 partitions takes a fifth of a second: it happens beside the loop (F1), and
        so does looking for those that this node knows already. The image is immutable; should the
        machine be further on by the time of the jump, some that are equal count as changed.
        """
        image = share_unchanged(decode_snapshot(snapshot), self._image)
        return lambda index: self._jump_to(image, index)

    def _jump_to(self, image: ClusterImage, index: int) -> None:
        if image.index > index or image.index < self._image.index:
            raise Fatal(
                f"the snapshot at index {index} holds the image of command {image.index}, "
                f"and this node has applied {self._image.index}"
            )
        if image.cluster_id != self._image.cluster_id:
            raise Fatal(
                f"the snapshot is of cluster {image.cluster_id!r}, "
                f"this node belongs to {self._image.cluster_id!r}"
            )
        self._move_to(image)

    # --- inside ---

    def _move_to(self, after: ClusterImage) -> None:
        change = compare(self._image, after)
        self._image = after
        for on_change in self._on_change:
            on_change(change)
        while self._waiters and self._waiters[0][0] <= after.index:
            _, _, reached = heapq.heappop(self._waiters)
            if not reached.done():
                reached.set_result(True)

    async def _compute_digest(self, image: ClusterImage) -> None:
        digest = await offload(lambda: digest_of(image))
        self._own_digests[image.index] = digest
        self._compare_digests(image.index)
        for on_digest in self._on_digest:
            on_digest(image.index, digest)

    def _compare_digests(self, index: int) -> None:
        own, leaders = self._own_digests.get(index), self._leader_digests.get(index)
        if own is not None and leaders is not None and own != leaders:
            raise Fatal(
                f"the metadata of this node differs from the leader's at index {index}: "
                f"digest {own.hex()[:16]} here, {leaders.hex()[:16]} there"
            )
        for digests in (self._own_digests, self._leader_digests):
            while len(digests) > DIGESTS_KEPT:
                # One side may miss for ever: after a snapshot jump, or under a leader that died.
                del digests[min(digests)]


def _give_up(reached: asyncio.Future[bool]) -> None:
    if not reached.done():
        reached.set_result(False)
