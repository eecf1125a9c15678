"""`logboat cluster up`, from the first check to the last stop."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass

from ..failure import ExitStatus
from ..terminal import Output, emit, is_terminal, say
from .banner import banner
from .ephemeral import new_ephemeral_folder
from .first_topics import FirstTopic, topic_documents
from .folder import DEFAULT_DATA_DIR, ClusterFolder
from .guardian import Guardian
from .launch import RunningCluster, bring_up, claim
from .live_table import LiveTable
from .remove import remove_cluster
from .report import as_document, look_at
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
    with_faults: bool = False
    output: Output = Output.TABLE
    topics: tuple[FirstTopic, ...] = ()


def up(options: UpOptions) -> ExitStatus:
    """Raises Failure when the cluster did not come up; then nothing of it runs."""
    stops = StopRequests()
    if options.ephemeral:
        return _up_for_a_while(new_ephemeral_folder(), options, stops)
    with stops.installed():
        return _up_in(ClusterFolder.at(options.data_dir or DEFAULT_DATA_DIR), options, stops)


def _up_for_a_while(folder: ClusterFolder, options: UpOptions, stops: StopRequests) -> ExitStatus:
    """The folder goes when this ends, unless the cluster is detached; also when it is killed."""
    guardian = Guardian(folder, remove=True)
    stays = False
    try:
        with stops.installed():
            status = _up_in(folder, options, stops)
        stays = options.detach
        return status
    finally:
        if not stays:
            remove_cluster(folder)
        guardian.dismiss()


def _up_in(folder: ClusterFolder, options: UpOptions, stops: StopRequests) -> ExitStatus:
    with claim(
        folder,
        nodes=options.nodes,
        voters=options.voters,
        any_port=options.any_port,
        topics=options.topics,
    ):
        with stops.interrupting():
            say("Starting the cluster...")
            cluster = bring_up(
                folder,
                nodes=options.nodes,
                voters=options.voters,
                any_port=options.any_port,
                ephemeral=options.ephemeral,
                with_faults=options.with_faults,
                topics=options.topics,
            )
        return _serve(cluster, options, stops)


def _somebody_watches(options: UpOptions) -> bool:
    """Who keeps what is said in a file wants each word of it once."""
    errors_are_seen = sys.stderr is not None and sys.stderr.isatty()
    return options.output is Output.TABLE and is_terminal() and errors_are_seen


def _serve(cluster: RunningCluster, options: UpOptions, stops: StopRequests) -> ExitStatus:
    report = look_at(cluster.folder, cluster.state)
    topics = topic_documents(cluster.state, options.topics)
    if not options.detach and _somebody_watches(options):
        live = LiveTable(cluster, topics)
        text = live.text(cluster.state, report)
        emit(text)
        return supervise(cluster, stops, look=live.look, shown=text, tell=live.note)
    if options.output is Output.JSON:
        emit(json.dumps({**as_document(report), "topics": topics}, indent=2))
    else:
        emit(banner(cluster.state, report, topics))
    if options.detach:
        folder = shlex.quote(cluster.folder.path)
        say(f"\nIt goes on running; stop it: logboat cluster down --data-dir {folder}")
        return ExitStatus.GOOD
    say("\nCtrl-C stops the cluster.")
    return supervise(cluster, stops)
