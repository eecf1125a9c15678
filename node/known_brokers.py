"""Which brokers clients are told of: the living, and those that have just gone.

librdkafka gives up a broker that is missing from Metadata at once. When the answer that moves a
partition to its new leader is also the first without the old one, the two steps race inside the
client, the partition is left without any broker, and nothing is sent until a timer of one second
(seen with 2.16: 1.0 to 2.4 s without an acknowledgement where the new leader stood after 0.05 s).
So a broker is named for a few seconds more: its address is still right, and clients know what to do
with a refused connection.
"""

from __future__ import annotations

import asyncio

from ..metadata.image import BrokerImage, ClusterImage, ImageChange

NAMED_AFTER_FENCING_S = 5.0


class KnownBrokers:
    """Follows the image; `named` is what Metadata lists."""

    def __init__(self) -> None:
        self._fenced_at: dict[int, float] = {}
        """Loop time, of brokers fenced while this node watched."""

    def on_image(self, change: ImageChange) -> None:
        now = asyncio.get_running_loop().time()
        for node_id in change.changed_brokers:
            before = change.before.brokers.get(node_id)
            after = change.after.brokers.get(node_id)
            if after is None or not after.fenced:
                self._fenced_at.pop(node_id, None)
            elif before is not None and not before.fenced:
                self._fenced_at[node_id] = now

    def named(self, image: ClusterImage) -> list[BrokerImage]:
        """By node id."""
        if self._fenced_at:
            since = asyncio.get_running_loop().time() - NAMED_AFTER_FENCING_S
            for node_id in [n for n, at in self._fenced_at.items() if at < since]:
                del self._fenced_at[node_id]
        return [
            broker
            for node_id, broker in sorted(image.brokers.items())
            if not broker.fenced or node_id in self._fenced_at
        ]
