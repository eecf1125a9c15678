"""A node whose partition logs forget: the ceiling that throughput is compared with.

The same process, protocol and code, but `.log` files keep only their sizes, syncs of them return at
once, and produced batches are not checksummed. For measurement only.

    python benchmarks/discarding_node.py --config node.toml
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import logboat.partitions.storage.leader_batch as leader_batch
import logboat.seam.real_disk as real_disk
from logboat.seam import Buffer, Disk, File


class DiscardingFile:
    """A `.log` file that keeps its size and nothing else."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._size = file.size()

    def append(self, parts: Sequence[Buffer]) -> int:
        start = self._size
        self._size += sum(len(part) for part in parts)
        return start

    def write_at(self, position: int, data: Buffer) -> None:
        self._size = max(self._size, position + len(data))

    def size(self) -> int:
        return self._size

    def truncate(self, size: int) -> None:
        self._size = size

    async def sync(self) -> None:
        return

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


class DiscardingDisk(real_disk.RealDisk):
    def open(self, path: str, *, create: bool = False) -> File:
        file = super().open(path, create=create)
        return DiscardingFile(file) if path.endswith(".log") else file  # type: ignore[return-value]


_: type[Disk] = DiscardingDisk


def main() -> int:
    real_disk.RealDisk = DiscardingDisk  # type: ignore[misc]
    leader_batch.crc32c = _Anything()  # type: ignore[attr-defined]
    from logboat.node.__main__ import main as node_main

    return node_main()


class _Anything:
    """A checksum equal to every other."""

    def __call__(self, _: Buffer) -> _Anything:
        return self

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


if __name__ == "__main__":
    sys.exit(main())
