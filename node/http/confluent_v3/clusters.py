"""v3: the cluster and its brokers."""

from __future__ import annotations

from aiohttp import web

from .resources import Document, Resources, answer


async def list_clusters(request: web.Request) -> web.Response:
    """There is one: that of this node."""
    resources = Resources(request)
    return answer(resources.clusters([_cluster(resources)]))


async def describe_cluster(request: web.Request) -> web.Response:
    return answer(_cluster(Resources(request)))


async def list_brokers(request: web.Request) -> web.Response:
    """Those that live."""
    resources = Resources(request)
    living = [n for n, broker in sorted(resources.image.brokers.items()) if not broker.fenced]
    data = [_broker(resources, number) for number in living]
    return answer(resources.collection("KafkaBrokerList", ["brokers"], data))


async def describe_broker(request: web.Request) -> web.Response:
    resources = Resources(request)
    return answer(_broker(resources, resources.broker(request)))


def _cluster(resources: Resources) -> Document:
    image = resources.image
    controller = {}
    if image.controller_id in image.brokers:
        controller = {"controller": resources.link("brokers", image.controller_id)}
    return resources.resource(
        "KafkaCluster",
        [],
        [],
        **controller,
        acls=resources.link("acls"),
        brokers=resources.link("brokers"),
        broker_configs=resources.link("broker-configs"),
        consumer_groups=resources.link("consumer-groups"),
        topics=resources.link("topics"),
        partition_reassignments=resources.link("topics", "-", "partitions", "-", "reassignment"),
    )


def _broker(resources: Resources, number: int) -> Document:
    broker = resources.image.brokers[number]
    return resources.resource(
        "KafkaBroker",
        ["brokers", number],
        [f"broker={number}"],
        broker_id=number,
        host=broker.kafka.host,
        port=broker.kafka.port,
        rack=broker.rack,
        configs=resources.link("brokers", number, "configs"),
        partition_replicas=resources.link("brokers", number, "partition-replicas"),
    )
