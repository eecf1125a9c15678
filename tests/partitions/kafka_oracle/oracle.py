"""Apache Kafka's own storage code, run under Java on folders that we wrote."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


class KafkaStorage:
    """Kafka's jars, wherever Maven put them."""

    def __init__(self, class_path: str) -> None:
        self._class_path = class_path

    def run(self, program: str, *arguments: object) -> str:
        """What it prints; the test fails when it does."""
        done = subprocess.run(
            ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", self._class_path, program]
            + [str(argument) for argument in arguments],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def dump(self, *files: Path) -> str:
        """Kafka's DumpLogSegments, with every record read and every index entry checked."""
        return self.run(
            "kafka.tools.DumpLogSegments",
            "--deep-iteration",
            "--files",
            ",".join(map(str, files)),
        )


def kafka_storage(folder: Path) -> KafkaStorage:
    """Skips where Java, Maven or the jars cannot be had. Maven takes seconds to say where the jars
    are: what it said is kept in `folder`."""
    maven = shutil.which("mvn")
    if shutil.which("java") is None or maven is None:
        pytest.skip("java and mvn are not installed")
    kept = folder / "kafka_class_path"
    with open(folder / "kafka_class_path.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _ask_maven(maven, kept)
    return KafkaStorage(kept.read_text().strip())


def _ask_maven(maven: str, target: Path) -> None:
    found = target.with_suffix(".new")
    quick_start = "-XX:TieredStopAtLevel=1 -Xshare:auto"
    command = [maven, "-q", "-B", "-f", str(HERE / "pom.xml")]
    done = subprocess.run(
        [*command, "dependency:build-classpath", f"-Dmdep.outputFile={found}"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "MAVEN_OPTS": quick_start},
    )
    if done.returncode != 0:
        pytest.skip(f"Maven cannot fetch Kafka: {done.stdout[-300:]}")
    found.replace(target)
