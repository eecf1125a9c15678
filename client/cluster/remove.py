"""Take a cluster off the disk."""

from __future__ import annotations

import contextlib
import os
import shutil

from .folder import ClusterFolder


def remove_cluster(folder: ClusterFolder) -> None:
    """Remove what `up` and the nodes made, and the folder when nothing else lies in it.

    The state file goes last: after a crash half-way `purge` still knows what to remove.
    """
    for node_dir in folder.node_dirs():
        shutil.rmtree(node_dir)
    for path in (folder.secret_file, folder.lock_file, folder.chaos_history, folder.state_file):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(folder.path)
