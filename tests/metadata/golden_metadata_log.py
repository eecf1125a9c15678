"""Writes tests/golden/metadata-level-1.bin: run once per release, never to mend a failing test.

Layout: `u32 index | u32 length | command` repeated, then `u32 0 | 32 bytes digest of the image`.
"""

from __future__ import annotations

import struct
from pathlib import Path

from logboat.metadata.codec import encode_command
from logboat.metadata.snapshot import digest_of
from tests.metadata.random_commands import Walk

GOLDEN = Path(__file__).parents[1] / "golden" / "metadata-level-1.bin"


def main() -> None:
    walk = Walk(seed=20_261_129)
    for _ in range(400):
        walk.step()
    parts = []
    for index, command in walk.cluster.log:
        data = encode_command(command, level=1)
        parts.append(struct.pack(">II", index, len(data)) + data)
    GOLDEN.write_bytes(b"".join(parts) + struct.pack(">I", 0) + digest_of(walk.cluster.image))


if __name__ == "__main__":
    main()
