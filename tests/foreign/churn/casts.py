"""Who plays: which clients' members, under which protocol, with which assignor."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.foreign.clients import on_java, on_node


@dataclass(frozen=True)
class Kind:
    """Of a member."""

    client: str
    protocol: str = "classic"
    assignor: str = "-"
    """Of the classic protocol."""

    def command(self, java_classes: Path | None) -> list[str] | None:
        """Starts a process of such members, but for its last arguments; None where it cannot."""
        if self.client == "java":
            program = on_java(java_classes, "ChurnMembers")
        elif self.client == "kafkajs":
            program = on_node("churn/kafkajs_members.js")
        else:
            module = "tests.foreign.churn.python_members"
            program = [sys.executable, "-m", module, self.client]
        return None if program is None else [*program, self.protocol, self.assignor]


@dataclass(frozen=True)
class Cast:
    kinds: tuple[Kind, ...]
    for_a_while: tuple[Kind, ...] = ()
    """Those of the new protocol in a group of the old one: they come in the second third of the
    time and go in the last, so that the group changes its protocol and changes it back."""


CONSUMER = (Kind("confluent", "consumer"), Kind("java", "consumer"))

ALONE = {
    "confluent classic": Kind("confluent", assignor="cooperative-sticky"),
    "confluent consumer": Kind("confluent", "consumer"),
    "kafka-python classic": Kind("kafka-python", assignor="cooperative-sticky"),
    "aiokafka classic": Kind("aiokafka", assignor="sticky"),
    "kafkajs classic": Kind("kafkajs", assignor="RoundRobinAssigner"),
    "java classic": Kind("java", assignor="cooperative-sticky"),
    "java consumer": Kind("java", "consumer"),
}


def eager(*clients: str) -> tuple[Kind, ...]:
    return tuple(Kind(client, assignor="range") for client in clients)


def cooperative(*clients: str) -> tuple[Kind, ...]:
    return tuple(Kind(client, assignor="cooperative-sticky") for client in clients)


CASTS = {
    **{name: Cast((kind,)) for name, kind in ALONE.items()},
    "all eager": Cast(eager("confluent", "kafka-python", "aiokafka", "kafkajs", "java")),
    "all cooperative": Cast(cooperative("confluent", "kafka-python", "java")),
    "all of the consumer protocol": Cast(CONSUMER),
    "all, and the group changes its protocol": Cast(
        eager("confluent", "kafka-python", "aiokafka", "kafkajs", "java"), for_a_while=CONSUMER
    ),
}
