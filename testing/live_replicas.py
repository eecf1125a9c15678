"""The replicas of a running cluster, compared by their files (RULES V4). For quiet times: nobody
may be writing."""

from __future__ import annotations

from functools import partial

from .local_cluster import LocalCluster
from .log_files import partition_folder
from .replica_equality import ReplicaView, first_difference


def differences(cluster: LocalCluster, topic: str, partitions: int) -> list[str]:
    """What the replicas do not agree on, one sentence for each partition. Raises NotInTime."""
    found = []
    for number in range(partitions):
        cluster.wait_until(partial(_why_uneven, cluster, topic, number), "even watermarks")
        difference = first_difference(_replicas(cluster, topic, number))
        if difference is not None:
            found.append(f"{topic}, partition {number}: {difference}")
    return found


def _why_uneven(cluster: LocalCluster, topic: str, partition: int) -> str | None:
    """Followers learn the watermark with their next fetch: soon, when nobody writes."""
    replicas = _replicas(cluster, topic, partition)
    watermarks = {node_id: replica.high_watermark for node_id, replica in replicas.items()}
    return None if len(set(watermarks.values())) == 1 else f"watermarks by node: {watermarks}"


def _replicas(cluster: LocalCluster, topic: str, partition: int) -> dict[int, ReplicaView]:
    views = {}
    for node_id in cluster.node_ids:
        answer = cluster.get(f"/api/v1/topics/{topic}", node_id=node_id)
        if answer is None or answer.status != 200:
            raise RuntimeError(f"node {node_id} does not describe {topic}: {answer}")
        view = answer.body["partitions"][partition]
        if node_id not in view["replicas"]:
            continue
        local = view["local"]
        if local is None:
            raise RuntimeError(f"node {node_id} has no replica of {topic}-{partition}: {view}")
        folder = partition_folder(cluster.data_dir(node_id), topic, partition)
        views[node_id] = ReplicaView(folder, local["log_start_offset"], local["high_watermark"])
    return views
