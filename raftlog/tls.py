"""TLS under a channel, with certificates at both ends. No I/O, but that OpenSSL reads the files.

A certificate proves a node id by the DNS name `node-<id>` among its subject alternative names. It
does not replace the cluster secret: the handshake and the MAC of every frame stay, so a stolen
certificate alone opens nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, cast

from ..seam import Buffer, frozen

_RECEIVE_BYTES = 64 * 1024
_ENCRYPT_BYTES = 256 * 1024
"""Handed to the transport at once: beyond it, plain and encrypted bytes would lie side by side."""


@frozen
class ChannelTls:
    """The two ends of one node's channels."""

    listening: ssl.SSLContext
    dialing: ssl.SSLContext

    @classmethod
    def of_files(
        cls, *, certificate: str, authorities: str, password: str | None = None
    ) -> ChannelTls:
        """`certificate` holds this node's private key and chain, `authorities` whom it believes.

        Both are PEM files. Raises OSError (ssl.SSLError among them) for what cannot be used.
        """
        contexts = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )
        for context in contexts:
            # Both ends are this program.
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_REQUIRED
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate, password=password or "")
            context.load_verify_locations(authorities)
        return cls(*contexts)

    def accept(self, transport: asyncio.Transport) -> TlsTransport:
        return TlsTransport(transport, self.listening, None)

    def dial(self, transport: asyncio.Transport, node_id: int) -> TlsTransport:
        """Raises ssl.SSLError, later, when the certificate is not for that node."""
        return TlsTransport(transport, self.dialing, certified_name(node_id))


class TlsTransport(asyncio.Transport):
    """The transport of a channel, encrypted into another one; its protocol hands in what arrives.

    asyncio's own TLS would take a connection over before the acceptor sees it, and uvloop's cannot
    be begun later without losing bytes. Here a stranger in the midst of TLS is held to the
    same bound, deadline and log line as any other.
    """

    def __init__(
        self, transport: asyncio.Transport, context: ssl.SSLContext, server_hostname: str | None
    ) -> None:
        super().__init__()
        self.established = False
        self._transport = transport
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
        )
        self._received = memoryview(bytearray(_RECEIVE_BYTES))

    # What arrives

    def space(self) -> memoryview:
        return self._received

    def received(self, count: int) -> None:
        """`count` bytes have been written to the start of `space()`."""
        self._incoming.write(self._received[:count])

    def shake_hands(self) -> bool:
        """Whether TLS stands now. Raises ssl.SSLError."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._flush()  # An alert tells the other side why.
        self.established = True
        return True

    def read_into(self, space: memoryview) -> int:
        """How many bytes were decrypted; 0 until more have come. Raises ssl.SSLError."""
        try:
            # Typed for reading without a buffer.
            count = cast(int, self._tls.read(len(space), space))
        except ssl.SSLWantReadError:
            return 0
        finally:
            self._flush()
        if count == 0:
            self.close()  # The other side has said that nothing more comes.
        return count

    @property
    def names(self) -> Iterable[str]:
        """The DNS names in the other side's certificate, which has been checked."""
        certificate: dict[str, Any] = self._tls.getpeercert() or {}
        alternatives = certificate.get("subjectAltName", ())
        return tuple(value for kind, value in alternatives if kind == "DNS")

    @property
    def version(self) -> str | None:
        return self._tls.version()

    # What leaves

    def write(self, data: Buffer) -> None:
        """What comes after a close, also after the other side's, is dropped as by any transport."""
        if self.is_closing():
            return
        view = memoryview(data)
        for start in range(0, len(view), _ENCRYPT_BYTES):
            piece = view[start : start + _ENCRYPT_BYTES]
            while piece:
                piece = piece[self._tls.write(piece) :]
            self._flush()

    def writelines(self, parts: Iterable[Buffer]) -> None:
        for part in parts:
            self.write(part)

    def _flush(self) -> None:
        if self._outgoing.pending and not self._transport.is_closing():
            self._transport.write(self._outgoing.read())

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    # Flow and end

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def refuse(self) -> None:
        """Close, after what was said: an alert should reach the other side."""
        self._transport.close()

    def close(self) -> None:
        if self.established and not self.is_closing():
            with suppress(ssl.SSLError):
                self._tls.unwrap()  # Says that nothing more comes, and waits for no answer.
            self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


def certified_name(node_id: int) -> str:
    """By which a certificate names a node."""
    return f"node-{node_id}"


def told(error: ssl.SSLError) -> str:
    """Why TLS does not come about, for a person."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    reason = error.reason or str(error)
    return _REASONS.get(reason) or f"TLS fails: {reason.replace('_', ' ').lower()}"


_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "HTTP_REQUEST": "it does not speak TLS",
    "PACKET_LENGTH_TOO_LONG": "it does not speak TLS",
    "RECORD_LAYER_FAILURE": "it does not speak TLS",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not know who signed this node's certificate",
}

_RECORDS = (0x1503, 0x1603)
"""The first two bytes of a TLS record: an alert or a handshake of any version."""


def looks_like_tls(first_word: int) -> bool:
    """Whether these four bytes, read as an unsigned length, begin a TLS record."""
    return first_word >> 16 in _RECORDS
