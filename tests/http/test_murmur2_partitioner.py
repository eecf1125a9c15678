"""Keys go where Java's producer sends them."""

from __future__ import annotations

from random import Random

import pytest

from logboat.node.http.partitioner import Partitioner
from logboat.seam.murmur2 import murmur2


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        # What Kafka's own unit test of its partitioner expects.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed % 2**32


def test_a_key_always_goes_to_the_same_partition() -> None:
    partitions = {Partitioner(7, [0, 3], Random(n)).partition_for(b"key") for n in range(20)}
    assert len(partitions) == 1


def test_keyless_records_of_one_request_stay_together_on_a_partition_with_a_leader() -> None:
    seen = set()
    for seed in range(50):
        partitioner = Partitioner(5, [1, 4], Random(seed))
        of_request = {partitioner.partition_for(None) for _ in range(10)}
        assert len(of_request) == 1
        seen |= of_request
    assert seen == {1, 4}


def test_murmur2_agrees_with_kafka_python_and_librdkafka_on_arbitrary_bytes() -> None:
    from kafka.partitioner.default import murmur2 as reference

    rng = Random(5)
    for length in range(70):
        data = rng.randbytes(length)
        assert murmur2(data) == reference(data) % 2**32
