"""Apache Kafka's own client, where Java and Maven are at hand."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from logboat.testing import LocalCluster

HERE = Path(__file__).parent / "java"


@pytest.fixture
def class_path(tmp_path: Path) -> str:
    """Kafka's client and what it needs. Skips where they cannot be had."""
    maven = shutil.which("mvn")
    if shutil.which("java") is None or maven is None:
        pytest.skip("java and mvn are not installed")
    arguments = ["-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    done = subprocess.run(
        [maven, *arguments, f"-DoutputDirectory={tmp_path}"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"Maven cannot fetch kafka-clients: {done.stdout[-300:]}")
    return f"{tmp_path}/*"


@pytest.mark.processes
@pytest.mark.foreign
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_java_client_produces_and_consumes_in_a_group(
    cluster: LocalCluster, fresh: Callable[[str], str], class_path: str, protocol: str
) -> None:
    program = ["java", "-cp", class_path, str(HERE / "RoundTrip.java")]
    done = subprocess.run(
        [*program, cluster.bootstrap_servers, fresh("java"), fresh("g"), protocol],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ok"
