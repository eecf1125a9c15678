"""API key 60: DescribeCluster."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message, versions="0-2", flexible="0+"):
    """Brokers (v1: or controllers) of the cluster.

    v2 can include fenced brokers.
    """

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(default=1, versions="1+")
    include_fenced_brokers: bool = boolean(versions="2+")


class DescribeClusterResponse(Message, versions="0-2", flexible="0+"):
    """The cluster's id, controller and nodes."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    endpoint_type: int = int8(default=1, versions="1+")
    cluster_id: str = string()
    controller_id: int = int32(default=-1)

    class DescribeClusterBroker(Struct):
        broker_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")
        is_fenced: bool = boolean(versions="2+")

    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-(2**31))
