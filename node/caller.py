"""Who sends requests over a connection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Caller:
    """One connection as handlers see it; it is also the owner of that connection's fetch session.

    `node_id` is set only on connections that opened with the cluster's handshake: only these are
    replicas and may ask the controller (RULES B5).
    """

    host: str
    """Address of the other side, without port."""
    port: int
    node_id: int | None = None

    @property
    def is_node(self) -> bool:
        return self.node_id is not None

    def __str__(self) -> str:
        address = f"{self.host}:{self.port}"
        return address if self.node_id is None else f"node {self.node_id} ({address})"
