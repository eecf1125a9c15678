"""What a node is told: checked once, then typed fields and Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..metadata.config_definition import InvalidConfig
from ..metadata.listeners import CLIENT_LISTENER, INTERNODE_LISTENER
from ..seam import frozen
from .addresses import ALL_INTERFACES, Address, parse_listeners, parse_voters
from .inert_settings import INERT_SETTINGS
from .settings import KEYSTORE, REQUIRED, SETTINGS, TRUSTSTORE

if TYPE_CHECKING:
    from ..raftlog import ChannelTls

MAX_CLUSTER_ID = 255
"""Bytes: what the handshake between nodes carries."""


class ConfigRefused(Exception):
    """The configuration cannot be used; the message is one sentence for a person."""


@frozen
class NodeConfig:
    """The configuration of one node. Made by `NodeConfig.of`, which refuses what is wrong."""

    node_id: int
    cluster_id: str
    log_directory: str
    kafka: Address
    internode: Address
    http: Address | None
    advertised_kafka: Address
    """Port 0: the port that `kafka` was given by the system."""
    advertised_internode: Address
    voters: Mapping[int, Address]
    """Every voter of the quorum with its INTERNODE address; sorted. A node that is not among them
    is a broker that observes the quorum."""
    rack: str | None
    given: Mapping[str, str]
    """The settings that were stated, by Kafka's names, as text."""
    secret: bytes = field(default=b"", repr=False)
    """Content of `cluster.secret.file`; empty only for a node that is alone."""
    tls: ChannelTls | None = field(default=None, repr=False)
    """What the files of keystore and truststore hold; None without them."""

    @classmethod
    def of(
        cls, given: Mapping[str, str], *, secret: bytes = b"", tls: ChannelTls | None = None
    ) -> NodeConfig:
        """Raises ConfigRefused with one sentence."""
        for name in given:
            _check_setting(name, given[name])
        for name in REQUIRED:
            if not given.get(name):
                raise ConfigRefused(f"{name} is required")
        try:
            return _assemble(given, secret, tls)
        except ValueError as error:
            raise ConfigRefused(str(error)) from error

    def text(self, name: str) -> str:
        """The stated value or the default. KeyError for a name that this node does not act on."""
        value = self.optional(name)
        if value is None:
            raise KeyError(f"{name} has neither a value nor a default")
        return value

    def optional(self, name: str) -> str | None:
        return self.given.get(name, SETTINGS[name].default)

    def number(self, name: str) -> int:
        return int(self.text(name))

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def seconds(self, name: str) -> float:
        """A setting in milliseconds, as the loop counts."""
        return int(self.text(name)) / 1_000

    @property
    def votes(self) -> bool:
        """Whether this node is a voter of the quorum."""
        return self.node_id in self.voters

    @property
    def without_effect(self) -> list[str]:
        """Stated names that change nothing here."""
        return sorted(name for name in self.given if name in INERT_SETTINGS)


def _check_setting(name: str, text: str) -> None:
    setting = SETTINGS.get(name)
    if setting is None:
        if name in INERT_SETTINGS:
            return
        from difflib import get_close_matches  # Nobody else needs it at start.

        close = get_close_matches(name, [*SETTINGS, *sorted(INERT_SETTINGS)], n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigRefused(f"there is no setting {name}{hint}")
    try:
        setting.validate(text)
    except InvalidConfig as error:
        raise ConfigRefused(str(error)) from error


def _assemble(given: Mapping[str, str], secret: bytes, tls: ChannelTls | None) -> NodeConfig:
    node_id = int(given["node.id"])
    cluster_id = given["cluster.id"]
    if len(cluster_id.encode()) > MAX_CLUSTER_ID:
        raise ValueError(f"cluster.id is longer than {MAX_CLUSTER_ID} bytes")
    directories = [part.strip() for part in given["log.dirs"].split(",") if part.strip()]
    if len(directories) != 1:
        raise ValueError("log.dirs must name exactly one directory: several are not built")
    kafka, internode = _listeners(given)
    advertised = parse_listeners(given.get("advertised.listeners", ""))
    advertised_internode = _reachable(
        advertised.get(INTERNODE_LISTENER, internode), INTERNODE_LISTENER
    )
    voters = parse_voters(given.get("controller.quorum.voters", ""))
    if not voters:
        voters = {node_id: advertised_internode}
    _check_roles(given.get("process.roles"), node_id, votes=node_id in voters)
    if set(voters) != {node_id} and not secret and "cluster.secret.file" not in given:
        raise ValueError("cluster.secret.file is required with several nodes")
    if bool(given.get(KEYSTORE)) != bool(given.get(TRUSTSTORE)):
        raise ValueError(f"TLS between nodes needs both {KEYSTORE} and {TRUSTSTORE}")
    http = given.get("http.listener", "")
    return NodeConfig(
        node_id=node_id,
        cluster_id=cluster_id,
        log_directory=directories[0],
        kafka=kafka,
        internode=internode,
        http=Address.parse(http.removeprefix("http://")) if http else None,
        advertised_kafka=_reachable(advertised.get(CLIENT_LISTENER, kafka), CLIENT_LISTENER),
        advertised_internode=advertised_internode,
        voters=MappingProxyType(dict(voters)),
        rack=given.get("broker.rack") or None,
        given=MappingProxyType(dict(given)),
        secret=secret,
        tls=tls,
    )


def _check_roles(stated: str | None, node_id: int, *, votes: bool) -> None:
    """`controller.quorum.voters` decides; `process.roles` may say the same once more."""
    if stated is None:
        return
    roles = {part.strip() for part in stated.split(",") if part.strip()}
    if "broker" not in roles or not roles <= {"broker", "controller"}:
        raise ValueError(
            f"process.roles {stated!r} is not built: every node is a broker, and those among "
            "controller.quorum.voters are controllers too"
        )
    if ("controller" in roles) != votes:
        wanted = "broker,controller" if votes else "broker"
        raise ValueError(
            f"process.roles must be {wanted!r}: node.id {node_id} is "
            f"{'' if votes else 'not '}among controller.quorum.voters"
        )


def _listeners(given: Mapping[str, str]) -> tuple[Address, Address]:
    default = SETTINGS["listeners"].default
    listeners = parse_listeners(given.get("listeners", default or ""))
    if CLIENT_LISTENER not in listeners:
        raise ValueError(f"listeners has no {CLIENT_LISTENER}://host:port")
    kafka = listeners[CLIENT_LISTENER]
    if INTERNODE_LISTENER in listeners:
        return kafka, listeners[INTERNODE_LISTENER]
    own = parse_voters(given.get("controller.quorum.voters", "")).get(int(given["node.id"]))
    # A node that is alone has nobody to be reached by; any free port of loopback will do.
    return kafka, own or Address("127.0.0.1", 0)


def _reachable(address: Address, name: str) -> Address:
    if address.host in ALL_INTERFACES:
        raise ValueError(
            f"listener {name} is on all interfaces: advertised.listeners must say by which host "
            "this node is reached"
        )
    return address
