"""One three-node cluster of real processes for all foreign clients."""

from __future__ import annotations

import gc
import shutil
import subprocess
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from logboat.testing import PATIENT, LocalCluster
from tests.foreign.clients import HERE, NODE_MODULES


@pytest.fixture(scope="package")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3, settings=PATIENT) as running:
        yield running


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Names that no other test uses."""
    return lambda prefix: f"{prefix}-{uuid.uuid4().hex[:8]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In all tests of this part leaks are not ours (`foreign_leaks`)."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="package", autouse=True)
def leaks_of_others() -> Iterator[None]:
    """Collected once, for a whole collection takes a third of a second."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def node_modules(absent: Callable[[str], NoReturn]) -> Path:
    """With kafkajs in it."""
    if not (NODE_MODULES / "kafkajs").is_dir():
        absent("kafkajs")
    return NODE_MODULES


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A folder with Kafka's client, what it needs, and our Java programs for it; None where Java
    and Maven, or the artifacts, cannot be had."""
    maven, compiler = shutil.which("mvn"), shutil.which("javac")
    if maven is None or compiler is None:
        return None
    folder = tmp_path_factory.mktemp("java")
    java = Path(__file__).parent / "java"
    copy = ["-q", "-B", "-f", str(java / "pom.xml"), "dependency:copy-dependencies"]
    programs = [str(program) for program in java.glob("*.java")]
    for command in (
        [maven, *copy, f"-DoutputDirectory={folder}"],
        [compiler, "-cp", f"{folder}/*", "-d", str(folder), *programs],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode != 0:
            return None
    return folder
