"""What the folder of a partition is called."""

from __future__ import annotations

MAX_NAME = 255
"""Longest file name that common file systems take."""


def folder_name(topic: str, partition: int, suffix: str = "") -> str:
    """With a suffix it is cut in the topic to stay a legal name."""
    tail = f"-{partition}" + (f".{suffix}" if suffix else "")
    return topic[: MAX_NAME - len(tail)] + tail
