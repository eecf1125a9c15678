"""`meta.properties` (whose directory is this?), `partition.metadata` and the clean-shutdown marker.

Text formats are Kafka's. Ids on disk are 22 characters of URL-safe base64.
"""

from __future__ import annotations

import base64
import binascii
import json
from uuid import UUID

from ...seam import frozen

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
CLEAN_MARKER = ".kafka_cleanshutdown"
FAILED_SYNC_MARKER = ".sync_failed"

META_VERSION = 1
UNKNOWN_BROKER_EPOCH = -1


def encode_uuid(uuid: UUID) -> str:
    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID:
    """Raises ValueError."""
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except binascii.Error as error:
        raise ValueError(f"{text!r} is no id: {error}") from None


@frozen
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: UUID

    def encode(self) -> bytes:
        return (
            f"version={META_VERSION}\n"
            f"cluster.id={self.cluster_id}\n"
            f"node.id={self.node_id}\n"
            f"directory.id={encode_uuid(self.directory_id)}\n"
        ).encode()

    @classmethod
    def decode(cls, data: bytes) -> MetaProperties:
        """Unknown keys are ignored. Raises ValueError with a reason."""
        values: dict[str, str] = {}
        for line in data.decode("utf-8", errors="replace").splitlines():
            text = line.strip()
            if text and not text.startswith(("#", "!")):
                key, _, value = text.partition("=")
                values[key.strip()] = value.strip()
        version = values.get("version")
        if version != str(META_VERSION):
            raise ValueError(f"version {version}, known is {META_VERSION}")
        for key in ("cluster.id", "node.id", "directory.id"):
            if not values.get(key):
                raise ValueError(f"no {key}")
        return cls(
            values["cluster.id"], int(values["node.id"]), decode_uuid(values["directory.id"])
        )


def encode_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> UUID:
    """Raises ValueError, also for the zero id."""
    values = dict(
        (key.strip(), value.strip())
        for key, _, value in (line.partition(":") for line in data.decode().splitlines())
    )
    if int(values.get("version", "-1")) < 0:
        raise ValueError("no version")
    topic_id = decode_uuid(values.get("topic_id", ""))
    if topic_id.int == 0:
        raise ValueError("zero topic id")
    return topic_id


def encode_clean_marker(broker_epoch: int) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}).encode()


def decode_clean_marker(data: bytes) -> int:
    """The broker epoch of the stop. A file that cannot be read still marks an orderly stop, but
    gives no epoch: UNKNOWN_BROKER_EPOCH."""
    try:
        epoch = json.loads(data)["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return UNKNOWN_BROKER_EPOCH
    return epoch if isinstance(epoch, int) else UNKNOWN_BROKER_EPOCH
