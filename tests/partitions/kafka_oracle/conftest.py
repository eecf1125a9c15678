"""Kafka's own storage code, looked for once per run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.partitions.kafka_oracle.oracle import KafkaStorage, kafka_storage


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> KafkaStorage:
    return kafka_storage(_shared_folder(tmp_path_factory))


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this run; its parallel workers have theirs below it."""
    mine = tmp_path_factory.getbasetemp()
    return mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine
