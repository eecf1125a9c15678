"""One file for each Kafka API, and the table of what is served in which versions.

The table stands apart from the handlers only so that a node can advertise what it serves without
loading 30 modules before its first request.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...wire import ApiKey, api
from ..controller_apis import METHODS
from ..served import Served


def _table(*rows: Served) -> Mapping[ApiKey, Served]:
    return MappingProxyType({row.key: row for row in rows})


_PIPELINED_WITH_PRODUCE = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})

CLIENT_APIS: Mapping[ApiKey, Served] = _table(
    Served(
        ApiKey.PRODUCE,
        3,
        13,
        "produce",
        may_start_behind=_PIPELINED_WITH_PRODUCE,
        # KAFKA-18659: librdkafka before 2.11 turns compression off without it.
        advertised_min=0,
    ),
    # Behind a produce request but not behind another fetch: a slow reader then holds one answer.
    Served(
        ApiKey.FETCH,
        4,
        18,
        "fetch",
        may_start_behind=frozenset({ApiKey.PRODUCE}),
        ends_with_client=True,
    ),
    Served(ApiKey.LIST_OFFSETS, 1, 11, "list_offsets"),
    Served(ApiKey.METADATA, 0, 13, "metadata"),
    Served(ApiKey.OFFSET_COMMIT, 2, 10, "offset_commit"),
    Served(ApiKey.OFFSET_FETCH, 1, 10, "offset_fetch"),
    Served(ApiKey.FIND_COORDINATOR, 0, 6, "find_coordinator"),
    Served(ApiKey.JOIN_GROUP, 0, 9, "join_group"),
    Served(ApiKey.HEARTBEAT, 0, 4, "heartbeat"),
    # A consumer that closes while the others rejoin would otherwise wait for the rebalance, which
    # waits for it; in Kafka it gives up after 5 s and is missed only when its session has ended.
    Served(
        ApiKey.LEAVE_GROUP,
        0,
        5,
        "leave_group",
        may_start_behind=frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}),
    ),
    Served(ApiKey.SYNC_GROUP, 0, 5, "sync_group"),
    Served(ApiKey.DESCRIBE_GROUPS, 0, 6, "describe_groups"),
    Served(ApiKey.LIST_GROUPS, 0, 5, "list_groups"),
    Served(ApiKey.API_VERSIONS, 0, 5, "api_versions"),
    Served(ApiKey.CREATE_TOPICS, 2, 7, "create_topics"),
    Served(ApiKey.DELETE_TOPICS, 1, 6, "delete_topics"),
    Served(ApiKey.DELETE_RECORDS, 0, 2, "delete_records"),
    Served(ApiKey.INIT_PRODUCER_ID, 0, 5, "init_producer_id"),
    Served(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, "offset_for_leader_epoch"),
    Served(ApiKey.DESCRIBE_CONFIGS, 1, 4, "describe_configs"),
    Served(ApiKey.ALTER_CONFIGS, 0, 2, "alter_configs"),
    Served(ApiKey.CREATE_PARTITIONS, 0, 3, "create_partitions"),
    Served(ApiKey.DELETE_GROUPS, 0, 3, "delete_groups"),
    Served(ApiKey.ELECT_LEADERS, 0, 2, "elect_leaders"),
    Served(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "incremental_alter_configs"),
    Served(ApiKey.OFFSET_DELETE, 0, 0, "offset_delete"),
    Served(ApiKey.DESCRIBE_QUORUM, 0, 2, "describe_quorum"),
    Served(ApiKey.DESCRIBE_CLUSTER, 0, 2, "describe_cluster"),
    Served(ApiKey.DESCRIBE_PRODUCERS, 0, 0, "describe_producers"),
    Served(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, "consumer_group_heartbeat"),
    Served(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, "consumer_group_describe"),
    Served(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, "list_config_resources"),
    Served(ApiKey.ALTER_PARTITION, 2, 3, "strangers", advertised=False),
    Served(ApiKey.BROKER_REGISTRATION, 0, 4, "strangers", advertised=False),
    Served(ApiKey.BROKER_HEARTBEAT, 0, 2, "strangers", advertised=False),
    Served(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, "strangers", advertised=False),
    Served(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0, "strangers", advertised=False),
)
"""What clients may ask."""

_ANYTHING = frozenset(ApiKey)
"""Nodes know what they ask side by side; their answers still come in order."""


def _for_controller(key: ApiKey) -> Served:
    known = api(key)
    return Served(
        key,
        known.min_version,
        known.max_stable_version,
        "for_controller",
        may_start_behind=_ANYTHING,
    )


INTERNODE_APIS: Mapping[ApiKey, Served] = _table(
    Served(ApiKey.PRODUCE, 3, 13, "produce", may_start_behind=_ANYTHING),
    Served(
        ApiKey.FETCH,
        4,
        18,
        "fetch",
        may_start_behind=frozenset({ApiKey.PRODUCE}),
        ends_with_client=True,
    ),
    Served(ApiKey.LIST_OFFSETS, 1, 11, "list_offsets", may_start_behind=_ANYTHING),
    Served(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        2,
        4,
        "offset_for_leader_epoch",
        may_start_behind=_ANYTHING,
    ),
    *(
        Served(row.key, row.min_version, row.max_version, row.module, may_start_behind=_ANYTHING)
        for row in (
            CLIENT_APIS[ApiKey.LIST_GROUPS],
            CLIENT_APIS[ApiKey.DESCRIBE_GROUPS],
            CLIENT_APIS[ApiKey.CONSUMER_GROUP_DESCRIBE],
            CLIENT_APIS[ApiKey.OFFSET_FETCH],
            CLIENT_APIS[ApiKey.OFFSET_COMMIT],
            CLIENT_APIS[ApiKey.DELETE_GROUPS],
            CLIENT_APIS[ApiKey.CONSUMER_GROUP_HEARTBEAT],
            CLIENT_APIS[ApiKey.DESCRIBE_CONFIGS],
            CLIENT_APIS[ApiKey.DELETE_RECORDS],
        )
    ),
    Served(ApiKey.ENVELOPE, 0, 0, "envelope", may_start_behind=_ANYTHING, ends_with_client=True),
    *(_for_controller(key) for key in METHODS),
)
"""What the other nodes may ask (RULES B5)."""
