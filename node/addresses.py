"""Where a node listens, and how those places are written down."""

from __future__ import annotations

from collections.abc import Mapping

from ..metadata.listeners import CLIENT_LISTENER, INTERNODE_LISTENER
from ..seam import frozen

ALL_INTERFACES = ("", "0.0.0.0", "::")
"""Hosts that can be listened on but not connected to."""


@frozen
class Address:
    """`host:port`; port 0 asks the system for a free one, IPv6 hosts are written in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises ValueError with a sentence."""
        host, colon, port = text.strip().rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65_535:
            raise ValueError(f"{text.strip()!r} is not host:port")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


def parse_listeners(text: str) -> Mapping[str, Address]:
    """`NAME://host:port,...` by upper-case name. Raises ValueError with a sentence."""
    listeners: dict[str, Address] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, address = part.partition("://")
        if not separator:
            raise ValueError(f"{part!r} is not NAME://host:port")
        name = name.upper()
        if name not in (CLIENT_LISTENER, INTERNODE_LISTENER):
            raise ValueError(
                f"listener {name} is not built: there are {CLIENT_LISTENER} (Kafka clients) "
                f"and {INTERNODE_LISTENER} (the other nodes)"
            )
        if name in listeners:
            raise ValueError(f"listener {name} is given twice")
        listeners[name] = Address.parse(address)
    return listeners


def parse_voters(text: str) -> Mapping[int, Address]:
    """`id@host:port,...` by node id. Raises ValueError with a sentence."""
    voters: dict[int, Address] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        node_id, separator, address = part.partition("@")
        if not separator or not node_id.isdecimal():
            raise ValueError(f"{part!r} is not id@host:port")
        if int(node_id) in voters:
            raise ValueError(f"voter {node_id} is given twice")
        voters[int(node_id)] = Address.parse(address)
    return dict(sorted(voters.items()))
