"""`Idempotency-Key`: a request that may be sent again, also to another node, and is done once.

The key becomes a producer. Its id and epoch are made from the key and all that the request says,
its sequences begin at 0, and keyless records go where the same hash says; so a repetition is the
very batch that the log already has, and gets the answer of the first (KIP-98). That holds on every
node, across their deaths, for as long as logs remember producers (`producer.id.expiration.ms`).

What needs memory is remembered by each node alone, for an hour: that the same key came with another
body (422), or that the first request is still in work (409).

Ids made here lie above 2^62, far beyond those that the controller hands out; 76 bits tell two of
them apart, 62 of which are the id. Two that share an id but not the epoch fence each other, which
is said; all 76 alike are less likely than a disk that lies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from uuid import UUID

from ...seam import frozen
from .errors import ApiError
from .records_in import Producer

WINDOW_SECONDS = 3_600.0
MAX_KEYS = 10_000
"""Each also costs an entry in the logs that it writes to, for a day."""

LONGEST_KEY = 255
_KEYED = 1 << 62
_ID_BITS = _KEYED - 1
_EPOCH_BITS = (1 << 14) - 1


@frozen
class KeyedRequest:
    """What the request has instead of chance and a clock."""

    producer: Producer
    now_ms: int
    """When the key was first seen here: repeated records get the same timestamps."""
    sticky: int
    """Modulo the partitions: where keyless records go."""


class _Known:
    __slots__ = ("digest", "expires", "now_ms", "running")

    def __init__(self, digest: bytes, now_ms: int, expires: float) -> None:
        self.digest = digest
        self.now_ms = now_ms
        self.expires = expires
        self.running = False


class IdempotencyKeys:
    """The keys that this node has seen lately, oldest first."""

    def __init__(self, *, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._known: dict[tuple[UUID, str], _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    @contextmanager
    def running(
        self, topic_id: UUID, key: str, request: bytes, now_ms: int
    ) -> Iterator[KeyedRequest]:
        """While it lasts, others with this key are refused. `request`: all that tells two apart.

        Raises ApiError 400, 409, 422 or 429.
        """
        if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
            raise ApiError(400, f"Idempotency-Key takes 1 to {LONGEST_KEY} printable characters")
        digest = blake2b(
            topic_id.bytes + len(key).to_bytes(4, "big") + key.encode() + request, digest_size=24
        ).digest()
        known = self._seen(topic_id, key, digest, now_ms)
        if known.running:
            raise ApiError(
                409,
                "the first request with this Idempotency-Key is still in work",
                retriable=True,
                hint="try again in a moment: its answer will be yours",
            )
        if known.digest != digest:
            raise ApiError(
                422,
                "this Idempotency-Key came with another request",
                hint="a key is for one request and its repetitions",
            )
        known.running = True
        try:
            yield _keyed(digest, known.now_ms)
        except ApiError:
            # Refused before anything was written: the key is free for what was meant.
            self._known.pop((topic_id, key), None)
            raise
        finally:
            known.running = False

    def _seen(self, topic_id: UUID, key: str, digest: bytes, now_ms: int) -> _Known:
        now = asyncio.get_running_loop().time()
        for place, known in list(self._known.items()):
            if known.expires > now:
                break
            del self._known[place]
        found = self._known.get((topic_id, key))
        if found is not None:
            return found
        if len(self._known) >= self._max_keys:
            raise ApiError(
                429,
                f"{self._max_keys} keys were used within the hour",
                error_code=42901,
                retriable=True,
                hint="POST /api/v1/producers gives a producer id, which may write without bounds",
            )
        known = self._known[topic_id, key] = _Known(digest, now_ms, now + WINDOW_SECONDS)
        return known


def _keyed(digest: bytes, now_ms: int) -> KeyedRequest:
    producer_id = _KEYED | int.from_bytes(digest[:8], "big") & _ID_BITS
    producer_epoch = int.from_bytes(digest[8:10], "big") & _EPOCH_BITS
    sticky = int.from_bytes(digest[10:18], "big")
    return KeyedRequest(Producer(producer_id, producer_epoch, 0), now_ms, sticky)
