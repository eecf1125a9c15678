"""Logboat: a Kafka-compatible replicated log that needs no ZooKeeper, no JVM and no Docker."""

__version__ = "0.1.0.dev0"
