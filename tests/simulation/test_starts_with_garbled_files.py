"""A whole node starts with a file that a crash, a person or a bad sector has garbled: it serves, or
it ends with a sentence that names the file."""

from __future__ import annotations

import functools
import signal

from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.cluster import Cluster
from logboat.jepsen_style.simulation.kafka_client import KafkaClient
from logboat.partitions.storage import DirectoryRefused
from logboat.seam import Fatal

TOPIC = "t"
ALONE = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
}

ZEROS_KEPT = 4096

Files = dict[str, bytes]


async def produce(client: KafkaClient) -> None:
    for number in range(5):
        await client.produce(TOPIC, 0, [b"%d" % number])


@functools.cache
def image(*, clean: bool) -> Files:
    """Of a node with a topic, after a stop or a kill."""
    with World(1) as world:
        cluster = Cluster(world, nodes=1, settings=ALONE)
        cluster.start()
        cluster.run(lambda client: client.create_topic(TOPIC, replication_factor=1))
        cluster.run(produce)
        host = cluster.hosts[1]
        if clean:
            host.signal(signal.SIGTERM)
            world.run_until(lambda: not host.alive, within=30)
        else:
            world.run(6.0)  # A checkpoint.
            host.kill()
        return {path: trimmed(bytes(data)) for path, data in host.drive.files().items()}


def trimmed(data: bytes) -> bytes:
    """Journals are zeros for the most part, megabytes of them, made ahead."""
    end = len(data.rstrip(b"\0"))
    return data[: end + ZEROS_KEPT]


def start_with(files: Files, garbled: str) -> None:
    with World(1) as world:
        ended: list[BaseException | None] = []
        world.on_host_ended = lambda host, error: ended.append(error)
        cluster = Cluster(world, nodes=1, settings=ALONE)
        host = cluster.hosts[1]
        for path, data in files.items():
            host.drive.make_dirs(path.rpartition("/")[0])
            node = host.drive.open_file(path, create=True)
            node.write(0, data)
            node.flush_to(node.mark())
        cluster.start()
        world.run(8.0)
        if not host.alive:
            (error,) = ended
            assert isinstance(error, Fatal | DirectoryRefused), repr(error)
            # The quorum knows the directory by its id, and says what to do.
            named = garbled in str(error) or "logboat quorum replace-voter" in str(error)
            assert named, str(error)


def test_the_image_holds_what_a_start_reads() -> None:
    names = [path.rpartition("/")[2] for path in image(clean=True)]
    for name in ("meta.properties", "voters", ".kafka_cleanshutdown", "partition.metadata"):
        assert name in names, names
    assert any(name.startswith("journal-") for name in names)
    start_with(image(clean=True), "")
    start_with(image(clean=False), "")


@settings(max_examples=25)
@given(choices=st.data(), clean=st.booleans())
def test_any_garbled_file_is_survived_or_named(choices: st.DataObject, clean: bool) -> None:
    files = image(clean=clean)
    path = choices.draw(st.sampled_from([path for path, data in files.items() if data]))
    data = bytearray(files[path])
    written = len(bytes(data).rstrip(b"\0"))
    at = choices.draw(st.integers(0, max(0, written - 1)))
    garbage = choices.draw(
        st.one_of(st.binary(min_size=1, max_size=20), st.sampled_from([b"\0" * 64, b"\n", b"9"]))
    )
    if choices.draw(st.booleans()):
        data[at : at + len(garbage)] = garbage[: len(data) - at]
    else:
        data[at:] = garbage
    start_with(files | {path: bytes(data)}, path)
