"""The replicated log of the quorum: bytes in, bytes out.

pysyncobj is the Raft engine, pinned, and never in its stock form: journal, snapshots, transport and
command codec are ours, and guards correct what its rules get wrong (`guards/`). Nothing outside
this part knows of it. Promised: a proposal is applied in the same order on every voter or answered
as not applied or unknown; what was acknowledged survives the loss of power on all nodes at once. An
`Observer` follows the log without a vote.

`Channel` is also the connection of the inter-node Kafka listener. Left to others: what the commands
mean (`metadata`), the listener, where certificates lie and the choice of addresses (`node`).
"""

from .channel import (
    Acceptor,
    Channel,
    ChannelClosed,
    ChannelLimits,
    ChannelServerProtocol,
    accept_factory,
    dial,
)
from .feed_messages import FEED_SERVICE
from .handshake import ChannelPeer, Credential, HandshakeFailed
from .interface import (
    Applied,
    NotLeader,
    ObserverStatus,
    OnRole,
    Outcome,
    PeerStatus,
    RaftStatus,
    Role,
    StateMachine,
    Unknown,
)
from .log_page import CommittedEntry, LogPage
from .observer import Observer
from .raft_log import RaftLog
from .settings import RaftSettings
from .tls import ChannelTls
from .transfer import NotTransferred, TransferOutcome, Transferred
from .transport import SERVICE as RAFT_SERVICE

__all__ = [
    "FEED_SERVICE",
    "RAFT_SERVICE",
    "Acceptor",
    "Applied",
    "Channel",
    "ChannelClosed",
    "ChannelLimits",
    "ChannelPeer",
    "ChannelServerProtocol",
    "ChannelTls",
    "CommittedEntry",
    "Credential",
    "HandshakeFailed",
    "LogPage",
    "NotLeader",
    "NotTransferred",
    "Observer",
    "ObserverStatus",
    "OnRole",
    "Outcome",
    "PeerStatus",
    "RaftLog",
    "RaftSettings",
    "RaftStatus",
    "Role",
    "StateMachine",
    "TransferOutcome",
    "Transferred",
    "Unknown",
    "accept_factory",
    "dial",
]
