"""Levels of our own feature `logboat.version` (RULES A2).

Every rule inside `apply`, and the layout of commands and snapshots, belongs to a level held in the
image. A changed rule is a new level; the old branch stays.
"""

from __future__ import annotations

from .image import ClusterImage

VERSION_FEATURE = "logboat.version"

FIRST_LEVEL = 1
"""What a new cluster starts with, for ever: an old command log must replay to the same image."""

LATEST_LEVEL = 1
"""The newest level that this release can apply."""


TRANSACTION_FEATURE = "transaction.version"
"""Kafka's: which protocol of transactions clients speak (KIP-890). At level 0 it is absent from the
image. Nobody sets it as long as transactions are not built."""

LATEST_TRANSACTION_LEVEL = 2


def level_of(image: ClusterImage) -> int:
    return image.features[VERSION_FEATURE]
