"""Entries of a segment's `.txnindex`."""

from __future__ import annotations

from ..schema import Message, int64


class AbortedTxn(Message, versions="0"):
    """An entry of a segment's index of aborted transactions."""

    producer_id: int = int64()
    first_offset: int = int64()
    last_offset: int = int64()
    last_stable_offset: int = int64()
