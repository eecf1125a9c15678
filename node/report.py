"""Where a node really listens, for those who let the system choose its ports."""

from __future__ import annotations

from ..seam import frozen
from .addresses import Address


@frozen
class NodeAddresses:
    """What others connect to, with real ports."""

    kafka: Address
    internode: Address
    http: Address | None

    def as_document(self, pid: int) -> dict[str, str | int | None]:
        """The content of `addresses.json` beside `node.toml`."""
        return {
            "kafka": str(self.kafka),
            "http": None if self.http is None else str(self.http),
            "quorum": str(self.internode),
            "pid": pid,
        }
