"""`logboat cluster up`, from the first check to the last stop."""

from __future__ import annotations

from dataclasses import dataclass

from ..failure import ExitStatus
from ..terminal import emit, say
from .banner import banner
from .ephemeral import new_ephemeral_folder
from .folder import DEFAULT_DATA_DIR, ClusterFolder
from .launch import RunningCluster, bring_up, claim
from .remove import remove_cluster
from .report import look_at
from .supervise import StopRequests, supervise


@dataclass(frozen=True, slots=True)
class UpOptions:
    nodes: int | None
    """None: as many as the folder holds, 3 for a new cluster."""
    voters: int | None
    """None: all of them, but not more than 5."""
    data_dir: str | None
    ephemeral: bool
    any_port: bool
    detach: bool


def up(options: UpOptions) -> ExitStatus:
    """Raises Failure when the cluster did not come up; then nothing of it runs."""
    if options.ephemeral:
        folder = new_ephemeral_folder()
    else:
        folder = ClusterFolder.at(options.data_dir or DEFAULT_DATA_DIR)
    stops = StopRequests()
    try:
        with stops.installed():
            status = _up_in(folder, options, stops)
    except BaseException:
        if options.ephemeral:
            remove_cluster(folder)
        raise
    if options.ephemeral and not options.detach:
        remove_cluster(folder)
    return status


def _up_in(folder: ClusterFolder, options: UpOptions, stops: StopRequests) -> ExitStatus:
    with claim(folder, nodes=options.nodes, voters=options.voters, any_port=options.any_port):
        with stops.interrupting():
            say("Starting the cluster...")
            cluster = bring_up(
                folder,
                nodes=options.nodes,
                voters=options.voters,
                any_port=options.any_port,
                ephemeral=options.ephemeral,
            )
        _announce(cluster, options)
        return ExitStatus.GOOD if options.detach else supervise(cluster, stops)


def _announce(cluster: RunningCluster, options: UpOptions) -> None:
    emit(banner(cluster.state, look_at(cluster.folder, cluster.state)))
    if options.detach:
        say(f"\nIt goes on running; stop it: logboat cluster down --data-dir {cluster.folder.path}")
    else:
        say("\nCtrl-C stops the cluster.")
