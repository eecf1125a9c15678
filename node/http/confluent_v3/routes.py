"""The paths of v3. `-` in the place of a name stands for all of them, and is looked for first."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from ..guards import Handler
from . import clusters, configs, groups, partitions, produce, refused, topics

_CLUSTER = "/v3/clusters/{cluster}"
_TOPIC = _CLUSTER + "/topics/{topic}"
_PARTITION = _TOPIC + "/partitions/{partition}"
_BROKER = _CLUSTER + "/brokers/{broker}"
_GROUP = _CLUSTER + "/consumer-groups/{group}"
_CONSUMER = _GROUP + "/consumers/{consumer}"


def _settings(path: str, owner_of: configs.OwnerOf) -> tuple[tuple[str, str, Handler], ...]:
    """What can be done with the settings of one owner."""
    one = path + "/{name}"
    return (
        ("GET", path, partial(configs.list_configs, owner_of=owner_of)),
        ("POST", path + ":alter", partial(configs.alter_configs, owner_of=owner_of)),
        ("GET", one, partial(configs.describe_config, owner_of=owner_of)),
        ("PUT", one, partial(configs.set_config, owner_of=owner_of)),
        ("DELETE", one, partial(configs.reset_config, owner_of=owner_of)),
    )


ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/v3/clusters", clusters.list_clusters),
    ("GET", _CLUSTER, clusters.describe_cluster),
    ("GET", _CLUSTER + "/brokers", clusters.list_brokers),
    ("GET", _CLUSTER + "/brokers/-/configs", configs.list_configs_of_brokers),
    ("GET", _BROKER, clusters.describe_broker),
    *_settings(_BROKER + "/configs", configs.of_broker),
    ("GET", _BROKER + "/partition-replicas", partitions.list_replicas_of_broker),
    *_settings(_CLUSTER + "/broker-configs", configs.of_cluster),
    ("GET", _CLUSTER + "/topics", topics.list_topics),
    ("POST", _CLUSTER + "/topics", topics.create_topic),
    ("GET", _CLUSTER + "/topics/-/configs", configs.list_configs_of_topics),
    (
        "GET",
        _CLUSTER + "/topics/-/partitions/-/reassignment",
        partitions.list_all_reassignments,
    ),
    ("GET", _TOPIC, topics.describe_topic),
    ("DELETE", _TOPIC, topics.delete_topic),
    ("PATCH", _TOPIC, topics.change_partition_count),
    *_settings(_TOPIC + "/configs", configs.of_topic),
    ("POST", _TOPIC + "/records", produce.produce),
    ("POST", _TOPIC + "/records:batch", produce.produce_batch),
    ("GET", _TOPIC + "/partitions", partitions.list_partitions),
    ("GET", _TOPIC + "/partitions/-/reassignment", partitions.list_reassignments),
    ("GET", _PARTITION, partitions.describe_partition),
    ("GET", _PARTITION + "/offset", partitions.partition_offset),
    ("GET", _PARTITION + "/reassignment", partitions.describe_reassignment),
    ("GET", _PARTITION + "/replicas", partitions.list_replicas),
    ("GET", _PARTITION + "/replicas/{broker}", partitions.describe_replica),
    ("GET", _CLUSTER + "/consumer-groups", groups.list_groups),
    ("GET", _GROUP, groups.describe_group),
    ("GET", _GROUP + "/lag-summary", groups.lag_summary),
    ("GET", _GROUP + "/lags", groups.list_lags),
    ("GET", _GROUP + "/lags/{topic}/partitions/{partition}", groups.describe_lag),
    ("GET", _GROUP + "/consumers", groups.list_consumers),
    ("GET", _CONSUMER, groups.describe_consumer),
    ("GET", _CONSUMER + "/assignments", groups.list_assignments),
    (
        "GET",
        _CONSUMER + "/assignments/{topic}/partitions/{partition}",
        groups.describe_assignment,
    ),
    ("GET", _CLUSTER + "/acls", refused.no_authorizer),
    ("POST", _CLUSTER + "/acls", refused.no_authorizer),
    ("DELETE", _CLUSTER + "/acls", refused.no_authorizer),
    ("POST", _CLUSTER + "/acls:batch", refused.no_authorizer),
)


def install(app: web.Application) -> None:
    for method, path, handler in ROUTES:
        slashed = path + "{_:/?}"
        if method == "GET":
            app.router.add_get(slashed, handler)  # and HEAD
        else:
            app.router.add_route(method, slashed, handler)
