"""`logboat cluster logs`: what the nodes have said."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from .folder import ClusterFolder

LOOK_SECONDS = 0.2
BLOCK_BYTES = 1 << 16


def log_lines(folder: ClusterFolder, node_ids: list[int], *, follow: bool) -> Iterator[str]:
    """Each line with its node in front where there are several; for ever with `follow`."""
    positions = dict.fromkeys(node_ids, 0)
    rests = dict.fromkeys(node_ids, b"")
    while True:
        quiet = True
        for node_id in node_ids:
            for line in _new_lines(folder.node_log(node_id), node_id, positions, rests):
                quiet = False
                yield line if len(node_ids) == 1 else f"node {node_id}: {line}"
        if quiet and not follow:
            return
        if quiet:
            time.sleep(LOOK_SECONDS)


def _new_lines(
    path: str, node_id: int, positions: dict[int, int], rests: dict[int, bytes]
) -> Iterator[str]:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < positions[node_id]:
                positions[node_id] = 0  # Begun anew.
            file.seek(positions[node_id])
            while block := file.read(BLOCK_BYTES):
                positions[node_id] += len(block)
                *lines, rests[node_id] = (rests[node_id] + block).split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace")
    except FileNotFoundError:
        return
