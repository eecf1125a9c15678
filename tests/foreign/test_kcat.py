"""kcat from Debian: librdkafka 2.0, which silently drops codecs unless Produce starts at 0."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from logboat.testing import LocalCluster


def kcat(program: str, arguments: list[str], stdin: str = "") -> str:
    done = subprocess.run(
        [program, *arguments], input=stdin, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.processes
@pytest.mark.foreign
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kcat_writes_and_reads_lines(
    cluster: LocalCluster, fresh: Callable[[str], str], tool: Callable[[str], str], codec: str
) -> None:
    topic = fresh("kcat")
    lines = "".join(f"line {number} {'x' * 100}\n" for number in range(200))
    where = ["-b", cluster.bootstrap_servers]
    kcat(tool("kcat"), [*where, "-P", "-t", topic, "-z", codec, "-X", "acks=all", "-p", "0"], lines)
    assert kcat(tool("kcat"), [*where, "-C", "-t", topic, "-o", "beginning", "-e", "-q"]) == lines


@pytest.mark.processes
@pytest.mark.foreign
def test_kcat_reads_in_a_group(
    cluster: LocalCluster, fresh: Callable[[str], str], tool: Callable[[str], str]
) -> None:
    topic = fresh("kcat-group")
    where = ["-b", cluster.bootstrap_servers]
    kcat(tool("kcat"), [*where, "-P", "-t", topic], "one\ntwo\n")
    reset = ["-X", "auto.offset.reset=earliest"]
    read = kcat(tool("kcat"), [*where, "-G", fresh("g"), "-q", "-c", "2", *reset, topic])
    assert sorted(read.split()) == ["one", "two"]
