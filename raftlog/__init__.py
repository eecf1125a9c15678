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

__all__ = [
    "Acceptor",
    "Channel",
    "ChannelClosed",
    "ChannelLimits",
    "ChannelPeer",
    "ChannelServerProtocol",
    "Credential",
    "HandshakeFailed",
    "accept_factory",
    "dial",
]
