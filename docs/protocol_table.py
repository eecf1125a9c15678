"""Writes docs/protocol.md from what the handlers declare; `--check` only compares.

python docs/protocol_table.py
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from logboat.node.handlers import CLIENT_APIS, INTERNODE_APIS
from logboat.node.served import Served
from logboat.wire import ApiKey, all_apis

TARGET = Path(__file__).with_name("protocol.md")

HEAD = """\
# Kafka APIs served

Written by `docs/protocol_table.py` from what the handlers declare; a test keeps it true. Versions
are inclusive. "Kafka 4.4" is every stable version of that release; "-" is not served, and a
request for it closes the connection as Kafka does. Produce is advertised from version 0, because
older librdkafka releases turn compression off otherwise (KAFKA-18659), and refused below 3.

The inter-node column is for nodes of the same cluster, behind the cluster-secret handshake; clients
that ask for those APIs get CLUSTER_AUTHORIZATION_FAILED where the protocol has room for it.

| key | API | Kafka 4.4 | clients | inter-node |
|--:|---|---|---|---|
"""


def text() -> str:
    rows = [
        f"| {known.key.value} | {known.name} "
        f"| {_range(known.min_version, known.max_stable_version)} "
        f"| {_served(CLIENT_APIS, known.key)} | {_served(INTERNODE_APIS, known.key)} |"
        for known in all_apis()
    ]
    return HEAD + "\n".join(rows) + "\n"


def _served(table: Mapping[ApiKey, Served], key: ApiKey) -> str:
    row = table.get(key)
    # What is answered with a refusal only is not served.
    if row is None or not row.advertised:
        return "-"
    return _range(row.min_version, row.max_version)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        return 0 if TARGET.read_text() == text() else 1
    TARGET.write_text(text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
