"""Error codes of the protocol."""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """What a response says went wrong.

    `retriable`: the same request may succeed later; `message` says it to a person.
    """

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136

    @property
    def retriable(self) -> bool:
        return self in _RETRIABLE

    @property
    def refreshes_metadata(self) -> bool:
        """A client asks for metadata anew before it tries again."""
        return self in _REFRESHES_METADATA

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_RETRIABLE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
_REFRESHES_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_MESSAGES = {
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "Catch-all: the server failed in a way no other code describes."
    ),
    ErrorCode.NONE: "Success.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "Asked offset lies outside what the partition's log holds.",
    ErrorCode.CORRUPT_MESSAGE: "Batch fails its checksum, size, key or format check.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "This broker does not know or host that topic or partition."
    ),
    ErrorCode.INVALID_FETCH_SIZE: "Fetch size asked for is not acceptable.",
    ErrorCode.LEADER_NOT_AVAILABLE: "Partition has no leader now; an election is under way.",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ("Broker is not leader (or not a replica) of the partition."),
    ErrorCode.REQUEST_TIMED_OUT: "Time ran out before the request could be completed.",
    ErrorCode.BROKER_NOT_AVAILABLE: "The named broker cannot be reached or is not up.",
    ErrorCode.REPLICA_NOT_AVAILABLE: "Wanted replica is absent or not usable here.",
    ErrorCode.MESSAGE_TOO_LARGE: "A record or batch exceeds the largest size allowed.",
    ErrorCode.STALE_CONTROLLER_EPOCH: "Request carries an outdated controller epoch.",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: ("Metadata string committed with an offset is too long."),
    ErrorCode.NETWORK_EXCEPTION: "Connection dropped before the answer arrived (client side).",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ("Coordinator is still loading its state; try again."),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "No coordinator is available at present.",
    ErrorCode.NOT_COORDINATOR: "This broker is not the coordinator for that key.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Topic name or the operation on that topic is invalid.",
    ErrorCode.RECORD_LIST_TOO_LARGE: "Batch is bigger than a whole log segment.",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Too few in-sync replicas; nothing was written.",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (
        "Written, but in-sync replicas fell below the minimum."
    ),
    ErrorCode.INVALID_REQUIRED_ACKS: "acks must be 0, 1 or -1.",
    ErrorCode.ILLEGAL_GENERATION: "Member uses a group generation that is not current.",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: ("Member shares no assignment protocol with the group."),
    ErrorCode.INVALID_GROUP_ID: "Group id is empty or not acceptable.",
    ErrorCode.UNKNOWN_MEMBER_ID: "Coordinator has no member with that id.",
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "Session timeout is outside the broker's permitted bounds."
    ),
    ErrorCode.REBALANCE_IN_PROGRESS: "Group is rebalancing; the member must rejoin.",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "Offset commit record would be too large.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Principal may not do this on the topic.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Principal may not do this on the group.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Principal may not do this on the cluster.",
    ErrorCode.INVALID_TIMESTAMP: "Record timestamp lies too far before or after broker time.",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "SASL mechanism offered is not enabled here.",
    ErrorCode.ILLEGAL_SASL_STATE: "Request is out of place in the SASL exchange.",
    ErrorCode.UNSUPPORTED_VERSION: "Broker does not serve that version of the API.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "A topic with this name exists already.",
    ErrorCode.INVALID_PARTITIONS: "Partition count is not valid.",
    ErrorCode.INVALID_REPLICATION_FACTOR: (
        "Replication factor is below one or above the usable brokers."
    ),
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: ("Manual replica placement is malformed or impossible."),
    ErrorCode.INVALID_CONFIG: "A configuration name or value is rejected.",
    ErrorCode.NOT_CONTROLLER: "Node asked is not the active controller.",
    ErrorCode.INVALID_REQUEST: "Request is malformed or its fields contradict each other.",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: ("Stored message format cannot serve this request."),
    ErrorCode.POLICY_VIOLATION: "A configured policy refuses the request.",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: ("Producer sequence skips ahead of what was expected."),
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "Producer sequence was already written.",
    ErrorCode.INVALID_PRODUCER_EPOCH: "Producer epoch is older than the one known.",
    ErrorCode.INVALID_TXN_STATE: (
        "Transactional call does not fit the transaction's present state."
    ),
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: (
        "Producer id does not belong to that transactional id."
    ),
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "Transaction timeout is above the broker's maximum.",
    ErrorCode.CONCURRENT_TRANSACTIONS: ("Another change to this transaction is still in progress."),
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: (
        "Marker sent by a transaction coordinator that was replaced."
    ),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "Principal may not use this transactional id."
    ),
    ErrorCode.SECURITY_DISABLED: "Security feature asked for is switched off.",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "Step skipped because another part of the batch failed.",
    ErrorCode.KAFKA_STORAGE_ERROR: "Disk trouble in a log directory.",
    ErrorCode.LOG_DIR_NOT_FOUND: "Named log directory is not configured on the broker.",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SASL login failed.",
    ErrorCode.UNKNOWN_PRODUCER_ID: "Broker holds no state for this producer id (legacy).",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "Partition is being reassigned already.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation tokens are not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "No such delegation token.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: (
        "Principal neither owns the token nor may renew it."
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Connection's way of authenticating may not request tokens."
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: (
        "Principal may not act on this delegation token."
    ),
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation token has expired.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Principal type is not supported.",
    ErrorCode.NON_EMPTY_GROUP: "Group still has members.",
    ErrorCode.GROUP_ID_NOT_FOUND: "No group has that id.",
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: "Broker no longer holds that fetch session.",
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: "Fetch session epoch is not the one expected.",
    ErrorCode.LISTENER_NOT_FOUND: "Leader has no listener matching the one the request used.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topic deletion is switched off.",
    ErrorCode.FENCED_LEADER_EPOCH: "Client's leader epoch is older than the broker's.",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "Client's leader epoch is newer than the broker's.",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: (
        "Client cannot read the partition's compression codec."
    ),
    ErrorCode.STALE_BROKER_EPOCH: "Broker epoch in the request is outdated.",
    ErrorCode.OFFSET_NOT_AVAILABLE: "New leader cannot yet give a trustworthy offset.",
    ErrorCode.MEMBER_ID_REQUIRED: "Join again, using the member id just handed out.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "Preferred replica cannot lead now.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "Group is full.",
    ErrorCode.FENCED_INSTANCE_ID: "Another member took over this static instance id.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No replica is eligible to lead.",
    ErrorCode.ELECTION_NOT_NEEDED: "Desired leader is in place; no election needed.",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "Nothing is being reassigned for this partition.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: ("Group still subscribes to the topic; its offsets stay."),
    ErrorCode.INVALID_RECORD: "Broker's validation rejected a record.",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: ("Offsets pending in an open transaction block the answer."),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "Quota exceeded; operation refused for now.",
    ErrorCode.PRODUCER_FENCED: (
        "Another producer has taken this transactional id over with a higher epoch."
    ),
    ErrorCode.RESOURCE_NOT_FOUND: "Resource referred to does not exist.",
    ErrorCode.DUPLICATE_RESOURCE: "Same resource named twice, or it exists already.",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "Credential does not satisfy the rules.",
    ErrorCode.INCONSISTENT_VOTER_SET: "Sender or receiver is not an expected quorum voter.",
    ErrorCode.INVALID_UPDATE_VERSION: "Partition-state version in the update is not valid.",
    ErrorCode.FEATURE_UPDATE_FAILED: "Finalised feature level could not be changed.",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "Forwarded principal could not be decoded.",
    ErrorCode.SNAPSHOT_NOT_FOUND: "No such quorum snapshot.",
    ErrorCode.POSITION_OUT_OF_RANGE: "Byte position lies outside the snapshot.",
    ErrorCode.UNKNOWN_TOPIC_ID: "No topic with this id is known here.",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "Another live broker is registered with this id.",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "No broker is registered with this id.",
    ErrorCode.INCONSISTENT_TOPIC_ID: "Topic id differs from the one stored with the log.",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "Cluster id differs from this cluster's.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "Transactional id is unknown to the coordinator.",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: (
        "Fetch session mixes requests with and without topic ids."
    ),
    ErrorCode.INELIGIBLE_REPLICA: "Proposed in-sync set includes a replica not allowed there.",
    ErrorCode.NEW_LEADER_ELECTED: (
        "Partition change applied, yet another leader was chosen meanwhile."
    ),
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: "Offset now exists in remote storage only.",
    ErrorCode.FENCED_MEMBER_EPOCH: "Member epoch fenced; drop all partitions and rejoin.",
    ErrorCode.UNRELEASED_INSTANCE_ID: "Static instance id is still held by another member.",
    ErrorCode.UNSUPPORTED_ASSIGNOR: ("Group does not support the server-side assignor asked for."),
    ErrorCode.STALE_MEMBER_EPOCH: "Member epoch is outdated; heartbeat, then retry.",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: (
        "Request reached a broker where a controller was meant, or conversely."
    ),
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "Endpoint type is not supported.",
    ErrorCode.UNKNOWN_CONTROLLER_ID: "No controller has this id.",
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: "Telemetry subscription id is unknown or outdated.",
    ErrorCode.TELEMETRY_TOO_LARGE: "Telemetry payload is too big.",
    ErrorCode.INVALID_REGISTRATION: ("Controller holds this broker's registration to be invalid."),
    ErrorCode.TRANSACTION_ABORTABLE: (
        "Transaction must be aborted; the producer may then continue."
    ),
    ErrorCode.INVALID_RECORD_STATE: (
        "Share-group record is not in a state allowing that acknowledgement."
    ),
    ErrorCode.SHARE_SESSION_NOT_FOUND: "No such share session.",
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: "Share session epoch is not the expected one.",
    ErrorCode.FENCED_STATE_EPOCH: "Share state epoch does not match; request refused.",
    ErrorCode.INVALID_VOTER_KEY: "Voter id or directory id differs from the receiver's own.",
    ErrorCode.DUPLICATE_VOTER: "Replica is a voter already.",
    ErrorCode.VOTER_NOT_FOUND: "Replica is not among the voters.",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "Regular expression cannot be parsed.",
    ErrorCode.REBOOTSTRAP_REQUIRED: "Client metadata is too old; bootstrap afresh.",
    ErrorCode.STREAMS_INVALID_TOPOLOGY: "Streams topology is not valid.",
    ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH: "Streams topology epoch is not acceptable.",
    ErrorCode.STREAMS_TOPOLOGY_FENCED: "Streams topology epoch is superseded.",
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: "Broker has no room for more share sessions.",
    ErrorCode.GROUP_DELETION_FAILED: "Some groups were not deleted; see each result's message.",
    ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED: (
        "Topology description could not be handled; see the message."
    ),
    ErrorCode.CONTROLLER_ID_NOT_REGISTERED: "No controller is registered with this id.",
}
