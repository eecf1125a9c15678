"""The whole image as bytes: snapshots, digests, and the comparison of two images.

Snapshot: `"LBSN" | u8 format | u8 level | 32 bytes SHA-256 of the body | body` (RULES A2, A3).
The digest of an image is that same SHA-256: two nodes with equal images have equal digests.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..seam import Fatal
from .image import ClusterImage, ImageChange, TopicImage
from .levels import FIRST_LEVEL, LATEST_LEVEL, VERSION_FEATURE, level_of
from .packing import Malformed, Packer, packer_of

SNAPSHOT_FORMAT = 1

_MAGIC = b"LBSN"
_HEADER = struct.Struct(">4sBB32s")

_PACKERS: Mapping[int, Packer[ClusterImage]] = MappingProxyType(
    {
        # topic_names only turns topics around.
        level: packer_of(ClusterImage, level, without=("topic_names",))
        for level in range(FIRST_LEVEL, LATEST_LEVEL + 1)
    }
)


def empty_image(cluster_id: str) -> ClusterImage:
    """What every node of a new cluster starts from."""
    return ClusterImage(
        index=0,
        cluster_id=cluster_id,
        controller_id=-1,
        controller_epoch=-1,
        controller_term=-1,
        features=MappingProxyType({VERSION_FEATURE: FIRST_LEVEL}),
    )


def digest_of(image: ClusterImage) -> bytes:
    """Equal for equal images only, on every node and release (RULES A3)."""
    return hashlib.sha256(_PACKERS[level_of(image)].encode(image)).digest()


def encode_snapshot(image: ClusterImage) -> bytes:
    """In the format of the image's own level, so that a node of that level can read it (A2)."""
    level = level_of(image)
    body = _PACKERS[level].encode(image)
    return _HEADER.pack(_MAGIC, SNAPSHOT_FORMAT, level, hashlib.sha256(body).digest()) + body


def decode_snapshot(data: bytes) -> ClusterImage:
    """Raises Fatal: without its state a node cannot go on."""
    if len(data) < _HEADER.size:
        raise Fatal(f"a metadata snapshot of {len(data)} bytes is too short")
    magic, form, level, digest = _HEADER.unpack_from(data)
    packer = _PACKERS.get(level)
    if magic != _MAGIC or form != SNAPSHOT_FORMAT or packer is None:
        raise Fatal(
            f"the metadata snapshot has format {form} and level {level}, this release knows format "
            f"{SNAPSHOT_FORMAT} and levels up to {LATEST_LEVEL}: start a newer release on this node"
        )
    body = data[_HEADER.size :]
    if hashlib.sha256(body).digest() != digest:
        raise Fatal("the metadata snapshot does not match its digest")
    try:
        image = packer.decode(body)
    except Malformed as error:
        raise Fatal(f"the metadata snapshot is malformed: {error}") from error
    names = {topic.topic_id: name for name, topic in image.topics.items()}
    return replace(image, topic_names=MappingProxyType(names))


def share_unchanged(image: ClusterImage, known: ClusterImage) -> ClusterImage:
    """The same image, with those topics of `known` that are equal: comparing is cheap then."""
    topics = dict(image.topics)
    for name, topic in image.topics.items():
        old = known.topics.get(name)
        if old is not None and old == topic:
            topics[name] = old
    return replace(image, topics=MappingProxyType(topics))


def compare(before: ClusterImage, after: ClusterImage) -> ImageChange:
    """One step between any two images, by topic id (RULES A7).

    Topics that are other objects count as changed: see `share_unchanged`.
    """
    return ImageChange(
        before=before,
        after=after,
        deleted_topics=_deleted_topics(before, after),
        changed_topics=_changed_topics(before, after),
        changed_brokers=_changed_brokers(before, after),
    )


def _deleted_topics(before: ClusterImage, after: ClusterImage) -> tuple[TopicImage, ...]:
    if before.topic_names is after.topic_names:
        return ()
    gone = [t for t in before.topics.values() if t.topic_id not in after.topic_names]
    return tuple(sorted(gone, key=lambda topic: topic.name))


def _changed_topics(before: ClusterImage, after: ClusterImage) -> tuple[TopicImage, ...]:
    if before.topics is after.topics:
        return ()
    known = before.topics
    changed = [topic for name, topic in after.topics.items() if known.get(name) is not topic]
    return tuple(sorted(changed, key=lambda topic: topic.name))


def _changed_brokers(before: ClusterImage, after: ClusterImage) -> tuple[int, ...]:
    if before.brokers is after.brokers:
        return ()
    ids = before.brokers.keys() | after.brokers.keys()
    return tuple(sorted(id for id in ids if before.brokers.get(id) != after.brokers.get(id)))
