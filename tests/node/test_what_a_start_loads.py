"""A start loads what its next step needs and nothing else: modules are counted, not seconds."""

from __future__ import annotations

import subprocess
import sys

HTTP = {"aiohttp", "aiohttp.web", "attr", "multidict", "yarl", "orjson"}
COMMAND_LINE = {"typer", "click", "rich"}
METADATA_OF_PACKAGES = {"importlib.metadata", "email", "crc32c", "crc32c._cli"}
OTHERS = {"prometheus_client", "confluent_kafka", "kafka", "multiprocessing", "unittest"}


def loaded_by(statement: str) -> set[str]:
    """Modules of a fresh process after `statement`, without those that any process here has."""
    script = (
        f"import sys; before = set(sys.modules)\n{statement}\nprint(*(set(sys.modules)-before))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    return set(answer.stdout.split())


def test_a_node_that_serves_its_first_record_has_not_loaded_http_nor_the_command_line() -> None:
    loaded = loaded_by("import logboat.node.__main__, logboat.node.run")

    assert "logboat.node.run" in loaded
    assert not loaded & (HTTP | COMMAND_LINE | METADATA_OF_PACKAGES | OTHERS)


def test_no_handler_is_loaded_before_it_is_asked_for() -> None:
    loaded = loaded_by("import logboat.node.run")

    assert not {name for name in loaded if name.startswith("logboat.node.handlers.")}


def test_a_wrong_configuration_is_refused_before_the_parts_are_loaded() -> None:
    loaded = loaded_by("import logboat.node.__main__")

    parts = ("raftlog", "partitions", "groups", "node.run")
    assert not {name for name in loaded if name.startswith(tuple(f"logboat.{p}" for p in parts))}


def test_the_command_that_starts_a_cluster_loads_no_node_and_no_http_client() -> None:
    loaded = loaded_by("import logboat.client.cli, logboat.client.cluster.up")

    parts = ("seam", "wire", "raftlog", "metadata", "partitions", "groups", "node")
    assert not {name for name in loaded if name.startswith(tuple(f"logboat.{p}" for p in parts))}
    assert not loaded & (HTTP | OTHERS | {"asyncio", "http.client", "ssl", "rich"})


def test_http_is_loaded_without_reading_certificate_authorities() -> None:
    loaded_by(
        "import ssl; read = ssl.SSLContext.set_default_verify_paths\n"
        "from logboat.node.http import _load\n_load()\n"
        "assert ssl.SSLContext.set_default_verify_paths is read\n"
        "from aiohttp import connector\n"
        "assert connector._SSL_CONTEXT_VERIFIED.cert_store_stats()['x509'] == 0"
    )


def test_a_coordinator_loads_the_records_that_it_writes_and_no_others() -> None:
    loaded = loaded_by("import logboat.node.run")

    records = {n for n in loaded if n.startswith("logboat.wire.coordinator_records.")}
    others = ("share_", "streams_", "transaction_", "legacy_")
    assert records
    assert not {n for n in records if n.rpartition(".")[2].startswith(others)}
