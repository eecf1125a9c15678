"""What stands in the files of every replica when all is over, for the checkers and V4.

A record that was acknowledged, read, and then lost with all behind it leaves no hole that a
consumer could see: only the replicas themselves tell.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...testing import LocalCluster
from ...testing.live_replicas import differences
from ...testing.log_files import DamagedLog, partition_folder, stored_batches
from ..clients import TopicPartition
from ..schedule import Topic

Replica = dict[str, Any]
"""The value of a `replica` observation."""


def ends_by_node(
    cluster: LocalCluster, topics: Iterable[Topic]
) -> dict[int, dict[TopicPartition, int]]:
    """What each node's replicas must be able to serve: all that is committed, by who knows best."""
    ends: dict[TopicPartition, int] = {}
    held: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for node_id, number, local in _local_views(cluster, topic):
            partition = TopicPartition(topic.name, number)
            held.setdefault(node_id, []).append(partition)
            ends[partition] = max(ends.get(partition, 0), local["high_watermark"])
    return {node_id: {one: ends[one] for one in held[node_id]} for node_id in held}


def divergences(cluster: LocalCluster, topic: Topic) -> list[str]:
    """Byte for byte, batch by batch. Raises NotInTime when the watermarks do not get even."""
    try:
        found = differences(cluster, topic.name, topic.partitions)
    except (DamagedLog, RuntimeError) as error:
        found = [str(error)]
    return [f"divergence: {difference}" for difference in found]


def replicas(cluster: LocalCluster, topic: Topic) -> list[Replica]:
    """Of nodes that answer; for quiet times. Raises DamagedLog."""
    found = []
    for node_id, number, local in _local_views(cluster, topic):
        folder = partition_folder(cluster.data_dir(node_id), topic.name, number)
        replica = {
            "key": TopicPartition(topic.name, number).key,
            "node": node_id,
            "log_start": local["log_start_offset"],
            "high_watermark": local["high_watermark"],
            "batches": [
                [batch.base_offset, batch.leader_epoch, zlib.crc32(batch.content)]
                for batch in stored_batches(folder)
            ],
        }
        found.append(replica)
    return found


def _local_views(
    cluster: LocalCluster, topic: Topic
) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """(node, partition, what the node says of its replica), of nodes that answer."""
    for node_id in cluster.node_ids:
        answer = cluster.get(f"/api/v1/topics/{topic.name}", node_id=node_id)
        if answer is None or answer.status != 200:
            continue
        for view in answer.body["partitions"]:
            if view["local"] is not None:
                yield node_id, int(view["partition"]), view["local"]
