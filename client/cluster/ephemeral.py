"""Clusters in temporary folders, which `down` removes."""

from __future__ import annotations

import os
import tempfile

from ..failure import Failure
from .folder import ClusterFolder


def new_ephemeral_folder() -> ClusterFolder:
    root = _root()
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        return ClusterFolder(tempfile.mkdtemp(prefix="cluster-", dir=root))
    except OSError as error:
        raise Failure(f"cannot make a temporary folder in {root}: {error.strerror}") from error


def ephemeral_folders() -> list[ClusterFolder]:
    """This user's ephemeral clusters, in order of their names."""
    try:
        names = sorted(os.listdir(_root()))
    except OSError:
        return []
    folders = [ClusterFolder(os.path.join(_root(), name)) for name in names]
    return [folder for folder in folders if folder.exists()]


def the_ephemeral_folder() -> ClusterFolder:
    """The one that `--ephemeral` means after `up`; Failure when that is not clear."""
    folders = ephemeral_folders()
    if len(folders) == 1:
        return folders[0]
    if not folders:
        raise Failure("there is no ephemeral cluster; `logboat cluster up --ephemeral` makes one")
    listed = ", ".join(folder.path for folder in folders)
    raise Failure(f"there are {len(folders)} ephemeral clusters; pass --data-dir: {listed}")


def _root() -> str:
    return os.path.join(tempfile.gettempdir(), f"logboat-{os.getuid()}")
