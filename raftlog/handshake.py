"""Two nodes prove to each other that they hold the cluster secret (RULES B5). No I/O here.

    dialer                                     listener
      hello: nonce, ids, service, cluster  ->
                                           <-  welcome: nonce, ids, proof
      proof                                ->
      frames                              <->  frames

Each proof is an HMAC over both messages, hence over both nonces, node ids, directory ids, the
service and the cluster id: nothing of another connection, cluster or role can be replayed here, and
the keys of the frames, one per direction, are derived from the same transcript. The first thing a
stranger must send is a fixed magic; everything is compared before it is believed, and nothing is
ever unpickled or evaluated. Where TLS is configured all of this happens inside it, and the node id
that a side claims must also be the one that its certificate names.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Iterable
from dataclasses import field
from random import Random
from uuid import UUID

from ..seam import Buffer, frozen
from .tls import ChannelTls, certified_name

MAX_MESSAGE = 768
"""Bytes of the largest handshake message; what a stranger can make us hold."""

MAX_NAME = 255
"""Bytes of a service name or a cluster id."""

_MAGIC = b"LOGBOAT\x01"
_NONCE_SIZE = 32
_PROOF_SIZE = 32
_HELLO = struct.Struct(f">8s{_NONCE_SIZE}si16siBB")
_WELCOME = struct.Struct(f">8s{_NONCE_SIZE}si16s")


class HandshakeFailed(Exception):
    """The other side is not who it must be, or does not speak this protocol."""


@frozen
class Credential:
    """Who we are and the secret that proves membership of the cluster."""

    secret: bytes
    node_id: int
    directory_id: UUID
    cluster_id: str
    tls: ChannelTls | None = field(default=None, repr=False)
    """Where it is set, a peer without TLS and a certificate of its own is refused."""

    def __repr__(self) -> str:
        return f"Credential(node_id={self.node_id}, cluster_id={self.cluster_id!r})"


@frozen
class ChannelPeer:
    """The proven identity at the other end, and what the connection is for."""

    node_id: int
    directory_id: UUID
    service: str


@frozen
class Session:
    """What a finished handshake yields: the peer and one key per direction."""

    peer: ChannelPeer
    send_key: bytes
    receive_key: bytes


@frozen
class Step:
    """What to send next, and the session once this side has nothing left to check."""

    reply: bytes | None
    session: Session | None


class _Handshake:
    """What both sides know of the other's certificate."""

    def __init__(self, credential: Credential) -> None:
        self.credential = credential
        self._certified: Iterable[str] = ()

    def certified(self, names: Iterable[str]) -> None:
        """TLS stands, and the other side's certificate holds these names."""
        self._certified = names

    def _check_certified(self, node_id: int) -> None:
        """Raises HandshakeFailed unless TLS is off, or the certificate is this node's."""
        name = certified_name(node_id)
        if self.credential.tls is not None and name not in self._certified:
            held = ", ".join(sorted(self._certified)) or "no DNS name"
            raise HandshakeFailed(f"its certificate is for {held}, not for {name}")


class DialerHandshake(_Handshake):
    """The connecting side: hello -> (welcome) -> proof, done."""

    def __init__(
        self, credential: Credential, rng: Random, *, service: str, expected_node_id: int
    ) -> None:
        super().__init__(credential)
        self._service = service
        self.expected_node_id = expected_node_id
        self._hello = _encode_hello(credential, _nonce(rng), service, expected_node_id)

    def first_message(self) -> bytes | None:
        """Raises HandshakeFailed when a certificate is not that of the expected node."""
        self._check_certified(self.expected_node_id)
        return self._hello

    def receive(self, message: Buffer) -> Step:
        """Take the listener's welcome. Raises HandshakeFailed."""
        data = bytes(message)
        if len(data) != _WELCOME.size + _PROOF_SIZE:
            raise HandshakeFailed(f"welcome of {len(data)} bytes")
        welcome, proof = data[: _WELCOME.size], data[_WELCOME.size :]
        magic, _, node_id, directory_id = _WELCOME.unpack(welcome)
        if magic != _MAGIC:
            raise HandshakeFailed("not a Logboat inter-node listener")
        keys = _Keys(self.credential, self._hello + welcome)
        if not hmac.compare_digest(proof, keys.listener_proof):
            raise HandshakeFailed("the listener does not hold this cluster's secret")
        if node_id != self.expected_node_id:
            raise HandshakeFailed(f"node {node_id} answers, expected {self.expected_node_id}")
        peer = ChannelPeer(node_id, UUID(bytes=directory_id), self._service)
        session = Session(peer, send_key=keys.dialer_key, receive_key=keys.listener_key)
        return Step(keys.dialer_proof, session)


class ListenerHandshake(_Handshake):
    """The accepting side: (hello) -> welcome -> (proof), done."""

    def __init__(self, credential: Credential, rng: Random) -> None:
        super().__init__(credential)
        self._rng = rng
        self._keys: _Keys | None = None
        self._peer: ChannelPeer | None = None

    def first_message(self) -> bytes | None:
        return None

    def receive(self, message: Buffer) -> Step:
        """Take the dialer's hello, then its proof. Raises HandshakeFailed."""
        if self._keys is None or self._peer is None:
            return Step(self._on_hello(bytes(message)), None)
        if not hmac.compare_digest(bytes(message), self._keys.dialer_proof):
            raise HandshakeFailed("the dialer does not hold this cluster's secret")
        session = Session(
            self._peer, send_key=self._keys.listener_key, receive_key=self._keys.dialer_key
        )
        return Step(None, session)

    def _on_hello(self, hello: bytes) -> bytes:
        node_id, directory_id, wanted_id, service, cluster_id = _decode_hello(hello)
        # A wrong address is told apart from a wrong secret, for the log line's sake only: both
        # names are also part of the transcript.
        if cluster_id != self.credential.cluster_id:
            raise HandshakeFailed(f"the dialer belongs to cluster {cluster_id!r}")
        if wanted_id != self.credential.node_id:
            raise HandshakeFailed(f"the dialer looks for node {wanted_id}")
        self._check_certified(node_id)
        welcome = _WELCOME.pack(
            _MAGIC,
            _nonce(self._rng),
            self.credential.node_id,
            self.credential.directory_id.bytes,
        )
        self._peer = ChannelPeer(node_id, directory_id, service)
        self._keys = _Keys(self.credential, hello + welcome)
        return welcome + self._keys.listener_proof


class _Keys:
    """Everything that is derived from the secret and one transcript."""

    def __init__(self, credential: Credential, transcript: bytes) -> None:
        # The cluster id goes into the key as well: one secret reused for two clusters by mistake
        # still does not join them.
        cluster_key = _hmac(
            credential.secret, b"logboat cluster\0" + credential.cluster_id.encode()
        )
        self.listener_proof = _hmac(cluster_key, b"listener proof\0" + transcript)
        self.dialer_proof = _hmac(cluster_key, b"dialer proof\0" + transcript)
        self.listener_key = _hmac(cluster_key, b"listener frames\0" + transcript)
        self.dialer_key = _hmac(cluster_key, b"dialer frames\0" + transcript)


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _nonce(rng: Random) -> bytes:
    return rng.randbytes(_NONCE_SIZE)


def _encode_hello(
    credential: Credential, nonce: bytes, service: str, expected_node_id: int
) -> bytes:
    names = [service.encode(), credential.cluster_id.encode()]
    if any(len(name) > MAX_NAME for name in names):
        raise ValueError(f"service and cluster id take at most {MAX_NAME} bytes each")
    fixed = _HELLO.pack(
        _MAGIC,
        nonce,
        credential.node_id,
        credential.directory_id.bytes,
        expected_node_id,
        len(names[0]),
        len(names[1]),
    )
    return fixed + names[0] + names[1]


def _decode_hello(hello: bytes) -> tuple[int, UUID, int, str, str]:
    """node id, directory id, wanted node id, service, cluster id; or HandshakeFailed."""
    if not hello.startswith(_MAGIC) or len(hello) < _HELLO.size:
        raise HandshakeFailed("not a Logboat node")
    _, _, node_id, directory_id, wanted_id, service_size, cluster_size = _HELLO.unpack_from(hello)
    names = hello[_HELLO.size :]
    if len(names) != service_size + cluster_size:
        raise HandshakeFailed("hello of a wrong length")
    try:
        service, cluster_id = names[:service_size].decode(), names[service_size:].decode()
    except UnicodeDecodeError:
        raise HandshakeFailed("hello with names that are not text") from None
    return node_id, UUID(bytes=directory_id), wanted_id, service, cluster_id
