"""Apache Kafka's own client, where Java and Maven are at hand."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from logboat.testing import LocalCluster
from tests.foreign.clients import on_java


@pytest.mark.processes
@pytest.mark.foreign
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_java_client_produces_and_consumes_in_a_group(
    cluster: LocalCluster, fresh: Callable[[str], str], java_classes: Path | None, protocol: str
) -> None:
    program = on_java(java_classes, "RoundTrip")
    if program is None:
        pytest.skip("Java, Maven or kafka-clients cannot be had")
    done = subprocess.run(
        [*program, cluster.bootstrap_servers, fresh("java"), fresh("g"), protocol],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ok"
