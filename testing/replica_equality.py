"""Whether the replicas of a partition hold the same batches (RULES V4): from the largest log start
to the watermark, byte for byte. Files may differ: segments roll where each replica rolls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .log_files import stored_batches


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One replica: its folder, and the bounds it reports."""

    folder: str
    log_start_offset: int
    high_watermark: int


def first_difference(replicas: Mapping[int, ReplicaView]) -> str | None:
    """One sentence about the first offset at which two replicas differ, or None.

    Raises DamagedLog when a file cannot be read as batches.
    """
    start = max(replica.log_start_offset for replica in replicas.values())
    end = max(replica.high_watermark for replica in replicas.values())
    held = {
        node_id: {
            batch.base_offset: batch.content
            for batch in stored_batches(replica.folder)
            if start <= batch.base_offset < end
        }
        for node_id, replica in replicas.items()
    }
    reference_id = min(held)
    for node_id, batches in held.items():
        for offset in sorted(batches.keys() | held[reference_id].keys()):
            if batches.get(offset) != held[reference_id].get(offset):
                return f"nodes {reference_id} and {node_id} differ at offset {offset}"
    return None
