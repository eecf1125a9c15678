"""Every API: its key, versions, header versions and listeners, and where its messages are declared.

The version ranges are what can be encoded and decoded. What a node serves is what its handlers
declare; nothing is advertised from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import import_module

from .schema import Message


class ApiKey(IntEnum):
    """The number in front of a request. Keys 4 to 7 went with ZooKeeper."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94

    @property
    def module(self) -> str:
        """The module below `wire.messages` that declares its request and response."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Api:
    """What is fixed about one API."""

    key: ApiKey
    name: str
    """Kafka's name: "Produce"."""
    min_version: int
    max_version: int
    listeners: tuple[str, ...]
    """Where Kafka serves it: "broker", "controller" or both."""
    flexible_from: int | None = None
    """First version with compact lengths and tagged fields."""
    latest_unstable: bool = False
    """The newest version may still change and must not be advertised."""

    @property
    def max_stable_version(self) -> int:
        return self.max_version - self.latest_unstable

    @property
    def request(self) -> type[Message]:
        return _declared(self.key, self.name + "Request")

    @property
    def response(self) -> type[Message]:
        return _declared(self.key, self.name + "Response")

    def supports(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version

    def is_flexible(self, version: int) -> bool:
        return self.flexible_from is not None and version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        # A client that does not know yet what the broker speaks must be able to read the answer.
        if self.key == ApiKey.API_VERSIONS:
            return 0
        return 1 if self.is_flexible(version) else 0


@cache
def _declared(key: ApiKey, name: str) -> type[Message]:
    """Imported at first use: a process uses a third of the messages."""
    module = import_module(f".messages.{key.module}", __package__)
    message: type[Message] = getattr(module, name)
    return message


def api(key: int) -> Api:
    """
    Raises:
        KeyError: no such API.
    """
    return _APIS[key]


def all_apis() -> tuple[Api, ...]:
    """In the order of their keys."""
    return tuple(_APIS.values())


_BROKER = ("broker",)
_CONTROLLER = ("controller",)
_BOTH = ("broker", "controller")

_TABLE = (
    Api(ApiKey.PRODUCE, "Produce", 3, 13, _BROKER, flexible_from=9),
    Api(ApiKey.FETCH, "Fetch", 4, 18, _BOTH, flexible_from=12),
    Api(ApiKey.LIST_OFFSETS, "ListOffsets", 1, 11, _BROKER, flexible_from=6),
    Api(ApiKey.METADATA, "Metadata", 0, 13, _BROKER, flexible_from=9),
    Api(ApiKey.OFFSET_COMMIT, "OffsetCommit", 2, 10, _BROKER, flexible_from=8),
    Api(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 10, _BROKER, flexible_from=6),
    Api(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, _BROKER, flexible_from=3),
    Api(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, _BROKER, flexible_from=6),
    Api(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, _BROKER, flexible_from=4),
    Api(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, _BROKER, flexible_from=4),
    Api(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, _BROKER, flexible_from=4),
    Api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 6, _BROKER, flexible_from=5),
    Api(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, _BROKER, flexible_from=3),
    Api(ApiKey.SASL_HANDSHAKE, "SaslHandshake", 0, 1, _BOTH),
    Api(ApiKey.API_VERSIONS, "ApiVersions", 0, 5, _BOTH, flexible_from=3),
    Api(ApiKey.CREATE_TOPICS, "CreateTopics", 2, 7, _BOTH, flexible_from=5),
    Api(ApiKey.DELETE_TOPICS, "DeleteTopics", 1, 6, _BOTH, flexible_from=4),
    Api(ApiKey.DELETE_RECORDS, "DeleteRecords", 0, 2, _BROKER, flexible_from=2),
    Api(
        ApiKey.INIT_PRODUCER_ID,
        "InitProducerId",
        0,
        6,
        _BROKER,
        flexible_from=2,
        latest_unstable=True,
    ),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, _BROKER, flexible_from=4),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 0, 5, _BROKER, flexible_from=3),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", 0, 4, _BROKER, flexible_from=3),
    Api(ApiKey.END_TXN, "EndTxn", 0, 5, _BROKER, flexible_from=3),
    Api(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 1, 2, _BROKER, flexible_from=1),
    Api(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 6, _BROKER, flexible_from=3),
    Api(ApiKey.DESCRIBE_ACLS, "DescribeAcls", 1, 3, _BOTH, flexible_from=2),
    Api(ApiKey.CREATE_ACLS, "CreateAcls", 1, 3, _BOTH, flexible_from=2),
    Api(ApiKey.DELETE_ACLS, "DeleteAcls", 1, 3, _BOTH, flexible_from=2),
    Api(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 1, 4, _BOTH, flexible_from=4),
    Api(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, _BOTH, flexible_from=2),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", 1, 2, _BROKER, flexible_from=2),
    Api(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 1, 5, _BROKER, flexible_from=2),
    Api(ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", 0, 2, _BOTH, flexible_from=2),
    Api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, _BOTH, flexible_from=2),
    Api(ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationToken", 1, 3, _BOTH, flexible_from=2),
    Api(ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationToken", 1, 2, _BOTH, flexible_from=2),
    Api(ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", 1, 2, _BOTH, flexible_from=2),
    Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", 1, 3, _BOTH, flexible_from=2),
    Api(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 3, _BROKER, flexible_from=2),
    Api(ApiKey.ELECT_LEADERS, "ElectLeaders", 0, 2, _BOTH, flexible_from=2),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, _BOTH, flexible_from=1),
    Api(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        "AlterPartitionReassignments",
        0,
        1,
        _BOTH,
        flexible_from=0,
    ),
    Api(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        "ListPartitionReassignments",
        0,
        0,
        _BOTH,
        flexible_from=0,
    ),
    Api(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, _BROKER),
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, _BROKER, flexible_from=1),
    Api(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, _BOTH, flexible_from=1),
    Api(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "DescribeUserScramCredentials",
        0,
        0,
        _BOTH,
        flexible_from=0,
    ),
    Api(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        "AlterUserScramCredentials",
        0,
        0,
        _BOTH,
        flexible_from=0,
    ),
    Api(ApiKey.VOTE, "Vote", 0, 2, _CONTROLLER, flexible_from=0),
    Api(ApiKey.BEGIN_QUORUM_EPOCH, "BeginQuorumEpoch", 0, 1, _CONTROLLER, flexible_from=1),
    Api(ApiKey.END_QUORUM_EPOCH, "EndQuorumEpoch", 0, 1, _CONTROLLER, flexible_from=1),
    Api(ApiKey.DESCRIBE_QUORUM, "DescribeQuorum", 0, 2, _BOTH, flexible_from=0),
    Api(ApiKey.ALTER_PARTITION, "AlterPartition", 2, 3, _CONTROLLER, flexible_from=0),
    Api(ApiKey.UPDATE_FEATURES, "UpdateFeatures", 0, 2, _BOTH, flexible_from=0),
    Api(ApiKey.ENVELOPE, "Envelope", 0, 0, _CONTROLLER, flexible_from=0),
    Api(ApiKey.FETCH_SNAPSHOT, "FetchSnapshot", 0, 1, _CONTROLLER, flexible_from=0),
    Api(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, _BOTH, flexible_from=0),
    Api(ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", 0, 0, _BROKER, flexible_from=0),
    Api(ApiKey.BROKER_REGISTRATION, "BrokerRegistration", 0, 4, _CONTROLLER, flexible_from=0),
    Api(ApiKey.BROKER_HEARTBEAT, "BrokerHeartbeat", 0, 2, _CONTROLLER, flexible_from=0),
    Api(ApiKey.UNREGISTER_BROKER, "UnregisterBroker", 0, 0, _BOTH, flexible_from=0),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", 0, 0, _BROKER, flexible_from=0),
    Api(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 2, _BROKER, flexible_from=0),
    Api(ApiKey.ALLOCATE_PRODUCER_IDS, "AllocateProducerIds", 0, 0, _CONTROLLER, flexible_from=0),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 0, 1, _BROKER, flexible_from=0),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 0, 1, _BROKER, flexible_from=0),
    Api(
        ApiKey.CONTROLLER_REGISTRATION, "ControllerRegistration", 0, 0, _CONTROLLER, flexible_from=0
    ),
    Api(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        "GetTelemetrySubscriptions",
        0,
        0,
        _BROKER,
        flexible_from=0,
    ),
    Api(ApiKey.PUSH_TELEMETRY, "PushTelemetry", 0, 0, _BROKER, flexible_from=0),
    Api(ApiKey.ASSIGN_REPLICAS_TO_DIRS, "AssignReplicasToDirs", 0, 0, _CONTROLLER, flexible_from=0),
    Api(ApiKey.LIST_CONFIG_RESOURCES, "ListConfigResources", 0, 1, _BROKER, flexible_from=0),
    Api(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", 0, 0, _BROKER, flexible_from=0
    ),
    Api(ApiKey.SHARE_GROUP_HEARTBEAT, "ShareGroupHeartbeat", 1, 1, _BROKER, flexible_from=0),
    Api(ApiKey.SHARE_GROUP_DESCRIBE, "ShareGroupDescribe", 1, 1, _BROKER, flexible_from=0),
    Api(ApiKey.SHARE_FETCH, "ShareFetch", 1, 2, _BROKER, flexible_from=0),
    Api(ApiKey.SHARE_ACKNOWLEDGE, "ShareAcknowledge", 1, 2, _BROKER, flexible_from=0),
    Api(ApiKey.ADD_RAFT_VOTER, "AddRaftVoter", 0, 1, _BOTH, flexible_from=0),
    Api(ApiKey.REMOVE_RAFT_VOTER, "RemoveRaftVoter", 0, 0, _BOTH, flexible_from=0),
    Api(ApiKey.UPDATE_RAFT_VOTER, "UpdateRaftVoter", 0, 0, _CONTROLLER, flexible_from=0),
    Api(
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        "InitializeShareGroupState",
        0,
        0,
        _BROKER,
        flexible_from=0,
    ),
    Api(ApiKey.READ_SHARE_GROUP_STATE, "ReadShareGroupState", 0, 0, _BROKER, flexible_from=0),
    Api(ApiKey.WRITE_SHARE_GROUP_STATE, "WriteShareGroupState", 0, 1, _BROKER, flexible_from=0),
    Api(ApiKey.DELETE_SHARE_GROUP_STATE, "DeleteShareGroupState", 0, 0, _BROKER, flexible_from=0),
    Api(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        "ReadShareGroupStateSummary",
        0,
        1,
        _BROKER,
        flexible_from=0,
    ),
    Api(ApiKey.STREAMS_GROUP_HEARTBEAT, "StreamsGroupHeartbeat", 0, 1, _BROKER, flexible_from=0),
    Api(ApiKey.STREAMS_GROUP_DESCRIBE, "StreamsGroupDescribe", 0, 1, _BROKER, flexible_from=0),
    Api(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        "DescribeShareGroupOffsets",
        0,
        1,
        _BROKER,
        flexible_from=0,
    ),
    Api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "AlterShareGroupOffsets", 0, 0, _BROKER, flexible_from=0),
    Api(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS, "DeleteShareGroupOffsets", 0, 0, _BROKER, flexible_from=0
    ),
    Api(
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
        "StreamsGroupTopologyDescriptionUpdate",
        0,
        0,
        _BROKER,
        flexible_from=0,
    ),
    Api(ApiKey.UNREGISTER_CONTROLLER, "UnregisterController", 0, 0, _BOTH, flexible_from=0),
)

_APIS: dict[int, Api] = {int(row.key): row for row in _TABLE}
