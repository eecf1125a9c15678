"""The replicated log of the quorum: bytes in, bytes out."""

from .channel import (
    Acceptor,
    Channel,
    ChannelClosed,
    ChannelLimits,
    ChannelServerProtocol,
    accept_factory,
    dial,
)
from .handshake import ChannelPeer, Credential, HandshakeFailed
from .interface import (
    Applied,
    NotLeader,
    OnRole,
    Outcome,
    PeerStatus,
    RaftStatus,
    Role,
    StateMachine,
    Unknown,
)
from .settings import RaftSettings

__all__ = [
    "Acceptor",
    "Applied",
    "Channel",
    "ChannelClosed",
    "ChannelLimits",
    "ChannelPeer",
    "ChannelServerProtocol",
    "Credential",
    "HandshakeFailed",
    "NotLeader",
    "OnRole",
    "Outcome",
    "PeerStatus",
    "RaftSettings",
    "RaftStatus",
    "Role",
    "StateMachine",
    "Unknown",
    "accept_factory",
    "dial",
]
