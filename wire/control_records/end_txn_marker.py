"""The marker that ends a transaction in a partition."""

from __future__ import annotations

from ..schema import Message, int32


class EndTxnMarker(Message, versions="0"):
    """The value of a commit or abort marker."""

    coordinator_epoch: int = int32()
