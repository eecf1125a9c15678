"""Random streams, one per entity, all from one seed."""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, label: str) -> random.Random:
    """The dice of the entity called `label` in the run of `seed`.

    Every link, disk and host has dice of its own, so that one more throw by one of them changes
    nothing for the others: two runs that differ in one step stay comparable elsewhere.
    """
    digest = hashlib.blake2b(f"{seed}:{label}".encode(), digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))
