"""The settings of a node: those of a broker, and what only the process needs.

Broker settings are declared in `metadata/broker_configs.py`, for brokers also describe and alter
them. Here stand the process's own and the defaults that differ from Kafka's, each with its reason.
Names that Kafka knows and that have no effect here are in `inert_settings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..metadata.broker_configs import BROKER_CONFIGS
from ..metadata.config_definition import ConfigType, Definition, at_least

REQUIRED = ("node.id", "cluster.id", "log.dirs")

# As Kafka writes what concerns one listener only.
KEYSTORE = "listener.name.internode.ssl.keystore.location"
TRUSTSTORE = "listener.name.internode.ssl.truststore.location"
KEY_PASSWORD = "listener.name.internode.ssl.key.password"

_INT_MAX = str(2**31 - 1)

_OWN = (
    Definition(
        "cluster.id",
        ConfigType.STRING,
        None,
        "Name of the cluster, the same on all its nodes; required.",
    ),
    Definition(
        "cluster.secret.file",
        ConfigType.STRING,
        None,
        "File whose content proves membership of the cluster; required with several nodes.",
    ),
    Definition(
        KEYSTORE,
        ConfigType.STRING,
        None,
        "PEM file with this node's private key and its certificate chain for DNS name node-<id>: "
        "TLS between nodes, with certificates at both ends.",
    ),
    Definition(
        TRUSTSTORE,
        ConfigType.STRING,
        None,
        "PEM file with the authorities that sign the certificates of nodes; required for TLS.",
    ),
    Definition(
        KEY_PASSWORD,
        ConfigType.STRING,
        None,
        "Of the private key for TLS between nodes, when it is encrypted.",
    ),
    Definition("log.dirs", ConfigType.LIST, None, "The data directory (exactly one); required."),
    Definition(
        "faults.enable",
        ConfigType.BOOLEAN,
        "false",
        "Lets /api/v1/faults break connections, disk, clock and time of the node; for tests only.",
    ),
    Definition(
        "http.listener",
        ConfigType.STRING,
        None,
        "host:port of the HTTP API; without it there is none.",
    ),
    Definition(
        "controller.quorum.request.timeout.ms",
        ConfigType.INT,
        "2000",
        "How long a request to the controller waits before it is tried again.",
        check=at_least(1),
    ),
    Definition(
        "controlled.shutdown.timeout.ms",
        ConfigType.INT,
        "5000",
        "How long a stop waits for the controller to take leaderships away (Logboat's own).",
        check=at_least(0),
    ),
    Definition(
        "connections.partial.request.timeout.ms",
        ConfigType.INT,
        # In Kafka a half-sent request keeps its memory until connections.max.idle.ms.
        "30000",
        "A request that has begun must make progress this often (Logboat's own).",
        check=at_least(1),
    ),
    Definition(
        "max.connections",
        ConfigType.INT,
        _INT_MAX,
        "Client connections at the same time.",
        check=at_least(0),
    ),
    Definition(
        "max.connections.per.ip",
        ConfigType.INT,
        _INT_MAX,
        "Client connections from one address at the same time.",
        check=at_least(0),
    ),
    Definition(
        "queued.max.request.bytes",
        ConfigType.LONG,
        # Kafka's -1 means no limit; every buffer has one here.
        str(512 << 20),
        "Bytes of unanswered requests of all clients above which no further one is read.",
        check=at_least(1),
    ),
    Definition(
        "num.replica.fetchers",
        ConfigType.INT,
        "1",
        "Channels of this node to each leader it follows.",
        check=at_least(1),
    ),
)

_DEFAULTS = {
    # Loopback until somebody says otherwise: there is no authentication of clients yet.
    "listeners": "PLAINTEXT://127.0.0.1:9092,INTERNODE://127.0.0.1:9093",
    # RULES E5; the longest election timeout is twice this.
    "controller.quorum.election.timeout.ms": "600",
    # A follower asks on only after a sync (RULES C2): Kafka's 1 MiB would sync far too often.
    "replica.fetch.max.bytes": str(2 << 20),
    "replica.fetch.response.max.bytes": str(2 << 20),
    # The first pause after a failure, which then doubles; Kafka's is the only one.
    "replica.fetch.backoff.ms": "50",
    "replica.socket.timeout.ms": "5000",
}


def _all() -> Mapping[str, Definition]:
    definitions = {**BROKER_CONFIGS, **{one.name: one for one in _OWN}}
    for name, default in _DEFAULTS.items():
        definitions[name] = replace(definitions[name], default=default)
    return MappingProxyType({name: definitions[name] for name in sorted(definitions)})


SETTINGS: Mapping[str, Definition] = _all()
"""Every setting that has an effect, by name."""
