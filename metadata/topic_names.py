"""What a topic may be called (Kafka's rules, org.apache.kafka.common.internals.Topic)."""

from __future__ import annotations

MAX_TOPIC_NAME = 249
"""Leaves room for `-<partition>` and a suffix within a file name of 255 bytes."""

_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def why_invalid(name: str) -> str | None:
    """Kafka's sentence, or None for a legal name."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_TOPIC_NAME:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed "
            f"length {MAX_TOPIC_NAME}"
        )
    if not all(character in _LEGAL for character in name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            f"alphanumerics, '.', '_' and '-'"
        )
    return None


def colliding_form(name: str) -> str:
    """Two names with the same form may not exist side by side: metric names would collide."""
    return name.replace(".", "_")
