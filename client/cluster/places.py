"""Which cluster of this machine a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ..failure import Failure
from .folder import DEFAULT_DATA_DIR, ClusterFolder

DataDir = Annotated[
    str | None,
    typer.Option(
        "--data-dir", metavar="D", help=f"The cluster's folder (default {DEFAULT_DATA_DIR})."
    ),
]
Ephemeral = Annotated[
    bool, typer.Option("--ephemeral", help="A temporary folder, removed at `down`.")
]


def existing_folder(data_dir: str | None, ephemeral: bool) -> ClusterFolder:
    from .ephemeral import the_ephemeral_folder

    refuse_both(data_dir, ephemeral)
    return the_ephemeral_folder() if ephemeral else ClusterFolder.at(data_dir or DEFAULT_DATA_DIR)


def folder_of(cluster_id: str, data_dir: str | None, ephemeral: bool) -> ClusterFolder | None:
    """That of the cluster which goes by this id. None when it is not here; that of another cluster
    tells nothing. Raises Failure when the folder was named and holds no cluster."""
    from .state import load_state

    try:
        folder = existing_folder(data_dir, ephemeral)
        state = load_state(folder)
    except Failure:
        if data_dir is not None or ephemeral:
            raise
        return None
    return folder if state.cluster_id == cluster_id else None


def default_folder_of(urls: Sequence[str]) -> ClusterFolder | None:
    """The default folder, where it is that of the cluster with a node at one of these addresses:
    such a node need not answer."""
    from .state import load_state

    folder = ClusterFolder.at(DEFAULT_DATA_DIR)
    try:
        known = load_state(folder).http_urls.split(",")
    except Failure:
        return None
    return folder if set(urls) & set(known) else None


def refuse_both(data_dir: str | None, ephemeral: bool) -> None:
    if data_dir is not None and ephemeral:
        raise typer.BadParameter("--data-dir and --ephemeral exclude each other")
