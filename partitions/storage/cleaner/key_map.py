"""Which offset is the newest for a key, in a bounded amount of memory.

Kafka's map has 24 bytes a slot (an MD5 and an offset). A dictionary needs about nine times as much
for a key, so the same `log.cleaner.dedupe.buffer.size` holds fewer: 128 MiB are 600,000 keys. A map
that is full ends the dirty part of this round early; the next round goes on there.

Keys are remembered by 128 bits of BLAKE2b, as in Kafka by 128 bits of MD5: two keys with the same
digest would be taken for one. Shorter keys stand for themselves; a digest is never that short.
"""

from __future__ import annotations

from hashlib import blake2b

DIGEST_BYTES = 16

ENTRY_BYTES = 224
"""What one key costs at worst: table (116, while it grows), digest (49 to 64), offset (32)."""

NO_OFFSET = -1


class KeyMap:
    """Key -> offset of its last record in the dirty part of a log."""

    def __init__(self, max_bytes: int) -> None:
        self.capacity = max(1, max_bytes // ENTRY_BYTES)
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = NO_OFFSET
        """Everything from the first dirty offset up to here is in the map."""

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Offsets come in rising order. False: the map is full, and `key` is not in it."""
        digest = key if len(key) < DIGEST_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()
        offsets = self._offsets
        if digest not in offsets and len(offsets) >= self.capacity:
            return False
        offsets[digest] = offset
        return True

    def make_room(self, count: int) -> None:
        """Beyond the bound: for the keys of a single batch that alone would not fit. Without this a
        log with such a batch could never be cleaned again."""
        self.capacity = max(self.capacity, len(self._offsets) + count)

    def covered_up_to(self, last_offset: int) -> None:
        self.latest_offset = max(self.latest_offset, last_offset)

    def newest(self, key: bytes) -> int:
        """Offset of the last record with this key; NO_OFFSET when the dirty part has none."""
        digest = key if len(key) < DIGEST_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()
        return self._offsets.get(digest, NO_OFFSET)
