"""Take the last acknowledged batch out of every replica, behind the broker's back.

The data directories then look as if the batch had never been written: no checkpoint tells of it.
A broker cannot notice that; the comparison with the acknowledgements must.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from ..log_files import StoredBatch, partition_folder, stored_batches

_ABOUT_THE_WHOLE_DIRECTORY = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
)
_ABOUT_THE_LOG = (".index", ".timeindex", ".snapshot")


def cut_batch(data_dirs: Iterable[str], topic: str, partition: int, offset: int) -> int:
    """Cut the batch that holds `offset`, and what follows it, out of every replica; no node runs.

    Returns how many records went. Raises ValueError when a replica does not hold the offset.
    """
    records = 0
    for data_dir in data_dirs:
        folder = partition_folder(data_dir, topic, partition)
        records = _cut(folder, offset)
        for name in _ABOUT_THE_WHOLE_DIRECTORY:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(data_dir, name))
    return records


def _cut(folder: str, offset: int) -> int:
    batches = list(stored_batches(folder))
    cut = next((b for b in batches if b.base_offset <= offset < b.next_offset), None)
    if cut is None:
        raise ValueError(f"{folder} does not hold offset {offset}")
    _truncate(folder, cut)
    return batches[-1].next_offset - cut.base_offset


def _truncate(folder: str, cut: StoredBatch) -> None:
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        later_segment = name.endswith(".log") and path > cut.file
        if later_segment or name.endswith(_ABOUT_THE_LOG):
            os.unlink(path)
    os.truncate(cut.file, cut.position)
